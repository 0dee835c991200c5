//! GitHub: which releases a repository has, and which repository it is.
//!
//! * [`Client`] sends one request with one credential: bounded, conditional, within the
//!   credential's [`Budget`], never twice. It answers with an [`Answer`].
//! * [`Forge`] reads what is known of one repository: its identity, its latest release, its listed
//!   pages; a rename is followed by the numeric id.
//! * [`Poller`] reads each repository once for all of its followers, when [`next_poll`] says.
//!
//! Whatever could not be read is an [`Unknown`] with the reason; only what GitHub said is a value.

mod answer;
mod budget;
mod client;
mod credential;
mod error;
mod etags;
mod poller;
mod reading;
mod repository;
mod schedule;
mod session;
mod slug;
mod wire;

pub use self::{
    answer::{Answer, Page},
    budget::{Budget, Quota, Wait},
    client::{Client, Settings, http_client},
    credential::{AppKey, Credential},
    error::ForgeError,
    poller::{Followed, Poller, PollerSettings, Totals, View},
    reading::{Identity, Listing, Reading, Release, Requests, Unknown, Wants},
    repository::Forge,
    schedule::{Outcome, Pace, next_poll},
    slug::{InvalidSlug, RepoSlug},
};
