//! Entity tags, each with the value it stands for.
//!
//! A tag and its value live and die together, so a 304 always has a value to answer with. The key has
//! the credential in it: GitHub's tags belong to the token, and what one credential may read is not
//! for another.

use std::{any::Any, collections::HashMap, sync::Arc};

use super::Page;

/// What was read the last time.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) etag: http::HeaderValue,
    value: Arc<dyn Any + Send + Sync>,
    more: bool,
    used: u64,
}

impl Entry {
    /// The page, if it is of this type.
    pub(crate) fn page<T: Send + Sync + 'static>(&self) -> Option<Page<T>> {
        let value = self.value.clone().downcast().ok()?;
        Some(Page { value, more: self.more })
    }
}

/// At most so many entries; the one that was used longest ago goes first.
pub(crate) struct Etags {
    entries: HashMap<(u64, String), Entry>,
    limit: usize,
    uses: u64,
}

impl Etags {
    pub(crate) fn new(limit: usize) -> Self {
        Self { entries: HashMap::new(), limit: limit.max(1), uses: 0 }
    }

    /// What was read with this credential from this path.
    pub(crate) fn get(&mut self, credential: u64, path: &str) -> Option<Entry> {
        self.uses += 1;
        let entry = self.entries.get_mut(&(credential, path.to_owned()))?;
        entry.used = self.uses;
        Some(entry.clone())
    }

    /// Keeps what was read.
    pub(crate) fn put<T: Send + Sync + 'static>(
        &mut self,
        credential: u64,
        path: &str,
        etag: http::HeaderValue,
        page: &Page<T>,
    ) {
        self.uses += 1;
        let entry = Entry { etag, value: page.value.clone(), more: page.more, used: self.uses };
        self.entries.insert((credential, path.to_owned()), entry);
        while self.entries.len() > self.limit {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            self.entries.remove(&key);
        }
    }

    /// Forgets what is no longer true of a path.
    pub(crate) fn forget(&mut self, credential: u64, path: &str) {
        self.entries.remove(&(credential, path.to_owned()));
    }

    /// Forgets everything that another credential read.
    pub(crate) fn keep_only(&mut self, credential: u64) {
        self.entries.retain(|(owner, _), _| *owner == credential);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn page(value: u32) -> Page<u32> {
        Page { value: Arc::new(value), more: false }
    }

    fn value(etags: &mut Etags, credential: u64, path: &str) -> Option<u32> {
        Some(*etags.get(credential, path)?.page::<u32>()?.value)
    }

    #[test]
    fn what_one_credential_read_is_not_anothers() {
        let mut etags = Etags::new(10);
        etags.put(1, "/a", HeaderValue::from_static("\"1\""), &page(1));
        assert_eq!(value(&mut etags, 1, "/a"), Some(1));
        assert_eq!(value(&mut etags, 2, "/a"), None);
        etags.put(2, "/a", HeaderValue::from_static("\"2\""), &page(2));
        etags.keep_only(2);
        assert_eq!((value(&mut etags, 1, "/a"), value(&mut etags, 2, "/a")), (None, Some(2)));
    }

    #[test]
    fn the_entry_that_was_used_longest_ago_makes_room() {
        let mut etags = Etags::new(2);
        for (path, number) in [("/a", 1), ("/b", 2)] {
            etags.put(1, path, HeaderValue::from_static("\"x\""), &page(number));
        }
        assert_eq!(value(&mut etags, 1, "/a"), Some(1));
        etags.put(1, "/c", HeaderValue::from_static("\"x\""), &page(3));
        let left = ["/a", "/b", "/c"].map(|path| value(&mut etags, 1, path));
        assert_eq!(left, [Some(1), None, Some(3)]);
    }

    #[test]
    fn a_value_of_another_type_is_none() {
        let mut etags = Etags::new(2);
        etags.put(1, "/a", HeaderValue::from_static("\"x\""), &page(1));
        assert!(etags.get(1, "/a").unwrap().page::<String>().is_none());
    }
}
