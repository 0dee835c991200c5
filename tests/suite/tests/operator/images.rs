//! What registries say about an image, and what is never asked of them (operator specification,
//! sections 3.5 and 10).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Result;
use belay_api::{
    gates::{Gate, WaitReason},
    reasons::StalledReason,
};
use belay_suite::operator::{Bed, Running, Wiring};
use belay_testkit::objects::Workload;
use data_encoding::BASE64;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::PostParams};
use serde_json::json;

use crate::{
    scripted_registry::{Asked, Reply, ScriptedRegistry},
    support::{REPO, gated, polls, stalled, wait_for_target, wired},
};

/// A Deployment `web` of an image in `registry`.
fn web(registry: &ScriptedRegistry) -> Workload {
    Workload::deployment("web")
        .replicas(1)
        .image("app", &registry.image("1.0.0"))
        .annotation("belay.dev/repo", REPO)
        .annotation("belay.dev/bake", "1s")
}

/// An operator that may ask `registry`, and follows its `web`, which has v1.0.0.
async fn following(bed: &Bed, registry: &ScriptedRegistry, web: &Workload) -> Result<Running> {
    bed.publish("v1.0.0")?;
    bed.create(web, "helm").await?;
    let registries = vec![format!("http://{}", registry.host())];
    let operator = Running::start(bed, Wiring { registries, ..wired(|_| {}) })?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    Ok(operator)
}

/// A pull secret for `registry` in any namespace.
async fn pull_secret(
    client: &Client,
    namespace: &str,
    name: &str,
    registry: &ScriptedRegistry,
) -> Result<()> {
    let auth = BASE64.encode(b"bob:hunter2");
    let config = json!({ "auths": { registry.host(): { "auth": auth } } }).to_string();
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": name }, "type": "kubernetes.io/dockerconfigjson",
        "stringData": { ".dockerconfigjson": config },
    }))?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(())
}

fn basic() -> String {
    format!("Basic {}", BASE64.encode(b"bob:hunter2"))
}

/// Whoever has no credential is refused.
fn private(asked: &Asked) -> Reply {
    if asked.authorization == basic() { Reply::found() } else { Reply::demand() }
}

#[tokio::test]
async fn an_image_that_is_refused_is_not_gone_to_until_the_pod_has_a_credential() -> Result<()> {
    let bed = Bed::new("denied").await?;
    let registry = ScriptedRegistry::start(private).await?;
    let operator = following(&bed, &registry, &web(&registry)).await?;
    bed.publish("v1.1.0")?;
    let denied = gated(&bed, "web", "v1.1.0", Gate::RegistryDenied).await?;
    let message = denied.message.unwrap_or_default();
    assert!(message.contains("without a pull secret"), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, registry.image("1.0.0"));
    pull_secret(&bed.client, &bed.namespace, "pull-bob", &registry).await?;
    let secrets = json!({ "spec": { "template": { "spec": {
        "imagePullSecrets": [{ "name": "pull-bob" }],
    }}}});
    bed.patch("web", "helm", &secrets).await?;
    bed.wait_for_image("web", &registry.image("1.1.0")).await?;
    operator.stop().await
}

/// It names the Secret whose credential was refused, never what is in it.
#[tokio::test]
async fn a_refused_credential_is_named_by_its_secret() -> Result<()> {
    let bed = Bed::new("named").await?;
    let registry = ScriptedRegistry::start(|_| Reply::demand()).await?;
    pull_secret(&bed.client, &bed.namespace, "pull-bob", &registry).await?;
    let web = web(&registry).pod_spec("imagePullSecrets", json!([{ "name": "pull-bob" }]));
    let operator = following(&bed, &registry, &web).await?;
    bed.publish("v1.1.0")?;
    let denied = gated(&bed, "web", "v1.1.0", Gate::RegistryDenied).await?;
    let message = denied.message.unwrap_or_default();
    assert!(message.contains("pull-bob") && !message.contains("hunter2"), "{message}");
    // Each check asks how a credential must be shown, shows it, and asks no more.
    let asked: Vec<String> = registry.asked().into_iter().map(|it| it.authorization).collect();
    assert!(asked.len() >= 2, "{asked:?}");
    for check in asked.chunks_exact(2) {
        assert_eq!(check, [String::new(), basic()], "{asked:?}");
    }
    operator.stop().await
}

