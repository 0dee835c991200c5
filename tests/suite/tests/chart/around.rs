//! What the chart makes around the pod: monitoring, alerts, a dashboard, a NetworkPolicy.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_operator::metrics::ALL;
use serde_json::{Value, json};

use crate::bed::{deployment, of_kind, render};

async fn everything() -> Result<Vec<Value>> {
    let yes = json!({ "install": true });
    let values = json!({
        "serviceMonitor": { "install": true, "labels": { "release": "prometheus" } },
        "prometheusRule": yes, "dashboard": yes,
        "networkPolicy": { "install": true, "egressPorts": [443, 5000] },
    });
    render(Binary::Helm4, &values).await
}

fn one<'o>(objects: &'o [Value], kind: &'o str) -> Result<&'o Value> {
    of_kind(objects, kind).next().with_context(|| format!("no {kind}"))
}

/// The names of metrics in an expression, without what Prometheus adds to those of a histogram.
fn metrics(expression: &str) -> BTreeSet<&str> {
    expression
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("belay_"))
        .map(|word| word.trim_end_matches("_bucket"))
        .collect()
}

fn ensure_known(expression: &str) -> Result<()> {
    let used = metrics(expression);
    ensure!(!used.is_empty(), "{expression} asks for no metric");
    for name in used {
        ensure!(ALL.iter().any(|known| known.name == name), "{expression}: there is no {name}");
    }
    Ok(())
}

#[tokio::test]
async fn alerts_ask_for_metrics_that_there_are_and_say_what_to_do() -> Result<()> {
    let objects = everything().await?;
    let rules = one(&objects, "PrometheusRule")?["spec"]["groups"][0]["rules"].clone();
    let rules = rules.as_array().context("no rules")?;
    let names: Vec<&str> = rules.iter().filter_map(|rule| rule["alert"].as_str()).collect();
    assert_eq!(
        names,
        [
            "BelayTugOfWar",
            "BelayStalePause",
            "BelayApiBudgetLow",
            "BelayNoSuccessfulPoll",
            "BelayBreakerOpen"
        ]
    );
    for rule in rules {
        ensure_known(rule["expr"].as_str().context("no expression")?)?;
        for key in ["summary", "description"] {
            ensure!(rule["annotations"][key].as_str().is_some_and(|it| it.len() > 20), "{rule}");
        }
        ensure!(rule["labels"]["severity"].is_string(), "{rule}");
    }
    Ok(())
}

#[tokio::test]
async fn the_dashboard_asks_for_metrics_that_there_are() -> Result<()> {
    let objects = everything().await?;
    let text =
        one(&objects, "ConfigMap")?["data"]["belay.json"].as_str().context("no dashboard")?;
    let dashboard: Value = serde_json::from_str(text)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    ensure!(panels.len() > 10, "{} panels", panels.len());
    let mut titles = BTreeSet::new();
    for panel in panels {
        ensure!(titles.insert(panel["title"].as_str()), "two panels {}", panel["title"]);
        for target in panel["targets"].as_array().context("a panel without a question")? {
            ensure_known(target["expr"].as_str().context("no expression")?)?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn prometheus_finds_the_operator_by_its_service() -> Result<()> {
    let objects = everything().await?;
    let (monitor, service) = (one(&objects, "ServiceMonitor")?, one(&objects, "Service")?);
    let selects = |object: &Value, labels: &Value| -> Result<bool> {
        let wanted = labels.as_object().context("no labels")?;
        Ok(wanted.iter().all(|(key, value)| object.get(key) == Some(value)))
    };
    let labels = &service["metadata"]["labels"];
    ensure!(selects(labels, &monitor["spec"]["selector"]["matchLabels"])?, "{monitor}");
    let template = &deployment(&objects)?["spec"]["template"];
    ensure!(selects(&template["metadata"]["labels"], &service["spec"]["selector"])?, "{service}");
    let port = &service["spec"]["ports"][0];
    ensure!(monitor["spec"]["endpoints"][0]["port"] == port["name"], "{monitor}");
    let container = &template["spec"]["containers"][0];
    ensure!(container["ports"][0]["name"] == port["targetPort"], "{service}");
    ensure!(monitor["metadata"]["labels"]["release"] == "prometheus", "{monitor}");
    Ok(())
}

#[tokio::test]
async fn the_network_policy_leaves_the_named_ports_and_names() -> Result<()> {
    let objects = everything().await?;
    let policy = &one(&objects, "NetworkPolicy")?["spec"];
    let ports = |rules: &Value| -> Vec<String> {
        let rules = rules.as_array().into_iter().flatten();
        let ports = rules.flat_map(|rule| rule["ports"].as_array().into_iter().flatten());
        ports.map(|port| format!("{}/{}", port["port"], port["protocol"])).collect()
    };
    assert_eq!(ports(&policy["ingress"]), [r#""health"/"TCP""#]);
    assert_eq!(
        ports(&policy["egress"]),
        [r#"443/"TCP""#, r#"5000/"TCP""#, r#"53/"UDP""#, r#"53/"TCP""#]
    );
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    Ok(())
}

#[tokio::test]
async fn without_a_word_there_is_none_of_it() -> Result<()> {
    let objects = render(Binary::Helm4, &json!({})).await?;
    let kinds = ["ServiceMonitor", "PrometheusRule", "ConfigMap", "NetworkPolicy", "Service"];
    for kind in kinds {
        ensure!(of_kind(&objects, kind).next().is_none(), "{kind}");
    }
    Ok(())
}
