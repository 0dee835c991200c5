//! Where belay looks: in the place where Helm is about to apply; and it says how it knows.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use belay_testkit::{
    Cluster,
    cluster::{identity::Access, pki::Authority},
    tool::Tool,
};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    fake_server::{Answer, FakeServer, live},
    runs::{Belay, CHART_IMAGE, Helm, LIVE, WEB_MANIFEST, kubeconfig, operated},
};
use belay_suite::helms::{Major, WEB, suite};

/// Helm renders the chart, and belay asks this server of its own, which knows one workload in every
/// namespace.
struct Scene {
    helm: Helm,
    server: FakeServer,
    folder: TempDir,
}

impl Scene {
    async fn new(major: Major) -> Result<Self> {
        let server = FakeServer::start(|head| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let namespace = path.split('/').nth(5).unwrap_or_default();
            if path.contains("/secrets") {
                return Answer::json("200 OK", &json!({ "kind": "SecretList", "items": [] }));
            }
            Answer::json("200 OK", &live(namespace, WEB, LIVE))
        })
        .await?;
        Ok(Self { helm: Helm::new(major).await?, server, folder: tempfile::tempdir()? })
    }

    /// A kubeconfig in the folder.
    fn kubeconfig(&self, name: &str, config: &Value) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::write(&path, config.to_string()).context("write a kubeconfig")?;
        Ok(path)
    }

    /// The paths that were asked for, without those of release records.
    fn asked(&self) -> Vec<String> {
        let heads = self.server.heads();
        let paths = heads.iter().filter_map(|head| head.split(' ').nth(1).map(str::to_owned));
        paths.filter(|path| !path.contains("/secrets")).collect()
    }
}

/// The path of the workload in a namespace.
fn path(namespace: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{WEB}")
}

#[rstest]
#[case::nothing(&[], &[], "shop", "shop (from: helm default)", "prod (from: helm default)")]
#[case::flag(&["-n", "till"], &[], "till", "till (from: helm's command line)",
    "prod (from: helm default)")]
#[case::variable(&[], &[("HELM_NAMESPACE", "till")], "till", "till (from: HELM_NAMESPACE)",
    "prod (from: helm default)")]
#[case::context(&["--kube-context", "test"], &[], "lab", "lab (from: helm default)",
    "test (from: helm's command line)")]
#[case::context_variable(&[], &[("HELM_KUBECONTEXT", "test")], "lab", "lab (from: helm default)",
    "test (from: HELM_KUBECONTEXT)")]
#[case::context_without_namespace(&["--kube-context", "bare"], &[], "default",
    "default (from: helm default)", "bare (from: helm's command line)")]
#[case::both(&["--kube-context=test", "--namespace=till"], &[], "till",
    "till (from: helm's command line)", "test (from: helm's command line)")]
#[case::flag_and_variable_agree(&["-ntill"], &[("HELM_NAMESPACE", "till")], "till",
    "till (from: helm's command line)", "prod (from: helm default)")]
#[tokio::test]
async fn belay_looks_where_helm_applies_and_says_how_it_knows(
    #[case] flags: &[&str],
    #[case] variables: &[(&str, &str)],
    #[case] namespace: &str,
    #[case] namespace_told: &str,
    #[case] context_told: &str,
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let scene = Scene::new(major).await?;
    let contexts = [("prod", Some("shop")), ("test", Some("lab")), ("bare", None)];
    let path_of_config = scene.kubeconfig("config", &kubeconfig(&scene.server.url(), &contexts))?;
    let mut tool = scene.helm.web(&[&["template"], flags].concat(), &[]).await?;
    tool = tool.env("KUBECONFIG", &path_of_config);
    for (name, value) in variables {
        tool = tool.env(name, value);
    }
    let rendered = tool.ok().await?;
    assert!(rendered.contains(LIVE) && !rendered.contains(CHART_IMAGE), "{rendered}");
    assert_eq!(scene.asked(), [path(namespace)]);
    let report = scene.helm.report();
    for line in [
        format!("server: {} (from: {})", scene.server.url(), told_by(context_told)),
        format!("context: {context_told}"),
        format!("namespace: {namespace_told}"),
        "release: web (from: helm's command line)".to_owned(),
    ] {
        assert!(report.lines().any(|told| told == line), "{line:?} is not in: {report}");
    }
    Ok(())
}

/// `helm default` of `prod (from: helm default)`.
fn told_by(fact: &str) -> &str {
    fact.rsplit_once("(from: ").map_or("", |(_, from)| from.trim_end_matches(')'))
}

