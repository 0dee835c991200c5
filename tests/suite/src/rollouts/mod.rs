//! Rollouts as the real controllers do them: recorded once, replayed by tests ever after.
//!
//! `cargo xtask record-rollouts` plays the [scenarios] on a real control plane
//! and writes down every event of the Deployment, its ReplicaSets and its pods. The tests feed these
//! recordings to the operator's judgement, and to the [predicates](traps::Naive) that others judge
//! rollouts by: a recording is worth its place only as long as it shows where those are wrong.

pub mod log;
pub mod objects;
pub mod recording;
pub mod replay;
pub mod scenarios;
pub mod stage;
pub mod traps;
pub mod trim;
