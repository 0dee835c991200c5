//! When someone else changes the image (section 6).

use belay_api::{annotations::TargetAnnotation, gates::Gate, reasons::BlockedReason};
use belay_engine::observed::Refusal;
use rstest::rstest;

use crate::{
    act::{applies, writes_workload},
    case::{Case, DAY, HOUR, held_by, image, name_of},
};

/// An image that no Release names, below what runs.
const OTHER: &str = "0.9.0";

fn blocked(case: &mut Case, tag: &str) -> Option<BlockedReason> {
    case.block(tag).map(|block| block.reason)
}

#[rstest]
fn a_gitops_controller_is_never_answered(
    #[values(
        ("argocd-controller", true),
        ("argocd-application-controller", false),
        ("argocd", false),
        ("kustomize-controller", true),
        ("helm-controller", false)
    )]
    manager: (&str, bool),
    #[values("1.0.0", OTHER, "3.0.0")] version: &str,
    #[values(Some(60), Some(2 * HOUR), None)] healthy: Option<i64>,
) {
    let mut case = Case::moved(3 * HOUR, healthy);
    case.write(manager.0, manager.1, &image(version));
    case.publish("v4.0.0");
    let steps = case.work(2 * DAY);
    assert!(!writes_workload(&steps), "{steps:?}");
    assert_eq!(case.stalled().as_deref(), Some("ManagedByGitOps"));
    assert!(case.message("Stalled").contains(manager.0));
    assert_eq!(case.live(), image(version));
}

#[test]
fn a_gitops_controller_that_owns_what_runs_is_told_before_anything_is_to_be_done() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    let now = case.now;
    case.workload().containers[0].held_by.push(held_by("argocd-controller", true, now));
    case.passes();
    assert_eq!(case.stalled().as_deref(), Some("ManagedByGitOps"));
}

/// The take-over list, by manager, whether it applies, and what makes it one of the list.
const TOOLS: [(&str, bool, &str); 5] = [
    ("helm", true, ""),
    ("helm", false, ""),
    ("kubectl-client-side-apply", false, ""),
    ("deployer", true, "take-over"),
    ("old-operator", true, "migrate-from"),
];

fn with_tool(mut case: Case, reason: &str, manager: &str) -> Case {
    match reason {
        "take-over" => case.annotate(TargetAnnotation::TakeOver, &format!("other, {manager}")),
        "migrate-from" => case.settings.migrate_from = Some(manager.to_owned()),
        _ => {}
    }
    case.passes();
    case
}

#[rstest]
#[case::young(Some(60))]
#[case::just_young(Some(HOUR - 1))]
#[case::not_healthy(None)]
fn an_earlier_release_put_back_by_a_tool_while_the_active_one_is_young_is_a_rollback_by_hand(
    #[values(0, 1, 2, 3, 4)] tool: usize,
    #[case] healthy: Option<i64>,
) {
    let (manager, applies_it, reason) = TOOLS[tool];
    let mut case = with_tool(Case::moved(HOUR + 60, healthy), reason, manager);
    case.write(manager, applies_it, &image("1.0.0"));
    let steps = case.work(2 * DAY);
    assert!(!writes_workload(&steps), "{steps:?}");
    assert_eq!(blocked(&mut case, "v1.1.0"), Some(BlockedReason::RolledBackByHelm));
    assert_eq!(case.block("v1.1.0").unwrap().to.unwrap().tag, "v1.0.0");
    assert_eq!((case.gate("v1.1.0"), case.stalled()), (Some(Gate::Blocked), None));
    assert!(case.status().reverts.is_empty());

    // Above what was left is free, and is forced against the tool.
    case.publish("v1.2.0");
    let steps = case.work(100);
    assert_eq!(applies(&steps), [(image("1.2.0"), false), (image("1.2.0"), true)]);
}

#[rstest]
#[case::earlier_but_long_healthy("1.0.0", Some(HOUR))]
#[case::none_of_ours_and_young(OTHER, Some(60))]
#[case::none_of_ours_and_long_healthy(OTHER, Some(2 * HOUR))]
#[case::none_of_ours_and_not_healthy(OTHER, None)]
fn anything_else_of_a_tool_is_put_right_after_a_while(
    #[values(0, 1, 2, 3, 4)] tool: usize,
    #[case] version: &str,
    #[case] healthy: Option<i64>,
) {
    let (manager, applies_it, reason) = TOOLS[tool];
    let mut case = with_tool(Case::moved(3 * HOUR, healthy), reason, manager);
    case.write(manager, applies_it, &image(version));
    assert!(!writes_workload(&case.work(59)));
    assert_eq!(case.reason("Progressing").as_deref(), Some("ImageReverted"));
    assert!(case.message("Progressing").contains(manager));
    assert!(case.told.contains("ImageReverted"));
    let revert = case.status().reverts.last().unwrap().clone();
    assert_eq!((revert.manager.as_str(), revert.value), (manager, image(version)));
    let steps = case.work(2);
    // Tried without force, then forced against exactly this one.
    assert_eq!(applies(&steps), [(image("1.1.0"), false), (image("1.1.0"), true)]);
    assert_eq!(blocked(&mut case, "v1.1.0"), None);
}

