//! A place that is not known, contradicts Helm or does not answer: every error names it, the cause,
//! and what to do.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use belay_components::Binary;
use belay_testkit::{
    Cluster,
    cluster::{
        identity::{Access, Credential},
        pki::Authority,
    },
    objects::Workload,
    process, wait,
};
use rstest::rstest;
use serde_json::Value;

use crate::{
    fake_server::{Answer, FakeServer, live},
    runs::{self, Belay, CHART_IMAGE, Helm, LIVE, WEB_MANIFEST, operated_as},
};
use belay_suite::helms::{Major, WEB};

/// A kubeconfig of its own, changed by hand where `change` does.
fn kubeconfig(folder: &Path, access: &Access, change: impl FnOnce(&mut Value)) -> Result<PathBuf> {
    let mut config = access.kubeconfig();
    change(&mut config);
    let path = folder.join("kubeconfig");
    fs::write(&path, config.to_string()).context("write a kubeconfig")?;
    Ok(path)
}

/// A URL where nobody listens.
fn closed_port() -> Result<String> {
    Ok(format!("https://127.0.0.1:{}", process::free_port()?))
}

/// How a server cannot be reached.
#[derive(Debug, Clone, Copy)]
enum Unreachable {
    ClosedPort,
    PlainServer,
    UnknownAuthority,
    AnotherName,
    NotResolved,
}

#[rstest]
#[case(Unreachable::ClosedPort, "Connection refused")]
#[case(Unreachable::PlainServer, "corrupt message")]
#[case(Unreachable::UnknownAuthority, "invalid peer certificate")]
#[case(Unreachable::AnotherName, "not valid for name \"another.example\"")]
#[case(Unreachable::NotResolved, "nowhere.invalid")]
#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_named_with_the_cause(
    #[case] how: Unreachable,
    #[case] cause: &str,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let plain = FakeServer::answering(Answer::not_found(WEB)).await?;
    let admin = cluster.admin_access().clone();
    let folder = tempfile::tempdir()?;
    let stranger = Authority::new()?;
    let access = match how {
        Unreachable::ClosedPort => Access { server: closed_port()?, ..admin },
        Unreachable::PlainServer => Access { server: plain.https_url(), ..admin },
        Unreachable::UnknownAuthority => {
            Access { authority: stranger.certificate().to_owned(), ..admin }
        }
        Unreachable::AnotherName => admin,
        Unreachable::NotResolved => Access { server: "https://nowhere.invalid".into(), ..admin },
    };
    let path = kubeconfig(folder.path(), &access, |_| {})?;
    let belay = Belay::with_kubeconfig(&path, "shop")?;
    let belay = match how {
        Unreachable::AnotherName => belay.args(["--kube-tls-server-name", "another.example"]),
        _ => belay,
    };
    let ended = belay.run().await?;
    let error = ended.refused(&[&format!("{} cannot be reached", access.server), cause]);
    assert!(error.contains("--offline"), "{error}");
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_template_without_a_cluster_fails_and_names_offline_which_works(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let helm = Helm::new(major).await?;
    let url = closed_port()?;
    let here = ["template", "--kube-apiserver", &url, "-n", "shop"];
    let ended = helm.web(&here, &[]).await?.run().await?;
    helm.refused(&ended, &[&format!("{url} cannot be reached"), "--offline"]);
    assert_eq!(ended.stdout, "", "nothing is rendered");
    let rendered = helm.web(&here, &["--offline"]).await?.ok().await?;
    assert!(rendered.contains(CHART_IMAGE), "{rendered}");
    Ok(())
}

/// Turns the rule that an error prints into a Role for a ServiceAccount.
async fn add_rule(cluster: &Cluster, namespace: &str, account: &str, error: &str) -> Result<()> {
    let (_, rule) = error.rsplit_once("the rule to add: ").context("no rule to add")?;
    let (rule, place) = rule.split_once(" in a Role of the namespace ").context("no place")?;
    assert!(place.starts_with(namespace), "{place}");
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: belay, namespace: {namespace}}}
rules:
- {{{rule}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: belay, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: belay}}
subjects:
- {{kind: ServiceAccount, name: {account}, namespace: {namespace}}}
"
    );
    let kubectl = cluster.tool(Binary::Kubectl)?;
    kubectl.args(["apply", "-f", "-"]).input(role).ok().await?;
    Ok(())
}