#[rstest]
#[tokio::test]
async fn a_document_that_names_its_namespace_is_looked_for_there_and_the_rest_where_helm_says(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let scene = Scene::new(major).await?;
    let config =
        scene.kubeconfig("config", &kubeconfig(&scene.server.url(), &[("prod", Some("shop"))]))?;
    let command = ["template", "-n", "till", "--set", "other=elsewhere"];
    let tool = scene.helm.web(&command, &[]).await?.env("KUBECONFIG", config);
    // The live object of the other namespace says that its release is in that namespace.
    let ended = tool.run().await?;
    let mut asked = scene.asked();
    asked.sort();
    assert_eq!(asked, [path("elsewhere"), path("till")]);
    scene.helm.refused(&ended, &["belongs to the release elsewhere/web, not to till/web"]);
    Ok(())
}

#[tokio::test]
async fn a_document_that_names_its_namespace_needs_no_option_for_it() -> Result<()> {
    let server = FakeServer::answering(Answer::json("200 OK", &live("own", WEB, LIVE))).await?;
    let own = WEB_MANIFEST.replace("  name: web\n", "  name: web\n  namespace: own\n");
    for arguments in [&[][..], &["--namespace", "shop"]] {
        let belay = Belay::new()?.args(["--kube-apiserver", &server.url()]).args(arguments);
        let ended = belay.input(&*own).run().await?;
        assert_eq!(ended.passed(), own.replace(CHART_IMAGE, LIVE).as_bytes());
    }
    let asked =
        server.heads().iter().all(|head| head.starts_with(&format!("GET {} ", path("own"))));
    assert!(asked, "{:?}", server.heads());
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_kubeconfig_of_two_files_is_merged_as_helm_merges_it(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let scene = Scene::new(major).await?;
    // The first has the current context, the second what it leads to, and a current context that
    // does not count; a file in between is missing.
    let first = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "prod",
        "contexts": [{ "name": "prod", "context": {
            "cluster": "c", "user": "u", "namespace": "shop",
        }}],
    });
    let second = kubeconfig(&scene.server.url(), &[("other", Some("lab")), ("prod", Some("lost"))]);
    let paths = [
        scene.kubeconfig("first", &first)?,
        scene.folder.path().join("missing"),
        scene.kubeconfig("second", &second)?,
    ];
    let tool = scene.helm.web(&["template"], &[]).await?;
    tool.env("KUBECONFIG", std::env::join_paths(paths)?).ok().await?;
    assert_eq!(scene.asked(), [path("shop")]);
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_relative_kubeconfig_is_meant_from_where_helm_runs(
    #[values(true, false)] flag: bool,
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let scene = Scene::new(major).await?;
    scene.kubeconfig("config", &kubeconfig(&scene.server.url(), &[("prod", Some("shop"))]))?;
    let command = if flag { &["template", "--kubeconfig", "config"][..] } else { &["template"] };
    let mut tool = scene.helm.web(command, &[]).await?.current_dir(scene.folder.path());
    if !flag {
        tool = tool.env("KUBECONFIG", "config");
    }
    tool.ok().await?;
    assert_eq!(scene.asked(), [path("shop")]);
    let told = if flag { "prod (from: helm's command line)" } else { "prod (from: helm default)" };
    let report = scene.helm.report();
    assert!(report.contains(&format!("context: {told}")), "{report}");
    Ok(())
}

#[rstest]
#[tokio::test]
async fn without_any_variable_the_kubeconfig_of_the_home_is_meant(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let scene = Scene::new(major).await?;
    fs::create_dir(scene.folder.path().join(".kube"))?;
    scene
        .kubeconfig(".kube/config", &kubeconfig(&scene.server.url(), &[("prod", Some("shop"))]))?;
    let tool = scene.helm.web(&["template"], &[]).await?;
    tool.env("KUBECONFIG", "").env("HOME", scene.folder.path()).ok().await?;
    assert_eq!(scene.asked(), [path("shop")]);
    Ok(())
}

#[rstest]
#[case::option(&["--namespace=shop", "--kube-context=prod", "--release=web"])]
#[case::none(&[])]
#[tokio::test]
async fn options_that_agree_with_helm_are_no_contradiction(
    #[case] belay: &[&str],
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let scene = Scene::new(major).await?;
    let config =
        scene.kubeconfig("config", &kubeconfig(&scene.server.url(), &[("prod", Some("shop"))]))?;
    let tool = scene.helm.web(&["template"], belay).await?.env("KUBECONFIG", config);
    tool.ok().await?;
    assert_eq!(scene.asked(), [path("shop")]);
    Ok(())
}

/// Ways to say whom to act as.
const ACT_AS: [(&str, &str, &str); 3] = [
    ("flags", "--kube-as-user=alice", "--kube-as-group=dev"),
    ("variables", "HELM_KUBEASUSER=alice", "HELM_KUBEASGROUPS=dev"),
    ("options", "--kube-as-user=alice", "--kube-as-group=dev"),
];

