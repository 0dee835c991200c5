//! The decision table, row by row and column by column.

use rstest::rstest;

use super::*;

const N: &str = "ghcr.io/acme/web:1.0.0";
const L: &str = "ghcr.io/acme/web:1.4.2";
const CSA: Apply = Apply::ClientSide;
const SSA: Apply = Apply::ServerSide;

fn owner(manager: &str) -> Owner {
    let operation = if manager == "kubectl-edit" { Operation::Update } else { Operation::Apply };
    Owner { manager: manager.to_owned(), operation }
}

/// A live object with this container image, owned by these managers.
fn live(followed: Followed, owners: &[&str]) -> LiveObject {
    LiveObject {
        followed,
        release_name: Some("web".to_owned()),
        release_namespace: Some("shop".to_owned()),
        image_annotation: Some("ghcr.io/acme/web".to_owned()),
        container: Some(LiveContainer {
            image: L.to_owned(),
            owners: owners.iter().map(|manager| owner(manager)).collect(),
        }),
    }
}

fn ask(chart: &str, live: Live) -> Question<'_> {
    Question {
        kind: "Deployment",
        namespace: "shop",
        name: "web",
        container: "app",
        role: Role::Workload,
        chart_image: Some(chart),
        has_image: true,
        chart_annotation: None,
        live,
    }
}

fn settings(apply: Apply) -> Settings {
    Settings { apply, release: Some("web".to_owned()), ..Settings::default() }
}

/// `preserve`, `strip`, `pass`, `pass+warn` or `fail`.
fn short(verdict: &Verdict) -> &'static str {
    match &verdict.decision {
        Decision::Pass { warning: Some(_) } => "pass+warn",
        decision => decision.word(),
    }
}

#[rstest]
// followed, by whom it is owned                     | client-side | server-side | unknown
#[case::followed_and_owned(Followed::Yes, &["belay-operator"], ["preserve", "strip", "preserve"])]
#[case::followed_and_co_owned(Followed::Yes, &["belay-operator", "helm"], ["preserve", "strip", "preserve"])]
#[case::followed_owned_by_a_stranger(Followed::Yes, &["kubectl-edit"], ["preserve", "strip", "preserve"])]
#[case::followed_owned_by_helm_alone(Followed::Yes, &["helm"], ["preserve", "preserve", "preserve"])]
#[case::followed_owned_by_nobody(Followed::Yes, &[], ["preserve", "preserve", "preserve"])]
#[case::another_operator(Followed::No, &["belay-operator"], ["preserve", "strip", "preserve"])]
#[case::another_operator_co_owned(Followed::No, &["helm", "belay-operator"], ["preserve", "strip", "preserve"])]
#[case::only_helm(Followed::No, &["helm"], ["pass", "pass", "pass"])]
#[case::nobody(Followed::No, &[], ["pass", "pass", "pass"])]
#[case::a_stranger(Followed::No, &["kubectl-edit"], ["pass+warn", "pass+warn", "pass+warn"])]
#[case::a_stranger_beside_helm(Followed::No, &["helm", "kubectl-edit"], ["pass+warn", "pass+warn", "pass+warn"])]
#[case::once_and_still_owned(Followed::Once, &["belay-operator"], ["pass", "pass+warn", "pass+warn"])]
#[case::once_owned_by_helm(Followed::Once, &["helm"], ["pass", "pass", "pass"])]
#[case::once_owned_by_a_stranger(Followed::Once, &["kubectl-edit"], ["pass+warn", "pass+warn", "pass+warn"])]
fn owners_decide(#[case] followed: Followed, #[case] owners: &[&str], #[case] expected: [&str; 3]) {
    for (apply, expected) in [CSA, SSA, Apply::Unknown].into_iter().zip(expected) {
        let question = ask(N, Live::Found(live(followed, owners)));
        let verdict = decide(&question, &settings(apply));
        assert_eq!(short(&verdict), expected, "{apply:?}: {verdict:?}");
        if let Decision::Preserve { image } | Decision::Strip { image } = verdict.decision {
            assert_eq!(image, L);
        }
    }
}

