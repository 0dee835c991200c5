use std::path::Path;

use rstest::rstest;

use super::*;

fn parse_all(args: &[&str]) -> Invocation {
    parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
}

/// Arguments written with a blank between them.
fn line(text: &str) -> Invocation {
    parse_all(&text.split(' ').collect::<Vec<_>>())
}

#[test]
fn a_plain_upgrade_says_its_release_and_nothing_else() {
    let expected = Invocation {
        release: Some("web".to_owned()),
        post_renderer: Some("belay".to_owned()),
        ..Invocation::new(Command::Upgrade)
    };
    assert_eq!(line("upgrade web ./chart --post-renderer belay"), expected);
}

#[test]
fn every_flag_ends_in_its_own_field() {
    let invocation = line(
        "upgrade web ./chart --namespace shop --kube-context prod --kubeconfig ./k --kube-apiserver \
         https://prod:6443 --kube-token hunter2 --kube-ca-file ca.pem --kube-as-user deployer \
         --kube-as-group ops --kube-tls-server-name kube.example.com \
         --kube-insecure-skip-tls-verify --server-side false --dry-run=server --install \
         --force-replace --force-conflicts --take-ownership --rollback-on-failure --reuse-values \
         --create-namespace --post-renderer belay",
    );
    let expected = Invocation {
        command: Command::Upgrade,
        certain: true,
        doubt: None,
        release: Some("web".to_owned()),
        namespace: Some("shop".to_owned()),
        kube_context: Some("prod".to_owned()),
        kubeconfig: Some("./k".into()),
        kube_apiserver: Some("https://prod:6443".to_owned()),
        kube_token: Some("hunter2".to_owned().into()),
        kube_ca_file: Some("ca.pem".into()),
        kube_as_user: Some("deployer".to_owned()),
        kube_as_groups: vec!["ops".to_owned()],
        kube_tls_server_name: Some("kube.example.com".to_owned()),
        kube_insecure_skip_tls_verify: true,
        given: vec![
            "namespace",
            "kube-context",
            "kubeconfig",
            "kube-apiserver",
            "kube-token",
            "kube-ca-file",
            "kube-as-user",
            "kube-as-group",
            "kube-tls-server-name",
            "kube-insecure-skip-tls-verify",
        ],
        strays: vec![],
        server_side: Some(ServerSide::False),
        dry_run: Some(DryRun::Server),
        install: true,
        force_replace: true,
        force_conflicts: true,
        take_ownership: true,
        rollback_on_failure: true,
        reuse_values: true,
        create_namespace: true,
        post_renderer: Some("belay".to_owned()),
    };
    assert_eq!(invocation, expected);
}

#[rstest]
#[case("upgrade web ./c", Command::Upgrade)]
#[case("install web ./c", Command::Install)]
#[case("template web ./c", Command::Template)]
#[case("-n shop upgrade web ./c", Command::Upgrade)]
#[case("--debug upgrade web ./c", Command::Upgrade)]
#[case("-v 4 upgrade web ./c", Command::Upgrade)]
// For want of knowing better, the word after an unknown flag is its value.
#[case("-f values.yaml upgrade web ./c", Command::Upgrade)]
#[case("--post-renderer-args template upgrade web ./c", Command::Upgrade)]
#[case("--version", Command::Foreign)]
#[case("-- upgrade web ./c", Command::Foreign)]
#[case("- upgrade web ./c", Command::Upgrade)]
#[case("diff upgrade web ./c", Command::Foreign)]
#[case("list", Command::Other("list".to_owned()))]
#[case("hist web", Command::Other("hist".to_owned()))]
#[case("version", Command::Other("version".to_owned()))]
#[case("up web ./c", Command::Foreign)]
#[case("UPGRADE web ./c", Command::Foreign)]
fn the_command_is_the_first_word_that_is_no_flags_value(
    #[case] args: &str,
    #[case] command: Command,
) {
    assert_eq!(line(args).command, command);
}