#[rstest]
#[tokio::test]
async fn belay_acts_as_helm_acts(
    #[values(0, 1, 2)] way: usize,
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let (kind, user, group) = ACT_AS[way];
    let scene = Scene::new(major).await?;
    let config =
        scene.kubeconfig("config", &kubeconfig(&scene.server.url(), &[("prod", Some("shop"))]))?;
    let flags = if kind == "flags" { &["template", user, group][..] } else { &["template"] };
    let options = if kind == "options" { &[user, group][..] } else { &[] };
    let mut tool = scene.helm.web(flags, options).await?.env("KUBECONFIG", config);
    if kind == "variables" {
        for (name, value) in [user, group].iter().filter_map(|said| said.split_once('=')) {
            tool = tool.env(name, value);
        }
    }
    tool.ok().await?;
    for head in scene.server.heads() {
        let head = head.to_ascii_lowercase();
        assert!(head.contains("impersonate-user: alice\r\n"), "{head}");
        assert!(head.contains("impersonate-group: dev\r\n"), "{head}");
    }
    Ok(())
}

#[rstest]
#[tokio::test]
async fn the_rights_of_whom_helm_acts_as_are_the_ones_that_count(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("acting").await?;
    operated(cluster, &namespace, LIVE).await?;
    let helm = Helm::new(major).await?;
    let command = ["template", "-n", &namespace, "--kube-as-user", "nobody"];
    let ended = helm.web(&command, &[]).await?.run().await?;
    helm.refused(&ended, &["User \"nobody\" cannot get resource \"deployments\"", &namespace]);
    Ok(())
}

#[rstest]
#[case::named(&["till"], "till (from: helm's command line)")]
#[case::named_by_a_template(&["--name-template", "till"], "web (from: live objects)")]
#[case::made_up(&["--generate-name"], "web (from: live objects)")]
#[tokio::test]
async fn the_release_is_the_one_that_helms_command_line_names(
    #[case] name: &[&str],
    #[case] told: &str,
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("named").await?;
    operated(cluster, &namespace, LIVE).await?;
    let helm = Helm::new(major).await?;
    let tool = helm.tool().await?.args(["template", "-n", &namespace]).args(name);
    let ended = tool.arg(suite("charts/matrix")).args(["--post-renderer", "belay"]).run().await?;
    let report = helm.report();
    assert!(report.lines().any(|line| line == format!("release: {told}")), "{report}");
    if name == ["till"] {
        let belongs = format!("belongs to the release {namespace}/web, not to {namespace}/till");
        helm.refused(&ended, &[&belongs]);
    } else {
        assert!(ended.ok()?.contains(LIVE));
    }
    Ok(())
}

#[tokio::test]
async fn without_helm_the_live_objects_name_the_release() -> Result<()> {
    let server = FakeServer::answering(Answer::json("200 OK", &live("shop", WEB, LIVE))).await?;
    let ended = Belay::at(&server.url(), "shop")?.run().await?;
    ended.passed();
    let report = ended.report();
    assert!(report.contains("release: web (from: live objects)"), "{report}");
    let told = [
        format!("server: {} (from: --kube-apiserver)", server.url()),
        "namespace: shop (from: --namespace)".to_owned(),
    ];
    assert!(told.iter().all(|line| report.lines().any(|told| told == line)), "{report}");
    Ok(())
}

#[rstest]
#[case::option(&["--kube-context", "test"], &[], "lab", "test (from: --kube-context)")]
#[case::belays_variable(&[], &[("BELAY_KUBE_CONTEXT", "test")], "lab",
    "test (from: BELAY_KUBE_CONTEXT)")]
#[case::helms_variable(&[], &[("HELM_KUBECONTEXT", "test")], "lab",
    "test (from: HELM_KUBECONTEXT)")]
#[case::option_before_variable(&["--kube-context", "test"], &[("BELAY_KUBE_CONTEXT", "prod")],
    "lab", "test (from: --kube-context)")]
#[case::belay_before_helm(&[], &[("BELAY_KUBE_CONTEXT", "test"), ("HELM_KUBECONTEXT", "prod")],
    "lab", "test (from: BELAY_KUBE_CONTEXT)")]
#[tokio::test]
async fn without_helm_an_option_counts_before_its_variable_and_that_before_helms(
    #[case] arguments: &[&str],
    #[case] variables: &[(&str, &str)],
    #[case] namespace: &str,
    #[case] told: &str,
) -> Result<()> {
    let server = FakeServer::answering(Answer::json("200 OK", &live(namespace, WEB, LIVE))).await?;
    let folder = tempfile::tempdir()?;
    let config = kubeconfig(&server.url(), &[("prod", Some("shop")), ("test", Some("lab"))]);
    let path: &Path = &folder.path().join("config");
    fs::write(path, config.to_string())?;
    let mut belay = Belay::new()?.env("KUBECONFIG", path).args(arguments);
    belay = belay.args(["--namespace", namespace]);
    for (name, value) in variables {
        belay = belay.env(name, value);
    }
    let ended = belay.run().await?;
    ended.passed();
    assert!(ended.report().contains(&format!("context: {told}")), "{}", ended.report());
    Ok(())
}

