use std::io::Write as _;

use clap::Parser as _;
use rstest::rstest;
use tempfile::NamedTempFile;

use super::*;
use crate::cli::Cli;

const ONE: &str = "\
apiVersion: v1
kind: Config
current-context: blue
clusters:
- {name: blue, cluster: {server: 'https://blue.example:6443'}}
- {name: proxied, cluster: {server: 'https://far.example', proxy-url: 'http://proxy.example:3128'}}
users:
- {name: admin, user: {token: secret}}
contexts:
- {name: blue, context: {cluster: blue, user: admin, namespace: shop}}
- {name: empty, context: {cluster: blue, user: admin, namespace: ''}}
- {name: far, context: {cluster: proxied, user: admin}}
";

const TWO: &str = "\
apiVersion: v1
kind: Config
current-context: green
clusters:
- {name: green, cluster: {server: 'https://green.example'}}
users:
- {name: other, user: {username: u, password: p}}
contexts:
- {name: green, context: {cluster: green, user: other}}
";

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn environment(files: &[&NamedTempFile]) -> Environment {
    let paths = files.iter().map(|file| file.path());
    let list = env::join_paths(paths).unwrap().into_string().unwrap();
    [("KUBECONFIG".to_owned(), list)].into()
}

fn resolved(flags: &[&str], environment: &Environment) -> Result<Place, Error> {
    let words = ["kubectl-release", "version"].iter().chain(flags);
    resolve(&Cli::try_parse_from(words).unwrap().global.cluster, environment)
}

#[rstest]
#[case(&[], "https://blue.example:6443/", "shop")]
#[case(&["-n", "pay"], "https://blue.example:6443/", "pay")]
#[case(&["-n", ""], "https://blue.example:6443/", "shop")]
#[case(&["--context", "empty"], "https://blue.example:6443/", "default")]
#[case(&["--context", "green"], "https://green.example/", "default")]
#[case(&["--cluster", "green"], "https://green.example/", "shop")]
#[case(&["--server", "other:1234"], "https://other:1234/", "shop")]
#[case(&["-s", "http://localhost:8080"], "http://localhost:8080/", "shop")]
fn flags_go_over_the_context_of_the_merged_files(
    #[case] flags: &[&str],
    #[case] url: &str,
    #[case] namespace: &str,
) {
    let (one, two) = (file(ONE), file(TWO));
    let place = resolved(flags, &environment(&[&one, &two])).unwrap();
    assert_eq!(place.config.cluster_url.to_string(), url);
    assert_eq!(place.config.default_namespace, namespace);
}

#[test]
fn the_first_file_decides_and_missing_ones_do_not_count() {
    let (one, two) = (file(ONE), file(TWO));
    let gone = NamedTempFile::new().unwrap();
    let all = environment(&[&gone, &two, &one]);
    drop(gone);
    assert_eq!(resolved(&[], &all).unwrap().context.as_deref(), Some("green"));
}

#[rstest]
#[case::context(&["--context", "red"], "context \"red\" does not exist")]
#[case::cluster(&["--cluster", "red"], "cluster \"red\" does not exist in the kubeconfig")]
#[case::user(&["--user", "red"], "user \"red\" does not exist in the kubeconfig")]
#[case::url(&["--server", "https://bob:pw@x y"], "--server \"https://x y\" is no URL")]
#[case::file(&["--kubeconfig", "/no/such/file"], "read the kubeconfig /no/such/file")]
#[case::authority(
    &["--certificate-authority", "/no/ca"],
    "read the certificate authority /no/ca"
)]
#[case::both(
    &["--certificate-authority", "/no/ca", "--insecure-skip-tls-verify"],
    "--certificate-authority and --insecure-skip-tls-verify exclude each other"
)]
fn what_is_not_there_is_named(#[case] flags: &[&str], #[case] message: &str) {
    let one = file(ONE);
    let error = resolved(flags, &environment(&[&one])).unwrap_err();
    assert!(error.message.starts_with(message), "{error}");
}

#[test]
fn a_broken_kubeconfig_is_not_quoted() {
    let broken = file("users: [{name: a, user: {token: hunter2");
    let error = resolved(&[], &environment(&[&broken])).unwrap_err();
    assert!(!error.to_string().contains("hunter2") && error.message.contains("line"), "{error}");
}

#[test]
fn a_proxy_is_one_of_the_kubeconfig_alone() {
    let one = file(ONE);
    let all = environment(&[&one]);
    let proxy = |flags: &[&str]| resolved(flags, &all).unwrap().config.proxy_url;
    assert_eq!(proxy(&[]), None);
    assert_eq!(proxy(&["--context", "far"]).unwrap().host(), Some("proxy.example"));
    assert_eq!(proxy(&["--cluster", "proxied"]).unwrap().host(), Some("proxy.example"));
}

#[test]
fn without_any_kubeconfig_a_server_is_enough() {
    let none = [("KUBECONFIG".to_owned(), "/no/such/file".to_owned())].into();
    let place = resolved(&["--server", "https://x", "--token", "t"], &none).unwrap();
    assert_eq!((place.context, place.config.default_namespace.as_str()), (None, "default"));
    let error = resolved(&[], &none).unwrap_err();
    assert!(error.message.starts_with("no cluster is configured"), "{error}");
}

#[rstest]
#[case(&["--insecure-skip-tls-verify"], true)]
#[case(&["--insecure-skip-tls-verify=true"], true)]
#[case(&["--insecure-skip-tls-verify=false"], false)]
#[case(&[], false)]
fn certificates_are_checked_unless_told_not_to(#[case] flags: &[&str], #[case] skips: bool) {
    let one = file(ONE);
    let place = resolved(flags, &environment(&[&one])).unwrap();
    assert_eq!(place.config.accept_invalid_certs, skips);
}
