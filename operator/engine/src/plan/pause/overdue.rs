//! Claims that are there after their time.

use belay_api::{events::EventReason, reasons::Note};

use crate::plan::view::Pass;

impl Pass<'_> {
    /// Says which claim should have ended by now, and why it is still there. Whoever is on call must
    /// hear of it from the target, for KEDA's own conditions look as during any pause.
    pub(in crate::plan) fn mind_overdue(&mut self) {
        let observed = self.observed;
        let mut told = Vec::new();
        for facts in &observed.claims {
            let Some(expires) = facts.expires else { continue };
            let name = &facts.scaled_object;
            let dropped = self.pause_refused(name, true).map(|(said, _)| ("dropped", said));
            let renewed = self.pause_refused(name, false).map(|(said, _)| ("renewed", said));
            let refused = dropped.or(renewed);
            if expires > self.now {
                if refused.is_some() {
                    self.draft.wake(expires);
                }
                continue;
            }
            let why = match refused {
                Some((what, said)) => format!("it cannot be {what}: {said}"),
                None => "it is still there".to_owned(),
            };
            told.push(format!(
                "the pause of the ScaledObject {name} ended at {expires}, and {why}"
            ));
        }
        if told.is_empty() {
            return;
        }
        self.note_and_tell(Note::PauseOverdue, EventReason::PauseOverdue, &told.join("; "));
    }
}