#[rstest]
#[case("upgrade web ./c -n shop", Some("shop"))]
#[case("upgrade web ./c -nshop", Some("shop"))]
#[case("upgrade web ./c -n=shop", Some("shop"))]
#[case("upgrade web ./c --namespace=shop", Some("shop"))]
#[case("upgrade web ./c --namespace shop", Some("shop"))]
#[case("-n shop upgrade web ./c", Some("shop"))]
#[case("upgrade -n shop web ./c", Some("shop"))]
#[case("upgrade web -n shop ./c", Some("shop"))]
#[case("upgrade -in shop web ./c", Some("shop"))]
#[case("upgrade -inshop web ./c", Some("shop"))]
#[case("upgrade -in=shop web ./c", Some("shop"))]
#[case("upgrade web ./c -n one --namespace two -n three", Some("three"))]
#[case("upgrade web ./c -n -x", Some("-x"))]
#[case("upgrade web ./c -n --", Some("--"))]
#[case("upgrade web ./c --namespace=a=b", Some("a=b"))]
// An oddity of pflag's.
#[case("upgrade web ./c -n=", Some("="))]
#[case("upgrade web ./c -n= -n=", Some("="))]
#[case("upgrade web ./c --namespace=", None)]
#[case("upgrade web ./c -n shop --namespace=", None)]
#[case("upgrade web ./c", None)]
#[case("upgrade web ./c --names=shop", None)]
#[case("upgrade web ./c --values -nothing -n shop", Some("shop"))]
#[case("upgrade web ./c -test.n=x", None)]
fn a_value_is_found_in_every_spelling(#[case] args: &str, #[case] namespace: Option<&str>) {
    let invocation = line(args);
    assert_eq!(invocation.namespace.as_deref(), namespace);
    assert_eq!(invocation.release.as_deref(), Some("web"));
}

#[test]
fn an_empty_value_is_none_but_was_given() {
    let args = ["upgrade", "web", "./c", "-n", "", "--kube-context=", "--kube-token", ""];
    let invocation = parse_all(&args);
    assert_eq!((invocation.namespace, invocation.kube_context), (None, None));
    assert_eq!(invocation.kube_token, None);
    assert_eq!(invocation.given, ["namespace", "kube-context", "kube-token"]);
    assert_eq!(invocation.release.as_deref(), Some("web"));
    assert!(invocation.certain);
}

#[rstest]
#[case("upgrade web ./c", Some("web"))]
#[case("upgrade ./c", None)]
#[case("upgrade", None)]
#[case("upgrade web ./c extra", None)]
#[case("upgrade upgrade ./c", Some("upgrade"))]
#[case("upgrade --dry-run web ./c", Some("web"))]
#[case("upgrade --wait web ./c", Some("web"))]
#[case("upgrade --atomic web ./c", Some("web"))]
#[case("upgrade --server-side true web ./c", Some("web"))]
#[case("install --server-side web ./c", Some("web"))]
#[case("upgrade -- web ./c", Some("web"))]
#[case("upgrade web -- ./c", Some("web"))]
#[case("upgrade web -- -n", Some("web"))]
#[case("upgrade - ./c", Some("-"))]
#[case("upgrade web ./c --post-renderer-args x --post-renderer-args=y", Some("web"))]
#[case("upgrade --history-max 3 web ./c", Some("web"))]
fn the_release_is_the_first_of_two_names(#[case] args: &str, #[case] release: Option<&str>) {
    let invocation = line(args);
    assert_eq!(invocation.release.as_deref(), release);
    assert_eq!(invocation.certain, release.is_some());
}

#[rstest]
#[case("install web ./c", Some("web"), true)]
#[case("install ./c --generate-name", None, true)]
#[case("install -g ./c", None, true)]
#[case("install ./c --name-template x-{{.}}", None, true)]
#[case("install web ./c --generate-name", None, false)]
#[case("install web ./c --name-template=x", None, false)]
#[case("install web ./c --generate-name=false --name-template=", Some("web"), true)]
#[case("install ./c", None, false)]
#[case("template ./c", None, true)]
#[case("template web ./c", Some("web"), true)]
#[case("template", None, false)]
#[case("template a b c", None, false)]
#[case("upgrade web ./c --generate-name", None, false)]
fn a_name_that_helm_makes_up_is_not_known(
    #[case] args: &str,
    #[case] release: Option<&str>,
    #[case] certain: bool,
) {
    let invocation = line(args);
    assert_eq!(invocation.release.as_deref(), release);
    assert_eq!(invocation.certain, certain);
}

