//! Claims of pauses on KEDA's own kind: shared with people, and only on the object that was seen.

use anyhow::{Context as _, Result, ensure};
use belay_adapters::{
    Clock,
    cluster::{Class, Done, PauseKeys, Place, ScaledObject, Scalers, WriterSettings},
};
use belay_api::annotations::PauseMode;
use belay_engine::{
    observed::{ClaimFacts, PauseKey, PauseKind, Refusal, Scaler, ScalerFacts},
    pause::Claim,
    plan::{PauseIntent, Precondition, Step},
    settings::Settings,
};
use belay_testkit::keda::Keda;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::bed::{Bed, client, gone, precondition, refused};

const NAME: &str = "web-scaler";
const SCALE_IN: &str = "autoscaling.keda.sh/paused-scale-in";
const PAUSED: &str = "autoscaling.keda.sh/paused";
const OWNER: &str = "belay.dev/pause-owner";
const EXPIRES: &str = "belay.dev/pause-expires";
const MARK: &str = "old.example/paused-by";

/// A namespace with a ScaledObject, on which no KEDA works.
struct Paused {
    bed: Bed,
    scalers: Scalers,
    keys: PauseKeys,
}

fn scaled_object() -> Value {
    json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": { "name": NAME, "annotations": { "team": "shop" } },
        "spec": {
            "scaleTargetRef": { "name": "web" },
            "triggers": [{ "type": "cron", "metadata": {
                "timezone": "UTC", "start": "0 1 * * *", "end": "0 2 * * *", "desiredReplicas": "3",
            } }],
        },
    })
}

impl Paused {
    async fn new() -> Result<Self> {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let bed = Bed::new().await?;
        CRDS.get_or_try_init(|| Keda::apply_crds(bed.cluster)).await?;
        let keys =
            PauseKeys::of(&Settings { pause_marks: vec![MARK.to_owned()], ..Settings::default() });
        let scalers = Scalers::new(bed.client.clone(), Clock::machine(), keys.clone());
        let paused = Self { bed, scalers, keys };
        paused.apply("helm", &scaled_object()).await?;
        Ok(paused)
    }

    /// Applies as a manager, all that it owns and no more. Nothing beside metadata comes back.
    async fn apply(&self, manager: &str, body: &Value) -> Result<ScaledObject> {
        let api = self.bed.api::<ScaledObject>();
        Ok(api.patch(NAME, &PatchParams::apply(manager), &Patch::Apply(body)).await?)
    }

    /// Annotates as `kubectl annotate` does.
    async fn annotate(&self, key: &str, value: Option<&str>) -> Result<ScaledObject> {
        let patch = json!({ "metadata": { "annotations": { key: value } } });
        self.bed.merge("kubectl-annotate", NAME, &patch).await
    }

    async fn object(&self) -> Result<ScaledObject> {
        Ok(self.bed.api::<ScaledObject>().get(NAME).await?)
    }

    async fn facts(&self) -> Result<ScalerFacts> {
        match self.scalers.read(&self.bed.namespace, NAME).await? {
            Scaler::Found(facts) => Ok(*facts),
            other => anyhow::bail!("{other:?}"),
        }
    }

    async fn act(&self, step: &Step) -> Result<Done, belay_adapters::cluster::WriteError> {
        self.bed.writer.act(self.place(), step).await
    }

    fn place(&self) -> Place<'_> {
        Place { namespace: &self.bed.namespace, target: "web", workload: None }
    }

    async fn claim(&self, mode: PauseMode) -> Result<ClaimFacts> {
        let done = self.act(&claim(mode, from(&self.object().await?))).await?;
        let Done::Paused(object) = done else { anyhow::bail!("{done:?}") };
        self.keys.claim(&object.metadata).context("no claim in the answer")
    }

    async fn drop_pause(&self) -> Result<ScaledObject> {
        let from = from(&self.object().await?);
        match self.act(&Step::DropPause { scaled_object: NAME.to_owned(), from }).await? {
            Done::Paused(object) => Ok(*object),
            other => anyhow::bail!("{other:?}"),
        }
    }
}

