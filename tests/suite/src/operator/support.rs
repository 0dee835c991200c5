//! Scenes that several tests begin with, and words for what they wait for.

use anyhow::{Context as _, Result, ensure};
use belay_api::{
    NamedValue as _, Release, Rollback,
    conditions::{ConditionStatus, find},
    gates::Gate,
    reasons::StalledReason,
    release::Activation,
    rollback::{
        DEFAULT_TIMEOUT, Driver, Initiator, InitiatorType, RollbackSpec, RollbackStatus,
        ToReleaseRef,
    },
    target::{CandidateStatus, TargetStatus},
};
use belay_components::Binary;
use belay_engine::settings::Settings;

use belay_testkit::{
    cluster,
    fault::{self, FaultPlan, Trace},
};
use k8s_openapi::api::{apps::v1::Deployment, events::v1::Event};
use kube::{
    Api,
    api::{ListParams, PostParams},
};

use super::{Bed, Running, Wiring, condition};

/// The container that the bed's workloads have.
pub const APP: &str = "app";
/// The repository on the bed's GitHub.
pub const REPO: &str = "acme/web";

/// The bed's usual operator with other settings.
pub fn wired(change: impl FnOnce(&mut Settings)) -> Wiring {
    let mut wiring = Wiring::default();
    change(&mut wiring.settings);
    wiring
}

/// An operator that follows `web`, rolled on to these releases, each of them healthy.
pub async fn following_to(bed: &Bed, wiring: Wiring, tags: &[&str]) -> Result<Running> {
    let operator = bed.following(wiring).await?;
    for tag in tags {
        roll(bed, tag).await?;
    }
    Ok(operator)
}

/// Publishes a release of `web`, and waits until it is healthy.
pub async fn roll(bed: &Bed, tag: &str) -> Result<Release> {
    bed.release(tag).await?;
    bed.wait_for_image("web", &bed.image(&image_tag(tag))).await?;
    bed.wait_for_healthy("web", tag).await
}

/// The tag of the image that belongs to a release.
pub fn image_tag(tag: &str) -> String {
    tag.trim_start_matches('v').replace('+', "_")
}

/// A client of the operator that notes every call in `plan`.
pub fn traced(bed: &Bed, plan: &FaultPlan) -> Result<kube::Client> {
    let config = cluster::config(&bed.world.operator)?;
    Ok(fault::client(config, plan, false)?)
}

/// The writes of a trace but for the renewals of the operator's Lease.
pub fn writes(plan: &FaultPlan) -> Trace {
    let is_lease =
        |call: &fault::Call| call.id.resource().is_some_and(|it| it.resource == "leases");
    plan.trace().writes().filter(|call| !is_lease(call))
}

/// Waits until GitHub has been asked so many times more, whatever it answered.
pub async fn polls(bed: &Bed, count: usize) -> Result<()> {
    let mark = bed.github.mark();
    bed.wait(&format!("{count} more questions to GitHub"), || async {
        let asked = bed.github.log().since(mark).len();
        ensure!(asked >= count, "{asked}");
        Ok(())
    })
    .await
}

/// The Release of a tag.
pub async fn release(bed: &Bed, target: &str, tag: &str) -> Result<Release> {
    let all = bed.releases().list(&ListParams::default()).await?;
    let is_it = |release: &Release| {
        let config = release.config();
        config.target_name == target && config.revisions.iter().any(|one| one.id == tag)
    };
    all.items.into_iter().find(is_it).with_context(|| format!("{target} has no Release of {tag}"))
}

/// The name of the Release of a tag.
pub async fn release_name(bed: &Bed, target: &str, tag: &str) -> Result<String> {
    release(bed, target, tag).await?.metadata.name.context("a Release without a name")
}

/// Waits until a condition of a Release has this status and reason.
pub async fn wait_for_release(
    bed: &Bed,
    target: &str,
    tag: &str,
    (kind, status, reason): (&str, &str, &str),
) -> Result<Release> {
    bed.wait(&format!("{tag} of {target} to be {kind}={status}/{reason}"), || async {
        let release = release(bed, target, tag).await?;
        let conditions = release.status.clone().unwrap_or_default().conditions;
        let found = condition(&conditions, kind).context("no such condition")?;
        let is_right = found.status == status && found.reason == reason;
        ensure!(is_right, "{}/{}", found.status, found.reason);
        Ok(release)
    })
    .await
}

/// Waits until a Release is active for the how-manieth time, from 1.
pub async fn wait_for_activation(
    bed: &Bed,
    target: &str,
    tag: &str,
    ordinal: i64,
) -> Result<Activation> {
    bed.wait(&format!("{tag} of {target} to be active for time {ordinal}"), || async {
        let release = release(bed, target, tag).await?;
        let last = release.status.and_then(|status| status.activations.last().cloned());
        let last = last.context("it never was")?;
        let is_it = last.ordinal == ordinal && last.end_time.is_none();
        ensure!(is_it, "{last:?}");
        Ok(last)
    })
    .await
}

/// The status of a ReleaseTarget.
pub async fn target(bed: &Bed, name: &str) -> Result<TargetStatus> {
    Ok(bed.targets().get(name).await?.status.unwrap_or_default())
}

/// Waits until the status of a ReleaseTarget is as `look` wants it.
pub async fn wait_for_target<T>(
    bed: &Bed,
    name: &str,
    what: &str,
    look: impl Fn(&TargetStatus) -> Option<T>,
) -> Result<T> {
    bed.wait(&format!("{name}: {what}"), || async {
        let status = target(bed, name).await?;
        look(&status).with_context(|| format!("{status:?}"))
    })
    .await
}

