//! Where a Rollback that nobody has asked for yet would go: what a person is shown before asking.

use belay_api::reasons::Rejection;
use jiff::Timestamp;

use super::{
    begin,
    resolve::Resolved,
    view::{Pass, name},
};
use crate::{observed::Observed, settings::Settings};

/// Where a Rollback would go, by the rules that the operator itself goes by (the operator
/// specification, section 7). It is decided anew when the Rollback starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreseen {
    /// The name of the Release that would be left.
    pub from: Option<String>,
    /// The name of the Release it would go to, or why it would be rejected.
    pub to: Result<String, Rejection>,
    /// The names of all Releases that may be gone to without force, nearest first.
    pub ways: Vec<String>,
}

/// Says where a user's Rollback would go: to the Release `named`, or to the latest that was healthy.
///
/// # Errors
/// Why nothing can be said: a fact that is not known, or a workload that is not followed.
pub fn foresee_rollback(
    observed: &Observed,
    settings: &Settings,
    now: Timestamp,
    named: Option<&str>,
    force: bool,
) -> Result<Foreseen, String> {
    begin::with_pass(observed, settings, now, |pass| pass.foresee(named, force))
}

impl Pass<'_> {
    fn foresee(&self, named: Option<&str>, force: bool) -> Foreseen {
        let nowhere = |from: Option<&belay_api::Release>, why| Foreseen {
            from: from.map(|from| name(from).to_owned()),
            to: Err(why),
            ways: Vec::new(),
        };
        let Some(from) = self.active.or_else(|| self.last_active()) else {
            return nowhere(None, Rejection::NoReleaseToGoTo);
        };
        if self.gitops().is_some() {
            return nowhere(Some(from), Rejection::ManagedByGitOps);
        }
        let ways = self.ways_back(from).into_iter().map(|way| name(way).to_owned()).collect();
        let to = match self.resolve(from, named, force) {
            Resolved::To(to) => Ok(name(to).to_owned()),
            Resolved::Nowhere(why) => Err(why),
        };
        Foreseen { from: Some(name(from).to_owned()), to, ways }
    }
}
