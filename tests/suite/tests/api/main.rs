//! Belay's kinds on the real API server: every rule of section 1 of the operator specification that
//! a CRD can carry, once accepted and once refused.

mod bed;
mod crds;
mod policy;
mod release;
mod release_status;
mod rollback;
mod target;
