//! The admission policies of the chart on the real API server. The operator's account has every right
//! here, so that nothing but the policies stands in its way.
#![expect(clippy::needless_pass_by_value, reason = "the tables read better without references")]

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_testkit::{Cluster, operator::chart, wait};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{
    Api, Client,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    },
};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::bed::{OPERATOR, RELEASE, keda_crds};

const WEB: &str = "web";

/// A namespace with an installed chart, a Deployment and a ScaledObject.
struct Guarded {
    namespace: String,
    /// The administrator's kubeconfig reaches it too.
    cluster: &'static Cluster,
}

/// What is tried.
enum Write {
    /// A merge patch.
    Merge(Value),
    /// A JSON patch.
    Json(Value),
    /// A server-side apply of these fields.
    Apply(Value),
    /// A merge patch that is only tried.
    Dry(Value),
    /// A merge patch of a subresource.
    Sub(&'static str, Value),
    /// Another object of the kind.
    Create,
    /// The end of the object.
    Delete,
}

use Write::{Apply, Create, Delete, Dry, Json, Merge, Sub};

impl Guarded {
    async fn shared() -> Result<&'static Self> {
        static GUARDED: OnceCell<Guarded> = OnceCell::const_new();
        GUARDED.get_or_try_init(Self::new).await
    }

    async fn new() -> Result<Self> {
        let cluster = Cluster::shared().await?;
        // Its kinds alone: other tests count on nobody working on them.
        keda_crds(cluster).await?;
        let namespace = cluster.namespace("admission").await?;
        let values = json!({
            "crds": { "install": false }, "scope": "namespace",
            "migrateFrom": { "pauseMarks": ["old.example/paused-by"] },
        });
        let tool = cluster.tool(Binary::Helm4)?.args(["install", RELEASE]).arg(chart());
        let tool = tool.args(["--namespace", &namespace, "--values", "-"]);
        tool.input(values.to_string()).ok().await?;
        let binding = json!({
            "metadata": { "name": format!("{namespace}-everything") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": OPERATOR, "namespace": namespace }],
        });
        let bindings: Api<ClusterRoleBinding> = Api::all(cluster.admin()?);
        bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
        let guarded = Self { namespace, cluster };
        let admin = cluster.admin()?;
        for object in [deployment(), scaled_object()] {
            let api = guarded.api(&admin, &object)?;
            let new: DynamicObject = serde_json::from_value(object)?;
            api.create(&PostParams::default(), &new).await?;
        }
        for object in [deployment(), scaled_object()] {
            guarded.takes_hold(&object).await?;
        }
        Ok(guarded)
    }

    /// The API server hears of new bindings and policies by watches.
    async fn takes_hold(&self, object: &Value) -> Result<()> {
        let label = json!({ "metadata": { "labels": { "canary": "1" } } });
        wait::until("the policies to take hold", wait::SOON, || async {
            match self.write(object, &Dry(label.clone())).await {
                Ok(()) => Err("a label was accepted".to_owned()),
                Err(error) if is_denied(&error) => Ok(()),
                Err(error) => Err(format!("{error:#}")),
            }
        })
        .await?;
        Ok(())
    }

    fn api(&self, client: &Client, object: &Value) -> Result<Api<DynamicObject>> {
        let kind = object["kind"].as_str().context("no kind")?;
        let (group, version) = object["apiVersion"]
            .as_str()
            .and_then(|text| text.split_once('/'))
            .context("no apiVersion")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Ok(Api::namespaced_with(client.clone(), &self.namespace, &resource))
    }

    /// Tries a write as the operator.
    async fn write(&self, object: &Value, write: &Write) -> Result<()> {
        let access = self.cluster.token_of(&self.namespace, OPERATOR).await?;
        let api = self.api(&self.cluster.client(&access)?, object)?;
        let plain = PatchParams::default();
        match write {
            Merge(patch) => drop(api.patch(WEB, &plain, &Patch::Merge(patch)).await?),
            Json(operations) => {
                let steps = serde_json::from_value(operations.clone())?;
                drop(api.patch(WEB, &plain, &Patch::<()>::Json(steps)).await?);
            }
            Apply(fields) => {
                let mut body = fields.clone();
                body["apiVersion"] = object["apiVersion"].clone();
                body["kind"] = object["kind"].clone();
                let params = PatchParams::apply("belay-operator").force();
                drop(api.patch(WEB, &params, &Patch::Apply(&body)).await?);
            }
            Dry(patch) => {
                let params = PatchParams { dry_run: true, ..plain };
                drop(api.patch(WEB, &params, &Patch::Merge(patch)).await?);
            }
            Sub(name, patch) => {
                drop(api.patch_subresource(name, WEB, &plain, &Patch::Merge(patch)).await?);
            }
            Create => {
                let mut other = object.clone();
                other["metadata"]["name"] = json!("other");
                let other: DynamicObject = serde_json::from_value(other)?;
                drop(api.create(&PostParams::default(), &other).await?);
            }
            Delete => drop(api.delete(WEB, &DeleteParams::default()).await?),
        }
        Ok(())
    }
}

/// Whether one of the policies refused it.
fn is_denied(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    text.contains("ValidatingAdmissionPolicy") && text.contains("denied request")
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": WEB, "labels": { "app": WEB },
            "annotations": { "belay.dev/old": "1", "team.example/owner": "shop" },
        },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": WEB } },
            "template": {
                "metadata": { "labels": { "app": WEB }, "annotations": { "a": "b" } },
                "spec": {
                    "initContainers": [{ "name": "setup", "image": "registry.example/web:1.0.0" }],
                    "containers": [
                        { "name": "app", "image": "registry.example/web:1.0.0",
                          "env": [{ "name": "A", "value": "b" }] },
                        { "name": "sidecar", "image": "registry.example/sidecar:1.0.0" },
                    ],
                },
            },
        },
    })
}

