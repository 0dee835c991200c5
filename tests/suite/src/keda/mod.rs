//! KEDA beside a namespace of a test: its ScaledObjects, the HPAs that it makes of them, a metric that
//! the test moves, and a log of all that became of them.

mod log;
mod scaling;

pub use self::{
    log::{Change, Kind, Log},
    scaling::{
        FULL, MANAGER, SCALE_IN, Scaling, condition, is_frozen, is_observed, scale_down, settle,
    },
};
