//! Manifests and live objects that no well-meaning chart or cluster has: the bytes go through
//! untouched, or not at all.

use std::{fmt::Write as _, fs::File};

use anyhow::Result;
use belay_components::Binary;
use belay_testkit::{Cluster, objects::Workload};
use rstest::rstest;

use crate::{
    fake_server::{Answer, FakeServer, live},
    runs::{Belay, CHART_IMAGE, LIVE, WEB_MANIFEST, operated_as},
};
use belay_suite::helms::WEB;

/// A server that counts, with the workload that an operator has moved.
async fn operated() -> Result<FakeServer> {
    FakeServer::answering(Answer::json("200 OK", &live("shop", WEB, LIVE))).await
}

/// ConfigMaps, with a separator before each.
fn config_maps(count: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = write!(text, "---\nkind: ConfigMap\nmetadata: {{name: c-{number}}}\n");
    }
    text
}

/// A mapping nested that deep, in one line.
fn nested(depth: usize) -> String {
    format!("{}1{}", "{a: ".repeat(depth), "}".repeat(depth))
}

fn deep_blocks(depth: usize) -> String {
    let lines: Vec<_> = (0..depth).map(|at| " ".repeat(at) + "a:").collect();
    lines.join("\n")
}

#[rstest]
#[case::many(config_maps(100_000))]
#[case::large(format!("kind: ConfigMap\ndata:\n  big: |\n{}", "    0123456789\n".repeat(700_000)))]
#[case::large_in_one_line(format!("kind: ConfigMap\ndata: {{big: '{}'}}\n", "x".repeat(10 << 20)))]
#[case::flow_depth(format!("kind: ConfigMap\ndata: {}\n", nested(600)))]
#[case::block_depth(format!("kind: ConfigMap\n{}", deep_blocks(600)))]
#[case::open_brackets(format!("kind: ConfigMap\ndata: {}\n", "[".repeat(1_000_000)))]
#[case::aliases("kind: ConfigMap\na: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n")]
#[case::nul(b"kind: ConfigMap\ndata: {a: \"\0\"}\n")]
#[case::not_utf8(b"kind: ConfigMap\ndata: {a: \"\xff\xfe\"}\n")]
#[case::utf16(b"\xff\xfek\0i\0n\0d\0:\0 \0A\0\n\0")]
#[case::separator("---\n")]
#[case::separators("---\n---\n\n---\n")]
#[case::no_newline("---")]
#[case::comment("# nothing here\n")]
#[case::comments("---\n# nothing here\n---\n# nor here\n")]
#[case::blank(" \n\t\n\r\n")]
#[case::empty("")]
#[case::broken("kind: ConfigMap\n\tdata: {\n")]
#[case::scalar("just words\n")]
#[case::lines_without_end("---\r---\r")]
#[case::another_group(WEB_MANIFEST.replace("apps/v1", "extensions/v1beta1"))]
#[tokio::test]
async fn what_holds_no_workload_goes_through_byte_for_byte_without_a_connection(
    #[case] input: impl AsRef<[u8]>,
) -> Result<()> {
    let input = input.as_ref().to_vec();
    let server = operated().await?;
    let belay = Belay::at(&server.url(), "shop")?.args(["--timeout", "50s"]);
    let ended = belay.input(input.clone()).run().await?;
    assert!(ended.passed() == input, "{} bytes of {}", ended.stdout.len(), input.len());
    assert_eq!(server.connections(), 0);
    Ok(())
}

#[rstest]
#[case::empty("", true)]
#[case::blank(" \n\t\n", true)]
#[case::comment("# the chart's own\n", false)]
#[case::separator("---\n", false)]
#[tokio::test]
async fn helm_4_gets_one_comment_line_where_it_gave_nothing(
    #[case] input: &str,
    #[case] replaced: bool,
) -> Result<()> {
    let belay = Belay::new()?.env("HELM_PLUGIN_NAME", "belay").input(input);
    let ended = belay.run().await?;
    let output = String::from_utf8(ended.passed().to_vec())?;
    if replaced {
        assert!(output.starts_with("# ") && output.lines().count() == 1, "{output}");
    } else {
        assert_eq!(output, input);
    }
    Ok(())
}