#[rstest]
#[case::kubeconfig(true, "127.0.0.1", &[], 1)]
#[case::before_the_environment(true, "127.0.0.1", &[("HTTPS_PROXY", "http://127.0.0.1:1")], 1)]
#[case::environment(false, "kubernetes.default", &[("HTTPS_PROXY", "{proxy}")], 1)]
#[case::in_small_letters(false, "kubernetes.default", &[("https_proxy", "{proxy}")], 1)]
#[case::of_another_scheme(false, "127.0.0.1", &[("HTTP_PROXY", "{proxy}")], 0)]
#[case::not_for_loopback(false, "127.0.0.1", &[("HTTPS_PROXY", "{proxy}")], 0)]
#[case::not_for_localhost(false, "localhost", &[("HTTPS_PROXY", "{proxy}")], 0)]
#[case::not_a_url(false, "127.0.0.1", &[("HTTPS_PROXY", "a b")], 0)]
#[tokio::test]
async fn a_proxy_is_used_where_helm_uses_it(
    #[case] of_the_kubeconfig: bool,
    #[case] host: &str,
    #[case] variables: &[(&str, &str)],
    #[case] tunnels: usize,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("proxied").await?;
    operated(cluster, &namespace, LIVE).await?;
    let address = cluster.admin_access().server.trim_start_matches("https://").to_owned();
    let proxy = FakeServer::answering(Answer::Tunnel(address.clone())).await?;
    let server = format!("https://{}", address.replace("127.0.0.1", host));
    let mut config = Access { server, ..cluster.admin_access().clone() }.kubeconfig();
    if of_the_kubeconfig {
        let url = proxy.url().replace("http://", "http://alice:hunter2@");
        config["clusters"][0]["cluster"]["proxy-url"] = url.into();
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("config");
    fs::write(&path, config.to_string())?;
    let helm = Helm::new(Major::Four).await?;
    let mut tool = helm.web(&["template", "-n", &namespace], &[]).await?.env("KUBECONFIG", path);
    for (name, value) in variables {
        tool = tool.env(name, value.replace("{proxy}", &proxy.url()));
    }
    assert!(tool.ok().await?.contains(LIVE));
    let heads = proxy.heads();
    assert_eq!(heads.len(), tunnels, "{heads:?}");
    assert!(heads.iter().all(|head| head.starts_with(&format!("CONNECT {host}:"))), "{heads:?}");
    if of_the_kubeconfig {
        let basic = "proxy-authorization: basic ywxpy2u6ahvudgvymg==";
        assert!(heads[0].to_ascii_lowercase().contains(basic), "{heads:?}");
    }
    Ok(())
}

#[rstest]
#[case::authority(&["--kube-ca-file", "ca.crt"], &[])]
#[case::authority_variable(&[], &[("HELM_KUBECAFILE", "ca.crt")])]
#[case::no_check(&["--kube-insecure-skip-tls-verify"], &[])]
#[case::no_check_variable(&[], &[("HELM_KUBEINSECURE_SKIP_TLS_VERIFY", "true")])]
#[tokio::test]
async fn a_server_is_trusted_as_helm_trusts_it(
    #[case] flags: &[&str],
    #[case] variables: &[(&str, &str)],
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("trusted").await?;
    operated(cluster, &namespace, LIVE).await?;
    let folder = tempfile::tempdir()?;
    // A kubeconfig that trusts somebody else.
    let authority = Authority::new()?.certificate().to_owned();
    let config = Access { authority, ..cluster.admin_access().clone() }.kubeconfig();
    fs::write(folder.path().join("config"), config.to_string())?;
    fs::write(folder.path().join("ca.crt"), cluster.authority().certificate())?;
    let helm = Helm::new(major).await?;
    let run = async |flags: &[&str], variables: &[(&str, &str)]| -> Result<_> {
        let command = [&["template", "-n", &namespace], flags].concat();
        let tool = helm.web(&command, &[]).await?.current_dir(folder.path());
        let tool = tool.env("KUBECONFIG", folder.path().join("config"));
        let with = |tool: Tool, (name, value): &(&str, &str)| tool.env(name, value);
        Ok(variables.iter().fold(tool, with).run().await?)
    };
    helm.refused(&run(&[], &[]).await?, &["invalid peer certificate"]);
    assert!(run(flags, variables).await?.ok()?.contains(LIVE));
    Ok(())
}