#[rstest]
fn a_first_install_passes(#[values(CSA, SSA, Apply::Unknown)] apply: Apply) {
    let verdict = decide(&ask(N, Live::NotFound), &settings(apply));
    assert_eq!(verdict.decision, Decision::PASS);
    assert_eq!(
        verdict.sentence,
        "pass Deployment shop/web app ghcr.io/acme/web:1.0.0 (not found: first install)"
    );
}

#[rstest]
fn what_could_not_be_read_fails(
    #[values(CSA, SSA, Apply::Unknown)] apply: Apply,
    #[values("401 Unauthorized", "403 Forbidden", "timeout", "503", "no JSON")] why: &str,
) {
    let verdict = decide(&ask(N, Live::Unknown { why: why.to_owned() }), &settings(apply));
    assert_eq!(short(&verdict), "fail");
    assert!(verdict.sentence.contains(why), "{}", verdict.sentence);
}

#[rstest]
fn offline_passes_everything(
    #[values(CSA, SSA)] apply: Apply,
    #[values(Mode::Auto, Mode::Preserve, Mode::Strip)] mode: Mode,
) {
    let settings = Settings { offline: true, mode, ..settings(apply) };
    let question = ask(N, Live::Unknown { why: "not asked".to_owned() });
    let question = Question { namespace: "", ..question };
    let verdict = decide(&question, &settings);
    assert_eq!(verdict.decision, Decision::PASS);
    assert!(verdict.sentence.starts_with("pass Deployment web app "), "{}", verdict.sentence);
}

#[rstest]
#[case(Role::Hook)]
#[case(Role::Other)]
fn hooks_and_other_kinds_pass(#[case] role: Role, #[values(CSA, SSA)] apply: Apply) {
    let found = Live::Found(live(Followed::Yes, &["belay-operator"]));
    let question = Question { role, ..ask(N, found) };
    assert_eq!(decide(&question, &settings(apply)).decision, Decision::PASS);
}

#[rstest]
fn a_new_container_passes_with_a_warning(#[values(CSA, SSA)] apply: Apply) {
    let object = LiveObject { container: None, ..live(Followed::Yes, &[]) };
    assert_eq!(short(&decide(&ask(N, Live::Found(object)), &settings(apply))), "pass+warn");
}

#[rstest]
#[case::of_another_release(Some("shop"), false, "fail")]
#[case::taken_over(Some("shop"), true, "preserve")]
#[case::of_this_release(Some("web"), false, "preserve")]
#[case::of_none(None, false, "preserve")]
fn the_release_must_be_the_same(
    #[case] release: Option<&str>,
    #[case] take_ownership: bool,
    #[case] expected: &str,
    #[values(CSA, Apply::Unknown)] apply: Apply,
) {
    let found = live(Followed::Yes, &["belay-operator"]);
    let object = LiveObject { release_name: release.map(str::to_owned), ..found };
    let settings = Settings { take_ownership, ..settings(apply) };
    let verdict = decide(&ask(N, Live::Found(object)), &settings);
    assert_eq!(short(&verdict), expected, "{verdict:?}");
    assert_eq!(verdict.notes.iter().any(|note| note.contains("shop")), take_ownership);
}

#[rstest]
#[case::another(Some("other"), "fail")]
#[case::the_same(Some("shop"), "preserve")]
#[case::unknown(None, "preserve")]
fn a_release_of_the_same_name_in_another_namespace_is_another_release(
    #[case] namespace: Option<&str>,
    #[case] expected: &str,
) {
    let release_namespace = namespace.map(str::to_owned);
    let settings = Settings { release_namespace, ..settings(CSA) };
    let found = Live::Found(live(Followed::Yes, &["belay-operator"]));
    let verdict = decide(&ask(N, found), &settings);
    assert_eq!(short(&verdict), expected, "{verdict:?}");
    if expected == "fail" {
        assert!(verdict.sentence.contains("the release shop/web, not to other/web"), "{verdict:?}");
    }
}

#[rstest]
fn a_document_without_a_name_passes_with_a_warning(#[values(CSA, SSA)] apply: Apply) {
    let verdict = decide(&ask(N, Live::Unnamed), &settings(apply));
    assert_eq!(short(&verdict), "pass+warn", "{verdict:?}");
}

