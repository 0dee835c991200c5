//! What the operator writes to and reads from the API server, against the real one: every step of a
//! plan with what may stand in its way, the watch of pods under the real Deployment controller,
//! leases, rights.

mod admission;
mod apply;
mod bed;
mod lease;
mod pauses;
mod pods;
mod reads;
mod records;
mod target;
