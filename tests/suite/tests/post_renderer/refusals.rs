//! What belay will not do, although it could: each refusal says why, and what to do instead.

use anyhow::Result;
use belay_testkit::{Cluster, objects::Workload};
use rstest::rstest;
use serde_json::json;

use crate::{
    fake_server::{Answer, FakeServer, live},
    runs::{Belay, CHART_IMAGE, Helm, LIVE, WEB_MANIFEST, marked_manifest, operated, operated_as},
};
use belay_suite::helms::{Major, WEB};

#[rstest]
#[tokio::test]
async fn an_object_of_another_release_is_refused_unless_helm_takes_it(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("release").await?;
    let other = Workload::deployment(WEB)
        .replicas(0)
        .image("app", CHART_IMAGE)
        .annotation("meta.helm.sh/release-name", "other")
        .annotation("meta.helm.sh/release-namespace", &namespace);
    operated_as(cluster, &namespace, &other, LIVE).await?;
    let helm = Helm::new(major).await?;
    let ended = helm.web(&["template", "-n", &namespace], &[]).await?.run().await?;
    let belongs = format!("belongs to the release {namespace}/other, not to {namespace}/web");
    helm.refused(&ended, &[&belongs]);
    let take = ["install", "-n", &namespace, "--take-ownership", "--dry-run=client"];
    helm.web(&take, &[]).await?.ok().await?;
    let report = helm.report();
    assert!(report.contains(&belongs) && report.contains("--take-ownership"), "{report}");
    Ok(())
}

#[tokio::test]
async fn live_objects_of_two_releases_ask_for_the_release_and_then_for_the_right_one() -> Result<()>
{
    let server = FakeServer::start(|head| {
        let name = if head.contains("/api ") { "api" } else { WEB };
        let mut object = live("shop", name, LIVE);
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!(name);
        Answer::json("200 OK", &object)
    })
    .await?;
    let second = WEB_MANIFEST.replace("name: web", "name: api");
    let input = format!("{WEB_MANIFEST}{second}");
    let run = || Belay::at(&server.url(), "shop").map(|run| run.input(&*input));
    let ended = run()?.run().await?;
    ended.refused(&["belong to api and web", "add `--release NAME`"]);
    let ended = run()?.args(["--release", "web"]).run().await?;
    ended.refused(&["Deployment shop/api", "belongs to the release shop/api, not to web"]);
    Ok(())
}

#[rstest]
#[case::tab("      containers:\n", "      containers:\n\t- x\n", "line 12, column 2")]
#[case::quote("image: registry", "image: \"registry", "line 13, column 16")]
#[case::mapping("  name: web\n", "  name: web\n wrong\n", "line 8, column ")]
#[tokio::test]
async fn a_workload_that_cannot_be_parsed_is_told_with_line_and_column(
    #[case] from: &str,
    #[case] to: &str,
    #[case] place: &str,
) -> Result<()> {
    let input = format!("kind: ConfigMap\n{}", WEB_MANIFEST.replace(from, to));
    let ended = Belay::at("http://127.0.0.1:1", "shop")?.input(input).run().await?;
    ended.refused(&["the workload in document 2", place]);
    Ok(())
}

#[tokio::test]
async fn names_of_releases_that_are_no_names_stay_in_one_line() -> Result<()> {
    let server = FakeServer::start(|head| {
        let name = if head.contains("/api ") { "api" } else { WEB };
        let mut object = live("shop", name, LIVE);
        let release = format!("{name}\nkind: Secret\r\u{1b}[2J");
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!(release);
        Answer::json("200 OK", &object)
    })
    .await?;
    let input = format!("{WEB_MANIFEST}{}", WEB_MANIFEST.replace("name: web", "name: api"));
    let ended = Belay::at(&server.url(), "shop")?.input(input).run().await?;
    ended.refused(&["belong to api\u{fffd}kind: Secret", "add `--release NAME`"]);
    assert!(!ended.stderr.contains(['\u{1b}', '\r']), "{:?}", ended.stderr);
    Ok(())
}

/// The server of a workload that an operator has moved to [`LIVE`].
async fn operated_server() -> Result<FakeServer> {
    FakeServer::answering(Answer::json("200 OK", &live("shop", WEB, LIVE))).await
}

#[tokio::test]
async fn strip_is_refused_under_client_side_apply_with_the_reason() -> Result<()> {
    let server = operated_server().await?;
    let ended = Belay::at(&server.url(), "shop")?.args(["--mode", "strip"]).run().await?;
    ended.refused(&["--mode strip is refused", "client side", "422 Required value"]);
    Ok(())
}

#[rstest]
#[tokio::test]
async fn strip_is_refused_where_both_helms_apply_on_the_client_side(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("strip").await?;
    operated(cluster, &namespace, LIVE).await?;
    let helm = Helm::new(major).await?;
    let mut command = vec!["install", "--dry-run=client", "-n", &namespace];
    if major == Major::Four {
        command.push("--server-side=false");
    }
    let ended = helm.web(&command, &["--mode=strip"]).await?.run().await?;
    helm.refused(&ended, &["--mode strip is refused", "client side", "422 Required value"]);
    Ok(())
}

