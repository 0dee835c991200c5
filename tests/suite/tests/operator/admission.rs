//! When admission has its own word on the image (operator specification, sections 3.6 and 6).

use anyhow::{Context as _, Result, ensure};
use belay_api::{
    NamedValue as _,
    reasons::{Note, StalledReason},
};
use belay_suite::operator::{Bed, condition};
use belay_testkit::fault::{Calls, FaultPlan, PatchKind, Verb};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::support::{
    polls, roll, stalled, told, traced, wait_for_release, wait_for_target, wired,
};

/// The host that admission writes into images.
const MIRROR: &str = "mirror.example";

/// A policy for Deployments of a bed's namespace. Dropping the bed does not remove it: it does not
/// concern others.
struct Policy<'b> {
    bed: &'b Bed,
    kind: &'static str,
    name: String,
}

impl<'b> Policy<'b> {
    /// Creates it, and waits until it says what `is_in_force` looks for of the image `probe`.
    async fn create(
        bed: &'b Bed,
        kind: &'static str,
        mut spec: Value,
        probe: &str,
        is_in_force: impl Fn(kube::Result<String>) -> bool,
    ) -> Result<Self> {
        let policy = Self { bed, kind, name: format!("test-{}", bed.namespace) };
        spec["failurePolicy"] = json!("Fail");
        spec["matchConstraints"] = json!({ "resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"], "resources": ["deployments"],
        }]});
        policy.apply(kind, &spec).await?;
        let mut binding = json!({
            "policyName": policy.name,
            "matchResources": { "namespaceSelector": {
                "matchLabels": { "kubernetes.io/metadata.name": bed.namespace },
            }},
        });
        if kind == "ValidatingAdmissionPolicy" {
            binding["validationActions"] = json!(["Deny"]);
        }
        policy.apply(&format!("{kind}Binding"), &binding).await?;
        bed.wait("the policy to be in force", || async {
            let containers = json!([{ "name": "app", "image": probe }]);
            let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
            let params = PatchParams { dry_run: true, ..PatchParams::default() };
            let answer = bed.deployments().patch("web", &params, &Patch::Strategic(&patch)).await;
            let image = answer.map(|web| {
                let pod = web.spec.and_then(|spec| spec.template.spec);
                let container = pod.and_then(|pod| pod.containers.into_iter().next());
                container.and_then(|one| one.image).unwrap_or_default()
            });
            ensure!(is_in_force(image), "not yet");
            Ok(())
        })
        .await?;
        Ok(policy)
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let plural = match kind.strip_suffix("Policy") {
            Some(head) => format!("{head}policies"),
            None => format!("{kind}s"),
        };
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &plural.to_lowercase());
        Api::all_with(self.bed.client.clone(), &resource)
    }

    async fn apply(&self, kind: &str, spec: &Value) -> Result<()> {
        let object = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": self.name }, "spec": spec,
        });
        let params = PatchParams::apply("test").force();
        let applied = self.api(kind).patch(&self.name, &params, &Patch::Apply(&object)).await;
        applied.with_context(|| format!("apply the {kind}"))?;
        Ok(())
    }

    async fn remove(self) -> Result<()> {
        for kind in [format!("{}Binding", self.kind), self.kind.to_owned()] {
            self.api(&kind).delete(&self.name, &DeleteParams::default()).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn an_image_that_admission_rewrites_is_written_once() -> Result<()> {
    let bed = Bed::new("mirror").await?;
    let plan = FaultPlan::new();
    let mut wiring = wired(|_| {});
    wiring.client = Some(traced(&bed, &plan)?);
    let operator = bed.following(wiring).await?;
    let host = bed.world.registry.host();
    let image = "object.spec.template.spec.containers[0].image";
    let spec = json!({
        "reinvocationPolicy": "Never",
        "matchConditions": [{
            "name": "own", "expression": format!("{image}.startsWith('{host}/')"),
        }],
        "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": format!(
            "[JSONPatch{{op: 'replace', path: '/spec/template/spec/containers/0/image', \
             value: {image}.replace('{host}', '{MIRROR}')}}]"
        )}}],
    });
    let kind = "MutatingAdmissionPolicy";
    let is_in_force = |image: kube::Result<String>| image.is_ok_and(|one| one.starts_with(MIRROR));
    let policy = Policy::create(&bed, kind, spec, &bed.image("probe"), is_in_force).await?;
    bed.release("v1.1.0").await?;
    let stored = bed.image("1.1.0").replace(host, MIRROR);
    bed.wait_for_image("web", &stored).await?;
    let release = bed.wait_for_healthy("web", "v1.1.0").await?;
    let images = release.status.unwrap_or_default().images;
    let image = images.first().context("no image")?;
    assert_eq!((&image.asked, image.stored.as_ref()), (&bed.image("1.1.0"), Some(&stored)));
    let note = Note::ChangedByAdmission.as_str();
    let message = wait_for_target(&bed, "web", note, |status| {
        condition(&status.conditions, note).map(|one| one.message.clone())
    })
    .await?;
    assert!(message.contains(&stored) && message.contains(&bed.image("1.1.0")), "{message}");
    let applies = || {
        let apply = Calls::any().verb(Verb::Patch(PatchKind::Apply)).resource("deployments");
        let accepted = plan
            .trace()
            .of(&apply)
            .filter(|call| call.answered().is_some_and(|status| status.is_success()));
        accepted.calls().len()
    };
    polls(&bed, 6).await?;
    assert_eq!(applies(), 1, "{}", plan.trace().writes());
    // The next one is asked for where this one was, and is written once too.
    bed.release("v1.2.0").await?;
    bed.wait_for_image("web", &bed.image("1.2.0").replace(host, MIRROR)).await?;
    bed.wait_for_healthy("web", "v1.2.0").await?;
    polls(&bed, 6).await?;
    assert_eq!(applies(), 2, "{}", plan.trace().writes());
    policy.remove().await?;
    operator.stop().await
}

#[tokio::test]
async fn an_image_that_admission_refuses_is_said_and_a_newer_one_is_tried() -> Result<()> {
    let bed = Bed::new("refused").await?;
    let plan = FaultPlan::new();
    let mut wiring = wired(|_| {});
    wiring.client = Some(traced(&bed, &plan)?);
    let operator = bed.following(wiring).await?;
    let image = "object.spec.template.spec.containers[0].image";
    let spec = json!({ "validations": [{
        "expression": format!("!{image}.endsWith(':1.1.0')"), "message": "1.1.0 is unsafe",
    }]});
    let kind = "ValidatingAdmissionPolicy";
    let refused = |answer: kube::Result<String>| answer.is_err();
    let policy = Policy::create(&bed, kind, spec, &bed.image("1.1.0"), refused).await?;
    bed.release("v1.1.0").await?;
    let message = stalled(&bed, "web", StalledReason::ApplyRefused).await?;
    assert!(message.contains("1.1.0 is unsafe"), "{message}");
    told(&bed, "ApplyRefused", &["Warning", "1.1.0 is unsafe"]).await?;
    let applies = || {
        let apply = Calls::any().verb(Verb::Patch(PatchKind::Apply)).resource("deployments");
        plan.trace().count(&apply)
    };
    let before = applies();
    polls(&bed, 8).await?;
    assert_eq!(applies(), before, "it is not tried on and on: {}", plan.trace().writes());
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    roll(&bed, "v1.2.0").await?;
    wait_for_release(&bed, "web", "v1.2.0", ("Healthy", "True", "Baked")).await?;
    policy.remove().await?;
    operator.stop().await
}
