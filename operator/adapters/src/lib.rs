//! Speaks to the servers that Belay asks: GitHub ([`forge`]), image registries ([`registry`]) and
//! the API server ([`cluster`]).
//!
//! Adapters do the input and output and decide nothing: each call has everything it depends on as
//! an argument, and says what was found or why that is not known. A server that cannot be asked is
//! never told as one that has nothing.
//!
//! Credentials are in no `Debug`, no `Display` and no error.

mod body;
mod clock;
mod object;
mod retry_after;

pub mod cluster;
pub mod forge;
pub mod registry;

pub use self::clock::Clock;