fn from(object: &ScaledObject) -> Precondition {
    precondition(&object.metadata)
}

fn claim(mode: PauseMode, from: Precondition) -> Step {
    let time = |text: &str| text.parse().unwrap_or_default();
    Step::ClaimPause(PauseIntent {
        scaled_object: NAME.to_owned(),
        from,
        mode,
        claim: Claim {
            instance: "belay/op".to_owned(),
            target: "web".to_owned(),
            release: "web-1234567".to_owned(),
            since: time("2026-01-01T00:00:00Z"),
        },
        expires: time("2026-01-01T00:25:00Z"),
    })
}

fn keys(object: &ScaledObject) -> Vec<&str> {
    object.annotations().keys().map(String::as_str).collect()
}

fn pause(kind: PauseKind, is_ours: bool, is_others: bool) -> PauseKey {
    PauseKey { kind, value: "true".to_owned(), is_ours, is_others }
}

#[tokio::test]
async fn a_claim_is_read_as_it_was_written_and_dropped_without_a_trace() -> Result<()> {
    let paused = Paused::new().await?;
    let before = paused.object().await?;
    let found = paused.claim(PauseMode::ScaleIn).await?;
    ensure!(found.claim.as_ref().is_some_and(|claim| claim.release == "web-1234567"), "{found:?}");
    assert_eq!(found.mode, Some(PauseMode::ScaleIn));
    assert_eq!(found.expires.map(|it| it.to_string()).as_deref(), Some("2026-01-01T00:25:00Z"));
    let facts = paused.facts().await?;
    assert_eq!(facts.claim.as_ref(), Some(&found));
    assert_eq!(facts.pauses, [pause(PauseKind::ScaleIn, true, false)]);
    assert_eq!((facts.scales_kind.as_str(), facts.scales_name.as_str()), ("Deployment", "web"));
    // The watch sees no more than the metadata, and that is the same.
    assert_eq!(paused.keys.claim(&paused.object().await?.metadata), Some(found));

    // The other mode takes the place of the first.
    let full = paused.claim(PauseMode::Full).await?;
    assert_eq!(full.mode, Some(PauseMode::Full));
    assert_eq!(keys(&paused.object().await?), [PAUSED, EXPIRES, OWNER, "team"]);

    let after = paused.drop_pause().await?;
    assert_eq!(after.annotations(), before.annotations());
    assert_eq!(after.metadata.generation, before.metadata.generation);
    let managers = |object: &ScaledObject| -> Vec<_> {
        let entries = object.metadata.managed_fields.iter().flatten();
        entries.filter_map(|entry| entry.manager.clone()).collect()
    };
    assert_eq!(managers(&after), managers(&before));
    assert_eq!(paused.facts().await?.claim, None);
    Ok(())
}

#[tokio::test]
async fn a_pause_that_a_person_applied_first_stays_when_ours_is_dropped() -> Result<()> {
    let paused = Paused::new().await?;
    let mut theirs = scaled_object();
    theirs["metadata"]["annotations"][SCALE_IN] = json!("true");
    paused.apply("helm", &theirs).await?;
    assert_eq!(paused.facts().await?.pauses, [pause(PauseKind::ScaleIn, false, true)]);
    paused.claim(PauseMode::ScaleIn).await?;
    assert_eq!(paused.facts().await?.pauses, [pause(PauseKind::ScaleIn, true, true)]);
    let after = paused.drop_pause().await?;
    assert_eq!(keys(&after), [SCALE_IN, "team"]);
    assert_eq!(paused.facts().await?.pauses, [pause(PauseKind::ScaleIn, false, true)]);
    Ok(())
}

