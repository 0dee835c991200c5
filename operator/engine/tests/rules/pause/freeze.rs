//! Before images are applied: the claim and its proof.

use crate::{case::Case, keda::brief};

#[test]
fn a_rollout_is_paused_and_the_pause_dropped_after_it() {
    let mut case = Case::scaled();
    case.publish("v1.1.0");
    let steps = case.work(300);
    assert_eq!(brief(&steps), ["claim scale-in", "apply 1.1.0", "drop"]);
    assert_eq!(case.pauses(), []);
}
