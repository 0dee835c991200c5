//! What `--report json` prints, and its schema in `docs/reference`.

use std::fs;

use anyhow::{Context as _, Result, anyhow, ensure};
use belay_components::Binary;
use belay_testkit::Cluster;
use boon::{Compiler, SchemaIndex, Schemas};
use rstest::rstest;
use serde_json::{Value, json};

use belay_suite::helms::{Major, OPERATOR, WEB, helm, report_below, suite};

/// The schema, with every property that it does not name forbidden.
struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn read() -> Result<Self> {
        let path = suite("../../docs/reference/belay-report.schema.json");
        let mut schema = serde_json::from_str(&fs::read_to_string(path)?)?;
        close(&mut schema);
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let at = "https://belay.example/report";
        compiler.add_resource(at, schema).map_err(|error| anyhow!("{error}"))?;
        let index = compiler.compile(at, &mut schemas).map_err(|error| anyhow!("{error}"))?;
        Ok(Self { schemas, index })
    }

    fn check(&self, report: &Value) -> Result<()> {
        let valid = self.schemas.validate(report, self.index);
        valid.map_err(|error| anyhow!("{error:#}\n{report:#}"))
    }
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(close);
            if map.get("properties").is_some_and(Value::is_object) {
                map.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

#[rstest]
#[case::helm_3(Major::Three, "preserve")]
#[case::helm_4(Major::Four, "strip")]
#[tokio::test]
async fn the_report_of_a_real_run_is_what_the_schema_says(
    #[case] major: Major,
    #[case] decision: &str,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("report").await?;
    let schema = Schema::read()?;
    let state = tempfile::tempdir()?;
    let run = async |verb: &str, argument: &str| -> Result<(bool, Value)> {
        let finished = helm(cluster, major, state.path())
            .await?
            .args([verb, WEB])
            .arg(suite("charts/guide"))
            .args(["-n", &namespace, "--post-renderer", "belay"])
            .args(["--post-renderer-args=--report=json".to_owned()])
            .args([format!("--post-renderer-args={argument}")])
            .run()
            .await?;
        let text = fs::read_to_string(report_below(state.path())).context("read the report")?;
        let report: Value = serde_json::from_str(&text).with_context(|| format!("parse {text}"))?;
        schema.check(&report)?;
        Ok((finished.status.success(), report))
    };

    let (succeeded, report) = run("install", "--timeout=30s").await?;
    ensure!(succeeded, "{report:#}");
    assert_eq!(report["decisions"][0]["decision"], "pass");

    let moved = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": WEB },
        "spec": { "template": { "spec": { "containers": [
            { "name": "app", "image": "registry.example/web:1.4.2" },
        ] } } },
    });
    let apply = cluster.tool(Binary::Kubectl)?.args(["-n", &namespace, "apply", "--server-side"]);
    let manager = format!("--field-manager={OPERATOR}");
    apply.args(["--force-conflicts", &manager, "-f", "-"]).input(moved.to_string()).ok().await?;
    let (succeeded, report) = run("upgrade", "--timeout=30s").await?;
    ensure!(succeeded, "{report:#}");
    assert_eq!(report["decisions"][0]["decision"], decision);
    assert_eq!(report["decisions"][0]["liveImage"], "registry.example/web:1.4.2");

    let (succeeded, report) = run("template", "--namespace=another").await?;
    ensure!(!succeeded && report["succeeded"] == false, "{report:#}");
    ensure!(report["error"].as_str().is_some_and(|words| words.contains("another")), "{report:#}");
    Ok(())
}

#[rstest]
#[case::a_field_without_a_description(json!({ "more": 1 }))]
#[case::another_type(json!({ "notes": "none" }))]
#[case::another_decision(json!({ "decisions": [{
    "decision": "skip", "kind": "Deployment", "namespace": "a", "name": "b", "container": "c",
    "list": "containers", "sentence": "d",
}] }))]
fn what_is_no_report_does_not_fit_the_schema(#[case] change: Value) {
    let schema = Schema::read().unwrap();
    let mut report = json!({
        "version": "1", "succeeded": true, "decisions": [], "notes": [],
        "input": { "bytes": 0, "documents": 0, "workloads": 0 },
    });
    schema.check(&report).unwrap();
    for (key, value) in change.as_object().unwrap() {
        report[key] = value.clone();
    }
    schema.check(&report).unwrap_err();
}