#[tokio::test]
async fn what_a_person_patches_after_us_is_theirs_once_it_differs() -> Result<()> {
    let paused = Paused::new().await?;
    paused.claim(PauseMode::ScaleIn).await?;
    // The same value by a plain patch changes nothing, and so does not make it theirs.
    paused.annotate(SCALE_IN, Some("true")).await?;
    assert_eq!(paused.facts().await?.pauses, [pause(PauseKind::ScaleIn, true, false)]);
    // Another value does, and a claim is then refused, naming them.
    paused.annotate(SCALE_IN, Some("false")).await?;
    let facts = paused.facts().await?;
    ensure!(facts.pauses.iter().all(|one| !one.is_ours && one.is_others), "{facts:?}");
    ensure!(
        facts.claim.is_some_and(|claim| claim.mode.is_none()),
        "still our claim, without a pause"
    );
    let step = claim(PauseMode::ScaleIn, from(&paused.object().await?));
    let Done::Refused(Refusal::Conflict { managers }) = paused.act(&step).await? else {
        anyhow::bail!("not refused");
    };
    assert_eq!(managers, ["kubectl-annotate"]);
    let after = paused.drop_pause().await?;
    assert_eq!(keys(&after), [SCALE_IN, "team"]);
    Ok(())
}

#[tokio::test]
async fn a_pause_that_was_taken_away_can_be_claimed_again() -> Result<()> {
    let paused = Paused::new().await?;
    paused.claim(PauseMode::ScaleIn).await?;
    paused.annotate(SCALE_IN, None).await?;
    let facts = paused.facts().await?;
    assert_eq!((facts.pauses.len(), facts.claim.and_then(|claim| claim.mode)), (0, None));
    assert_eq!(paused.claim(PauseMode::ScaleIn).await?.mode, Some(PauseMode::ScaleIn));
    Ok(())
}

#[tokio::test]
async fn only_the_object_that_was_seen_is_written() -> Result<()> {
    let paused = Paused::new().await?;
    let old = from(&paused.object().await?);
    paused.annotate("team", Some("billing")).await?;
    refused(paused.act(&claim(PauseMode::ScaleIn, old.clone())).await, Class::Conflict)?;

    let api = paused.bed.api::<ScaledObject>();
    api.delete(NAME, &DeleteParams::default()).await?;
    gone(&api, NAME).await?;
    refused(paused.act(&claim(PauseMode::ScaleIn, old.clone())).await, Class::Conflict)?;
    assert_eq!(paused.scalers.read(&paused.bed.namespace, NAME).await?, Scaler::Missing);
    // One of the same name is another, whatever the version says.
    let new = paused.apply("helm", &scaled_object()).await?;
    let uid_of_old = Precondition { uid: old.uid, ..from(&new) };
    refused(paused.act(&claim(PauseMode::ScaleIn, uid_of_old.clone())).await, Class::Conflict)?;
    let drop = Step::DropPause { scaled_object: NAME.to_owned(), from: uid_of_old.clone() };
    refused(paused.act(&drop).await, Class::Conflict)?;
    let marks = vec![MARK.to_owned()];
    let remove = Step::RemovePause { scaled_object: NAME.to_owned(), from: uid_of_old, marks };
    refused(paused.act(&remove).await, Class::Conflict)?;
    assert_eq!(keys(&paused.object().await?), ["team"]);
    Ok(())
}

#[tokio::test]
async fn the_pause_of_an_earlier_operator_goes_with_its_marks() -> Result<()> {
    let paused = Paused::new().await?;
    for key in [PAUSED, MARK, "autoscaling.keda.sh/paused-scale-out"] {
        paused.annotate(key, Some("true")).await?;
    }
    let object = paused.object().await?;
    let claim = paused.keys.claim(&object.metadata).context("the marks are not seen")?;
    assert_eq!((claim.marks.as_slice(), claim.mode), (&[MARK.to_owned()][..], None));
    let scaled_object = NAME.to_owned();
    let step = Step::RemovePause { scaled_object, from: from(&object), marks: claim.marks };
    paused.act(&step).await?;
    let left = paused.object().await?;
    assert_eq!(keys(&left), ["autoscaling.keda.sh/paused-scale-out", "team"]);
    assert_eq!(paused.keys.claim(&left.metadata), None);
    Ok(())
}

