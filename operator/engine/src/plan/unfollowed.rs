//! Rollbacks of targets that no workload has (the operator specification, section 7): they end, in
//! words that say why, instead of waiting for ever.

use belay_api::{Rollback, reasons::Rejection, rollback::Driver, rollback::RollbackStatus};
use jiff::Timestamp;

use super::{
    Step,
    rollback::{End, has_started},
};

/// How a Rollback ends that nobody can carry out, since no workload that is followed has its target.
/// `None` for one that has ended.
///
/// Whether that is so must be certain: to be rejected is for good.
pub fn end_unfollowed(rollback: &Rollback, namespace: &str, now: Timestamp) -> Option<Step> {
    if rollback.status.as_ref().is_some_and(RollbackStatus::is_terminal) {
        return None;
    }
    let end = match rollback.spec.driver {
        Driver::Native if has_started(rollback) => {
            End::failed("no workload that Belay follows has this target any more")
        }
        Driver::Native => End::rejected(Rejection::NotFollowed),
        Driver::Noop => End::recorded(),
        // They act for what the operator's configuration lists, which is nothing.
        Driver::Github | Driver::Argocd => End::rejected(Rejection::NotAllowed),
    };
    Some(end.step(rollback, namespace, super::whole_second(now)))
}