fn scaled_object() -> Value {
    json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {
            "name": WEB, "labels": { "app": WEB },
            "annotations": {
                "belay.dev/old": "1", "team.example/owner": "shop", "old.example/paused-by": "old",
                "autoscaling.keda.sh/paused-replicas": "2",
            },
        },
        "spec": {
            "scaleTargetRef": { "name": WEB }, "minReplicaCount": 1, "maxReplicaCount": 3,
            "triggers": [{ "type": "cron", "metadata": {
                "timezone": "UTC", "start": "0 0 * * *", "end": "59 23 * * *", "desiredReplicas": "1",
            } }],
        },
    })
}

fn annotations(annotations: Value) -> Value {
    json!({ "metadata": { "annotations": annotations } })
}

fn spec(spec: Value) -> Value {
    json!({ "spec": spec })
}

fn pod(pod: Value) -> Value {
    spec(json!({ "template": { "spec": pod } }))
}

/// A JSON patch of the template's pod.
fn edit(operation: &str, path: &str, value: Value) -> Write {
    let path = format!("/spec/template/spec/{path}");
    Json(json!([{ "op": operation, "path": path, "value": value }]))
}

fn replace(path: &str, value: Value) -> Write {
    edit("replace", path, value)
}

const IMAGE: &str = "registry.example/web:2.0.0";

#[rstest]
#[case::image(replace("containers/0/image", json!(IMAGE)))]
#[case::two_images(Json(json!([
    { "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": IMAGE },
    { "op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "registry.example/sidecar:2" },
])))]
#[case::init_image(replace("initContainers/0/image", json!(IMAGE)))]
#[case::own_annotation_added(Merge(annotations(json!({ "belay.dev/release": "web-1234567" }))))]
#[case::own_annotation_removed(Merge(annotations(json!({ "belay.dev/old": null }))))]
#[case::annotation_and_image(Json(json!([
    { "op": "add", "path": "/metadata/annotations/belay.dev~1release", "value": "web-7654321" },
    { "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/web:3" },
])))]
#[case::nothing(Merge(json!({})))]
#[case::apply(Apply(json!({
    "metadata": { "annotations": { "belay.dev/release": "web-applied" } },
    "spec": { "template": { "spec": { "containers": [{ "name": "app", "image": "registry.example/web:4" }] } } },
})))]
#[tokio::test]
async fn what_the_operator_does_is_permitted(#[case] write: Write) -> Result<()> {
    Guarded::shared().await?.write(&deployment(), &write).await
}