#[test]
fn what_a_tool_puts_above_ours_is_not_taken_back() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.write("helm", true, &image("3.0.0"));
    let steps = case.work(2 * DAY);
    assert!(!writes_workload(&steps), "{steps:?}");
    assert_eq!(case.stalled(), None);
    assert_eq!(case.reason("Ready").as_deref(), Some("Unknown"));
    assert!(case.message("Ready").contains(&image("3.0.0")));
    // Above it is free.
    case.publish("v3.1.0");
    assert_eq!(applies(&case.work(100)).last(), Some(&(image("3.1.0"), true)));
}

#[test]
fn a_refused_release_that_a_tool_puts_back_is_taken_away_again() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.ask_back("by-hand", "", belay_api::rollback::InitiatorType::User);
    // Long enough for the one that was gone back to, to count as healthy for long.
    case.work(2 * HOUR);
    assert_eq!(case.live(), image("1.0.0"));
    case.write("helm", false, &image("1.1.0"));
    let steps = case.work(100);
    assert_eq!(applies(&steps), [(image("1.0.0"), false), (image("1.0.0"), true)]);
}

#[rstest]
#[case::first(0, Some(60))]
#[case::second(1, Some(120))]
#[case::third(2, Some(240))]
#[case::fourth(3, None)]
fn each_answer_waits_twice_as_long_and_the_fourth_is_none(
    #[case] before: i64,
    #[case] wait: Option<i64>,
) {
    let mut case = Case::moved(30 * HOUR, Some(29 * HOUR));
    for _ in 0..before {
        case.write("helm", false, &image(OTHER));
        case.work(2 * HOUR);
        assert_eq!(case.live(), image("1.1.0"));
    }
    case.write("helm", false, &image(OTHER));
    if let Some(wait) = wait {
        assert!(!writes_workload(&case.work(wait - 1)));
        assert!(writes_workload(&case.work(1)));
    } else {
        assert!(!writes_workload(&case.work(HOUR)));
        assert_eq!(case.stalled().as_deref(), Some("TugOfWar"));
        // A day after the oldest there is another try.
        assert!(writes_workload(&case.work(DAY)));
    }
}

#[rstest]
#[case::hold_elsewhere("1.0.5", false)]
#[case::hold_here("true", true)]
#[case::hold_what_was_lost("v1.1.0", false)]
fn a_hold_that_is_not_met_stops_answers_too(#[case] hold: &str, #[case] answers: bool) {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.annotate(TargetAnnotation::Hold, hold);
    case.passes();
    case.write("helm", false, &image(OTHER));
    assert_eq!(writes_workload(&case.work(HOUR)), answers);
    let reason = if answers { "OnHold" } else { "Mismatch" };
    assert_eq!(case.reason("Held").as_deref(), Some(reason));
    if !answers {
        assert!(case.message("Held").contains("kubectl release rollback web --to"));
    }
}

/// Everybody else.
#[rstest]
fn a_person_is_respected(
    #[values(
        ("kubectl-edit", false),
        ("kubectl-set", false),
        ("kubectl-client-side-apply", true),
        ("Lens", false),
        ("Helm", false),
        ("helm-deployer", true),
        ("belay-operator", false)
    )]
    manager: (&str, bool),
    #[values("1.0.0", OTHER, "3.0.0", "main")] version: &str,
    #[values(Some(60), Some(2 * HOUR))] healthy: Option<i64>,
) {
    let mut case = Case::moved(3 * HOUR, healthy);
    case.write(manager.0, manager.1, &image(version));
    case.publish("v4.0.0");
    let steps = case.work(2 * DAY);
    assert!(!writes_workload(&steps), "{steps:?}");
    assert_eq!(case.stalled().as_deref(), Some("ChangedByPerson"));
    let message = case.message("Stalled");
    let adopt = format!("belay.dev/adopt: {}={}", manager.0, image(version));
    assert!(message.contains(&adopt) && message.contains("kubectl release resume web"));
    // Only a lower version is a word about ours.
    let is_lower = ["1.0.0", OTHER].contains(&version);
    let expected = is_lower.then_some(BlockedReason::RolledBackByPerson);
    assert_eq!(blocked(&mut case, "v1.1.0"), expected);

    // Once adopted, the next one is forced against exactly this manager.
    let adopt = format!("{}={}", manager.0, image(version));
    case.annotate(TargetAnnotation::Adopt, &adopt);
    let mut steps = case.work(100);
    if version == "main" {
        // Which is higher is another question, with an answer of its own.
        assert_eq!((steps.len(), case.stalled().as_deref()), (0, Some("CannotCompare")));
        case.annotate(TargetAnnotation::Range, ">=4.0.0");
        steps = case.work(100);
    }
    assert_eq!(applies(&steps), [(image("4.0.0"), false), (image("4.0.0"), true)]);
    assert_eq!(case.stalled(), None);
}

