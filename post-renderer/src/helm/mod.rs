//! What can be known about the Helm that runs this program.
//!
//! Helm passes a post-renderer neither the release nor the namespace nor the cluster, and looking
//! for live objects in the wrong place makes an upgrade look like a first install. All of it
//! stands on Helm's own command line, though, which Linux and macOS show, and in the variables
//! that Helm takes as defaults of its flags.
//!
//! [`parent`] finds the process and says whether it is a Helm, [`command_line`] reads its
//! arguments exactly as Helm does, [`environment`] the variables, and [`flags`] is the one table
//! of flags that Helm 3 and Helm 4 have where they run a post-renderer.

pub mod command_line;
pub mod environment;
#[doc(hidden)]
pub mod flags;
mod invocation;
pub mod parent;
mod pflag;
mod secret;

pub use self::{
    environment::{Driver, Environment},
    invocation::{Command, Doubt, DryRun, Invocation, ServerSide},
    parent::Parent,
    secret::Secret,
};

/// A boolean as Go's `strconv.ParseBool` reads it.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
