//! The rights that the chart gives, as tables.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{of_kind, render};

/// All roles with their rules and whom they are bound to.
fn table(objects: &[Value]) -> Result<String> {
    let mut text = String::new();
    for kind in ["ClusterRole", "Role"] {
        for role in of_kind(objects, kind) {
            let name = role["metadata"]["name"].as_str().context("a role without a name")?;
            let place = role["metadata"]["namespace"].as_str();
            let place = place.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
            writeln!(text, "{kind} {name}{place}, bound to {}", subjects(objects, kind, name)?)?;
            for rule in role["rules"].as_array().context("no rules")? {
                rows(rule, &mut text)?;
            }
            text.push('\n');
        }
    }
    Ok(text.trim_end().to_owned() + "\n")
}

fn subjects(objects: &[Value], kind: &str, name: &str) -> Result<String> {
    let binding = format!("{kind}Binding");
    let bindings = of_kind(objects, &binding);
    let mut bound = bindings
        .filter(|binding| binding["roleRef"]["kind"] == kind && binding["roleRef"]["name"] == name);
    let Some(first) = bound.next() else { return Ok("nobody".to_owned()) };
    ensure!(bound.next().is_none(), "{kind} {name} is bound twice");
    let subjects = first["subjects"].as_array().context("no subjects")?;
    let subjects = subjects.iter().map(|subject| {
        let word = |key: &str| subject[key].as_str().unwrap_or("?").to_owned();
        format!("{} {}/{}", word("kind"), word("namespace"), word("name"))
    });
    Ok(subjects.collect::<Vec<_>>().join(", "))
}

/// One row for each resource of a rule.
fn rows(rule: &Value, text: &mut String) -> Result<()> {
    let words = |key: &str| -> Vec<&str> {
        rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let known = ["apiGroups", "resources", "resourceNames", "verbs"];
    let keys = rule.as_object().context("a rule that is no object")?;
    ensure!(keys.keys().all(|key| known.contains(&key.as_str())), "{rule}");
    let (verbs, names) = (words("verbs").join(" "), words("resourceNames").join(" "));
    for group in words("apiGroups") {
        for resource in words("resources") {
            let full =
                if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
            let row = format!("  {full:<55}{verbs:<45}{names}");
            writeln!(text, "{}", row.trim_end())?;
        }
    }
    Ok(())
}

#[rstest]
#[case::cluster(json!({}), include_str!("rbac/cluster.txt"))]
#[case::cluster_with_pull_secrets(
    json!({ "registry": { "readPullSecrets": true } }),
    include_str!("rbac/cluster-pull-secrets.txt")
)]
#[case::namespace(json!({ "scope": "namespace" }), include_str!("rbac/namespace.txt"))]
#[case::namespace_with_the_least(
    json!({
        "scope": "namespace", "registry": { "readPullSecrets": false }, "rbac": { "nodes": false },
        "serviceAccount": { "create": false, "name": "other" },
    }),
    include_str!("rbac/namespace-least.txt")
)]
#[case::namespace_alone(
    json!({ "scope": "namespace", "rbac": { "clusterWide": false } }),
    include_str!("rbac/namespace-alone.txt")
)]
#[tokio::test]
async fn the_rights_are_as_the_table_says(
    #[case] mut values: Value,
    #[case] expected: &str,
) -> Result<()> {
    values["rbac"]["aggregateToPeople"] = json!(false);
    same(&values, expected).await
}

#[tokio::test]
async fn the_rights_of_people_are_as_the_table_says() -> Result<()> {
    let values = json!({ "scope": "namespace", "rbac": { "editCanRollback": true } });
    let own = include_str!("rbac/namespace.txt");
    let (first, rest) = own.split_once("\n\n").context("one role")?;
    let people = include_str!("rbac/people.txt");
    same(&values, &format!("{first}\n\n{people}\n{rest}")).await
}

async fn same(values: &Value, expected: &str) -> Result<()> {
    for helm in [Binary::Helm3, Binary::Helm4] {
        let found = table(&render(helm, values).await?)?;
        ensure!(found == expected, "{helm:?} renders:\n{found}");
    }
    Ok(())
}

/// Server-side apply with `create` brings back what somebody deleted; `update` and `delete` reach more
/// than an image. No value may lead there.
#[tokio::test]
async fn nothing_that_runs_is_ever_created_updated_or_deleted() -> Result<()> {
    let mut looked_at = 0;
    for scope in ["cluster", "namespace"] {
        for yes in [false, true] {
            let values = json!({
                "scope": scope, "registry": { "readPullSecrets": yes }, "rbac": { "nodes": yes },
                "allowImageCheckSkip": yes, "migrateFrom": { "fieldManager": "old" },
            });
            let objects = render(Binary::Helm4, &values).await?;
            let roles = of_kind(&objects, "Role").chain(of_kind(&objects, "ClusterRole"));
            for rule in roles.flat_map(|role| role["rules"].as_array().into_iter().flatten()) {
                looked_at += 1;
                let all = rule.to_string();
                ensure!(!all.contains('*'), "a rule for everything: {rule}");
                ensure!(rule.get("nonResourceURLs").is_none(), "{rule}");
                let workloads = ["apps", "batch", "autoscaling", "keda.sh"].iter().any(|group| {
                    rule["apiGroups"].as_array().is_some_and(|it| it.contains(&json!(group)))
                });
                let pods = ["pods", "replicationcontrollers", "services", "configmaps", "secrets"]
                    .iter()
                    .any(|name| {
                        rule["resources"].as_array().is_some_and(|it| it.contains(&json!(name)))
                    });
                let changes =
                    ["create", "update", "delete", "deletecollection"].iter().any(|verb| {
                        rule["verbs"].as_array().is_some_and(|it| it.contains(&json!(verb)))
                    });
                ensure!(!(changes && (workloads || pods)), "{rule}");
            }
        }
    }
    ensure!(looked_at > 40, "only {looked_at} rules");
    Ok(())
}
