//! What options mean together.

use rstest::rstest;

use super::*;
use crate::cli::{Cli, Command};

fn config(words: &str) -> Result<Config, ConfigError> {
    let start = ["belay-operator", "run", "--namespace", "belay"];
    let cli = Cli::parse_from(start.into_iter().chain(words.split_whitespace())).unwrap();
    match cli.command {
        Command::Run(run) => Config::of(&run),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_instance_is_the_lease() {
    let config = config("--lease-name one --annotation-prefix release.example.com").unwrap();
    assert_eq!(config.engine.instance, "belay/one");
    assert_eq!(config.engine.prefix.as_str(), "release.example.com");
    assert_eq!((config.namespace.as_str(), config.lease_name.as_str()), ("belay", "one"));
}

#[test]
fn decisions_get_what_the_options_say() {
    let words = "--field-manager roller --migrate-from-field-manager older --revert-window 0s \
                 --migrate-pause-mark old.example/paused-by,old.example/at \
                 --max-concurrent-rollouts 50 --allow-image-check-skip";
    let engine = config(words).unwrap().engine;
    let expected = Settings {
        field_manager: "roller".to_owned(),
        migrate_from: Some("older".to_owned()),
        revert_window: belay_api::Duration::from_secs(0),
        max_concurrent_rollouts: 50,
        scaled_objects: true,
        pause_marks: vec!["old.example/paused-by".to_owned(), "old.example/at".to_owned()],
        image_check_skip: true,
        ..Settings::default()
    };
    assert_eq!(engine, expected);
}

#[rstest]
#[case("", None)]
#[case("--scope namespace", Some("belay"))]
fn the_scope_is_the_cluster_or_the_own_namespace(
    #[case] words: &str,
    #[case] expected: Option<&str>,
) {
    assert_eq!(config(words).unwrap().scope.namespace(), expected);
}

/// Only a credential that several namespaces share shows them what they may not see.
#[rstest]
#[case("", true)]
#[case("--github-token-file /token", false)]
#[case("--github-token-file /token --allow-repo shop=acme/*", true)]
#[case("--github-token-file /token --allow-repo blog=acme/*", false)]
#[case("--github-token-file /token --scope namespace", true)]
#[case("--github-token-file /token --scope namespace --allow-repo shop=acme/api", false)]
fn a_private_repository_may_be_followed(#[case] words: &str, #[case] expected: bool) {
    let allow = config(words).unwrap().allow;
    assert_eq!(allow.may_follow("shop", "acme/web", true), expected);
    assert!(allow.may_follow("shop", "acme/web", false));
}

#[rstest]
#[case::open("--admin-bind 0.0.0.0:8081", Some("--admin-bind 0.0.0.0:8081"))]
#[case::open_v6("--admin-bind [::]:8081", Some("--admin-token-file"))]
#[case::open_with_token("--admin-bind 0.0.0.0:8081 --admin-token-file /token", None)]
#[case::loopback("--admin-bind 127.9.9.9:1", None)]
#[case::loopback_v6("--admin-bind [::1]:1", None)]
#[case::same("--admin-bind 127.0.0.1:1 --health-bind 127.0.0.1:1", Some("--health-bind"))]
#[case::free_ports("--admin-bind 127.0.0.1:0 --health-bind 127.0.0.1:0", None)]
#[case::itself("--migrate-from-field-manager belay-operator", Some("--field-manager"))]
#[case::plain("--github-url http://github.corp", Some("without TLS"))]
#[case::plain_named("--github-url http://github.corp --allow-host http://github.corp", None)]
#[case::plain_other_port(
    "--github-url http://github.corp:81 --allow-host http://github.corp",
    Some("TLS")
)]
#[case::plain_loopback("--github-url http://127.0.0.1:4000/api/v3", None)]
#[case::plain_localhost("--github-url http://localhost:4000", None)]
#[case::plain_loopback_v6("--github-url http://[::1]:4000", None)]
#[case::not_loopback("--github-url http://127.0.0.1.evil.example", Some("TLS"))]
#[case::mirrors("--registry-mirror a.io=b.io --registry-mirror a.io=c.io", Some("b.io"))]
#[case::mirror_twice("--registry-mirror a.io=b.io --registry-mirror a.io=b.io", None)]
fn options_must_fit_together(#[case] words: &str, #[case] problem: Option<&str>) {
    let error = config(words).err().map(|error| error.to_string());
    match (&error, problem) {
        (None, None) => {}
        (Some(error), Some(problem)) => assert!(error.contains(problem), "{error}"),
        _ => panic!("{words}: {error:?}"),
    }
}

#[rstest]
#[case("nginx:1", "mirror.corp", "library/nginx")]
#[case("ghcr.io/acme/web:1", "ghcr.io", "acme/web")]
fn an_image_is_asked_for_on_the_mirror(
    #[case] image: &str,
    #[case] host: &str,
    #[case] repository: &str,
) {
    let registry = config("--registry-mirror docker.io=mirror.corp").unwrap().registry;
    let asked = registry.asked(&belay_adapters::registry::Image::parse(image).unwrap());
    assert_eq!((asked.registry(), asked.repository()), (host, repository));
}

#[rstest]
#[case::gone(None, "read the certificates of --github-ca-file")]
#[case::no_pem(Some("hello"), "expected PEM blocks CERTIFICATE")]
#[case::empty(Some(""), "expected PEM blocks CERTIFICATE")]
fn certificates_that_cannot_be_used_are_an_error(
    #[case] content: Option<&str>,
    #[case] problem: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    if let Some(content) = content {
        std::fs::write(&path, content).unwrap();
    }
    let config = config(&format!("--github-ca-file {}", path.display())).unwrap();
    let error = config.forge.client(belay_adapters::Clock::machine()).unwrap_err().to_string();
    assert!(error.contains(problem) && error.contains("ca.crt"), "{error}");
}

#[test]
fn who_may_see_the_debug_pages_follows_from_the_token() {
    assert_eq!(config("").unwrap().admin_access(), Access::Loopback);
    let access = config("--admin-token-file /token").unwrap().admin_access();
    assert_eq!(access, Access::Token("/token".into()));
}