#[tokio::test]
async fn the_hpa_that_the_status_names_is_read_with_it() -> Result<()> {
    let paused = Paused::new().await?;
    assert_eq!(paused.facts().await?.hpa, None, "it names none");
    let status = json!({ "status": {
        "hpaName": "keda-hpa-web-scaler",
        "conditions": [{ "type": "Paused", "status": "True", "reason": "a", "message": "b" }],
    } });
    let api = paused.bed.api::<ScaledObject>();
    api.patch_status(NAME, &PatchParams::default(), &Patch::Merge(&status)).await?;
    let facts = paused.facts().await?;
    ensure!(facts.is_paused && facts.hpa.is_none(), "there is none of that name: {facts:?}");
    let hpa = json!({
        "metadata": { "name": "keda-hpa-web-scaler" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "maxReplicas": 5,
            "behavior": { "scaleDown": { "selectPolicy": "Disabled" } },
        },
    });
    paused.bed.create::<HorizontalPodAutoscaler>("keda-operator", &hpa).await?;
    let hpa = paused.facts().await?.hpa.context("it is not read")?;
    assert_eq!(hpa.scale_down.as_deref(), Some("Disabled"));
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_read_or_written_is_not_absent() -> Result<()> {
    let paused = Paused::new().await?;
    let access = paused.bed.with_rights(&[("get", "keda.sh/scaledobjects")]).await?;
    let client = client(&access)?;
    let status = json!({ "status": { "hpaName": "keda-hpa-web-scaler" } });
    let api = paused.bed.api::<ScaledObject>();
    api.patch_status(NAME, &PatchParams::default(), &Patch::Merge(&status)).await?;
    let scalers = Scalers::new(client.clone(), Clock::machine(), paused.keys.clone());
    let error = refused(scalers.read(&paused.bed.namespace, NAME).await, Class::Denied)?;
    ensure!(error.to_string().starts_with("read HorizontalPodAutoscaler"), "{error}");
    let writer =
        belay_adapters::cluster::Writer::new(client, Clock::machine(), WriterSettings::default());
    let step = claim(PauseMode::ScaleIn, from(&paused.object().await?));
    let Done::Refused(Refusal::Denied { message }) = writer.act(paused.place(), &step).await?
    else {
        anyhow::bail!("not refused");
    };
    ensure!(message.contains("cannot patch resource"), "{message}");
    Ok(())
}

#[tokio::test]
async fn all_claims_of_a_namespace_are_found_at_once() -> Result<()> {
    let paused = Paused::new().await?;
    let of = || paused.scalers.claimed(Some(&paused.bed.namespace));
    assert_eq!(of().await?, []);
    paused.claim(PauseMode::ScaleIn).await?;
    let found = of().await?;
    let [one] = found.as_slice() else { anyhow::bail!("{found:?}") };
    ensure!(one.is_owned && one.left_over.is_empty() && one.namespace == paused.bed.namespace);
    // Somebody has applied what he had read: it is theirs now, too.
    let mut theirs = scaled_object();
    theirs["metadata"]["annotations"][OWNER] =
        json!(paused.object().await?.annotations().get(OWNER));
    paused.apply("helm", &theirs).await?;
    paused.drop_pause().await?;
    let found = of().await?;
    let [one] = found.as_slice() else { anyhow::bail!("{found:?}") };
    assert_eq!((one.is_owned, one.left_over.as_slice()), (false, &[OWNER.to_owned()][..]));
    let from = from(&paused.object().await?);
    paused.bed.writer.remove_annotations(paused.place(), NAME, &from, &one.left_over).await?;
    assert_eq!(of().await?, []);
    Ok(())
}
