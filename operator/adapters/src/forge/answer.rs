//! What GitHub says to one request.

use std::sync::Arc;

use http::{HeaderMap, header};
use jiff::Timestamp;

/// A value of an answer, with what was beside it.
#[derive(Debug)]
pub struct Page<T> {
    /// The value.
    pub value: Arc<T>,
    /// Whether another page follows.
    pub more: bool,
}

impl<T> Clone for Page<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), more: self.more }
    }
}

/// What GitHub says. A transport that failed or an answer that makes no sense is a
/// [`ForgeError`](super::ForgeError) instead.
#[derive(Debug, Clone)]
pub enum Answer<T> {
    /// 200, and other than the last time.
    Fresh(Page<T>),
    /// 304: what was read the last time still holds.
    NotModified(Page<T>),
    /// 404: not there, or not for this credential.
    Missing,
    /// 301, 302, 307 or 308: the repository has another name now.
    Moved {
        /// The numeric id that the new place names; none where it is not a place on the same
        /// server by that id, which is then not followed.
        id: Option<u64>,
    },
    /// GitHub asks not to be called before then.
    Throttled {
        /// From when on it may be called again.
        until: Timestamp,
        /// Whether GitHub was asked at all, or the call was refused here because it had asked for
        /// patience before.
        asked: bool,
    },
    /// Any other 4xx: a bad credential, a permission that is missing, single sign-on.
    Denied {
        /// The status.
        status: u16,
    },
    /// 5xx, and every status that GitHub does not send.
    Upstream {
        /// The status.
        status: u16,
    },
}

impl<T> Answer<T> {
    /// The value, if there is one.
    pub fn page(&self) -> Option<&Page<T>> {
        match self {
            Self::Fresh(page) | Self::NotModified(page) => Some(page),
            _ => None,
        }
    }
}

/// Whether another page is named.
pub(crate) fn has_next(headers: &HeaderMap) -> bool {
    let mut links = headers.get_all(header::LINK).iter().filter_map(|link| link.to_str().ok());
    links.any(|links| links.split(',').any(|link| link.contains("rel=\"next\"")))
}

/// The repository that a redirect leads to.
///
/// Only a place below `base` that has the form `/repositories/ID…` counts: the id is what survives a
/// rename, and a request to another host would carry no credential, or the wrong one.
pub(crate) fn moved_to(headers: &HeaderMap, base: &reqwest::Url) -> Option<u64> {
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    let to = base.join(location).ok()?;
    if to.origin() != base.origin() {
        return None;
    }
    let path = to.path().strip_prefix(base.path().trim_end_matches('/'))?;
    let rest = path.strip_prefix("/repositories/")?;
    rest.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://api.github.com", "https://api.github.com/repositories/7/releases", Some(7))]
    #[case("https://api.github.com", "/repositories/7", Some(7))]
    #[case("https://ghes/api/v3", "https://ghes/api/v3/repositories/7/releases/latest", Some(7))]
    #[case("https://ghes/api/v3", "https://ghes/repositories/7", None)]
    #[case("https://api.github.com", "https://evil.example/repositories/7", None)]
    #[case("https://api.github.com", "http://api.github.com/repositories/7", None)]
    #[case("https://api.github.com", "//evil.example/repositories/7", None)]
    #[case("https://api.github.com", "/repositories/-7", None)]
    #[case("https://api.github.com", "/repositories/", None)]
    #[case("https://api.github.com", "/repos/acme/site", None)]
    #[case("https://api.github.com", "http://[", None)]
    fn only_an_id_on_the_same_server_is_followed(
        #[case] base: &str,
        #[case] location: &str,
        #[case] id: Option<u64>,
    ) {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_str(location).unwrap());
        assert_eq!(moved_to(&headers, &base.parse().unwrap()), id);
    }

    #[rstest]
    #[case("", false)]
    #[case("<https://x/?page=2>; rel=\"next\", <https://x/?page=9>; rel=\"last\"", true)]
    #[case("<https://x/?page=1>; rel=\"prev\"", false)]
    fn the_next_page_is_seen(#[case] link: &str, #[case] next: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::LINK, HeaderValue::from_str(link).unwrap());
        assert_eq!(has_next(&headers), next);
    }
}
