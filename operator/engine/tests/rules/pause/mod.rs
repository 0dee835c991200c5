//! The pause of a ScaledObject around a rollout: whom it is for, its proof, how long it is kept, and
//! that autoscaling resumes.

mod freeze;
