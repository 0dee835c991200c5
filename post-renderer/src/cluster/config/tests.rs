use rstest::rstest;

use super::*;

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: dev, context: {cluster: dev, user: me, namespace: shop}}
- {name: prod, context: {cluster: prod, user: me}}
- {name: copy, context: {cluster: dev, user: reader, namespace: shop}}
clusters:
- {name: dev, cluster: {server: 'https://user:secret@Dev.example:6443/'}}
- {name: prod, cluster: {server: 'https://prod.example'}}
users:
- {name: me, user: {token: abc}}
- {name: reader, user: {token: def}}
";

/// A kubeconfig file, and the access that Helm's `--kubeconfig` of it tells.
struct Bed {
    _folder: tempfile::TempDir,
    access: Access,
}

fn bed() -> Bed {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    fs::write(&path, KUBECONFIG).unwrap();
    let kubeconfig = Some(Told::new(path, Source::HelmCommandLine));
    Bed { _folder: folder, access: Access { kubeconfig, ..Access::default() } }
}

fn place(access: Access) -> Place {
    Place {
        access,
        helm_access: None,
        namespace: None,
        namespace_must_be_default: false,
        release: None,
    }
}

fn resolve(place: &Place, expected: Option<&str>) -> Result<Destination, ConfigError> {
    super::resolve(place, expected, &|_| ())
}

fn ours(value: &str) -> Told<String> {
    Told::new(value.to_owned(), Source::Belay("--kube-context"))
}

#[test]
fn the_current_context_tells_server_and_namespace() {
    let found = resolve(&place(bed().access), None).unwrap();
    assert_eq!(found.server.value, "https://Dev.example:6443");
    assert_eq!(found.context.map(|told| told.value).as_deref(), Some("dev"));
    assert_eq!(found.namespace.value, "shop");
    assert!(!found.config.default_retry);
}

#[test]
fn a_context_without_a_namespace_means_default() {
    let access = Access { context: Some(ours("prod")), ..bed().access };
    let Bed { _folder, access: files } = bed();
    let access = Access { kubeconfig: files.kubeconfig, ..access };
    assert_eq!(resolve(&place(access), None).unwrap().namespace.value, "default");
}

#[test]
fn an_unknown_context_is_an_error_with_those_there_are() {
    let bed = bed();
    let access = Access { context: Some(ours("test")), ..bed.access };
    let error = resolve(&place(access), None).unwrap_err().to_string();
    assert_eq!(error, "use the context \"test\" of the kubeconfig: it has dev, prod, copy");
}

