//! How a rollout is judged on the real controllers, whatever their conditions still say (operator
//! specification, sections 3.9 and 4).

use anyhow::{Context as _, Result, ensure};
use belay_api::{gates::Gate, reasons::StalledReason};
use belay_suite::operator::{Bed, Wiring, condition, reason};
use belay_testkit::{
    fate::Fate,
    kubelet::{Kubelet, Pace},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Namespace, Pod, ResourceQuota},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::support::{
    ask_for, ended, gated, live, polls, release, release_name, roll, rollback, scale, target,
    wait_for_activation, wait_for_release, wait_for_target, wired,
};

/// Shopify/krane#325: success was reported after 1.9 s, from the numbers of the rollout before.
#[tokio::test]
async fn success_is_never_said_before_every_pod_runs_the_image() -> Result<()> {
    let bed = Bed::new("truth").await?;
    bed.release("v1.0.0").await?;
    let web = bed
        .web("1.0.0")
        .replicas(3)
        .annotation("belay.dev/bake", "0s")
        .pod_annotation("testbed/start", "1s");
    bed.create(&web, "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    for tag in ["v1.1.0", "v1.2.0"] {
        bed.release(tag).await?;
        // As often as one can look.
        bed.wait(&format!("{tag} to be healthy"), || async {
            let release = release(&bed, "web", tag).await?;
            let conditions = release.status.unwrap_or_default().conditions;
            let is_healthy = reason(&conditions, "Healthy") == "Baked";
            // Read after it: pods do not go by themselves.
            let web = bed.deployments().get("web").await?;
            ensure!(is_healthy, "not yet");
            Ok(is_rolled_out(&web).then_some(()).with_context(|| format!("{:?}", web.status)))
        })
        .await??;
        assert_eq!(bed.live("web").await?, bed.image(tag.trim_start_matches('v')));
    }
    operator.stop().await
}

fn is_rolled_out(web: &Deployment) -> bool {
    let status = web.status.clone().unwrap_or_default();
    let all = Some(3);
    status.observed_generation >= web.metadata.generation
        && (status.replicas, status.updated_replicas, status.available_replicas) == (all, all, all)
}

/// kubernetes/kubernetes#124264, jordigilh/kubernaut#199: the condition of the rollout before said
/// that its deadline was exceeded, and the next one, or the way back, was taken for failed.
#[tokio::test]
async fn a_condition_of_the_rollout_before_is_no_evidence() -> Result<()> {
    let bed = Bed::new("stale").await?;
    bed.release("v1.0.0").await?;
    let web = bed
        .web("1.0.0")
        .progress_deadline(2)
        .annotation("belay.dev/deadline", "10s")
        .pod_annotation("testbed/start", "1s");
    bed.create(&web, "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    bed.release("v1.1.0+never-ready").await?;
    // Kubernetes itself gives up first, and its condition stays over the way back.
    let tag = "v1.1.0+never-ready";
    wait_for_release(&bed, "web", tag, ("Blocked", "True", "RolloutFailed")).await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    let own = format!("{}-failed-1", release_name(&bed, "web", tag).await?);
    ended(&bed, &own, "DeploymentSucceeded").await?;
    roll(&bed, "v1.2.0").await?;
    let all = bed.rollbacks().list(&ListParams::default()).await?.items;
    assert_eq!(all.len(), 1, "nothing else was taken back");
    operator.stop().await
}

#[tokio::test]
async fn a_release_whose_pods_crash_while_it_bakes_is_taken_back() -> Result<()> {
    let bed = Bed::new("bake").await?;
    let node = format!("kubelet-{}", bed.namespace);
    let kubelet = Kubelet::start(bed.world.cluster, &node, Pace::AtOnce)?;
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0").on_node(&node), "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    bed.annotate("web", "bake", json!("10m")).await?;
    bed.release("v1.1.0").await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "Unknown", "Baking")).await?;
    let new = bed.image("1.1.0");
    let is_new = |pod: &&Pod| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers.into_iter().any(|one| one.image.as_ref() == Some(&new))
    };
    let pods = kubelet.pods(&bed.namespace);
    let pod = pods.iter().find(is_new).context("no pod of v1.1.0")?;
    kubelet.become_(pod, Fate::CrashLoop);
    let failed =
        wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "False", "BakeFailed")).await?;
    let conditions = failed.status.unwrap_or_default().conditions;
    assert_eq!(reason(&conditions, "RollbackRequired"), "RolloutFailed");
    bed.annotate("web", "bake", json!("1s")).await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Blocked", "True", "RolloutFailed")).await?;
    operator.stop().await
}

