//! Who may see the debug pages.

use std::path::PathBuf;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::{HeaderMap, header};

/// No token is longer.
const LONGEST: usize = 64 << 10;

/// Who may see the debug pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Whoever reaches the address, which is a loopback one.
    Loopback,
    /// Who sends the token of this file. It is read anew each time: a Secret that is mounted changes
    /// under its name.
    Token(PathBuf),
}

/// Why somebody is not let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Denied {
    /// No token, or not this one.
    Token,
    /// The file has no token.
    Unreadable,
}

impl Access {
    pub(super) async fn check(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let path = match self {
            Self::Loopback => return Ok(()),
            Self::Token(path) => path,
        };
        let sent = bearer(headers).ok_or(Denied::Token)?;
        let wanted = match tokio::fs::read(path).await {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::error!(?path, %error, "read the token of the debug pages");
                return Err(Denied::Unreadable);
            }
        };
        let wanted = wanted.trim_ascii();
        if wanted.is_empty() || wanted.len() > LONGEST {
            tracing::error!(?path, "read the token of the debug pages: it is empty or too long");
            return Err(Denied::Unreadable);
        }
        verify_slices_are_equal(sent, wanted).map_err(|_| Denied::Token)
    }
}

/// The token of the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(only), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = only.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let value = |text: &&str| HeaderValue::from_str(text).unwrap();
        values.iter().map(|text| (header::AUTHORIZATION, value(text))).collect()
    }

    #[rstest]
    #[case(&["Bearer s3cret"], Ok(()))]
    #[case(&["bearer  s3cret "], Ok(()))]
    #[case(&[], Err(Denied::Token))]
    #[case(&["Bearer "], Err(Denied::Token))]
    #[case(&["Bearer"], Err(Denied::Token))]
    #[case(&["Bearer s3cre"], Err(Denied::Token))]
    #[case(&["Bearer s3cret2"], Err(Denied::Token))]
    #[case(&["Bearer S3CRET"], Err(Denied::Token))]
    #[case(&["Basic s3cret"], Err(Denied::Token))]
    #[case(&["s3cret"], Err(Denied::Token))]
    #[case::two(&["Bearer wrong", "Bearer s3cret"], Err(Denied::Token))]
    #[tokio::test]
    async fn only_the_token_of_the_file_lets_in(
        #[case] sent: &[&str],
        #[case] expected: Result<(), Denied>,
    ) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "s3cret\n").unwrap();
        let access = Access::Token(file.path().to_owned());
        assert_eq!(access.check(&headers(sent)).await, expected);
    }

    #[rstest]
    #[case::empty(Some("\n"))]
    #[case::gone(None)]
    #[tokio::test]
    async fn a_file_without_a_token_lets_nobody_in(#[case] content: Option<&str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let access = Access::Token(path);
        assert_eq!(access.check(&headers(&["Bearer "])).await, Err(Denied::Unreadable));
    }

    #[tokio::test]
    async fn a_token_that_was_changed_counts_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let access = Access::Token(file.path().to_owned());
        for token in ["one", "two"] {
            std::fs::write(file.path(), token).unwrap();
            let sent = headers(&[&format!("Bearer {token}")]);
            assert_eq!(access.check(&sent).await, Ok(()));
        }
        assert_eq!(access.check(&headers(&["Bearer one"])).await, Err(Denied::Token));
    }
}