#[rstest]
#[case("upgrade web ./c --new", Doubt::UnknownFlag { argument: 4 })]
#[case("upgrade --new web ./c", Doubt::UnknownFlag { argument: 2 })]
#[case("-n shop upgrade web ./c -X", Doubt::UnknownFlag { argument: 6 })]
#[case("upgrade web ./c -iX", Doubt::UnknownFlag { argument: 4 })]
#[case("upgrade web ./c -Xn shop", Doubt::UnknownFlag { argument: 4 })]
// Another command's flag, an abbreviation, one dash too few, another case.
#[case("template web ./c --install", Doubt::UnknownFlag { argument: 4 })]
#[case("upgrade web ./c --namesp shop", Doubt::UnknownFlag { argument: 4 })]
#[case("upgrade web ./c -wait", Doubt::UnknownFlag { argument: 4 })]
#[case("upgrade web ./c --Wait", Doubt::UnknownFlag { argument: 4 })]
#[case("upgrade web ./c --kube-context", Doubt::MissingValue { flag: "kube-context" })]
#[case("upgrade web ./c -n", Doubt::MissingValue { flag: "namespace" })]
#[case("upgrade web ./c --=x", Doubt::Syntax { argument: 4 })]
#[case("upgrade web ./c ---x", Doubt::Syntax { argument: 4 })]
#[case("upgrade web", Doubt::Names { count: 1 })]
fn what_is_not_understood_hides_the_release(#[case] args: &str, #[case] doubt: Doubt) {
    let invocation = line(args);
    assert_eq!(invocation.doubt, Some(doubt));
    assert!(!invocation.certain);
    assert_eq!(invocation.release, None);
}

#[rstest]
#[case("upgrade --new web ./c -n shop --kube-context=prod")]
#[case("upgrade -n shop web ./c --new --kube-context prod")]
#[case("upgrade web ./c -X --kube-context=prod -n shop")]
fn flags_beside_an_unknown_one_still_count(#[case] args: &str) {
    let invocation = line(args);
    assert!(!invocation.certain);
    assert_eq!(invocation.namespace.as_deref(), Some("shop"));
    assert_eq!(invocation.kube_context.as_deref(), Some("prod"));
}

#[test]
fn an_unknown_flag_that_holds_its_value_hides_nothing() {
    let invocation = line("upgrade web ./c --new=x -X=y -n shop");
    assert!(invocation.certain);
    assert_eq!(invocation.release.as_deref(), Some("web"));
    assert_eq!(invocation.namespace.as_deref(), Some("shop"));
}

#[rstest]
#[case("upgrade web ./c --force=maybe", "force")]
#[case("upgrade web ./c --kube-insecure-skip-tls-verify=", "kube-insecure-skip-tls-verify")]
#[case("upgrade web ./c --server-side=1", "server-side")]
#[case("upgrade web ./c --server-side=True", "server-side")]
#[case("upgrade web ./c --server-side=", "server-side")]
#[case("install web ./c --server-side=auto", "server-side")]
#[case("upgrade web ./c --dry-run=yes", "dry-run")]
#[case("template web ./c --dry-run=0", "dry-run")]
#[case("upgrade web ./c --burst-limit=x", "burst-limit")]
fn a_value_helm_refuses_leaves_a_doubt_but_the_names(
    #[case] args: &str,
    #[case] flag: &'static str,
) {
    let invocation = line(args);
    assert_eq!(invocation.doubt, Some(Doubt::Value { flag }));
    assert!(!invocation.certain);
    assert_eq!((invocation.server_side, invocation.dry_run), (None, None));
    assert!(!invocation.force_replace);
    assert_eq!(invocation.release.as_deref(), Some("web"));
}