#[rstest]
#[case(Workload::deployment(WEB), "deployments")]
#[case(Workload::stateful_set(WEB), "statefulsets")]
#[case(Workload::daemon_set(WEB), "daemonsets")]
#[tokio::test]
async fn who_may_not_read_a_workload_is_told_the_rule_that_lets_them(
    #[case] workload: Workload,
    #[case] resource: &str,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("forbidden").await?;
    let kind = workload.json()["kind"].as_str().context("no kind")?.to_owned();
    operated_as(cluster, &namespace, &workload.image("app", CHART_IMAGE), LIVE).await?;
    let deployer = cluster.service_account(&namespace, "deployer").await?;
    let folder = tempfile::tempdir()?;
    let path = kubeconfig(folder.path(), &deployer, |_| {})?;
    let manifest = WEB_MANIFEST.replace("kind: Deployment", &format!("kind: {kind}"));
    let run = || Belay::with_kubeconfig(&path, &namespace).map(|run| run.input(&*manifest));
    let error = run()?.run().await?.refused(&[
        &format!("cannot get resource \"{resource}\""),
        &format!("system:serviceaccount:{namespace}:deployer"),
        &format!("in the namespace \"{namespace}\""),
        &format!("resources: [\"{resource}\"], verbs: [\"get\"]"),
    ]);
    add_rule(cluster, &namespace, "deployer", &error).await?;
    wait::until("the rule to hold", wait::SOON, || async {
        let ended = run().map_err(|error| format!("{error:#}"))?.run().await;
        let ended = ended.map_err(|error| format!("{error:#}"))?;
        let expected = manifest.replace(CHART_IMAGE, LIVE);
        if ended.stdout == expected.as_bytes() { Ok(()) } else { Err(ended.stderr) }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_token_that_is_not_known_is_told_from_missing_rights() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let folder = tempfile::tempdir()?;
    let token = Credential::Token("hunter2".into());
    let access = Access { credential: token, ..cluster.admin_access().clone() };
    let path = kubeconfig(folder.path(), &access, |_| {})?;
    let ended = Belay::with_kubeconfig(&path, "shop")?.run().await?;
    let server = &cluster.admin_access().server;
    ended.refused(&[&format!("{server} does not know who asks (401)"), "credentials"]);
    Ok(())
}

#[rstest]
#[case::namespace(&["-n", "shop"], &["--namespace=till"], &[],
    &["the namespace", "--namespace says \"till\"", "helm's command line says \"shop\""])]
#[case::namespace_variable(&["-n", "shop"], &[], &[("HELM_NAMESPACE", "till")],
    &["the namespace", "HELM_NAMESPACE says \"till\"", "helm's command line says \"shop\""])]
#[case::namespace_default(&[], &["--namespace=till"], &[],
    &["the namespace till", "Helm", "applies to default"])]
#[case::namespace_of_the_variable(&[], &["--namespace=till"], &[("HELM_NAMESPACE", "shop")],
    &["--namespace says \"till\"", "HELM_NAMESPACE says \"shop\""])]
#[case::context(&["--kube-context", "testbed"], &["--kube-context=prod"], &[],
    &["the context", "--kube-context says \"prod\"", "helm's command line says \"testbed\""])]
#[case::context_variable(&["--kube-context", "testbed"], &[], &[("HELM_KUBECONTEXT", "prod")],
    &["the context", "HELM_KUBECONTEXT says \"prod\"", "helm's command line says \"testbed\""])]
#[case::kubeconfig(&["--kubeconfig", "/shop.conf"], &["--kubeconfig=/till.conf"], &[],
    &["the kubeconfig", "--kubeconfig says /till.conf", "helm's command line says /shop.conf"])]
#[case::server(&["--kube-apiserver", "https://shop"], &["--kube-apiserver=https://till"], &[],
    &["the API server", "\"https://till\"", "\"https://shop\""])]
