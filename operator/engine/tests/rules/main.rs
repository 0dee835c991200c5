//! The rules of the operator's specification, one by one: who may act, forward moves, what others
//! write, Rollbacks, what is kept. Each test builds the facts of one moment, lets passes decide as
//! long as they find something to do, and looks at what was done.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod act;
mod anew;
mod ask;
mod case;
mod cull;
mod failures;
mod forward;
mod hold;
mod hostile;
mod keda;
mod notes;
mod others;
mod others_rollout;
mod outcome;
mod pause;
mod pods;
mod registry;
mod restart;
mod rollback;
mod rollback_end;
mod unfollowed;
mod who;