#[rstest]
#[case::another_value("kubectl-edit", "1.0.1")]
#[case::another_manager("kubectl-set", OTHER)]
fn leave_to_adopt_counts_for_that_manager_and_value_only(
    #[case] manager: &str,
    #[case] version: &str,
) {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.write("kubectl-edit", false, &image(OTHER));
    case.publish("v4.0.0");
    let adopt = format!("{manager}={}", image(version));
    case.annotate(TargetAnnotation::Adopt, &adopt);
    assert!(!writes_workload(&case.work(DAY)));
    assert_eq!(case.stalled().as_deref(), Some("ChangedByPerson"));
}

#[test]
fn leave_to_adopt_is_used_once() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.write("kubectl-edit", false, &image(OTHER));
    let adopt = format!("kubectl-edit={}", image(OTHER));
    case.annotate(TargetAnnotation::Adopt, &adopt);
    case.publish("v1.2.0");
    case.work(100);
    assert_eq!(case.live(), image("1.2.0"));
    case.write("kubectl-edit", false, &image("1.1.5"));
    case.publish("v1.3.0");
    assert!(!writes_workload(&case.work(DAY)));
    assert_eq!(case.stalled().as_deref(), Some("ChangedByPerson"));
}

#[test]
fn a_person_who_changes_one_of_two_containers_can_be_adopted_from() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.follow_two();
    case.publish("v1.2.0");
    let now = case.now;
    let second = &mut case.workload().containers[1];
    second.live.image = image(OTHER);
    second.held_by = vec![held_by("kubectl-edit", false, now)];
    case.changed();
    assert!(!writes_workload(&case.work(HOUR)));
    let adopt = format!("kubectl-edit={}", image(OTHER));
    assert!(case.message("Stalled").contains(&adopt), "{}", case.message("Stalled"));
    case.annotate(TargetAnnotation::Adopt, &adopt);
    assert_eq!(applies(&case.work(100)).last(), Some(&(image("1.2.0"), true)));
}

#[test]
fn an_undo_is_respected_and_the_target_keeps_following() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.undo("v1.0.0");
    let steps = case.work(DAY);
    assert!(!writes_workload(&steps), "{steps:?}");
    assert_eq!(case.stalled(), None);
    assert_eq!(blocked(&mut case, "v1.1.0"), Some(BlockedReason::RolledBackByPerson));
    let active = case.status().active.clone();
    assert_eq!(active, Some(name_of("v1.0.0")));
    assert_eq!(case.last("v1.0.0").initiator.as_deref(), Some("kubectl"));
    case.publish("v1.2.0");
    let steps = case.work(100);
    assert_eq!(applies(&steps), [(image("1.2.0"), false), (image("1.2.0"), true)]);
}

#[test]
fn an_undo_gives_leave_against_its_own_manager_only() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.undo("v1.0.0");
    case.work(HOUR);
    let now = case.now;
    case.workload().annotation_held_by.push(held_by("auditor", false, now));
    case.changed();
    case.publish("v1.2.0");
    let steps = case.work(HOUR);
    assert_eq!(applies(&steps), [(image("1.2.0"), false)]);
    assert_eq!(case.stalled().as_deref(), Some("FieldConflict"));
    assert!(case.message("Stalled").contains("auditor"));
}

#[rstest]
#[case::annotation_of_another("v1.1.0")]
#[case::no_annotation("")]
fn an_image_of_ours_without_its_annotation_is_no_undo(#[case] annotated: &str) {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.write("kubectl", false, &image("1.0.0"));
    if annotated.is_empty() {
        case.workload().annotations.remove("belay.dev/release");
    }
    case.publish("v1.2.0");
    assert!(!writes_workload(&case.work(DAY)));
    assert_eq!(case.stalled().as_deref(), Some("ChangedByPerson"));
}

#[test]
fn an_image_that_nobody_owns_is_a_persons() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.workload().containers[0].held_by.clear();
    case.workload().containers[0].live.image = image(OTHER);
    case.changed();
    assert!(!writes_workload(&case.work(HOUR)));
    assert_eq!(case.stalled().as_deref(), Some("ChangedByPerson"));
    assert!(case.message("Stalled").contains("unknown="));
}

