//! The pause of a ScaledObject in words.

use belay_api::{
    NamedValue,
    annotations::PauseMode,
    conditions::find,
    reasons::Note,
    target::{PauseStatus, TargetStatus},
};
use jiff::Timestamp;

use super::age;

/// What is held for which Release: `ScaledObject web, scale-in held for web-abc1234`.
pub fn held(pause: &PauseStatus) -> String {
    let what = match pause.mode.known() {
        Some(PauseMode::ScaleIn) => "scale-in held".to_owned(),
        Some(PauseMode::Full) => "scaling held both ways".to_owned(),
        // No operator claims a pause of this mode.
        Some(PauseMode::None) => "nothing held".to_owned(),
        None => format!("held ({})", pause.mode.as_str()),
    };
    format!("ScaledObject {}, {what} for {}", pause.scaled_object, pause.release)
}

/// When it ends by itself, and whether that is over.
pub fn end(pause: &PauseStatus, now: Timestamp) -> (String, bool) {
    let expires = pause.expires.0;
    if expires <= now {
        (format!("should have ended {} ago", age::between(expires, now)), true)
    } else {
        (format!("ends by itself in {}", age::between(now, expires)), false)
    }
}

/// All that is to be said of the pause in one sentence: what is held, and what could not be proven.
pub fn sentence(status: &TargetStatus, now: Timestamp) -> Option<String> {
    let held = status.pause.as_ref().map(|pause| format!("{}, {}", held(pause), end(pause, now).0));
    let notes = [Note::RolledUnpaused, Note::ResumeUnproven, Note::PauseOverdue];
    let notes = notes.into_iter().filter_map(|note| {
        let condition = find(&status.conditions, NamedValue::as_str(note))?;
        (condition.status == "True").then(|| format!("{}: {}", condition.reason, condition.message))
    });
    let all: Vec<String> = held.into_iter().chain(notes).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pause(mode: &str) -> PauseStatus {
        PauseStatus {
            scaled_object: "web".to_owned(),
            mode: serde_json::from_value(serde_json::json!(mode)).unwrap(),
            release: "web-abc1234".to_owned(),
            expires: Time(at(1000)),
        }
    }

    #[rstest]
    #[case("scale-in", "ScaledObject web, scale-in held for web-abc1234")]
    #[case("full", "ScaledObject web, scaling held both ways for web-abc1234")]
    #[case("sideways", "ScaledObject web, held (sideways) for web-abc1234")]
    fn what_is_held_is_said_by_its_mode(#[case] mode: &str, #[case] expected: &str) {
        assert_eq!(held(&pause(mode)), expected);
    }

    #[rstest]
    #[case(880, "ends by itself in 2m", false)]
    #[case(1000, "should have ended 0s ago", true)]
    #[case(1130, "should have ended 2m10s ago", true)]
    fn it_has_an_end(#[case] now: i64, #[case] expected: &str, #[case] is_over: bool) {
        assert_eq!(end(&pause("scale-in"), at(now)), (expected.to_owned(), is_over));
    }

    #[test]
    fn what_could_not_be_proven_is_said_too() {
        let mut status = TargetStatus::default();
        assert_eq!(sentence(&status, at(0)), None);
        status.conditions.push(Condition {
            type_: "RolledUnpaused".to_owned(),
            status: "True".to_owned(),
            reason: "RolledUnpaused".to_owned(),
            message: "there is no ScaledObject web".to_owned(),
            last_transition_time: Time(at(0)),
            observed_generation: None,
        });
        let unpaused = "RolledUnpaused: there is no ScaledObject web";
        assert_eq!(sentence(&status, at(0)).as_deref(), Some(unpaused));
        status.pause = Some(pause("full"));
        let said = sentence(&status, at(940)).unwrap();
        assert!(said.starts_with("ScaledObject web, scaling held") && said.ends_with(unpaused));
    }
}