/// Waits until a target is stalled for this reason; returns what it says.
pub async fn stalled(bed: &Bed, name: &str, reason: StalledReason) -> Result<String> {
    wait_for_target(bed, name, &format!("Stalled/{}", reason.as_str()), |status| {
        let stalled = find(&status.conditions, "Stalled")?;
        let is_it =
            stalled.reason == reason.as_str() && stalled.status == ConditionStatus::True.as_str();
        is_it.then(|| stalled.message.clone())
    })
    .await
}

/// Waits until nothing stalls a target.
pub async fn going_on(bed: &Bed, name: &str) -> Result<()> {
    wait_for_target(bed, name, "not stalled", |status| {
        find(&status.conditions, "Stalled").is_none().then_some(())
    })
    .await
}

/// Waits until a candidate is kept back by this gate, or by none.
pub async fn gated(
    bed: &Bed,
    name: &str,
    tag: &str,
    gate: impl Into<Option<Gate>>,
) -> Result<CandidateStatus> {
    let gate = gate.into();
    let what = gate.map_or("free", |gate| gate.as_str());
    wait_for_target(bed, name, &format!("the candidate {tag} is {what}"), |status| {
        let found = status.candidates.iter().find(|one| one.tag == tag)?;
        (found.gate.as_ref().and_then(belay_api::Open::known) == gate).then(|| found.clone())
    })
    .await
}

/// A Rollback of `web` that a person asks for; empty `to` for the latest that was healthy.
pub fn rollback(name: &str, to: &str) -> Rollback {
    let spec = RollbackSpec {
        to_release_ref: ToReleaseRef { target: "web".to_owned(), name: to.to_owned() },
        reason: "errors at checkout".to_owned(),
        initiated_by: Initiator { principal: "alice".to_owned(), type_: InitiatorType::User },
        driver: Driver::Native,
        deployment_options: std::collections::BTreeMap::new(),
        force: false,
        timeout: DEFAULT_TIMEOUT,
    };
    Rollback::new(name, spec)
}

/// Creates a Rollback, changed before.
pub async fn ask_for(
    bed: &Bed,
    mut rollback: Rollback,
    change: impl FnOnce(&mut RollbackSpec),
) -> Result<Rollback> {
    change(&mut rollback.spec);
    Ok(bed.rollbacks().create(&PostParams::default(), &rollback).await?)
}

/// Waits until the status of a Rollback is as `look` wants it.
pub async fn wait_for_rollback<T>(
    bed: &Bed,
    name: &str,
    what: &str,
    look: impl Fn(&RollbackStatus) -> Option<T>,
) -> Result<T> {
    bed.wait(&format!("the Rollback {name}: {what}"), || async {
        let status = bed.rollbacks().get(name).await?.status.unwrap_or_default();
        look(&status).with_context(|| format!("{status:?}"))
    })
    .await
}

/// Waits until a Rollback has ended for this reason.
pub async fn ended(bed: &Bed, name: &str, reason: &str) -> Result<RollbackStatus> {
    let end = wait_for_rollback(bed, name, "has ended", |status| {
        status.is_terminal().then(|| status.clone())
    })
    .await?;
    let succeeded = condition(&end.conditions, "Succeeded").map(|one| one.reason.as_str());
    ensure!(succeeded == Some(reason), "{name} ended as {succeeded:?}: {end:?}");
    Ok(end)
}

/// The events of this reason, each with its type before its text.
pub async fn events(bed: &Bed, reason: &str) -> Result<Vec<String>> {
    let api: Api<Event> = Api::namespaced(bed.client.clone(), &bed.namespace);
    let all = api.list(&ListParams::default()).await?.items.into_iter();
    let of_reason = all.filter(|event| event.reason.as_deref() == Some(reason));
    let line = |event: Event| {
        format!("{} {}", event.type_.unwrap_or_default(), event.note.unwrap_or_default())
    };
    Ok(of_reason.map(line).collect())
}

/// Waits for an event of this reason whose text holds all of these words.
pub async fn told(bed: &Bed, reason: &str, words: &[&str]) -> Result<String> {
    bed.wait(&format!("an event {reason} with {words:?}"), || async {
        let all = events(bed, reason).await?;
        let is_it = |text: &&String| words.iter().all(|word| text.contains(word));
        all.iter().find(is_it).cloned().with_context(|| format!("{all:?}"))
    })
    .await
}

/// Runs the real kubectl in the bed's namespace.
pub async fn kubectl(bed: &Bed, words: &[&str]) -> Result<String> {
    let tool = bed.world.cluster.tool(Binary::Kubectl)?;
    Ok(tool.args(words).args(["-n", &bed.namespace]).ok().await?)
}

/// The Deployment as JSON.
pub async fn live(bed: &Bed, name: &str) -> Result<serde_json::Value> {
    let deployment: Deployment = bed.deployments().get(name).await?;
    Ok(serde_json::to_value(deployment)?)
}

/// Sets the number of replicas, as an autoscaler does.
pub async fn scale(bed: &Bed, name: &str, replicas: u32) -> Result<()> {
    use kube::api::{Patch, PatchParams};
    let patch = serde_json::json!({ "spec": { "replicas": replicas } });
    bed.deployments().patch_scale(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Gives a tag to the image of another one.
pub async fn retag(bed: &Bed, from: &str, to: &str) -> Result<()> {
    let http = reqwest::Client::new();
    let host = bed.world.registry.host();
    let url = |tag: &str| format!("http://{host}/v2/{}/web/manifests/{tag}", bed.namespace);
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let got = http.get(url(from)).header("accept", kind).send().await?.error_for_status()?;
    let put = http.put(url(to)).header("content-type", kind).body(got.bytes().await?);
    put.send().await?.error_for_status()?;
    Ok(())
}