#[rstest]
#[case("upgrade web ./c", None)]
#[case("upgrade web ./c --server-side true", Some(ServerSide::True))]
#[case("upgrade web ./c --server-side=false", Some(ServerSide::False))]
#[case("upgrade web ./c --server-side=auto", Some(ServerSide::Auto))]
#[case("upgrade web ./c --server-side=bad --server-side=auto", Some(ServerSide::Auto))]
#[case("install web ./c --server-side", Some(ServerSide::True))]
#[case("install web ./c --server-side=0", Some(ServerSide::False))]
#[case("install web ./c --server-side=T", Some(ServerSide::True))]
#[case("template web ./c --server-side=false", Some(ServerSide::False))]
fn server_side_is_a_switch_but_for_upgrade(
    #[case] args: &str,
    #[case] expected: Option<ServerSide>,
) {
    let invocation = line(args);
    assert_eq!(invocation.server_side, expected);
    assert!(invocation.certain);
}

#[rstest]
#[case("upgrade web ./c", None)]
#[case("upgrade web ./c --dry-run", Some(DryRun::Client))]
#[case("upgrade web ./c --dry-run=", Some(DryRun::None))]
#[case("upgrade web ./c --dry-run=true", Some(DryRun::Client))]
#[case("upgrade web ./c --dry-run=client", Some(DryRun::Client))]
#[case("upgrade web ./c --dry-run=unset", Some(DryRun::Client))]
#[case("upgrade web ./c --dry-run=server", Some(DryRun::Server))]
#[case("upgrade web ./c --dry-run=none", Some(DryRun::None))]
#[case("upgrade web ./c --dry-run=false", Some(DryRun::None))]
#[case("upgrade web ./c --dry-run=F", Some(DryRun::None))]
#[case("install web ./c --dry-run=1", Some(DryRun::Client))]
#[case("install web ./c --dry-run=server --dry-run=none", Some(DryRun::None))]
#[case("template web ./c", None)]
#[case("template web ./c --dry-run", Some(DryRun::Client))]
#[case("template web ./c --dry-run=", Some(DryRun::Client))]
#[case("template web ./c --dry-run=server", Some(DryRun::Server))]
#[case("template web ./c --dry-run=none", Some(DryRun::Server))]
#[case("template web ./c --dry-run=false", Some(DryRun::Server))]
#[case("template web ./c --validate", Some(DryRun::Server))]
#[case("template web ./c --validate=false", None)]
fn a_dry_run_is_what_helm_makes_of_its_value(#[case] args: &str, #[case] expected: Option<DryRun>) {
    let invocation = line(args);
    assert_eq!(invocation.dry_run, expected);
    assert!(invocation.certain);
}

#[rstest]
#[case("--force", true)]
#[case("--force-replace", true)]
#[case("--force --force-replace=false", false)]
#[case("--force=false --force-replace", true)]
#[case("--force=0", false)]
fn both_names_of_one_switch_set_the_same(#[case] args: &str, #[case] expected: bool) {
    assert_eq!(line(&format!("upgrade web ./c {args}")).force_replace, expected);
    let atomic = args.replace("force-replace", "rollback-on-failure").replace("force", "atomic");
    assert_eq!(line(&format!("install web ./c {atomic}")).rollback_on_failure, expected);
}

#[test]
fn groups_add_up_and_each_is_kept_once() {
    let invocation = line("upgrade web ./c --kube-as-group ops --kube-as-group=dev,x");
    assert_eq!(invocation.kube_as_groups, ["ops", "dev,x"]);
}

#[rstest]
#[case("--post-renderer a --post-renderer b", Some("b"))]
#[case("--post-renderer a --post-renderer=", Some("a"))]
#[case("--post-renderer=", None)]
fn an_empty_post_renderer_is_passed_over(#[case] args: &str, #[case] expected: Option<&str>) {
    assert_eq!(line(&format!("upgrade web ./c {args}")).post_renderer.as_deref(), expected);
}

#[rstest]
// What a user means for the post-renderer, Helm's first reading takes for itself.
#[case("--post-renderer-args -n --post-renderer-args shop", Some("--post-renderer-args"))]
#[case("--post-renderer-args --namespace=shop", Some("shop"))]
#[case("--description -note", Some("ote"))]
#[case("--set -n=foo", Some("foo"))]
#[case("-fnope.yaml", Some("ope.yaml"))]
#[case("-ojson --dry-run", Some("--dry-run"))]
#[case("-fvalues.yaml", None)]
#[case("--post-renderer-args=-n --post-renderer-args=shop", None)]
#[case("--description x-n", None)]
fn helm_takes_its_own_flags_out_of_other_arguments(
    #[case] args: &str,
    #[case] namespace: Option<&str>,
) {
    let invocation = line(&format!("upgrade web ./c {args}"));
    assert_eq!(invocation.namespace.as_deref(), namespace);
    assert_eq!(invocation.strays == ["namespace"], namespace.is_some());
    assert_eq!(invocation.given, invocation.strays);
    assert_eq!(invocation.release.as_deref(), Some("web"));
    assert!(invocation.certain);
}

