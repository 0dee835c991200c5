//! The crate from outside: one binary, so that it is linked once.

#![expect(clippy::unwrap_used, reason = "the helpers belong to tests as well")]
#![expect(clippy::needless_pass_by_value, reason = "json! literals read better without a &")]

mod broken;
mod claims;
mod lookup;
mod notation;
mod paths;
mod properties;