/// gke-labs/kube-agents#977: a quota refuses the additional pod. That is not the release's fault: it
/// is refused for a while, and tried again.
#[tokio::test]
async fn a_release_that_a_quota_refused_is_tried_again_after_a_while() -> Result<()> {
    let bed = Bed::new("quota").await?;
    let window = belay_api::Duration::from_secs(6);
    let wiring = wired(|settings| settings.windows.temporary_block = window);
    let operator = bed.following(wiring).await?;
    bed.annotate("web", "deadline", json!("3s")).await?;
    let quotas: Api<ResourceQuota> = Api::namespaced(bed.client.clone(), &bed.namespace);
    let quota: ResourceQuota = serde_json::from_value(json!({
        "metadata": { "name": "small" }, "spec": { "hard": { "pods": "1" } },
    }))?;
    quotas.create(&PostParams::default(), &quota).await?;
    bed.wait("the quota to count", || async {
        let used = quotas.get("small").await?.status.and_then(|status| status.used);
        let pods = used.and_then(|used| used.get("pods").cloned()).context("not yet")?;
        ensure!(pods.0 == "1", "{}", pods.0);
        Ok(())
    })
    .await?;
    bed.release("v1.1.0").await?;
    wait_for_target(&bed, "web", "it says why", |status| {
        let doing = condition(&status.conditions, "Progressing")?;
        (doing.reason == "QuotaExceeded" && doing.message.contains("quota")).then_some(())
    })
    .await?;
    let temporarily = ("Blocked", "True", "BlockedTemporarily");
    wait_for_release(&bed, "web", "v1.1.0", temporarily).await?;
    wait_for_target(&bed, "web", "it says until when", |status| {
        status.blocked.first()?.until.as_ref().map(|_| ())
    })
    .await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    quotas.delete("small", &DeleteParams::default()).await?;
    wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    operator.stop().await
}

