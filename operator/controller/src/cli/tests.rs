//! Options, their variables and their errors.

use belay_api::annotations::TargetAnnotation as Key;
use rstest::rstest;

use super::*;

fn command(words: &str) -> Result<Command, clap::Error> {
    let words = std::iter::once("belay-operator").chain(words.split_whitespace());
    Cli::parse_from(words).map(|cli| cli.command)
}

fn run(words: &str) -> Result<Run, clap::Error> {
    match command(&format!("run --namespace belay {words}"))? {
        Command::Run(run) => Ok(*run),
        other => panic!("{other:?}"),
    }
}

fn explain(words: &str) -> Result<Explain, clap::Error> {
    match command(&format!("explain acme/web {words}"))? {
        Command::Explain(explain) => Ok(*explain),
        other => panic!("{other:?}"),
    }
}

fn release_pauses(words: &str) -> Result<ReleasePauses, clap::Error> {
    match command(&format!("release-pauses {words}"))? {
        Command::ReleasePauses(read) => Ok(*read),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_is_consistent() {
    Cli::command().debug_assert();
}

/// Annotations have none: a variable would change unseen what is explained. Nor has what is done once:
/// in the operator's own pod BELAY_NAMESPACE is there, and means something else.
#[test]
fn every_option_has_a_variable() {
    let mut command = Cli::command();
    command.build();
    for command in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        for argument in command.get_arguments() {
            let long = argument.get_long().unwrap_or_default();
            let is_annotation = argument.get_help_heading() == Some("Annotations");
            let about_output = ["", "help", "version", "output", "running"].contains(&long);
            let is_done_once = command.get_name() == "release-pauses"
                && ["namespace", "stop", "timeout"].contains(&long);
            if is_annotation || about_output || is_done_once {
                assert_eq!(argument.get_env(), None, "{long}");
                continue;
            }
            let expected = format!("BELAY_{}", long.to_uppercase().replace('-', "_"));
            let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned());
            assert_eq!(variable, Some(expected));
        }
    }
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let run = run("").unwrap();
    assert_eq!(run.scope, ScopeKind::Cluster);
    assert_eq!(run.annotation_prefix.as_str(), "belay.dev");
    assert_eq!(run.field_manager, "belay-operator");
    assert_eq!(run.lease_name, "belay-operator");
    assert_eq!(run.github.github_url.as_str(), "https://api.github.com/");
    assert_eq!((run.poll_interval.as_secs(), run.revert_window.as_secs()), (60, 3600));
    assert_eq!(run.max_concurrent_rollouts, 10);
    assert_eq!(run.health_bind.to_string(), "0.0.0.0:8080");
    assert_eq!(run.admin_bind.to_string(), "127.0.0.1:8081");
    assert_eq!((run.log.log_format, run.log.log_filter.as_str()), (LogFormat::Text, "info"));
    assert!(run.check_platforms && !run.read_pull_secrets && !run.allow_image_check_skip);
}

#[rstest]
#[case("", [false, false, true])]
#[case("--read-pull-secrets --allow-image-check-skip", [true, true, true])]
#[case("--read-pull-secrets=false --check-platforms false", [false, false, false])]
#[case("--check-platforms --scope cluster", [false, false, true])]
#[case("--check-platforms=false --read-pull-secrets true", [true, false, false])]
fn switches_may_have_a_value(#[case] words: &str, #[case] expected: [bool; 3]) {
    let run = run(words).unwrap();
    let found = [run.read_pull_secrets, run.allow_image_check_skip, run.check_platforms];
    assert_eq!(found, expected);
}

#[test]
fn lists_are_repeatable_or_separated_by_commas() {
    let words = "--allow-repo a=acme/web,b=acme/* --allow-repo c=x/y --allow-registry ghcr.io,\
                 docker.io/acme --allow-host 10.0.0.1:5000,http://reg.corp:80 \
                 --registry-mirror docker.io=mirror.corp,ghcr.io=mirror.corp:5000";
    let run = run(words).unwrap();
    let print = |it: &dyn std::fmt::Display| it.to_string();
    let repos: Vec<_> = run.allow_repo.iter().map(|it| print(it)).collect();
    assert_eq!(repos, ["a=acme/web", "b=acme/*", "c=x/y"]);
    let registries: Vec<_> = run.allow_registry.iter().map(|it| print(it)).collect();
    assert_eq!(registries, ["ghcr.io", "docker.io/acme"]);
    let hosts: Vec<_> = run.allow_host.iter().map(|it| print(it)).collect();
    assert_eq!(hosts, ["10.0.0.1:5000", "http://reg.corp:80"]);
    let mirror = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let mirrors = [mirror("docker.io", "mirror.corp"), mirror("ghcr.io", "mirror.corp:5000")];
    assert_eq!(run.registry_mirror, mirrors);
}

