//! The real operator program, killed again and again while many targets roll with KEDA.
//!
//! Whatever it was doing when it was killed: in the end no pause is left, no Rollback is lost or
//! doubled, no image ran that was not meant to, and every verdict is the one that the release
//! deserves.

mod eyes;
mod run;
mod targets;

pub use self::run::{Outcome, Soak};
