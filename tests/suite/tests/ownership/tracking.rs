//! What the API server tracks, and the entries it makes up itself.

use anyhow::Result;
use belay_ownership::{Note, State};
use serde_json::json;

use crate::scene::{Outcome::Applied, Scene, chart, chart_with, conflict, image};

#[tokio::test]
async fn a_default_belongs_to_who_creates_and_not_to_who_applies() -> Result<()> {
    let created = Scene::created_by("helm", chart_with("a:1")).await?;
    assert_eq!(created.owners("P.imagePullPolicy").await?, "helm/U");
    let applied = Scene::applied_by("helm", chart_with("a:1")).await?;
    assert_eq!(applied.owners("P.imagePullPolicy").await?, "unowned; parent helm/A");
    Ok(())
}

#[tokio::test]
async fn a_key_field_that_is_left_out_stands_in_the_entry() -> Result<()> {
    let container = json!({ "name": "app", "image": "a:1", "ports": [{ "containerPort": 80 }] });
    let web = Scene::applied_by("helm", chart(container)).await?;
    let port = "P.ports[containerPort=80,protocol=TCP].containerPort";
    assert_eq!(web.owners(port).await?, "helm/A");
    assert_eq!(web.value("P.ports[0].protocol").await?, "TCP");
    Ok(())
}

#[tokio::test]
async fn wholes_are_owned_as_the_table_says() -> Result<()> {
    let mut body = chart(json!({
        "name": "app", "image": "a:1", "command": ["/a"],
        "env": [{ "name": "IP", "valueFrom": { "fieldRef": { "fieldPath": "status.podIP" } } }],
        "resources": { "limits": { "cpu": "1" } },
        "securityContext": { "capabilities": { "drop": ["ALL"] } },
        "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
    }));
    let pod = &mut body["spec"]["template"]["spec"];
    pod["nodeSelector"] = json!({ "kubernetes.io/os": "linux" });
    pod["tolerations"] = json!([{ "key": "a", "operator": "Exists" }]);
    pod["imagePullSecrets"] = json!([{ "name": "s" }]);
    pod["hostAliases"] = json!([{ "ip": "10.0.0.1", "hostnames": ["h"] }]);
    pod["volumes"] = json!([{ "name": "data", "emptyDir": {} }]);
    pod["topologySpreadConstraints"] = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": { "app": "web" } },
    }]);
    pod["affinity"] = json!({ "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "podAffinityTerm": {
            "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "web" } } } }],
    } });
    body["metadata"]["finalizers"] = json!([]);
    body["metadata"]["labels"] = json!({ "app.kubernetes.io/name": "web" });
    // That the entry holds exactly the fields of the body is checked on every apply.
    let web = Scene::applied_by("helm", body).await?;
    let pod = ".spec.template.spec";
    for (path, owners) in [
        ("P.command[0]".to_owned(), "helm/A via P.command"),
        (
            "P.env[name=IP].valueFrom.fieldRef.fieldPath".to_owned(),
            "helm/A via P.env[name=\"IP\"].valueFrom.fieldRef",
        ),
        (
            "P.securityContext.capabilities.drop[0]".to_owned(),
            "helm/A via P.securityContext.capabilities.drop",
        ),
        ("P.resources.limits.cpu".to_owned(), "helm/A"),
        (
            format!("{pod}.nodeSelector['kubernetes.io/os']"),
            "helm/A via .spec.template.spec.nodeSelector",
        ),
        (format!("{pod}.tolerations[0].key"), "helm/A via .spec.template.spec.tolerations"),
        (
            format!("{pod}.imagePullSecrets[name=s].name"),
            "helm/A via .spec.template.spec.imagePullSecrets[name=\"s\"]",
        ),
        (".spec.selector.matchLabels.app".to_owned(), "helm/A via .spec.selector"),
        (".metadata.labels['app.kubernetes.io/name']".to_owned(), "helm/A"),
        (".metadata.name".to_owned(), "untracked"),
    ] {
        assert_eq!(web.owners(&path).await?, owners, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn without_managed_fields_the_first_apply_makes_an_owner_of_all_there_was() -> Result<()> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    web.merge("cleaner", json!({ "metadata": { "managedFields": [{}] } })).await?;
    // The controller may have written its status since: its entry is not tracked either.
    assert_eq!(web.owners("P.image").await?, State::NoManagedFields.to_string());
    let refused = web.apply("release", image("a:2")).await?;
    assert_eq!(refused, conflict(&["before-first-apply/U P.image"]));
    assert_eq!(web.apply("release", image("a:1")).await?, Applied);
    assert_eq!(web.owners("P.image").await?, "before-first-apply/U + release/A");
    let ownership = web.ownership().await?;
    let query = "spec.template.spec.containers[name=app].image".parse()?;
    let lookup = ownership.lookup(&query, None);
    let notes: Vec<_> = lookup.answers[0].owners.iter().map(|owner| owner.note).collect();
    assert_eq!(notes, [Some(Note::BeforeFirstApply), None]);
    Ok(())
}

#[tokio::test]
async fn the_oldest_of_many_updaters_are_merged() -> Result<()> {
    let web = Scene::created_by("helm", chart_with("a:1")).await?;
    // Of one second the API server takes the first by name for the oldest.
    for index in 10..22 {
        let patch = json!({ "metadata": { "annotations": { format!("a{index}"): "x" } } });
        web.merge(&format!("writer-{index}"), patch).await?;
    }
    let ownership = web.ownership().await?;
    let query = "spec.template.spec.containers[name=app].image".parse()?;
    let lookup = ownership.lookup(&query, None);
    let [owner] = &lookup.answers[0].owners[..] else { panic!("{:?}", lookup.answers) };
    assert_eq!(
        (owner.entry.manager(), owner.note),
        ("ancient-changes", Some(Note::AncientChanges))
    );
    let owners = web.owners("metadata.annotations.a21").await?;
    assert!(owners.starts_with("writer-21/U"), "{owners}");
    Ok(())
}