#[rstest]
#[case::another("docker.io/acme/web:1.0.0", None, Some("ghcr.io/acme/web"), true)]
#[case::another_and_no_annotation("docker.io/acme/web:1.0.0", None, None, true)]
#[case::the_new_manifest_says_so("quay.io/acme/web:1.0.0", Some("quay.io/acme/web"), None, false)]
#[case::the_live_annotation_says_so(
    "quay.io/acme/web:1.0.0",
    None,
    Some("quay.io/acme/web"),
    false
)]
#[case::the_same(N, None, None, false)]
#[case::the_same_by_digest("ghcr.io/acme/web@sha256:00", None, None, false)]
fn another_repository_fails(
    #[case] chart: &str,
    #[case] in_manifest: Option<&str>,
    #[case] in_live: Option<&str>,
    #[case] fails: bool,
    #[values(CSA, SSA, Apply::Unknown)] apply: Apply,
) {
    let found = live(Followed::Yes, &["belay-operator"]);
    let object = LiveObject { image_annotation: in_live.map(str::to_owned), ..found };
    let question = Question { chart_annotation: in_manifest, ..ask(chart, Live::Found(object)) };
    let verdict = decide(&question, &settings(apply));
    assert_eq!(short(&verdict) == "fail", fails, "{verdict:?}");
    assert_eq!(verdict.sentence.contains("--accept-repository"), fails);

    let accepting = Settings { accept_repository: true, ..settings(apply) };
    let accepted = decide(&question, &accepting);
    assert_eq!(short(&accepted) == "pass+warn", fails, "{accepted:?}");
}

#[test]
fn another_repository_is_no_matter_where_belay_does_not_follow() {
    let found = Live::Found(live(Followed::No, &["belay-operator"]));
    assert_eq!(short(&decide(&ask("docker.io/acme/web:1", found), &settings(CSA))), "preserve");
}

#[rstest]
#[case("ghcr.io/acme/web:1.5.0", true)]
#[case("ghcr.io/acme/web:1.4.2", false)]
#[case("ghcr.io/acme/web:1.0.0", false)]
#[case("ghcr.io/acme/web:latest", false)]
fn an_overridden_version_is_always_logged(
    #[case] chart: &str,
    #[case] noted: bool,
    #[values((CSA, "preserve"), (SSA, "strip"))] column: (Apply, &str),
) {
    let found = Live::Found(live(Followed::Yes, &["belay-operator"]));
    let verdict = decide(&ask(chart, found), &settings(column.0));
    assert_eq!(short(&verdict), column.1);
    let expected = noted.then_some("the chart's version 1.5.0 is overridden by the live 1.4.2");
    assert_eq!(verdict.notes.first().map(String::as_str), expected);
}

#[rstest]
#[case::owned(Followed::Yes, &["belay-operator"], "preserve")]
#[case::another_operator(Followed::No, &["belay-operator"], "preserve")]
#[case::only_helm(Followed::No, &["helm"], "pass")]
#[case::a_stranger(Followed::No, &["kubectl-edit"], "pass+warn")]
fn force_preserves_what_would_be_kept(
    #[case] followed: Followed,
    #[case] owners: &[&str],
    #[case] expected: &str,
    #[values(CSA, SSA, Apply::Unknown)] apply: Apply,
) {
    let settings = Settings { force: Force::Yes, ..settings(apply) };
    let verdict = decide(&ask(N, Live::Found(live(followed, owners))), &settings);
    assert_eq!(short(&verdict), expected, "{verdict:?}");
    let refused = verdict.notes.iter().any(|note| note.contains("Helm refuses"));
    assert_eq!(refused, apply == SSA && expected == "preserve");
}

