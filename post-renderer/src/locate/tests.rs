use rstest::rstest;

use super::*;

const OPTION: Source = Source::Belay("--namespace");

fn helm(change: impl FnOnce(&mut Invocation)) -> Parent {
    let words = ["upgrade", "web", "./chart", "--post-renderer", "belay"].map(str::to_owned);
    let mut invocation = crate::helm::command_line::parse(&words);
    change(&mut invocation);
    Parent::Helm(invocation)
}

fn shell() -> Parent {
    Parent::Other { program: "bash".to_owned() }
}

fn hidden() -> Parent {
    Parent::Hidden { why: "this platform does not show it".to_owned() }
}

fn namespace(value: &str) -> Given {
    Given { namespace: Some(Told::new(value.to_owned(), OPTION)), ..Given::default() }
}

fn with_context(mut given: Given, value: &str) -> Given {
    given.kube_context = Some(Told::new(value.to_owned(), Source::Belay("--kube-context")));
    given
}

fn nothing() -> Environment {
    crate::helm::environment::read(&|_| None)
}

fn variable(namespace: &str) -> Environment {
    Environment { namespace: Some(namespace.to_owned()), ..nothing() }
}

#[test]
fn a_plain_helm_upgrade_tells_everything_by_its_defaults() {
    let place = locate(&Given::default(), &nothing(), &helm(|_| {}), false).unwrap();
    assert_eq!(place.access, Access::default());
    assert_eq!(place.helm_access, None);
    assert_eq!(place.namespace, None);
    assert_eq!(place.release, Some(Told::new("web".to_owned(), Source::HelmCommandLine)));
}

#[rstest]
#[case::helms_flag(Given::default(), nothing(), Some("shop"), "shop", Source::HelmCommandLine)]
#[case::the_option_agrees(
    namespace("shop"),
    nothing(),
    Some("shop"),
    "shop",
    Source::HelmCommandLine
)]
#[case::helms_variable(
    Given::default(),
    variable("shop"),
    None,
    "shop",
    Source::HelmVariable("HELM_NAMESPACE")
)]
#[case::the_option_alone(namespace("shop"), nothing(), None, "shop", OPTION)]
fn the_namespace_is_told_by(
    #[case] given: Given,
    #[case] environment: Environment,
    #[case] flag: Option<&str>,
    #[case] value: &str,
    #[case] from: Source,
) {
    let parent = helm(|helm| helm.namespace = flag.map(str::to_owned));
    let place = locate(&given, &environment, &parent, false).unwrap();
    assert_eq!(place.namespace, Some(Told::new(value.to_owned(), from)));
    // Helm said nothing of it: then it must be what Helm takes by default, which only the
    // kubeconfig tells.
    assert_eq!(place.namespace_must_be_default, from == OPTION);
}

#[rstest]
#[case::option_and_flag(
    namespace("a"),
    nothing(),
    Some("b"),
    "--namespace says \"a\", but helm's command line says \"b\""
)]
#[case::variable_and_flag(
    Given::default(),
    variable("a"),
    Some("b"),
    "HELM_NAMESPACE says \"a\", but helm's command line says \"b\""
)]
#[case::option_and_variable(
    namespace("a"),
    variable("b"),
    None,
    "--namespace says \"a\", but HELM_NAMESPACE says \"b\""
)]
fn a_contradiction_fails_and_says_which(
    #[case] given: Given,
    #[case] environment: Environment,
    #[case] flag: Option<&str>,
    #[case] words: &str,
) {
    let parent = helm(|helm| helm.namespace = flag.map(str::to_owned));
    let error = locate(&given, &environment, &parent, false).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn a_token_is_compared_but_never_shown() {
    let token = |text: &str| text.parse::<Secret>().unwrap();
    let given = Given {
        kube_token: Some(Told::new(token("hunter2"), Source::Belay("--kube-token"))),
        ..Given::default()
    };
    let parent = helm(|helm| helm.kube_token = Some(token("hunter3")));
    let error = locate(&given, &nothing(), &parent, false).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("the token") && !text.contains("hunter"), "{text}");
}

#[rstest]
#[case::a_shell(shell(), Given::default(), "the cluster is unknown: the parent process is bash")]
#[case::a_hidden_parent(
    hidden(),
    Given::default(),
    "cannot be read: this platform does not show it; add `--kube-context NAME`"
)]
#[case::no_namespace(shell(), with_context(Given::default(), "prod"), "the namespace is unknown")]
#[case::an_uncertain_helm(helm(|helm| helm.certain = false), Given::default(), "could not be understood in full")]
fn where_nothing_tells_the_run_fails(
    #[case] parent: Parent,
    #[case] given: Given,
    #[case] words: &str,
) {
    let error = locate(&given, &nothing(), &parent, false).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn an_empty_flag_hides_helms_variable_so_the_two_contradict_each_other() {
    let parent = helm(|helm| helm.given = vec!["namespace"]);
    let error = locate(&Given::default(), &variable("a"), &parent, false).unwrap_err();
    assert!(error.to_string().contains("HELM_NAMESPACE says \"a\""), "{error}");
}

#[test]
fn documents_that_all_name_their_namespace_need_no_other() {
    let given = with_context(Given::default(), "prod");
    let place = locate(&given, &nothing(), &shell(), true).unwrap();
    assert_eq!(place.namespace, None);
}

#[test]
fn an_empty_context_says_that_the_current_one_is_meant() {
    let given = with_context(namespace("shop"), "");
    let place = locate(&given, &nothing(), &shell(), false).unwrap();
    assert_eq!(place.access.context, None);
}

#[test]
fn without_a_visible_helm_an_option_wins_over_helms_variable() {
    let given = with_context(namespace("a"), "prod");
    let place = locate(&given, &variable("b"), &hidden(), false).unwrap();
    assert_eq!(place.namespace, Some(Told::new("a".to_owned(), OPTION)));
    assert!(!place.namespace_must_be_default);
}

#[test]
fn an_option_that_replaces_a_default_of_helms_must_lead_to_the_same_server() {
    let given = with_context(Given::default(), "copy");
    let place = locate(&given, &nothing(), &helm(|_| {}), false).unwrap();
    assert_eq!(place.access.context.map(|told| told.value).as_deref(), Some("copy"));
    assert_eq!(place.helm_access, Some(Access::default()));
}

#[test]
fn a_release_that_contradicts_helm_fails() {
    let release = Some(Told::new("api".to_owned(), Source::Belay("--release")));
    let given = Given { release, ..Given::default() };
    let error = locate(&given, &nothing(), &helm(|_| {}), false).unwrap_err();
    assert!(error.to_string().contains("the release: --release says \"api\""), "{error}");
}

#[rstest]
#[case::nothing_said(None, false, false)]
#[case::the_variable(None, true, true)]
#[case::the_flag(Some(true), false, true)]
#[case::the_flag_hides_the_variable(Some(false), true, false)]
fn certificates_are_checked_unless_helm_does_not(
    #[case] flag: Option<bool>,
    #[case] variable: bool,
    #[case] expected: bool,
) {
    let parent = helm(|helm| {
        helm.given.extend(flag.map(|_| "kube-insecure-skip-tls-verify"));
        helm.kube_insecure_skip_tls_verify = flag.unwrap_or_default();
    });
    let environment = Environment { kube_insecure_skip_tls_verify: variable, ..nothing() };
    let place = locate(&Given::default(), &environment, &parent, false).unwrap();
    assert_eq!(place.access.insecure_skip_tls_verify, expected);
}