#[test]
fn a_flag_of_its_own_goes_before_one_out_of_another_argument() {
    let invocation = line("upgrade web ./c -n shop --description -note");
    assert_eq!(invocation.namespace.as_deref(), Some("shop"));
    assert_eq!(invocation.strays, [""; 0]);
}

#[test]
fn helms_first_reading_ends_at_its_first_error() {
    // -v takes no text, so that what follows is for the second reading alone.
    let invocation = line("upgrade web ./c -fvalues.yaml --description -note");
    assert_eq!(invocation.namespace, None);
    let invocation = line("upgrade web ./c -h --description -note");
    assert_eq!(invocation.namespace, None);
}

#[test]
fn a_command_that_renders_nothing_still_says_where() {
    let invocation = line("get manifest web -n shop --kube-context=prod -o yaml");
    assert_eq!(invocation.namespace.as_deref(), Some("shop"));
    assert_eq!(invocation.kube_context.as_deref(), Some("prod"));
    assert_eq!(invocation.doubt, Some(Doubt::Command));
    assert_eq!(invocation.release, None);
}

#[test]
fn paths_become_absolute_where_they_are_not() {
    let invocation = line("upgrade web ./c --kubeconfig ../k --kube-ca-file /etc/ca.pem");
    let invocation = invocation.resolve(Path::new("/srv/ci"));
    assert_eq!(invocation.kubeconfig.as_deref(), Some(Path::new("/srv/ci/../k")));
    assert_eq!(invocation.kube_ca_file.as_deref(), Some(Path::new("/etc/ca.pem")));
}

#[test]
fn a_token_is_nowhere_in_what_is_printed() {
    let token = "eyJhbGciOi.hunter2.c2ln";
    for args in [
        format!("upgrade web ./c --kube-token {token}"),
        format!("upgrade web ./c --kube-token={token}"),
        format!("upgrade web ./c --new-token {token}"),
        format!("upgrade web ./c --new-token={token} --password {token}"),
        format!("upgrade web ./c -{token}"),
        format!("upgrade web ./c --{token}"),
        format!("upgrade web ./c {token}"),
        format!("--new-token x {token}"),
    ] {
        let invocation = line(&args);
        let printed = format!("{invocation:?} {invocation:#?}");
        let doubt = invocation.doubt.map(|doubt| doubt.to_string()).unwrap_or_default();
        for part in token.split('.') {
            assert!(!printed.contains(part) && !doubt.contains(part), "{printed}{doubt}");
        }
    }
    let kept = line(&format!("upgrade web ./c --kube-token={token}")).kube_token.unwrap();
    assert_eq!(kept.expose(), token);
}

#[rstest]
#[case(Doubt::UnknownFlag { argument: 4 }, "argument 4 is a flag that is not known here")]
#[case(Doubt::MissingValue { flag: "namespace" }, "--namespace lacks its value")]
#[case(Doubt::Syntax { argument: 4 }, "argument 4 is no flag")]
#[case(Doubt::Value { flag: "force" }, "--force has a value that Helm would refuse")]
#[case(Doubt::Names { count: 3 }, "3 of the arguments are neither flags nor values of flags")]
#[case(Doubt::NamedTwice, "the release is both named and to be named")]
#[case(Doubt::Blanks, "its arguments may hold blanks")]
#[case(Doubt::Encoding, "an argument is no UTF-8 text")]
#[case(Doubt::Command, "its command runs no post-renderer")]
fn a_doubt_reads_as_part_of_a_sentence(#[case] doubt: Doubt, #[case] expected: &str) {
    assert_eq!(doubt.to_string(), expected);
}
