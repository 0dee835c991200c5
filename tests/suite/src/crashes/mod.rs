//! Crashes at every possible moment: the operator is cut off before and after each of its calls, and
//! what it leaves behind is compared with a run that nothing disturbed.

mod admission;
mod calls;
mod ends;
mod enumerate;
mod plain;
mod report;
mod rules;
mod scenarios;
mod scene;
mod timeline;
mod wire;

pub use self::{
    enumerate::Enumeration,
    report::{Breach, Finding, Report, Unmet},
    scenarios::{
        CHANGED, FIRST_SIGHT, KEDA_ROLL, KEDA_STUCK, KEDA_UNDONE, LATE_IMAGE, REWRITTEN, ROLL,
        ROLLBACK, STUCK, Scenario,
    },
};
