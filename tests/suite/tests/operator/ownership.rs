//! When Helm, a GitOps controller or nobody in particular owns the image (operator specification,
//! section 6).

use anyhow::{Context as _, Result, ensure};
use belay_api::reasons::StalledReason;
use belay_engine::settings::Settings;
use belay_ownership::{Identity, Operation, Ownership};
use belay_suite::operator::Bed;
use belay_testkit::fault::{Calls, FaultPlan, PatchKind, Verb};
use kube::api::{Patch, PatchParams, PostParams};
use rstest::rstest;
use serde_json::json;

use crate::support::{
    APP, events, following_to, gated, going_on, live, polls, roll, scale, stalled, target, told,
    traced, wait_for_activation, wait_for_release, wait_for_target, wired,
};

/// How Helm writes an image.
#[derive(Debug, Clone, Copy)]
enum How {
    /// Helm 3: a strategic merge patch.
    Patch,
    /// `--force` of Helm 3: a replacement.
    Put,
    /// Helm 4 with `--force-conflicts`: a server-side apply.
    Apply,
}

async fn helm(bed: &Bed, how: How, image: &str) -> Result<()> {
    match how {
        How::Patch => bed.set_image("web", image, "helm").await,
        How::Put => put(bed, image).await,
        How::Apply => apply(bed, "helm", Some(image)).await,
    }
}

/// Replaces the Deployment by one with another image, whatever its version is by then.
async fn put(bed: &Bed, image: &str) -> Result<()> {
    let mut object = bed.deployments().get("web").await?;
    object.metadata.resource_version = None;
    object.metadata.managed_fields = None;
    let pod = object.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
    let container = pod.and_then(|pod| pod.containers.first_mut()).context("no container")?;
    container.image = Some(image.to_owned());
    let params = PostParams { field_manager: Some("helm".to_owned()), ..PostParams::default() };
    bed.deployments().replace("web", &params, &object).await?;
    Ok(())
}