#[rstest]
#[case::foreign_annotation_added(Merge(annotations(json!({ "a": "b" }))))]
#[case::foreign_annotation_changed(Merge(annotations(json!({ "team.example/owner": "x" }))))]
#[case::foreign_annotation_removed(Merge(annotations(json!({ "team.example/owner": null }))))]
#[case::look_alike_prefix(Merge(annotations(json!({ "belay.devil/release": "x" }))))]
#[case::label(Merge(json!({ "metadata": { "labels": { "a": "b" } } })))]
#[case::finalizer(Merge(json!({ "metadata": { "finalizers": ["a.example/b"] } })))]
#[case::owner(Merge(json!({ "metadata": { "ownerReferences": [
    { "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1" }] } })))]
#[case::replicas(Merge(spec(json!({ "replicas": 5 }))))]
#[case::replicas_applied(Apply(json!({ "metadata": {}, "spec": { "replicas": 5 } })))]
#[case::paused(Merge(spec(json!({ "paused": true }))))]
#[case::deadline(Merge(spec(json!({ "progressDeadlineSeconds": 30 }))))]
#[case::strategy(Merge(spec(json!({ "strategy": { "type": "Recreate", "rollingUpdate": null } }))))]
#[case::min_ready(Merge(spec(json!({ "minReadySeconds": 3 }))))]
#[case::restarted_at(Merge(spec(json!({ "template": { "metadata": { "annotations":
    { "kubectl.kubernetes.io/restartedAt": "now" } } } }))))]
#[case::template_label(Merge(spec(json!({ "template": { "metadata": { "labels": { "x": "y" } } } }))))]
#[case::env_changed(replace("containers/0/env/0/value", json!("c")))]
#[case::env_added(edit("add", "containers/0/env/-", json!({ "name": "B", "value": "c" })))]
#[case::command(edit("add", "containers/0/command", json!(["sh"])))]
#[case::privileges(edit("add", "containers/0/securityContext", json!({ "runAsUser": 0, "capabilities": { "add": ["SYS_ADMIN"] } })))]
#[case::pull_policy(replace("containers/0/imagePullPolicy", json!("Always")))]
#[case::resources(replace("containers/0/resources", json!({ "limits": { "cpu": "1" } })))]
#[case::container_added(edit("add", "containers/-", json!({ "name": "new", "image": "x" })))]
#[case::container_dropped(Json(json!([{ "op": "remove", "path": "/spec/template/spec/containers/1" }])))]
#[case::containers_reordered(Json(json!([
    { "op": "move", "from": "/spec/template/spec/containers/1", "path": "/spec/template/spec/containers/0" },
])))]
#[case::container_renamed(replace("containers/0/name", json!("renamed")))]
#[case::container_misspelled(Apply(json!({ "metadata": {}, "spec": { "template": { "spec": {
    "containers": [{ "name": "ap", "image": IMAGE }] } } } })))]
#[case::init_container_added(edit("add", "initContainers/-", json!({ "name": "new", "image": "x" })))]
#[case::account(Merge(pod(json!({ "serviceAccountName": "other" }))))]
#[case::host_pid(Merge(pod(json!({ "hostPID": true }))))]
#[case::node(Merge(pod(json!({ "nodeName": "node" }))))]
#[case::host_path(Merge(pod(json!({ "volumes": [{ "name": "v", "hostPath": { "path": "/" } }] }))))]
#[case::host_users(Merge(pod(json!({ "hostUsers": false }))))]
#[case::pod_resources(Merge(pod(json!({ "resources": { "limits": { "cpu": "2" } } }))))]
#[case::image_and_env(Json(json!([
    { "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example/web:9" },
    { "op": "replace", "path": "/spec/template/spec/containers/0/env/0/value", "value": "z" },
])))]
#[case::scale(Sub("scale", spec(json!({ "replicas": 4 }))))]
#[case::status(Sub("status", json!({ "status": { "replicas": 9 } })))]
#[case::create(Create)]
#[case::delete(Delete)]
#[case::only_tried(Dry(spec(json!({ "replicas": 5 }))))]
#[tokio::test]
async fn every_other_change_of_a_workload_is_refused(#[case] write: Write) -> Result<()> {
    refused(&deployment(), &write).await
}

