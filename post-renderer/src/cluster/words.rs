//! Errors of others in words that quote no secret. A parser quotes the line of the kubeconfig that it
//! does not understand, a failed credential plugin is quoted with all that it printed, and some
//! servers repeat the request.

use kube::{
    client::AuthError,
    config::{AuthInfo, KubeconfigError},
};
use secrecy::ExposeSecret;
use tower::BoxError;

/// A kubeconfig that cannot be read: where it is wrong, not what stands there.
pub(super) fn of_kubeconfig(error: KubeconfigError) -> BoxError {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!("it is wrong at line {}, column {}", at.line(), at.column()).into(),
            None => "it is no kubeconfig".into(),
        },
        other => Box::new(other),
    }
}

/// Credentials that cannot be had. What a plugin says on standard error is for people; on standard
/// output it prints credentials.
pub(super) fn of_credentials(error: kube::Error) -> BoxError {
    match error {
        kube::Error::Auth(AuthError::AuthExecRun { out, .. }) => {
            let said = one_line(String::from_utf8_lossy(&out.stderr).trim());
            format!("its credential plugin failed ({}): {said}", out.status).into()
        }
        kube::Error::Auth(AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed) => {
            "its credential plugin printed no ExecCredential with a status".into()
        }
        other => Box::new(other),
    }
}

/// Whether the token, if there is one, can stand in a header. kube panics where it cannot.
pub(super) fn can_be_sent(credentials: &AuthInfo) -> bool {
    let token = credentials.token.as_ref().map(ExposeSecret::expose_secret);
    token.is_none_or(|token| http::HeaderValue::from_str(token).is_ok())
}

/// The beginning of a text, in one line, without credentials of HTTP.
pub(super) fn one_line(text: &str) -> String {
    let line: String =
        text.chars().take(500).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut hide = false;
    let words = line.split(' ').map(|word| {
        let shown = if hide && !word.is_empty() { "[redacted]" } else { word };
        let lower = word.to_ascii_lowercase();
        hide = hide && word.is_empty() || lower.ends_with("bearer") || lower.ends_with("basic");
        shown
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A URL, or what was meant to be one, without user and password.
pub(super) fn without_user(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("two\nlines\tand more", "two lines and more")]
    #[case("authorization: Bearer hunter2 host: x", "authorization: Bearer [redacted] host: x")]
    #[case(
        "{\"authorization\":\"Basic\r\n aHVudGVyMg==\"}",
        "{\"authorization\":\"Basic   [redacted]"
    )]
    #[case("BEARER hunter2", "BEARER [redacted]")]
    #[case("a bearer", "a bearer")]
    #[case("forbidden: User \"a\" cannot get it", "forbidden: User \"a\" cannot get it")]
    fn a_text_is_one_line_without_credentials(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(one_line(text), expected);
    }

    #[rstest]
    #[case("https://alice:hunter2@host:1/x", "https://host:1/x")]
    #[case("alice:hunter2@ho st", "ho st")]
    #[case("https://a:b@c:d@host", "https://host")]
    #[case("https://host", "https://host")]
    fn a_url_is_shown_without_its_user(#[case] url: &str, #[case] expected: &str) {
        assert_eq!(without_user(url), expected);
    }
}