#[test]
fn a_kubeconfig_that_is_told_must_be_there() {
    let kubeconfig = Some(Told::new(PathBuf::from("/nowhere/at/all"), Source::HelmCommandLine));
    let error = resolve(&place(Access { kubeconfig, ..Access::default() }), None).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[rstest]
#[case("https://dev.example:6443", true)]
#[case("https://DEV.example:6443/", true)]
#[case("https://dev.example", false)]
#[case("https://prod.example:443", false)]
#[case("http://dev.example:6443", false)]
fn only_the_expected_server_is_used(#[case] expected: &str, #[case] fits: bool) {
    let bed = bed();
    match resolve(&place(bed.access), Some(expected)) {
        Ok(_) => assert!(fits),
        Err(error @ ConfigError::UnexpectedServer { .. }) => {
            assert!(!fits && !error.to_string().contains("secret"), "{error}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[rstest]
#[case::the_same_server_and_namespace("copy", None)]
#[case::another_server("prod", Some("the API server"))]
fn an_option_in_place_of_a_default_of_helms_must_lead_there(
    #[case] context: &str,
    #[case] differs: Option<&str>,
) {
    let bed = bed();
    let access = Access { context: Some(ours(context)), ..bed.access.clone() };
    let place = Place { helm_access: Some(bed.access), ..place(access) };
    let error = resolve(&place, None).err().map(|error| error.to_string());
    assert_eq!(error.is_some(), differs.is_some(), "{error:?}");
    assert!(error.unwrap_or_default().contains(differs.unwrap_or_default()));
}

#[rstest]
#[case("shop", true)]
#[case("other", false)]
fn a_namespace_in_place_of_helms_default_must_be_that_default(
    #[case] namespace: &str,
    #[case] fits: bool,
) {
    let bed = bed();
    let namespace = Some(Told::new(namespace.to_owned(), Source::Belay("--namespace")));
    let place = Place { namespace, namespace_must_be_default: true, ..place(bed.access) };
    assert_eq!(resolve(&place, None).is_ok(), fits);
}

#[test]
fn an_option_overrides_what_the_kubeconfig_says() {
    let bed = bed();
    let text = |value: &str| Some(Told::new(value.to_owned(), Source::HelmCommandLine));
    let access = Access {
        server: text("10.0.0.1:6443"),
        token: Some(Told::new("xyz".parse().unwrap(), Source::HelmCommandLine)),
        as_user: text("alice"),
        as_groups: Some(Told::new(vec!["dev".to_owned()], Source::HelmCommandLine)),
        tls_server_name: text("kubernetes"),
        insecure_skip_tls_verify: true,
        ..bed.access
    };
    let found = resolve(&place(access), None).unwrap();
    assert_eq!(
        found.server,
        Told::new("https://10.0.0.1:6443".to_owned(), Source::HelmCommandLine)
    );
    assert_eq!(found.config.auth_info.impersonate.as_deref(), Some("alice"));
    assert_eq!(found.config.auth_info.impersonate_groups, Some(vec!["dev".to_owned()]));
    assert_eq!(found.config.tls_server_name.as_deref(), Some("kubernetes"));
    assert!(found.config.accept_invalid_certs);
}

#[test]
fn an_authority_without_a_certificate_is_an_error() {
    let bed = bed();
    let path = bed.access.kubeconfig.as_ref().unwrap().value.clone();
    let ca_file = Some(Told::new(path, Source::HelmCommandLine));
    let error = resolve(&place(Access { ca_file, ..bed.access }), None).unwrap_err();
    assert!(matches!(error, ConfigError::Authority { .. }), "{error}");
}

#[test]
fn files_are_merged_and_the_first_word_counts() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let first = write("first", "current-context: ''\n");
    let second = write("second", KUBECONFIG);
    let third = write("third", "current-context: prod\n");
    let merged = merge(&[folder.path().join("missing"), first, second, third]).unwrap();
    let merged = merged.unwrap();
    assert_eq!(merged.current_context.as_deref(), Some("dev"));
    assert_eq!(merged.contexts.len(), 3);
}

#[test]
fn files_that_say_nothing_are_as_good_as_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    fs::write(&path, "").unwrap();
    assert!(merge(&[path]).unwrap().is_none());
    assert!(merge(&[]).unwrap().is_none());
}

#[test]
fn every_file_is_told_of_before_it_is_asked_for() {
    let bed = bed();
    let path = bed.access.kubeconfig.as_ref().unwrap().value.clone();
    let text = KUBECONFIG.replace(
        "cluster: {server: 'https://prod",
        "cluster: {certificate-authority: /nowhere/ca, server: 'https://prod",
    );
    fs::write(&path, text).unwrap();
    let told = std::cell::RefCell::new(Vec::new());
    let ca_file = Some(Told::new(PathBuf::from("/nowhere/other"), Source::HelmCommandLine));
    let access = Access { context: Some(ours("dev")), ca_file, ..bed.access };
    super::resolve(&place(access), None, &|path| told.borrow_mut().push(path.to_owned()))
        .unwrap_err();
    let expected = [path, "/nowhere/ca".into(), "/nowhere/other".into()];
    assert_eq!(told.into_inner(), expected);
}

#[rstest]
#[case::inline("certificate-authority-data: ''", "token: abc", false)]
#[case::system("insecure-skip-tls-verify: false", "token: abc", true)]
#[case::plugin("insecure-skip-tls-verify: false", "exec: {command: login, apiVersion: v1}", true)]
#[case::file("insecure-skip-tls-verify: false", "tokenFile: /nowhere", true)]
fn what_more_than_the_server_is_needed(
    #[case] cluster: &str,
    #[case] user: &str,
    #[case] more: bool,
) {
    let bed = bed();
    let path = &bed.access.kubeconfig.as_ref().unwrap().value;
    let text = KUBECONFIG.replace("{token: abc}", &format!("{{{user}}}"));
    let text =
        text.replace("{server: 'https://user", &format!("{{{cluster}, server: 'https://user"));
    fs::write(path, text).unwrap();
    let found = resolve(&place(bed.access), None).unwrap();
    assert_eq!(found.needs_more(), more);
}