#[tokio::test]
async fn one_workload_among_very_many_documents_is_the_only_change() -> Result<()> {
    let server = operated().await?;
    let half = config_maps(50_000);
    let input = format!("{half}{WEB_MANIFEST}{half}");
    let belay = Belay::at(&server.url(), "shop")?.args(["--timeout", "50s"]);
    let ended = belay.input(&*input).run().await?;
    assert!(ended.passed() == input.replace(CHART_IMAGE, LIVE).as_bytes(), "other bytes changed");
    assert_eq!(server.heads().len(), 1);
    Ok(())
}

#[tokio::test]
async fn very_many_workloads_are_each_asked_for_once() -> Result<()> {
    let server = FakeServer::start(|head| {
        let name = head.split(' ').nth(1).and_then(|path| path.rsplit('/').next());
        Answer::json("200 OK", &live("shop", name.unwrap_or_default(), LIVE))
    })
    .await?;
    let workloads = (0..1_000).map(|n| WEB_MANIFEST.replace("name: web", &format!("name: w-{n}")));
    // Twice the same, as an umbrella chart may render it: asked once.
    let input = workloads.collect::<String>().repeat(2);
    let belay = Belay::at(&server.url(), "shop")?.args(["--timeout", "50s"]);
    let ended = belay.input(&*input).run().await?;
    assert!(ended.passed() == input.replace(CHART_IMAGE, LIVE).as_bytes(), "other bytes changed");
    assert_eq!(server.heads().len(), 1_000);
    Ok(())
}

/// [`WEB_MANIFEST`] with this before its `spec`.
fn with(field: &str) -> String {
    WEB_MANIFEST.replace("\nspec:", &format!("\n{field}\nspec:"))
}

#[rstest]
#[case::flow_depth(with(&format!("deep: {}", nested(600))), "nested deeper than 512 levels")]
#[case::block_depth(with(&deep_blocks(600)), "recursion limit exceeded")]
#[case::open_brackets(with(&format!("a: {}", "[".repeat(1_000_000))), "recursion limit exceeded")]
#[case::not_utf8([WEB_MANIFEST.as_bytes(), b"        command: [\"\xff\xfe\"]\n"].concat(), "UTF-8")]
#[case::nul([WEB_MANIFEST.as_bytes(), b"        command: [\"\0\"]\n"].concat(), "line")]
#[case::unfinished(WEB_MANIFEST.replace("image: ", "image: {"), "line")]
#[tokio::test]
async fn a_workload_that_cannot_be_read_is_refused_at_once(
    #[case] input: impl AsRef<[u8]>,
    #[case] words: &str,
) -> Result<()> {
    let server = operated().await?;
    let belay = Belay::at(&server.url(), "shop")?.args(["--timeout", "50s"]);
    let ended = belay.input(input.as_ref()).run().await?;
    ended.refused(&["the workload in document ", words]);
    assert_eq!(server.connections(), 0);
    Ok(())
}

#[rstest]
#[case::another_resource("  name: web\n", "  name: x/../../secrets/token\n")]
#[case::encoded("  name: web\n", "  name: x%2F..%2Fy\n")]
#[case::parent("  name: web\n", "  name: ..\n")]
#[case::namespace("  name: web\n", "  name: web\n  namespace: ../kube-system\n")]
#[tokio::test]
async fn a_name_that_would_lead_elsewhere_is_never_asked_for(
    #[case] from: &str,
    #[case] to: &str,
) -> Result<()> {
    let server = operated().await?;
    let belay = Belay::at(&server.url(), "shop")?.input(WEB_MANIFEST.replace(from, to));
    belay.run().await?.refused(&["is no name of an object"]);
    assert_eq!(server.connections(), 0);
    Ok(())
}

#[tokio::test]
async fn an_input_of_more_than_256_mib_is_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("input");
    // No blocks on the disk: it reads as zero bytes.
    File::create(&path)?.set_len(257 << 20)?;
    let belay = Belay::new()?.args(["--timeout", "50s"]).input_file(File::open(&path)?);
    belay.run().await?.refused(&["larger than 256 MiB"]);
    Ok(())
}