#[rstest]
#[case::another_path("ghcr.io/evil/web:1.1.0")]
#[case::no_image("1.1.0+b")]
fn an_image_that_somebody_wrote_into_a_release_is_not_put_in_place(#[case] asked: &str) {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.write("helm", false, &image(OTHER));
    case.passes();
    let images = &mut case.release_mut("v1.1.0").status.as_mut().unwrap().images;
    asked.clone_into(&mut images[0].asked);
    assert!(!writes_workload(&case.work(HOUR)));
    assert_eq!(case.stalled().as_deref(), Some("RepositoryDiffers"));
}

#[test]
fn lost_ownership_of_our_own_image_is_no_change() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.workload().containers[0].held_by.clear();
    case.workload().annotation_held_by.clear();
    case.changed();
    assert_eq!(case.work(DAY), []);
    assert_eq!((case.stalled(), case.reason("Ready").as_deref()), (None, Some("Ready")));
}

#[test]
fn a_conflict_with_anyone_else_is_said_and_not_forced() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    case.publish("v1.2.0");
    case.refusals = vec![Refusal::Conflict { managers: vec!["auditor".to_owned()] }];
    let steps = case.work(DAY);
    assert_eq!(applies(&steps), [(image("1.2.0"), false)]);
    assert_eq!(case.stalled().as_deref(), Some("FieldConflict"));
    let message = case.message("Stalled");
    assert!(message.contains("auditor") && message.contains("kubectl release adopt web"));
}

#[rstest]
#[case::both_may(&["helm", "kubectl-client-side-apply"], true)]
#[case::one_may_not(&["helm", "kubectl-edit"], false)]
#[case::a_gitops_controller(&["helm", "argocd-controller"], false)]
#[case::nobody(&[], false)]
fn force_needs_leave_against_all_that_conflict(#[case] managers: &[&str], #[case] forced: bool) {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    let now = case.now;
    let owners = managers.iter().filter(|one| !one.starts_with("argocd"));
    let owners: Vec<_> = owners.map(|one| held_by(one, false, now)).collect();
    case.workload().annotation_held_by.extend(owners);
    case.passes();
    case.publish("v1.2.0");
    let managers = managers.iter().map(|one| (*one).to_owned()).collect();
    case.refusals = vec![Refusal::Conflict { managers }];
    let steps = case.work(HOUR);
    assert_eq!(applies(&steps).iter().any(|(_, forced)| *forced), forced, "{steps:?}");
}

#[test]
fn a_change_in_mid_rollout_ends_it_at_once_without_a_rollback() {
    let mut case = Case::moved(60, None);
    case.write("kubectl-edit", false, &image(OTHER));
    case.hang();
    let steps = case.work(2 * HOUR);
    assert!(case.rollbacks().is_empty(), "{steps:?}");
    let last = case.last("v1.1.0");
    assert_eq!(last.changed_by(), Some("kubectl-edit"));
    assert_eq!(case.verdict("v1.1.0"), Some(belay_api::gates::Verdict::Superseded));
    assert!(!case.plan().pods);
}

#[test]
fn what_failed_is_refused_even_if_its_image_is_changed_before_that_is_written() {
    let mut case = Case::moved(700, None);
    // The verdict, and then a crash; meanwhile Helm puts its image in place.
    case.annotate(TargetAnnotation::OnFailure, "stop");
    case.wait(600);
    while case.verdict("v1.1.0").is_none() {
        case.pass();
    }
    assert_eq!(case.block("v1.1.0"), None);
    case.write("helm", false, &image(OTHER));
    assert!(!writes_workload(&case.work(2 * HOUR)));
    assert_eq!(blocked(&mut case, "v1.1.0"), Some(BlockedReason::RolloutFailed));
    assert_eq!(case.gate("v1.1.0"), Some(Gate::Blocked));
}

#[test]
fn an_image_that_admission_rewrote_is_followed() {
    let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
    // Under our own entry and annotation, whatever it reads.
    let stored = "mirror.local/acme/web:1.1.0".to_owned();
    case.workload().containers[0].live.image = stored.clone();
    case.changed();
    let steps = case.work(DAY);
    assert!(!writes_workload(&steps), "{steps:?}");
    let images = case.release_mut("v1.1.0").status.clone().unwrap().images;
    assert_eq!((images[0].asked.as_str(), &images[0].stored), (&*image("1.1.0"), &Some(stored)));
    assert_eq!(case.reason("ChangedByAdmission").as_deref(), Some("ChangedByAdmission"));
    // And what is asked for next is still of the first host.
    case.publish("v1.2.0");
    assert_eq!(applies(&case.work(100)), [(image("1.2.0"), false)]);
}
