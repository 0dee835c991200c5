//! Hosts that asked for patience.

use std::collections::HashMap;

use jiff::Timestamp;

/// A host, and who asked it: limits belong to an account, or to the address for those who have none.
type Bucket = (String, Option<[u8; 32]>);

/// Entries that are kept; each is a host that refused within the last day.
const LIMIT: usize = 10_000;

/// From when on a host may be called again.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    until: HashMap<Bucket, Timestamp>,
}

impl Patience {
    /// Until when the host must not be called.
    pub(crate) fn closed(
        &self,
        host: &str,
        who: Option<[u8; 32]>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.until.get(&(host.to_owned(), who)).copied().filter(|until| now < *until)
    }

    /// Remembers what a host asked for.
    pub(crate) fn note(
        &mut self,
        host: &str,
        who: Option<[u8; 32]>,
        until: Timestamp,
        now: Timestamp,
    ) {
        if self.until.len() >= LIMIT {
            self.until.retain(|_, until| now < *until);
        }
        if self.until.len() < LIMIT {
            let entry = self.until.entry((host.to_owned(), who)).or_insert(until);
            *entry = until.max(*entry);
        }
    }
}