#[rstest]
// mode, who owns                                   | client-side | server-side | unknown
#[case(Mode::Preserve, Followed::Yes, &["belay-operator"], ["preserve", "preserve", "preserve"])]
#[case(Mode::Preserve, Followed::Yes, &["kubectl-edit"], ["preserve", "preserve", "preserve"])]
#[case(Mode::Preserve, Followed::Once, &["belay-operator"], ["preserve", "preserve", "preserve"])]
#[case(Mode::Preserve, Followed::No, &["helm"], ["pass", "pass", "pass"])]
#[case(Mode::Preserve, Followed::No, &["kubectl-edit"], ["pass+warn", "pass+warn", "pass+warn"])]
#[case(Mode::Strip, Followed::Yes, &["belay-operator"], ["fail", "strip", "fail"])]
#[case(Mode::Strip, Followed::No, &["belay-operator", "helm"], ["fail", "strip", "fail"])]
#[case(Mode::Strip, Followed::Once, &["belay-operator"], ["fail", "strip", "fail"])]
#[case(Mode::Strip, Followed::Yes, &["helm"], ["preserve", "preserve", "preserve"])]
#[case(Mode::Strip, Followed::No, &["helm"], ["pass", "pass", "pass"])]
#[case(Mode::Strip, Followed::No, &["kubectl-edit"], ["pass+warn", "pass+warn", "pass+warn"])]
fn a_mode_forces_where_an_owner_owns(
    #[case] mode: Mode,
    #[case] followed: Followed,
    #[case] owners: &[&str],
    #[case] expected: [&str; 3],
) {
    for (apply, expected) in [CSA, SSA, Apply::Unknown].into_iter().zip(expected) {
        let settings = Settings { mode, ..settings(apply) };
        let verdict = decide(&ask(N, Live::Found(live(followed, owners))), &settings);
        assert_eq!(short(&verdict), expected, "{apply:?}: {verdict:?}");
    }
}

#[rstest]
#[case::empty("", "pass+warn")]
#[case::with_a_line_break("web\nx: y", "fail")]
#[case::with_an_escape("web:\u{1b}[31m", "fail")]
fn a_live_value_that_is_no_image_is_never_written(
    #[case] image: &str,
    #[case] expected: &str,
    #[values(CSA, SSA)] apply: Apply,
) {
    let mut object = live(Followed::No, &["belay-operator"]);
    let owners = vec![owner("belay-operator")];
    object.container = Some(LiveContainer { image: image.to_owned(), owners });
    let verdict = decide(&ask(N, Live::Found(object)), &settings(apply));
    assert_eq!(short(&verdict), expected, "{verdict:?}");
    assert!(!verdict.sentence.contains(char::is_control), "{:?}", verdict.sentence);
}

#[rstest]
#[case(CSA, "pass+warn")]
#[case(SSA, "pass")]
fn an_absent_image_is_never_added(#[case] apply: Apply, #[case] expected: &str) {
    let found = Live::Found(live(Followed::Yes, &["belay-operator"]));
    let question = Question { chart_image: None, has_image: false, ..ask(N, found) };
    assert_eq!(short(&decide(&question, &settings(apply))), expected);
}

#[test]
fn an_image_that_is_empty_in_the_chart_gets_the_live_one() {
    let found = Live::Found(live(Followed::Yes, &["belay-operator"]));
    let question = Question { chart_image: None, ..ask(N, found) };
    assert_eq!(short(&decide(&question, &settings(CSA))), "preserve");
}

#[rstest]
#[case(
    CSA,
    Followed::Yes,
    &["helm", "belay-operator"],
    "preserve Deployment shop/web app ghcr.io/acme/web:1.0.0 -> ghcr.io/acme/web:1.4.2 \
     (belay-operator, Apply)"
)]
#[case(
    SSA,
    Followed::Yes,
    &["belay-operator"],
    "strip Deployment shop/web app ghcr.io/acme/web:1.0.0 -> ghcr.io/acme/web:1.4.2 \
     (belay-operator, Apply)"
)]
#[case(
    CSA,
    Followed::Yes,
    &["helm"],
    "preserve Deployment shop/web app ghcr.io/acme/web:1.0.0 -> ghcr.io/acme/web:1.4.2 \
     (followed by Belay)"
)]
#[case(
    SSA,
    Followed::No,
    &["kubectl-edit"],
    "pass Deployment shop/web app ghcr.io/acme/web:1.0.0 (owned by a manager that is not listed: \
     kubectl-edit, Update; warning: Helm will conflict with it, and should)"
)]
fn the_report_says_it_in_one_line(
    #[case] apply: Apply,
    #[case] followed: Followed,
    #[case] owners: &[&str],
    #[case] expected: &str,
) {
    let question = ask(N, Live::Found(live(followed, owners)));
    assert_eq!(decide(&question, &settings(apply)).sentence, expected);
}