#[case::server_default(&[], &["--kube-apiserver=https://till"], &[],
    &["the API server https://till", "Helm", "applies to https://127.0.0.1"])]
#[case::release(&[], &["--release=till"], &[],
    &["the release", "--release says \"till\"", "helm's command line says \"web\""])]
#[case::belays_variable(&["-n", "shop"], &[], &[("BELAY_NAMESPACE", "till")],
    &["BELAY_NAMESPACE says \"till\"", "helm's command line says \"shop\""])]
#[tokio::test]
async fn what_contradicts_helm_is_refused_and_both_sides_are_named(
    #[case] flags: &[&str],
    #[case] belay: &[&str],
    #[case] variables: &[(&str, &str)],
    #[case] words: &[&str],
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let helm = Helm::new(major).await?;
    let mut tool = helm.web(&[&["template"], flags].concat(), belay).await?;
    for (name, value) in variables {
        tool = tool.env(name, value);
    }
    let ended = tool.run().await?;
    helm.refused(&ended, words);
    assert_eq!(ended.stdout, "", "nothing is rendered");
    Ok(())
}

#[rstest]
#[case(Major::Three, &[], "true", "this is Helm 3, which applies on the client side")]
#[case(Major::Four, &["--server-side=false"], "true", "helm's command line says false")]
#[case(Major::Four, &["--server-side=true"], "false", "helm's command line says true")]
#[tokio::test]
async fn how_helm_applies_is_not_to_be_contradicted(
    #[case] major: Major,
    #[case] flags: &[&str],
    #[case] told: &str,
    #[case] why: &str,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("apply").await?;
    let helm = Helm::new(major).await?;
    let command = [&["install", "--dry-run=client", "-n", &namespace], flags].concat();
    let option = format!("--server-side={told}");
    let ended = helm.web(&command, &[&option]).await?.run().await?;
    helm.refused(&ended, &[&format!("--server-side says {told}"), why]);
    Ok(())
}

#[tokio::test]
async fn without_helm_the_arguments_to_add_are_named_until_nothing_is_missing() -> Result<()> {
    let server = FakeServer::answering(Answer::json("200 OK", &live("shop", WEB, LIVE))).await?;
    let access = Access { server: server.url(), ..Cluster::shared().await?.admin_access().clone() };
    let folder = tempfile::tempdir()?;
    let path = kubeconfig(folder.path(), &access, |_| {})?;
    let run = || Belay::new().map(|run| run.env("KUBECONFIG", &path));
    let not_helm = "not Helm, so its command line tells nothing";
    run()?.run().await?.refused(&["the cluster is unknown", not_helm, "add `--kube-context NAME`"]);
    let ended = run()?.args(["--kube-context", ""]).run().await?;
    ended.refused(&["the namespace is unknown", not_helm, "add `--namespace NAME`"]);
    assert_eq!(server.connections(), 0, "nothing is asked before the place is known");
    let ended = run()?.args(["--kube-context", "", "--namespace", "shop"]).run().await?;
    assert_eq!(ended.passed(), WEB_MANIFEST.replace(CHART_IMAGE, LIVE).as_bytes());
    Ok(())
}

#[tokio::test]
async fn a_wrapper_between_helm_and_belay_hides_the_place_and_is_named() -> Result<()> {
    let helm = Helm::new(Major::Three).await?;
    let folder = tempfile::tempdir()?;
    let wrapper = runs::script(folder.path(), "belay \"$@\"; exit $?")?;
    let tool =
        helm.tool().await?.args(["template", WEB]).arg(belay_suite::helms::suite("charts/matrix"));
    let ended = tool.arg("--post-renderer").arg(wrapper).run().await?;
    helm.refused(&ended, &["the cluster is unknown", "not Helm", "add `--kube-context NAME`"]);
    Ok(())
}

/// What keeps a run waiting.
#[derive(Debug, Clone, Copy)]
enum Silent {
    Server,
    Handshake,
    HalfAnAnswer,
    Input,
}