/// fluxcd/flux#2723: for the same registry the pull secret of another namespace was used.
#[tokio::test]
async fn a_pull_secret_of_another_namespace_is_never_used() -> Result<()> {
    let (bed, other) = (Bed::new("tenant").await?, Bed::new("neighbour").await?);
    let registry = ScriptedRegistry::start(private).await?;
    pull_secret(&bed.client, &other.namespace, "pull-bob", &registry).await?;
    let with_secret = web(&registry).pod_spec("imagePullSecrets", json!([{ "name": "pull-bob" }]));
    let theirs = following(&other, &registry, &with_secret).await?;
    other.publish("v1.1.0")?;
    other.wait_for_image("web", &registry.image("1.1.0")).await?;
    theirs.stop().await?;
    // The same registry, the same name of the Secret, which is not there.
    let ours = following(&bed, &registry, &with_secret).await?;
    let before = registry.asked().len();
    bed.publish("v1.1.0")?;
    gated(&bed, "web", "v1.1.0", Gate::RegistryDenied).await?;
    polls(&bed, 4).await?;
    let asked = registry.asked().split_off(before);
    assert!(asked.iter().all(|it| it.authorization.is_empty()), "{asked:?}");
    assert_eq!(bed.live("web").await?, registry.image("1.0.0"));
    ours.stop().await
}

#[tokio::test]
async fn an_image_for_other_nodes_is_not_gone_to() -> Result<()> {
    let bed = Bed::new("platform").await?;
    let registry = ScriptedRegistry::start(|_| Reply::Image("linux", "arm64")).await?;
    let operator = following(&bed, &registry, &web(&registry)).await?;
    bed.publish("v1.1.0")?;
    let missing = gated(&bed, "web", "v1.1.0", Gate::PlatformMissing).await?;
    let message = missing.message.unwrap_or_default();
    assert!(message.contains("linux/amd64"), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, registry.image("1.0.0"));
    operator.stop().await
}

/// argoproj-labs/argocd-image-updater#511, #695: a registry that said 429 was asked on and on, for
/// every tag it had.
#[tokio::test]
async fn a_registry_that_asks_for_patience_gets_it() -> Result<()> {
    let bed = Bed::new("patience").await?;
    let is_busy = Arc::new(AtomicBool::new(true));
    let script = is_busy.clone();
    let registry = ScriptedRegistry::start(move |_| {
        if script.load(Ordering::Relaxed) {
            Reply::Status("429 Too Many Requests", vec!["Retry-After: 6".to_owned()])
        } else {
            Reply::found()
        }
    })
    .await?;
    let operator = following(&bed, &registry, &web(&registry)).await?;
    for tag in ["v1.0.1", "v1.0.2", "v1.1.0"] {
        bed.publish(tag)?;
    }
    wait_for_target(&bed, "web", "the registry is waited for", |status| {
        let waiting = status.waiting.as_ref()?;
        (waiting.reason.known() == Some(WaitReason::RegistryThrottled)).then_some(())
    })
    .await?;
    is_busy.store(false, Ordering::Relaxed);
    polls(&bed, 6).await?;
    let asked = registry.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    bed.wait_for_image("web", &registry.image("1.1.0")).await?;
    // Of all that was published, the one that is gone to.
    let tags = ["1.0.1", "1.0.2"].map(|tag| registry.count("HEAD", tag));
    assert_eq!(tags, [0, 0], "{:?}", registry.asked());
    operator.stop().await
}

#[tokio::test]
async fn a_registry_that_fails_is_asked_again() -> Result<()> {
    let bed = Bed::new("regfails").await?;
    let is_ill = Arc::new(AtomicBool::new(true));
    let script = is_ill.clone();
    let registry = ScriptedRegistry::start(move |_| {
        if script.load(Ordering::Relaxed) {
            Reply::Status("500 Internal Server Error", Vec::new())
        } else {
            Reply::found()
        }
    })
    .await?;
    let operator = following(&bed, &registry, &web(&registry)).await?;
    bed.publish("v1.1.0")?;
    let gate = gated(&bed, "web", "v1.1.0", Gate::RegistryUnavailable).await?;
    assert!(gate.message.unwrap_or_default().contains("500"));
    assert_eq!(bed.live("web").await?, registry.image("1.0.0"));
    is_ill.store(false, Ordering::Relaxed);
    bed.wait_for_image("web", &registry.image("1.1.0")).await?;
    operator.stop().await
}

/// argoproj-labs/argocd-image-updater#273, fluxcd/image-automation-controller#858: `host:5000/app`
/// was split at the port. A registry that is not allowed is not asked: loopback is not, unless the
/// operator's configuration names host and port.
#[tokio::test]
async fn a_registry_on_a_port_that_is_not_allowed_is_never_asked() -> Result<()> {
    let bed = Bed::new("port").await?;
    let registry = ScriptedRegistry::start(|_| Reply::found()).await?;
    bed.publish("v1.0.0")?;
    bed.create(&web(&registry), "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    bed.publish("v1.1.0")?;
    gated(&bed, "web", "v1.1.0", Gate::RegistryDenied).await?;
    let message = stalled(&bed, "web", StalledReason::NotAllowed).await?;
    assert!(message.contains(&registry.image("1.1.0")), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(registry.asked(), []);
    operator.stop().await
}