/// Applies a chart's whole Deployment by force, with or without the image.
async fn apply(bed: &Bed, manager: &str, image: Option<&str>) -> Result<()> {
    let mut body = bed.web("unused").json().clone();
    match image {
        Some(image) => body["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image),
        None => body["spec"]["template"]["spec"]["containers"] = json!([{ "name": APP }]),
    }
    let params = PatchParams::apply(manager).force();
    bed.deployments().patch("web", &params, &Patch::Apply(&body)).await?;
    Ok(())
}

/// A Release that is healthy counts as meant to stay from the beginning.
fn at_once(settings: &mut Settings) {
    settings.revert_window = belay_api::Duration::from_secs(0);
}

#[rstest]
#[tokio::test]
async fn an_image_that_helm_puts_back_is_applied_again(
    #[values(How::Patch, How::Put, How::Apply)] how: How,
) -> Result<()> {
    let bed = Bed::new("reverted").await?;
    let operator = following_to(&bed, wired(at_once), &["v1.1.0"]).await?;
    let old = bed.image("1.0.0");
    helm(&bed, how, &old).await?;
    let revert = wait_for_target(&bed, "web", "a revert is recorded", |status| {
        status.reverts.first().cloned()
    })
    .await?;
    assert_eq!((revert.manager.as_str(), revert.value.as_str()), ("helm", old.as_str()));
    told(&bed, "ImageReverted", &["Warning", "helm", &old, "post-renderer"]).await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    let again = wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    assert!(again.start_time >= revert.time, "applied again only after a while");
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    let status = target(&bed, "web").await?;
    assert_eq!((status.reverts.len(), status.blocked.len()), (1, 0));
    operator.stop().await
}

#[tokio::test]
async fn after_the_third_time_in_a_day_the_image_is_left_to_helm() -> Result<()> {
    let bed = Bed::new("tug").await?;
    let operator = following_to(&bed, wired(at_once), &["v1.1.0"]).await?;
    // No Release of this target: what Helm puts back cannot be meant as a rollback to one.
    let (old, new) = (bed.image("0.9.0"), bed.image("1.1.0"));
    for time in 1..=3 {
        helm(&bed, How::Patch, &old).await?;
        wait_for_activation(&bed, "web", "v1.1.0", time + 1).await?;
        assert_eq!(bed.live("web").await?, new);
    }
    helm(&bed, How::Patch, &old).await?;
    let message = stalled(&bed, "web", StalledReason::TugOfWar).await?;
    assert!(message.contains("helm") && message.contains('3'), "{message}");
    told(&bed, "TugOfWar", &["Warning", "helm"]).await?;
    polls(&bed, 6).await?;
    assert_eq!(bed.live("web").await?, old);
    operator.stop().await
}

/// It writes as soon as it sees another image, before anything else can be noted.
#[tokio::test]
async fn a_controller_that_puts_its_image_back_at_once_is_given_up_on() -> Result<()> {
    let bed = Bed::new("hotloop").await?;
    let plan = FaultPlan::new();
    let mut wiring = wired(at_once);
    wiring.client = Some(traced(&bed, &plan)?);
    let operator = following_to(&bed, wiring, &["v1.1.0"]).await?;
    bed.annotate("web", "take-over", json!("shipper")).await?;
    let applies = || {
        let apply = Calls::any().verb(Verb::Patch(PatchKind::Apply)).resource("deployments");
        plan.trace().count(&apply)
    };
    let before = applies();
    let fight = async {
        use futures::StreamExt as _;
        use kube::runtime::{WatchStreamExt as _, watcher};
        let events = watcher(bed.deployments(), watcher::Config::default()).applied_objects();
        let mut events = std::pin::pin!(events);
        let (old, new) = (bed.image("0.9.0"), bed.image("1.1.0"));
        bed.set_image("web", &old, "shipper").await?;
        while let Some(event) = events.next().await {
            event?;
            if bed.live("web").await? == new {
                bed.set_image("web", &old, "shipper").await?;
            }
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ended = fight => ended.context("the other controller")?,
        stalled = stalled(&bed, "web", StalledReason::TugOfWar) => drop(stalled?),
    }
    // Each of the three is tried without force first.
    let tried = applies() - before;
    assert!(tried <= 8, "{tried} applies\n{}", plan.trace().writes());
    operator.stop().await
}

#[rstest]
#[tokio::test]
async fn a_helm_rollback_of_a_fresh_release_is_respected(
    #[values(How::Patch, How::Apply)] how: How,
) -> Result<()> {
    let bed = Bed::new("helmback").await?;
    let operator = following_to(&bed, wired(|_| {}), &["v1.1.0"]).await?;
    helm(&bed, how, &bed.image("1.0.0")).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Blocked", "True", "RolledBackByHelm")).await?;
    let again = wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    assert_eq!(again.initiator.as_deref(), Some("helm"));
    wait_for_release(&bed, "web", "v1.0.0", ("Healthy", "True", "Baked")).await?;
    gated(&bed, "web", "v1.1.0", belay_api::gates::Gate::Blocked).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    assert_eq!(target(&bed, "web").await?.reverts, []);
    // It is not the end: what is newer than the one that was left is followed.
    roll(&bed, "v1.2.0").await?;
    operator.stop().await
}

/// `helm upgrade --atomic` that fails puts the former manifest back while the Release is rolling.
#[tokio::test]
async fn helm_taking_an_unjudged_release_back_is_respected() -> Result<()> {
    let bed = Bed::new("atomic").await?;
    let operator = bed.following(wired(at_once)).await?;
    bed.release("v1.1.0+never-ready").await?;
    bed.wait_for_image("web", &bed.image("1.1.0_never-ready")).await?;
    wait_for_activation(&bed, "web", "v1.1.0+never-ready", 1).await?;
    helm(&bed, How::Patch, &bed.image("1.0.0")).await?;
    let blocked = ("Blocked", "True", "RolledBackByHelm");
    wait_for_release(&bed, "web", "v1.1.0+never-ready", blocked).await?;
    let left =
        wait_for_release(&bed, "web", "v1.1.0+never-ready", ("Ready", "False", "Superseded"))
            .await?;
    let last = left.status.and_then(|status| status.activations.last().cloned());
    let message = last.and_then(|last| last.message).unwrap_or_default();
    assert!(message.contains("helm"), "{message}");
    wait_for_activation(&bed, "web", "v1.0.0", 2).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    let rollbacks = bed.rollbacks().list(&kube::api::ListParams::default()).await?;
    assert_eq!(rollbacks.items, [], "what was taken back by hand needs no Rollback");
    operator.stop().await
}

#[rstest]
#[case::argo("argocd-controller")]
#[case::flux("kustomize-controller")]
#[case::flux_helm("helm-controller")]
#[tokio::test]
async fn what_a_gitops_controller_owns_is_left_to_it(#[case] manager: &str) -> Result<()> {
    let bed = Bed::new("gitops").await?;
    let operator = following_to(&bed, wired(at_once), &["v1.1.0"]).await?;
    let old = bed.image("1.0.0");
    apply(&bed, manager, Some(&old)).await?;
    let message = stalled(&bed, "web", StalledReason::ManagedByGitOps).await?;
    assert!(message.contains(manager), "{message}");
    bed.release("v1.2.0").await?;
    gated(&bed, "web", "v1.2.0", None).await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, old);
    stalled(&bed, "web", StalledReason::ManagedByGitOps).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_workload_of_a_gitops_controller_is_never_moved() -> Result<()> {
    let bed = Bed::new("argo").await?;
    bed.release("v1.0.0").await?;
    apply(&bed, "argocd-controller", Some(&bed.image("1.0.0"))).await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    stalled(&bed, "web", StalledReason::ManagedByGitOps).await?;
    bed.release("v1.1.0").await?;
    polls(&bed, 4).await?;
    stalled(&bed, "web", StalledReason::ManagedByGitOps).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}

/// Its repository gives the image up: from then on somebody else holds it, and Belay may.
#[tokio::test]
async fn an_image_that_a_gitops_controller_lets_go_of_is_followed() -> Result<()> {
    let bed = Bed::new("letgo").await?;
    bed.release("v1.0.0").await?;
    apply(&bed, "argocd-controller", Some(&bed.image("1.0.0"))).await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    stalled(&bed, "web", StalledReason::ManagedByGitOps).await?;
    apply(&bed, "helm", Some(&bed.image("1.0.0"))).await?;
    apply(&bed, "argocd-controller", None).await?;
    going_on(&bed, "web").await?;
    roll(&bed, "v1.1.0").await?;
    operator.stop().await
}

#[tokio::test]
async fn the_image_of_an_unknown_manager_is_never_forced() -> Result<()> {
    let bed = Bed::new("conflict").await?;
    let plan = FaultPlan::new();
    let mut wiring = wired(|_| {});
    wiring.client = Some(traced(&bed, &plan)?);
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0"), "terraform").await?;
    let operator = belay_suite::operator::Running::start(&bed, wiring)?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    bed.release("v1.1.0").await?;
    let message = stalled(&bed, "web", StalledReason::FieldConflict).await?;
    assert!(message.contains("terraform") && message.contains("adopt web"), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    let applies = |plan: &FaultPlan| {
        let apply = Calls::any().verb(Verb::Patch(PatchKind::Apply)).resource("deployments");
        plan.trace().of(&apply)
    };
    let forced = |plan: &FaultPlan| {
        let is_forced = |(key, value): &(String, String)| key == "force" && value == "true";
        applies(plan).filter(|call| call.query.iter().any(is_forced)).calls().len()
    };
    assert_eq!((applies(&plan).calls().len(), forced(&plan)), (1, 0), "{}", applies(&plan));
    // Its owner says that Belay may.
    bed.annotate("web", "take-over", json!("terraform")).await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    assert_eq!(forced(&plan), 1, "{}", applies(&plan));
    operator.stop().await
}

/// Without force first, and with force only where that conflicts with a manager that may be taken
/// over.
///
/// envoyproxy/gateway#9594: a forced apply that named `replicas` undid the autoscaler's number each
/// time. Nothing but images and the annotation is ever ours.
#[tokio::test]
async fn after_each_apply_nothing_but_image_and_annotation_is_ours() -> Result<()> {
    let bed = Bed::new("fields").await?;
    let plan = FaultPlan::new();
    let mut wiring = wired(at_once);
    wiring.client = Some(traced(&bed, &plan)?);
    let operator = bed.following(wiring).await?;
    scale(&bed, "web", 3).await?;
    roll(&bed, "v1.1.0").await?;
    ours(&bed).await?;
    helm(&bed, How::Patch, &bed.image("1.0.0")).await?;
    wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    ours(&bed).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    roll(&bed, "v1.2.0").await?;
    ours(&bed).await?;
    assert_eq!(live(&bed, "web").await?["spec"]["replicas"], 3);
    let apply = Calls::any().verb(Verb::Patch(PatchKind::Apply)).resource("deployments");
    let is_forced = |call: &belay_testkit::fault::Call| {
        call.query.iter().any(|(key, value)| key == "force" && value == "true")
    };
    let mut forced: Vec<bool> = plan.trace().of(&apply).calls().iter().map(is_forced).collect();
    // One that met a Deployment which had just changed is tried again as it was.
    forced.dedup();
    // The third move meets nobody any more.
    assert_eq!(forced, [false, true, false, true, false], "{}", plan.trace().of(&apply));
    told(&bed, "ImageReverted", &["helm"]).await?;
    assert_eq!(events(&bed, "UnexpectedOwnership").await?, [""; 0]);
    operator.stop().await
}

async fn ours(bed: &Bed) -> Result<()> {
    let entries = bed.deployments().get_metadata("web").await?.metadata.managed_fields;
    let ownership = Ownership::decode(&entries.unwrap_or_default());
    let all = ownership.entries();
    let of_belay: Vec<_> = all.filter(|entry| entry.manager().starts_with("belay")).collect();
    ensure!(of_belay.len() == 1, "{of_belay:?}");
    let identity = Identity::new("belay-operator", Operation::Apply, "", "apps/v1");
    let entry = ownership.entry(&identity).context("no entry of belay-operator")?;
    let paths: Vec<String> = entry.paths().iter().map(ToString::to_string).collect();
    let container = format!(".spec.template.spec.containers[name=\"{APP}\"]");
    let expected = [
        ".metadata.annotations['belay.dev/release']".to_owned(),
        container.clone(),
        format!("{container}.image"),
        format!("{container}.name"),
    ];
    ensure!(paths == expected, "{paths:?}");
    Ok(())
}