#[rstest]
#[tokio::test]
async fn a_run_that_waits_too_long_ends_and_names_the_option(
    #[values(Silent::Server, Silent::Handshake, Silent::HalfAnAnswer, Silent::Input)] who: Silent,
) -> Result<()> {
    let half = Answer::Stall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{".to_vec());
    let silence = if matches!(who, Silent::HalfAnAnswer) { half } else { Answer::Stall(vec![]) };
    let server = FakeServer::answering(silence).await?;
    // Whoever waits for TLS there sees a connection and nothing else.
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = match who {
        Silent::Handshake => format!("https://{}", mute.local_addr()?),
        _ => server.url(),
    };
    let belay = Belay::at(&url, "shop")?.args(["--timeout", "1s"]);
    let belay = if matches!(who, Silent::Input) { belay.input_stays_open() } else { belay };
    let waited = match who {
        Silent::Input => "standard input has not ended",
        Silent::Server | Silent::Handshake | Silent::HalfAnAnswer => &url,
    };
    belay.run().await?.refused(&["not done within 1s", waited, "--timeout"]);
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_server_that_never_answers_ends_helm_too(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let server = FakeServer::answering(Answer::Stall(vec![])).await?;
    let helm = Helm::new(major).await?;
    let url = server.url();
    let command = ["template", "--kube-apiserver", &url, "-n", "shop"];
    let ended = helm.web(&command, &["--timeout=1s"]).await?.run().await?;
    helm.refused(&ended, &["not done within 1s", &url, "--timeout"]);
    Ok(())
}

/// What is wrong with a proxy.
#[derive(Debug, Clone, Copy)]
enum Proxy {
    /// Of a kind that belay does not speak.
    Socks,
    /// Nobody listens there.
    Closed,
    /// It does not let us through.
    Refuses,
    /// It is told by the environment, and does not let us through.
    OfTheEnvironment,
    /// It would, but is not to be used for this server.
    Excluded,
}

#[rstest]
#[case(Proxy::Socks, &["its proxy is not spoken to over plain HTTP", "NO_PROXY"])]
#[case(Proxy::Closed, &["cannot be reached", "Connection refused"])]
#[case(Proxy::Refuses, &["cannot be reached", "proxy"])]
#[case(Proxy::OfTheEnvironment, &["cannot be reached", "proxy"])]
#[case(Proxy::Excluded, &["cannot be reached", "dns error"])]
#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_an_error(
    #[case] how: Proxy,
    #[case] words: &[&str],
) -> Result<()> {
    let proxy = FakeServer::answering(Answer::whole("407 Proxy Authentication Required", &[], ""));
    let proxy = proxy.await?;
    let server = "https://cluster.invalid:6443";
    let access =
        Access { server: server.into(), ..Cluster::shared().await?.admin_access().clone() };
    let url = match how {
        Proxy::Socks => Some("socks5://127.0.0.1:1080".to_owned()),
        Proxy::Closed => Some(closed_port()?.replace("https", "http")),
        Proxy::Refuses => Some(proxy.url()),
        Proxy::OfTheEnvironment | Proxy::Excluded => None,
    };
    let folder = tempfile::tempdir()?;
    let path = kubeconfig(folder.path(), &access, |config| {
        if let Some(url) = &url {
            config["clusters"][0]["cluster"]["proxy-url"] = url.as_str().into();
        }
    })?;
    let belay = Belay::with_kubeconfig(&path, "shop")?;
    let belay = if url.is_none() { belay.env("HTTPS_PROXY", proxy.url()) } else { belay };
    let excluded = if matches!(how, Proxy::Excluded) { "other.invalid,.invalid" } else { "" };
    let belay = belay.env("NO_PROXY", excluded);
    let ended = belay.run().await?;
    ended.refused(&[&[server], words].concat());
    let asked = proxy.heads().iter().all(|head| head.starts_with("CONNECT cluster.invalid:6443 "));
    assert!(asked, "{:?}", proxy.heads());
    assert_eq!(
        proxy.heads().len(),
        usize::from(matches!(how, Proxy::Refuses | Proxy::OfTheEnvironment))
    );
    Ok(())
}