#[rstest]
#[case::claim(Apply(json!({ "metadata": { "annotations": {
    "autoscaling.keda.sh/paused-scale-in": "true", "belay.dev/pause-owner": "{}" } } })))]
#[case::full(Merge(annotations(json!({ "autoscaling.keda.sh/paused": "true" }))))]
#[case::resume(Merge(annotations(json!({ "autoscaling.keda.sh/paused": null }))))]
#[case::own_annotation_removed(Merge(annotations(json!({ "belay.dev/old": null }))))]
#[case::pause_of_an_earlier_operator(Merge(annotations(json!({
    "old.example/paused-by": null, "autoscaling.keda.sh/paused-replicas": null,
}))))]
#[tokio::test]
async fn a_pause_is_permitted(#[case] write: Write) -> Result<()> {
    Guarded::shared().await?.write(&scaled_object(), &write).await
}

#[rstest]
#[case::replicas(Merge(annotations(json!({ "autoscaling.keda.sh/paused-replicas": "0" }))))]
#[case::mark(Merge(annotations(json!({ "old.example/paused-by": "belay" }))))]
#[case::scale_out(Merge(annotations(json!({ "autoscaling.keda.sh/paused-scale-out": "true" }))))]
#[case::foreign_annotation(Merge(annotations(json!({ "team.example/owner": null }))))]
#[case::label(Merge(json!({ "metadata": { "labels": { "a": "b" } } })))]
#[case::finalizer(Merge(json!({ "metadata": { "finalizers": ["a.example/b"] } })))]
#[case::spec(Merge(spec(json!({ "maxReplicaCount": 9 }))))]
#[case::triggers(Json(json!([
    { "op": "replace", "path": "/spec/triggers/0/metadata/desiredReplicas", "value": "9" },
])))]
#[case::status(Sub("status", json!({ "status": { "hpaName": "x" } })))]
#[case::create(Create)]
#[case::delete(Delete)]
#[tokio::test]
async fn every_other_change_of_a_scaled_object_is_refused(#[case] write: Write) -> Result<()> {
    refused(&scaled_object(), &write).await
}

async fn refused(object: &Value, write: &Write) -> Result<()> {
    let answer = Guarded::shared().await?.write(object, write).await;
    let error = answer.err().context("it was accepted")?;
    ensure!(is_denied(&error), "it was refused, but not by a policy: {error:#}");
    Ok(())
}

/// The administrator does as before, and each policy is sound in the eyes of the API server.
#[tokio::test]
async fn nobody_else_is_concerned() -> Result<()> {
    let guarded = Guarded::shared().await?;
    let admin = guarded.cluster.admin()?;
    for object in [deployment(), scaled_object()] {
        let label = json!({ "metadata": { "labels": { "admin": "may" } } });
        let api = guarded.api(&admin, &object)?;
        api.patch(WEB, &PatchParams::default(), &Patch::Merge(label)).await?;
    }
    let kind =
        GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy");
    let policies: Api<DynamicObject> = Api::all_with(admin, &ApiResource::from_gvk(&kind));
    for name in ["images", "pauses"] {
        let name = format!("{}.{OPERATOR}.{name}", guarded.namespace);
        let warnings = wait::until("the policy to be type-checked", wait::SOON, || async {
            let policy = policies.get(&name).await.map_err(|error| error.to_string())?;
            let checked = policy.data.pointer("/status/typeChecking").cloned();
            checked.ok_or_else(|| policy.data["status"].to_string())
        })
        .await?;
        ensure!(warnings == json!({}), "{name}: {warnings}");
    }
    Ok(())
}
