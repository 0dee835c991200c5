//! `WWW-Authenticate`: what a registry demands.

use http::{HeaderMap, header};

/// What is demanded, as far as Belay can answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A token from there.
    Bearer { realm: String, service: Option<String> },
    /// User and password.
    Basic,
    /// Nothing that is understood.
    None,
}

/// Reads all headers. Where both are offered a token is preferred, as docker does.
pub(crate) fn of(headers: &HeaderMap) -> Challenge {
    let mut basic = false;
    let values = headers.get_all(header::WWW_AUTHENTICATE).iter();
    for text in values.filter_map(|value| value.to_str().ok()) {
        for challenge in http_auth::parse_challenges(text).unwrap_or_default() {
            let parameter = |wanted: &str| {
                let found =
                    challenge.params.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
                found.map(|(_, value)| value.to_unescaped())
            };
            if challenge.scheme.eq_ignore_ascii_case("bearer")
                && let Some(realm) = parameter("realm")
            {
                return Challenge::Bearer { realm, service: parameter("service") };
            }
            basic |= challenge.scheme.eq_ignore_ascii_case("basic");
        }
    }
    if basic { Challenge::Basic } else { Challenge::None }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    fn bearer(realm: &str, service: Option<&str>) -> Challenge {
        Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) }
    }

    #[rstest]
    #[case::bearer(&[r#"Bearer realm="https://a/t",service="s",scope="x""#], bearer("https://a/t", Some("s")))]
    #[case::lower_case(&[r#"bearer REALM="https://a/t""#], bearer("https://a/t", None))]
    #[case::unquoted(&["Bearer realm=a,service=s"], bearer("a", Some("s")))]
    #[case::escaped(&[r#"Bearer realm="a\"b""#], bearer("a\"b", None))]
    #[case::comma_within(&[r#"Bearer realm="https://a/t?x=1,2",service="s""#], bearer("https://a/t?x=1,2", Some("s")))]
    #[case::basic(&[r#"Basic realm="x""#], Challenge::Basic)]
    #[case::shouting(&[r#"BASIC realm="x""#], Challenge::Basic)]
    #[case::basic_alone(&["Basic"], Challenge::Basic)]
    #[case::both(&[r#"Basic realm="x", Bearer realm="a""#], bearer("a", None))]
    #[case::both_apart(&[r#"Basic realm="x""#, r#"Bearer realm="a""#], bearer("a", None))]
    #[case::unknown_first(&["Negotiate", r#"Basic realm="x""#], Challenge::Basic)]
    #[case::one_is_broken(&[r#"Bearer realm="a"#, r#"Basic realm="x""#], Challenge::Basic)]
    #[case::no_realm(&[r#"Bearer service="s""#], Challenge::None)]
    #[case::other(&["Digest realm=x"], Challenge::None)]
    #[case::empty(&[""], Challenge::None)]
    #[case::none(&[], Challenge::None)]
    fn a_challenge_is_read(#[case] values: &[&str], #[case] expected: Challenge) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(of(&headers), expected);
    }
}
