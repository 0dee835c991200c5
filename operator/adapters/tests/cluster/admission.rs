//! Admission checks in the way of an apply.

use anyhow::{Result, bail, ensure};
use belay_adapters::cluster::Done;
use belay_engine::observed::Refusal;
use belay_testkit::wait;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::bed::{Bed, WEB, images, release_of, web};

/// A policy for the Deployments of the bed's namespace alone, in force once `is_active` says so of
/// the answer to a dry run.
async fn with_policy(
    bed: &Bed,
    kind: &str,
    spec: &Value,
    is_active: impl Fn(&kube::Result<Deployment>) -> bool,
) -> Result<()> {
    let group = |kind: &str| GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    let name = &bed.namespace;
    let mut policy = json!({ "failurePolicy": "Fail", "matchConstraints": {
        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": name } },
        "resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
            "operations": ["UPDATE"],
        }],
    } });
    let fields = spec.as_object().cloned().unwrap_or_default();
    policy.as_object_mut().into_iter().for_each(|policy| policy.extend(fields.clone()));
    let mut binding = json!({ "policyName": name });
    if kind == "ValidatingAdmissionPolicy" {
        binding["validationActions"] = json!(["Deny"]);
    }
    for (kind, spec) in [(kind.to_owned(), policy), (format!("{kind}Binding"), binding)] {
        let resource = ApiResource::from_gvk(&group(&kind));
        let api: Api<DynamicObject> = Api::all_with(bed.client.clone(), &resource);
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": name }, "spec": spec,
        });
        api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    }
    let api = bed.api::<Deployment>();
    let canary = json!({ "metadata": { "labels": { "canary": "1" } } });
    let params = PatchParams::default().dry_run();
    wait::until("the policy to be in force", wait::SOON, || async {
        let answer = api.patch(WEB, &params, &Patch::Merge(&canary)).await;
        if is_active(&answer) { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await?;
    Ok(())
}

const NEXT: [&str; 1] = ["app=r.example/web:2"];

#[tokio::test]
async fn a_policy_that_says_no_is_quoted() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let spec = json!({ "validations": [
        { "expression": "false", "message": "nothing moves on a Friday" },
    ] });
    with_policy(&bed, "ValidatingAdmissionPolicy", &spec, Result::is_err).await?;
    let done = bed.apply(&NEXT, true).await?;
    let Done::Refused(Refusal::Denied { message }) = done else { bail!("{done:?}") };
    ensure!(message.contains("nothing moves on a Friday"), "{message}");
    ensure!(message.contains("ValidatingAdmissionPolicy"), "{message}");
    assert_eq!(release_of(&bed.at_rest(WEB).await?), None);
    Ok(())
}

fn mutation(expression: &str) -> Value {
    json!({
        "reinvocationPolicy": "Never",
        "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }],
    })
}

#[tokio::test]
async fn an_image_that_admission_rewrites_is_ours_all_the_same() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let spec = mutation(
        "[JSONPatch{op: 'replace', path: '/spec/template/spec/containers/0/image', \
         value: object.spec.template.spec.containers[0].image.replace('r.example', 'mirror.example')}]",
    );
    let is_active = |answer: &kube::Result<Deployment>| {
        answer.as_ref().is_ok_and(|it| format!("{:?}", images(it)).contains("mirror.example"))
    };
    with_policy(&bed, "MutatingAdmissionPolicy", &spec, is_active).await?;
    let done = bed.apply(&NEXT, true).await?;
    let Done::Applied { workload, surprise } = done else { bail!("{done:?}") };
    assert_eq!(surprise, None);
    ensure!(images(&workload).contains(&"app=mirror.example/web:2".to_owned()), "{workload:?}");
    Ok(())
}

#[tokio::test]
async fn ownership_that_is_not_what_was_applied_is_a_surprise() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let spec = mutation("[JSONPatch{op: 'remove', path: '/metadata/managedFields'}]");
    let is_active = |answer: &kube::Result<Deployment>| {
        answer.as_ref().is_ok_and(|it| {
            let entries = it.metadata.managed_fields.as_deref().unwrap_or_default();
            !entries.iter().any(|entry| entry.manager.as_deref() == Some("helm"))
        })
    };
    with_policy(&bed, "MutatingAdmissionPolicy", &spec, is_active).await?;
    let done = bed.apply(&NEXT, true).await?;
    let Done::Applied { workload, surprise } = done else { bail!("{done:?}") };
    let expected = "there is no entry of belay-operator in managedFields";
    assert_eq!(surprise.as_deref(), Some(expected));
    assert_eq!(release_of(&workload), Some("web-1234567"), "it is applied all the same");
    Ok(())
}