#[rstest]
#[case::lines("meta.helm.sh/note", "one\nDeployment shop/web\u{1b}[31m\r\n---\nkind: Secret\n")]
#[case::large("example.com/large", &"x\n".repeat(100_000))]
#[case::container("belay.dev/container", ",,app, ,init:app,\n")]
#[case::image("belay.dev/image", "::@@//\u{0}:")]
#[case::repo("belay.dev/repo", "\n\n\u{2028}---\n")]
#[case::release("belay.dev/release", &"v".repeat(100_000))]
#[tokio::test]
async fn no_annotation_of_a_live_object_takes_its_image_away_or_adds_a_line(
    #[case] key: &str,
    #[case] value: &str,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("annotated").await?;
    let value = value.replace('\u{0}', "");
    let mut web = Workload::deployment(WEB)
        .replicas(0)
        .image("app", CHART_IMAGE)
        .annotation("belay.dev/release", "v1.4.2")
        .annotation("belay.dev/repo", "acme/web");
    web = web.annotation(key, &value);
    operated_as(cluster, &namespace, &web, LIVE).await?;
    let ended = Belay::with_kubeconfig(&cluster.admin_kubeconfig(), &namespace)?.run().await?;
    assert_eq!(ended.passed(), WEB_MANIFEST.replace(CHART_IMAGE, LIVE).as_bytes());
    let report = ended.report();
    let decisions = report.lines().filter(|line| line.contains("Deployment")).count();
    assert_eq!(decisions, 1, "{report}");
    assert!(report.len() < 2_000 && !report.contains('\u{1b}'), "{report}");
    Ok(())
}

/// Images that some YAML reader takes for something else than a string, unless they are quoted.
const ODD: [&str; 31] = [
    "1.10",
    "1e3",
    "0o17",
    "yes",
    "NULL",
    "~",
    "2001-12-14",
    "0x1f",
    "web:",
    ":web",
    "- a",
    "{}",
    "[]",
    "a: b",
    "a #b",
    "#a",
    "it's",
    "\"web\"",
    "'web'",
    "a\\b",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    "`a`",
    "|",
    ">-",
    "?",
    "w\u{e9}b",
    "\u{1f600}",
];

/// A workload of this name.
fn named(name: &str, image: &str) -> String {
    WEB_MANIFEST
        .replace("name: web", &format!("name: {name}"))
        .replace(&format!("image: {CHART_IMAGE}"), image)
}

#[rstest]
#[case::plain("image: web:1")]
#[case::single("image: 'web:1'")]
#[case::double("image: \"web:1\"")]
#[case::folded("image: >-\n          web:1")]
#[case::empty("image:")]
#[tokio::test]
async fn an_image_of_any_characters_arrives_as_that_string(#[case] written: &str) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("odd").await?;
    let mut input = String::new();
    for (number, image) in ODD.iter().enumerate() {
        let name = format!("w-{number}");
        let web = Workload::deployment(&name).replicas(0).image("app", CHART_IMAGE);
        operated_as(cluster, &namespace, &web, image).await?;
        input.push_str(&named(&name, written));
    }
    let belay = Belay::with_kubeconfig(&cluster.admin_kubeconfig(), &namespace)?;
    let ended = belay.input(input).run().await?;
    // Go's YAML reader is the one that counts.
    let kubectl = cluster.tool(Binary::Kubectl)?.input(ended.passed());
    let path = "jsonpath={.spec.template.spec.containers[0].image}{\"\\n\"}";
    let arguments = ["create", "-f", "-", "--dry-run=client", "--validate=false", "-o", path];
    let read = kubectl.args(arguments).ok().await?;
    assert_eq!(read.lines().collect::<Vec<_>>(), ODD);
    Ok(())
}

#[rstest]
#[tokio::test]
async fn an_image_with_characters_that_no_image_has_is_refused(
    #[values("web\tx", "web\nkind: Secret", "web\u{2028}x")] image: &str,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("control").await?;
    let web = Workload::deployment(WEB).replicas(0).image("app", CHART_IMAGE);
    operated_as(cluster, &namespace, &web, image).await?;
    let ended = Belay::with_kubeconfig(&cluster.admin_kubeconfig(), &namespace)?.run().await?;
    ended.refused(&["Deployment", "characters that no image reference has"]);
    Ok(())
}
