//! ScaledObjects that may not be read or written, and a CRD that is not KEDA's.

use anyhow::{Context as _, Result, ensure};
use belay_suite::{
    keda::{Kind, SCALE_IN},
    operator::{
        Running, Wiring,
        support::{roll, told},
    },
};
use belay_testkit::objects::ScaledObject;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::scene::{OWNER, Scene, WEB, impatient, wired};

/// Rights to everything but ScaledObjects.
#[tokio::test]
async fn a_scaled_object_that_may_not_be_read_is_one_sentence() -> Result<()> {
    let (scene, operator) = Scene::following("forbidden", wired(|_| ())).await?;
    operator.stop().await?;
    let operator = Running::start(&scene, without_keda(&scene, &["get", "list", "watch"]).await?)?;
    operator.ready().await?;
    roll(&scene, "v1.1.0").await?;
    told(&scene, "RolledUnpaused", &["Warning", WEB, "forbidden"]).await?;
    assert_eq!(scene.claims()?, [None]);
    operator.stop().await
}

/// It may look, and not touch.
#[tokio::test]
async fn a_claim_that_is_refused_is_one_sentence_and_not_hammered() -> Result<()> {
    let (scene, operator) = Scene::following("refused", wired(|_| ())).await?;
    operator.stop().await?;
    let operator = Running::start(&scene, without_keda(&scene, &["patch"]).await?)?;
    roll(&scene, "v1.1.0").await?;
    told(&scene, "RolledUnpaused", &["Warning", WEB, "forbidden"]).await?;
    assert_eq!(scene.claims()?, [None]);
    operator.stop().await
}

/// The operator of these tests is held to its word by the chart's admission policies.
#[tokio::test]
async fn nothing_of_a_scaled_object_but_its_pause_may_be_written() -> Result<()> {
    let scene = Scene::new("policies").await?;
    scene.scaling.apply(&scene.scaling.of(WEB)).await?;
    let client = scene.world.cluster.client(&scene.world.operator)?;
    let objects: Api<DynamicObject> =
        Api::namespaced_with(client, &scene.namespace, &Kind::ScaledObject.resource());
    let params = PatchParams::default();
    let refused = objects
        .patch(WEB, &params, &Patch::Merge(json!({ "spec": { "minReplicaCount": 0 } })))
        .await;
    let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(error.contains("the operator changes a ScaledObject's metadata alone"), "{error}");
    let pause = json!({ "metadata": { "annotations": { SCALE_IN: "true" } } });
    objects.patch(WEB, &params, &Patch::Merge(pause)).await?;
    Ok(())
}

/// The operator as a ServiceAccount that may do everything, but not this with ScaledObjects.
pub(crate) async fn without_keda(scene: &Scene, verbs: &[&str]) -> Result<Wiring> {
    let cluster = scene.bed.world.cluster;
    let namespace = &scene.namespace;
    let access = cluster.service_account(namespace, "operator").await?;
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let kept: Vec<_> = all.into_iter().filter(|verb| !verbs.contains(verb)).collect();
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    let name = format!("operator-{namespace}");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": name },
        "rules": [
            rule("", &["*"], &all), rule("apps", &["*"], &all), rule("autoscaling", &["*"], &all),
            rule("belay.dev", &["*"], &all), rule("coordination.k8s.io", &["*"], &all),
            rule("events.k8s.io", &["*"], &all), rule("apiextensions.k8s.io", &["*"], &all),
            rule("keda.sh", &["*"], &kept),
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": name },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name,
        },
        "subjects": [{
            "kind": "ServiceAccount", "name": "operator", "namespace": namespace,
        }],
    });
    for object in [role, binding] {
        let kind = object["kind"].as_str().context("a kind")?;
        let gvk = kube::api::GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
        let api: Api<DynamicObject> =
            Api::all_with(scene.client.clone(), &kube::api::ApiResource::from_gvk(&gvk));
        api.patch(&name, &PatchParams::apply("test"), &Patch::Apply(&object)).await?;
    }
    // Until it takes effect.
    let client = cluster.client(&access)?;
    let objects: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(client, namespace);
    scene
        .wait("the rights to take effect", || async {
            Ok(objects.list(&kube::api::ListParams::default()).await.map(drop)?)
        })
        .await?;
    let mut wiring = impatient();
    let config = belay_testkit::cluster::config(&access)?;
    wiring.client = Some(belay_adapters::cluster::client(&config, &wiring.clock)?);
    Ok(wiring)
}

/// A CRD that knows nothing of what KEDA's says: no status, no conditions.
#[tokio::test]
async fn scaled_objects_of_another_version_are_read_as_far_as_they_go() -> Result<()> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    let world = belay_suite::operator::World::apart().await?;
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": "scaledobjects.keda.sh" },
        "spec": {
            "group": "keda.sh", "scope": "Namespaced",
            "names": { "kind": "ScaledObject", "plural": "scaledobjects" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    }))?;
    world.cluster.apply_crds(&[crd]).await?;
    let bed = belay_suite::operator::Bed::in_world(world, "version").await?;
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0").annotation("belay.dev/scaledobject", WEB), "helm").await?;
    let objects: Api<DynamicObject> =
        Api::namespaced_with(bed.client.clone(), &bed.namespace, &Kind::ScaledObject.resource());
    let object = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": { "name": WEB },
        "spec": { "scaleTargetRef": "web", "advanced": ["?"] }, "status": "fine",
    });
    objects.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let operator = Running::start(&bed, impatient())?;
    operator.ready().await?;
    bed.wait_for_healthy(WEB, "v1.0.0").await?;
    roll(&bed, "v1.1.0").await?;
    told(&bed, "RolledUnpaused", &["Warning", WEB]).await?;
    // One that is read as of the workload is claimed, and let go.
    let real = ScaledObject::of(WEB).named("real");
    objects.create(&PostParams::default(), &serde_json::from_value(real.json().clone())?).await?;
    bed.annotate(WEB, "scaledobject", json!("real")).await?;
    roll(&bed, "v1.2.0").await?;
    bed.wait("the pause to be dropped", || async {
        let annotations = objects.get("real").await?.metadata.annotations.unwrap_or_default();
        ensure!(!annotations.contains_key(OWNER), "{annotations:?}");
        Ok(())
    })
    .await?;
    operator.stop().await
}