#[tokio::test]
async fn a_change_of_repository_is_refused_and_passes_once_when_it_is_accepted() -> Result<()> {
    let mut object = live("shop", WEB, LIVE);
    object["metadata"]["annotations"]["belay.dev/release"] = json!("v1.4.2");
    object["metadata"]["annotations"]["belay.dev/repo"] = json!("acme/web");
    let server = FakeServer::answering(Answer::json("200 OK", &object)).await?;
    let moved = WEB_MANIFEST.replace(CHART_IMAGE, "elsewhere.example/web:2.0.0");
    let run = || Belay::at(&server.url(), "shop").map(|run| run.input(&*moved));
    let words = [
        "Deployment shop/web app",
        "from registry.example/web to elsewhere.example/web",
        "--accept-repository",
    ];
    run()?.run().await?.refused(&words);
    let accepted = run()?.arg("--accept-repository").run().await?;
    assert_eq!(accepted.passed(), moved.as_bytes());
    let report = accepted.report();
    assert!(report.contains("accepted this once by --accept-repository"), "{report}");
    run()?.run().await?.refused(&words);
    Ok(())
}

#[tokio::test]
async fn no_other_server_than_the_expected_one_is_connected_to() -> Result<()> {
    let server = operated_server().await?;
    let run = |expected: &str| {
        Belay::at(&server.url(), "shop").map(|run| run.args(["--expect-server", expected]))
    };
    let ended = run("https://prod.example:6443")?.run().await?;
    let url = server.url();
    ended.refused(&[&format!("use the API server {url}"), "https://prod.example:6443"]);
    // The scheme is part of it, and so is the path.
    for near in [server.https_url(), format!("{url}/proxied")] {
        run(&near)?.run().await?.refused(&[&url, &near]);
    }
    assert_eq!(server.connections(), 0);
    for same in [url.clone(), format!("{url}/"), url.replace("http", "HTTP")] {
        run(&same)?.run().await?.passed();
    }
    assert_eq!(server.connections(), 3);
    Ok(())
}

#[rstest]
#[case(&["install"], None)]
#[case(&["upgrade", "--install"], None)]
#[case(&["upgrade", "--install", "--dry-run=server"], None)]
#[case(&["upgrade", "--install", "--dry-run=client"], Some(()))]
#[case(&["install", "--dry-run=client"], Some(()))]
#[tokio::test]
async fn offline_is_refused_where_helm_is_about_to_write(
    #[case] command: &[&str],
    #[case] works: Option<()>,
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("offline").await?;
    let helm = Helm::new(major).await?;
    let command = [command, &["-n", &namespace]].concat();
    let ended = helm.web(&command, &["--offline"]).await?.run().await?;
    if works.is_some() {
        ended.ok()?;
        let report = helm.report();
        assert!(report.contains("(--offline)") && !report.contains("server:"), "{report}");
    } else {
        helm.refused(&ended, &["--offline is refused", "--dry-run=client"]);
    }
    Ok(())
}

#[rstest]
#[tokio::test]
async fn explain_under_helm_is_refused_and_says_how_to_do_it(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let helm = Helm::new(major).await?;
    let ended = helm.web(&["template"], &["--explain"]).await?.run().await?;
    helm.refused(&ended, &["--explain writes no manifests", "helm template … | belay --explain"]);
    assert_eq!(ended.stdout, "", "nothing is rendered");
    Ok(())
}

#[tokio::test]
async fn explain_without_helm_writes_the_report_and_no_manifest() -> Result<()> {
    let server = operated_server().await?;
    let ended = Belay::at(&server.url(), "shop")?.arg("--explain").run().await?;
    let told = String::from_utf8(ended.passed().to_vec())?;
    let line =
        format!("preserve Deployment shop/web app {CHART_IMAGE} -> {LIVE} (belay-operator, Apply)");
    assert!(told.lines().any(|told| told == line), "{told}");
    assert!(!told.contains("apiVersion"), "{told}");
    assert_eq!(told, ended.report());
    Ok(())
}

#[rstest]
#[case(&["--mode", "both"], "--mode")]
#[case(&["--no-such-option"], "--no-such-option")]
#[case(&["--timeout", "0s"], "--timeout")]
#[case(&["web"], "web")]
#[case(&["--annotation-prefix", "a b"], "--annotation-prefix")]
#[tokio::test]
async fn wrong_usage_is_exit_code_2_and_no_output(
    #[case] arguments: &[&str],
    #[case] named: &str,
) -> Result<()> {
    let ended = Belay::new()?.args(arguments).run().await?;
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert_eq!(ended.stdout, b"");
    assert!(ended.stderr.contains(named), "{}", ended.stderr);
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_record_that_may_not_be_read_is_no_error_but_told(
    #[values("secrets", "configmap")] storage: &str,
) -> Result<()> {
    let server = FakeServer::start(|head| {
        if head.contains("/secrets") {
            let refusal = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "secrets is forbidden: User cannot list them",
            });
            return Answer::json("403 Forbidden", &refusal);
        }
        Answer::json("200 OK", &live("shop", WEB, LIVE))
    })
    .await?;
    let marked = marked_manifest();
    let belay = Belay::at(&server.url(), "shop")?.env("HELM_DRIVER", storage).input(&*marked);
    let ended = belay.run().await?;
    assert_eq!(ended.passed(), marked.replace(CHART_IMAGE, LIVE).as_bytes(), "preserved");
    let why = match storage {
        "secrets" => "resources: [\"secrets\"], verbs: [\"list\"]",
        _ => "HELM_DRIVER",
    };
    let report = ended.report();
    assert!(report.contains("apply: unknown (from: ") && report.contains(why), "{report}");
    assert_eq!(server.heads().len(), if storage == "secrets" { 2 } else { 1 });
    Ok(())
}
