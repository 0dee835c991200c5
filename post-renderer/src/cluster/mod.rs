//! The cluster: one GET per target, and at most one look at the newest release record. Reads only,
//! and decides nothing.

mod client;
mod config;
mod error;
mod live;
mod record;
mod words;

pub(crate) use self::client::chain;
pub use self::{
    client::Cluster,
    config::{BeforeReading, Destination, resolve},
    error::{ConfigError, ReadError},
    live::{Fetched, Found, LiveReader, ObjectKey},
    record::{ApplyMethod, RecordAnswer},
};