#[tokio::test]
async fn so_many_releases_are_kept_as_the_namespace_says() -> Result<()> {
    let bed = Bed::new("cull").await?;
    let namespaces: Api<Namespace> = Api::all(bed.client.clone());
    let limit = json!({ "metadata": { "annotations": { "belay.dev/release-limit": "3" } } });
    namespaces.patch(&bed.namespace, &PatchParams::default(), &Patch::Merge(&limit)).await?;
    let operator = bed.following(Wiring::default()).await?;
    for tag in ["v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0"] {
        roll(&bed, tag).await?;
    }
    let kept = bed
        .wait("three Releases", || async {
            let all = bed.releases().list(&ListParams::default()).await?.items;
            let tags = all.iter().flat_map(|release| &release.config().revisions);
            let mut tags: Vec<String> = tags.map(|revision| revision.id.clone()).collect();
            tags.sort();
            ensure!(tags.len() <= 3, "{tags:?}");
            Ok(tags)
        })
        .await?;
    assert_eq!(kept, ["v1.2.0", "v1.3.0", "v1.4.0"]);
    // The way back does not end where one was removed.
    ask_for(&bed, rollback("web-back", ""), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.3.0"));
    operator.stop().await
}

/// jaseci-labs/jac#8694: a rollout at zero replicas was waited for, for twenty minutes.
#[tokio::test]
async fn at_zero_replicas_a_release_is_in_place_and_judged_at_the_first_pod() -> Result<()> {
    let bed = Bed::new("zero").await?;
    let operator = bed.following(Wiring::default()).await?;
    scale(&bed, "web", 0).await?;
    bed.release("v1.1.0").await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Ready", "Unknown", "ScaledToZero")).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "Unknown", "ScaledToZero")).await?;
    // It does not stop a newer one.
    bed.release("v1.2.0").await?;
    wait_for_release(&bed, "web", "v1.2.0", ("Ready", "Unknown", "ScaledToZero")).await?;
    scale(&bed, "web", 2).await?;
    bed.wait_for_healthy("web", "v1.2.0").await?;
    let replicas = live(&bed, "web").await?["spec"]["replicas"].take();
    assert_eq!(replicas, json!(2));
    // What nobody has ever seen run is not gone back to.
    roll(&bed, "v1.3.0").await?;
    let rollback = rollback("web-back", "");
    ask_for(&bed, rollback, |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    assert_eq!(bed.live("web").await?, bed.image("1.2.0"));
    operator.stop().await
}

/// kubernetes/kubernetes#106697, #78678: scaled up from zero with a bad image, no deadline was ever
/// reported as exceeded.
#[tokio::test]
async fn a_bad_image_that_was_scaled_up_from_zero_is_taken_back() -> Result<()> {
    let bed = Bed::new("zerobad").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.annotate("web", "deadline", json!("3s")).await?;
    scale(&bed, "web", 0).await?;
    bed.release("v1.1.0+never-ready").await?;
    let tag = "v1.1.0+never-ready";
    wait_for_release(&bed, "web", tag, ("Ready", "Unknown", "ScaledToZero")).await?;
    polls(&bed, 8).await?;
    wait_for_release(&bed, "web", tag, ("Ready", "Unknown", "ScaledToZero")).await?;
    scale(&bed, "web", 1).await?;
    wait_for_release(&bed, "web", tag, ("Blocked", "True", "RolloutFailed")).await?;
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_paused_workload_is_not_moved() -> Result<()> {
    let bed = Bed::new("pausedfwd").await?;
    let operator = bed.following(Wiring::default()).await?;
    let paused = |on: bool| json!({ "spec": { "paused": on } });
    bed.patch("web", "kubectl-rollout", &paused(true)).await?;
    bed.release("v1.1.0").await?;
    gated(&bed, "web", "v1.1.0", Gate::InFlight).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    bed.patch("web", "kubectl-rollout", &paused(false)).await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    operator.stop().await
}

/// kubernetes/kubernetes#36427: the time in which somebody had paused the rollout was counted.
#[tokio::test]
async fn a_rollout_that_is_paused_has_no_deadline() -> Result<()> {
    let bed = Bed::new("pausedroll").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.annotate("web", "deadline", json!("3s")).await?;
    let web = json!({ "spec": { "template": { "metadata": { "annotations": {
        "testbed/start": "2s",
    }}}}});
    bed.patch("web", "helm", &web).await?;
    bed.release("v1.1.0").await?;
    wait_for_activation(&bed, "web", "v1.1.0", 1).await?;
    bed.patch("web", "kubectl-rollout", &json!({ "spec": { "paused": true } })).await?;
    wait_for_target(&bed, "web", "paused", |status| {
        let doing = condition(&status.conditions, "Progressing")?;
        (doing.reason == "TargetPaused").then_some(())
    })
    .await?;
    // Longer than the deadline.
    polls(&bed, 16).await?;
    let release = release(&bed, "web", "v1.1.0").await?.status.unwrap_or_default();
    assert_eq!(release.activations.last().and_then(|last| last.verdict.clone()), None);
    bed.patch("web", "kubectl-rollout", &json!({ "spec": { "paused": false } })).await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    assert_eq!(target(&bed, "web").await?.blocked, []);
    let stalled = target(&bed, "web").await?.conditions;
    let broken = belay_api::NamedValue::as_str(StalledReason::Broken);
    assert!(stalled.iter().all(|one| one.reason != broken), "{stalled:?}");
    operator.stop().await
}
