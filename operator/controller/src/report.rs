//! What is told of a pass: events for what changed, in words that name the cause.

use belay_api::{
    conditions::find, events::EventReason, reasons::StalledReason, target::TargetStatus,
};
use belay_engine::plan::Notice;

/// The events of a status that takes the place of another: a target that stalls, or goes on.
pub(crate) fn transitions(old: Option<&TargetStatus>, new: &TargetStatus) -> Vec<Notice> {
    let stalled = |status: &TargetStatus| {
        find(&status.conditions, "Stalled")
            .filter(|condition| condition.status == "True")
            .map(|condition| (condition.reason.clone(), condition.message.clone()))
    };
    let (before, after) = (old.and_then(stalled), stalled(new));
    match (before, after) {
        (Some((old, _)), Some((new, _))) if old == new => Vec::new(),
        (_, Some((reason, message))) => {
            let reason = reason.parse::<StalledReason>();
            reason.map(|reason| Notice::stalled(reason, message)).into_iter().collect()
        }
        (Some((old, _)), None) => {
            let message = format!("not stalled any more (was {old})");
            vec![Notice::of(EventReason::Resumed, message)]
        }
        (None, None) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn status(stalled: Option<(&str, &str)>) -> TargetStatus {
        let conditions: Vec<_> = stalled
            .into_iter()
            .map(|(status, reason)| {
                json!({
                    "type": "Stalled", "status": status, "reason": reason, "message": "because",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            })
            .collect();
        serde_json::from_value(json!({"conditions": conditions})).unwrap()
    }

    #[rstest]
    #[case::first(None, Some(("True", "TugOfWar")), Some((true, "TugOfWar")))]
    #[case::other(Some(("True", "Broken")), Some(("True", "TugOfWar")), Some((true, "TugOfWar")))]
    #[case::same(Some(("True", "Broken")), Some(("True", "Broken")), None)]
    #[case::over(Some(("True", "Broken")), Some(("False", "None")), Some((false, "Resumed")))]
    #[case::gone(Some(("True", "Broken")), None, Some((false, "Resumed")))]
    #[case::never(Some(("False", "None")), None, None)]
    fn an_event_tells_of_each_transition(
        #[case] old: Option<(&str, &str)>,
        #[case] new: Option<(&str, &str)>,
        #[case] expected: Option<(bool, &str)>,
    ) {
        let notices = transitions(Some(&status(old)), &status(new));
        let told = notices.first().map(|one| (one.is_warning, one.reason.as_str()));
        assert_eq!(told, expected);
    }
}
