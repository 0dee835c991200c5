//! Admission that rewrites images: another host in front of the same path.

use anyhow::{Context as _, Result, ensure};
use belay_testkit::{cluster::FIELD_MANAGER, wait};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::scene::Scene;

/// The host that all images get.
const MIRROR: &str = "mirror.example";
/// Namespaces with this label are rewritten.
const LABEL: &str = "belay-tests/mirror";
const POLICY: &str = "belay-tests-mirror";

/// What becomes of an image.
pub(super) fn rewritten(image: &str) -> String {
    match image.split_once('/') {
        Some((host, path)) if host != MIRROR => format!("{MIRROR}/{path}"),
        _ => image.to_owned(),
    }
}

/// Rewrites the images of a run's Deployments from now on.
pub(super) async fn rewrite(scene: &Scene) -> Result<()> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let client = &scene.bed.client;
    INSTALLED.get_or_try_init(|| install(client)).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let label = json!({ "metadata": { "labels": { LABEL: "on" } } });
    let params = PatchParams::default();
    namespaces.patch(&scene.bed.namespace, &params, &Patch::Merge(label)).await?;
    // The API server notices policies and labels after a while.
    let probe: Deployment = serde_json::from_value(scene.web("probe").json().clone())?;
    let params = PostParams { dry_run: true, field_manager: None };
    let wanted = rewritten(&scene.image("probe"));
    wait::until("images to be rewritten", wait::SOON, || async {
        let made = scene.bed.deployments().create(&params, &probe).await;
        let made = made.map_err(|error| error.to_string())?;
        let pod = made.spec.and_then(|spec| spec.template.spec);
        let image = pod.and_then(|pod| pod.containers.into_iter().next()?.image);
        let image = image.unwrap_or_default();
        if image == wanted { Ok(()) } else { Err(image) }
    })
    .await?;
    Ok(())
}

async fn install(client: &Client) -> Result<()> {
    let image = "object.spec.template.spec.containers[0].image";
    let policy = json!({
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": { "matchLabels": { LABEL: "on" } },
                "resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["deployments"],
                }],
            },
            "matchConditions": [{
                "name": "elsewhere", "expression": format!("!{image}.startsWith('{MIRROR}/')"),
            }],
            "mutations": [{
                "patchType": "JSONPatch",
                "jsonPatch": { "expression": format!(
                    "[JSONPatch{{op: 'replace', path: '/spec/template/spec/containers/0/image', \
                     value: '{MIRROR}' + {image}.substring({image}.indexOf('/'))}}]"
                )},
            }],
        },
    });
    apply(client, "MutatingAdmissionPolicy", policy).await?;
    let binding = json!({ "spec": { "policyName": POLICY } });
    apply(client, "MutatingAdmissionPolicyBinding", binding).await
}

async fn apply(client: &Client, kind: &str, mut object: Value) -> Result<()> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    let resource = ApiResource::from_gvk(&kind);
    object["apiVersion"] = json!(resource.api_version);
    object["kind"] = json!(resource.kind);
    object["metadata"] = json!({ "name": POLICY });
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let made = api.patch(POLICY, &params, &Patch::Apply(object)).await;
    let made = made.with_context(|| format!("apply a {}", resource.kind))?;
    ensure!(made.metadata.uid.is_some(), "{} has no uid", resource.kind);
    Ok(())
}