#[rstest]
#[case("--scope team", "--scope", "[possible values: cluster, namespace]")]
#[case("--annotation-prefix a/b", "--annotation-prefix", "must be a DNS subdomain")]
#[case("--field-manager helm", "--field-manager", "Helm writes under this name")]
#[case("--migrate-from-field-manager kubectl-edit", "--migrate-from-field-manager", "people write")]
#[case("--migrate-pause-mark paused-by", "--migrate-pause-mark", "PREFIX/NAME")]
#[case("--migrate-pause-mark old.example/-", "--migrate-pause-mark", "PREFIX/NAME")]
#[case(
    "--migrate-pause-mark autoscaling.keda.sh/paused",
    "--migrate-pause-mark",
    "no operator's mark"
)]
#[case("--github-url ftp://github.com", "--github-url", "expected https://HOST")]
#[case("--github-url https://a:b@github.com", "--github-url", "--github-token-file")]
#[case("--poll-interval 0s", "--poll-interval", "from 1s to 24h")]
#[case("--poll-interval 60", "--poll-interval", "such as 90s")]
#[case("--revert-window 1d", "--revert-window", "such as 90s")]
#[case("--max-concurrent-rollouts 0", "--max-concurrent-rollouts", "0 is not in 1..")]
#[case("--check-platforms maybe", "--check-platforms", "[possible values: true, false]")]
#[case("--registry-mirror ghcr.io", "--registry-mirror", "expected HOST[:PORT]=HOST[:PORT]")]
#[case("--allow-repo acme/web", "--allow-repo", "expected NAMESPACE=OWNER/NAME")]
#[case("--allow-registry ghcr.io/*", "--allow-registry", "expected HOST[:PORT][/PATH]")]
#[case("--allow-host a/b", "--allow-host", "expected [http://]HOST[:PORT]")]
#[case("--health-bind 8080", "--health-bind", "IP:PORT")]
#[case("--log-filter a=b=c", "--log-filter", "expected a level")]
#[case("--lease-name A", "--lease-name", "expected the name of an object")]
fn an_error_names_option_value_and_what_is_expected(
    #[case] words: &str,
    #[case] option: &str,
    #[case] expected: &str,
) {
    let error = run(words).unwrap_err();
    assert!(error.use_stderr());
    let text = error.to_string();
    let value = words.split(' ').nth(1).unwrap();
    for part in [option, value, expected] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn there_is_no_default_command_and_no_default_namespace() {
    assert!(command("").unwrap_err().use_stderr());
    let error = command("run").unwrap_err().to_string();
    assert!(error.contains("--namespace <NS>"), "{error}");
}

#[test]
fn annotations_are_options_of_explain() {
    let words = "--range ^1 --prereleases --tag-pattern web/v{version} --bake=5m --digest=false";
    let flags = explain(words).unwrap().annotations;
    let found = |one| flags.get(one).unwrap_or("-").to_owned();
    let keys = [Key::Range, Key::Prereleases, Key::TagPattern, Key::Bake, Key::Digest, Key::Hold];
    assert_eq!(keys.map(found), ["^1", "true", "web/v{version}", "5m", "false", "-"]);
}

#[test]
fn what_releases_pauses_is_read() {
    let words = "--stop belay/op --namespace shop --timeout 5s --migrate-pause-mark old.example/by";
    let given = release_pauses(words).unwrap();
    assert_eq!(given.stop, Some(("belay".to_owned(), "op".to_owned())));
    assert_eq!((given.namespace.as_deref(), given.timeout.as_secs()), (Some("shop"), 5));
    assert_eq!(given.migrate_pause_mark, ["old.example/by"]);
    let default = release_pauses("").unwrap();
    assert_eq!((default.stop, default.namespace, default.timeout.as_secs()), (None, None, 60));
    for wrong in ["op", "/op", "belay/", "Belay/op"] {
        let error = release_pauses(&format!("--stop {wrong}")).unwrap_err();
        assert!(error.use_stderr(), "{wrong}");
    }
}

#[rstest]
#[case("explain")]
#[case("explain acme")]
#[case("explain --prereleases acme/web --range")]
#[case("explain acme/web --running a:b")]
#[case("explain acme/web --repo acme/api")]
#[case("explain acme/web --output yaml")]
fn what_cannot_be_explained_is_an_error_of_usage(#[case] words: &str) {
    assert!(command(words).unwrap_err().use_stderr());
}

#[test]
fn a_usage_error_of_our_own_looks_like_those_of_clap() {
    let error = Cli::usage_error("run", "--admin-bind: no");
    let text = error.to_string();
    assert!(error.use_stderr() && text.starts_with("error: --admin-bind: no"), "{text}");
    assert!(text.contains("Usage: belay-operator run"), "{text}");
}
