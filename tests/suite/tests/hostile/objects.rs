//! Releases, Rollbacks and ReleaseTargets that somebody else has made or written into.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use belay_api::{
    Duration, Release, Rollback, Signature, TargetName,
    gates::Gate,
    names::release_name,
    release::{ReleaseConfig, ReleaseFields, Revision},
    rollback::{
        DEFAULT_TIMEOUT, Driver, Initiator, InitiatorType, RollbackSpec, RollbackStatus,
        ToReleaseRef,
    },
};
use belay_operator::config::Allow;
use belay_suite::operator::{Bed, Running, Wiring, condition};
use jiff::Timestamp;
use kube::{
    Resource,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{neighbours::Neighbours, panics, targets::Targets, turn};

/// A Rollback that a person asks for; empty `to` for the latest that was healthy.
pub(crate) fn rollback(name: &str, target: &str, to: &str) -> Rollback {
    let spec = RollbackSpec {
        to_release_ref: ToReleaseRef { target: target.to_owned(), name: to.to_owned() },
        reason: "errors at checkout".to_owned(),
        initiated_by: Initiator { principal: "alice".to_owned(), type_: InitiatorType::User },
        driver: Driver::Native,
        deployment_options: BTreeMap::new(),
        force: false,
        timeout: DEFAULT_TIMEOUT,
    };
    Rollback::new(name, spec)
}

/// A Release as the operator would call it.
fn release(target: &str, id: &str, source: &str) -> Result<Release> {
    let name: TargetName = target.parse()?;
    let signature = Signature::of(target, [("application", id)]);
    let config = ReleaseConfig {
        target_name: target.to_owned(),
        revisions: vec![Revision {
            name: "application".to_owned(),
            id: id.to_owned(),
            source: Some(source.to_owned()),
            type_: Some("github".to_owned()),
            metadata: None,
        }],
        workload_ref: None,
    };
    Ok(Release {
        metadata: ObjectMeta {
            name: Some(release_name(&name, &signature)),
            ..ObjectMeta::default()
        },
        spec: ReleaseFields { config },
        status: None,
    })
}

/// Writes into a status as `kubectl edit --subresource=status` does.
async fn forge<K>(api: &kube::Api<K>, name: &str, status: Value) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(name, &PatchParams::default(), &patch)
        .await
        .with_context(|| format!("write into the status of {name}"))?;
    Ok(())
}

fn name_of(release: &Release) -> &str {
    release.metadata.name.as_deref().unwrap_or_default()
}

/// Targets of these names, each with a Deployment that runs v1.0.0.
async fn follow(bed: &Bed, targets: &Targets, names: &[&str]) -> Result<()> {
    for name in names {
        bed.create(&bed.workload(name, "1.0.0"), "helm").await?;
    }
    for name in names {
        targets.healthy(name, "1.0.0").await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_release_that_somebody_else_has_made_is_taken_for_what_it_is() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("made").await?;
    let targets = Targets::watch(&bed);
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    bed.release("v1.0.0").await?;
    let operator = bed.operator()?;
    follow(&bed, &targets, &["stolen", "blocked", "adopted", "crowded"]).await?;
    let api = bed.releases();
    let create = async |release: &Release| {
        let made = api.create(&PostParams::default(), release).await;
        made.with_context(|| format!("create {}", name_of(release)))
    };
    // Of another repository, under the name that ours would have.
    create(&release("stolen", "v1.1.0", "mallory/web")?).await?;
    let mut garbage = release("blocked", "v1.1.0", "acme/web")?;
    let block = "{\"from\":[\u{0}}".to_owned();
    garbage.metadata.annotations = Some(BTreeMap::from([("belay.dev/blocked".to_owned(), block)]));
    create(&garbage).await?;
    // Exactly what the operator would have made.
    create(&release("adopted", "v1.1.0", "acme/web")?).await?;
    let ids = [
        "é".repeat(1_024),
        "\u{0}\u{202e}".to_owned(),
        "v1.1.0 ".to_owned(),
        "../../v1.1.0".to_owned(),
        "{{ .Values.tag }}".to_owned(),
        "99999999999999999999.0.0".to_owned(),
    ];
    for (number, id) in ids.iter().enumerate() {
        let source = if number % 2 == 0 { "acme/web" } else { "\u{0}" };
        create(&release("crowded", id, source)?).await?;
    }
    bed.release("v1.1.0").await?;
    targets.healthy("adopted", "1.1.0").await?;
    targets.healthy("crowded", "1.1.0").await?;
    bed.wait_for_condition("stolen", "Stalled", "ReleaseNameTaken").await?;
    bed.wait("v1.1.0 of blocked to be refused", || async {
        let status = targets.of("blocked").unwrap_or_default().status;
        let candidate = status.candidates.iter().find(|one| one.tag == "v1.1.0");
        let gate = candidate.and_then(|one| one.gate.as_ref()?.known());
        ensure!(gate == Some(Gate::Blocked), "{status:?}");
        Ok(())
    })
    .await?;
    neighbours.roll(&bed, &targets).await?;
    for name in ["stolen", "blocked"] {
        ensure!(bed.live(name).await? == bed.image("1.0.0"), "{name} was moved");
    }
    operator.stop().await?;
    panics::none()
}

/// A condition that somebody has made up.
fn made_up(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "trust me",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// A Release of `target` that says that it was healthy with this image; returns its name.
async fn made_up_release(bed: &Bed, target: &str, image: &str) -> Result<String> {
    let made = release(target, "v0.9.0", "acme/web")?;
    let name = name_of(&made).to_owned();
    bed.releases().create(&PostParams::default(), &made).await?;
    let status = json!({
        "images": [{ "container": "app", "asked": image, "stored": image }],
        "activations": [{
            "ordinal": 1, "startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-02T00:00:00Z",
            "initiator": "mallory", "verdict": "Healthy",
        }],
    });
    forge(&bed.releases(), &name, status).await?;
    Ok(name)
}

/// Who may write into a status is believed in nothing that would move an image somewhere else.
#[tokio::test]
async fn a_status_that_somebody_else_has_written_moves_nothing() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("forged").await?;
    let targets = Targets::watch(&bed);
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    bed.release("v1.0.0").await?;
    let start = || {
        let rule = bed.world.registry.host().parse()?;
        let allow = Allow::new(false, Vec::new(), vec![rule]);
        Running::start(&bed, Wiring { allow, ..Wiring::default() })
    };
    let operator = start()?;
    let names = ["elsewhere", "mirror", "started", "active"];
    follow(&bed, &targets, &names).await?;
    operator.stop().await?;
    let evil = "evil.example/mallory/miner:0.9.0";
    // The same path on a host that nobody has permitted.
    let own = bed.image("0.9.0");
    let path = own.split_once('/').map(|(_, path)| path).unwrap_or_default();
    let mirror = format!("evil.example/{path}");
    let rollbacks = bed.rollbacks();
    for (target, image) in [("elsewhere", evil), ("mirror", &mirror), ("started", evil)] {
        let name = made_up_release(&bed, target, image).await?;
        let mut back = rollback(&format!("back-{target}"), target, &name);
        back.spec.force = true;
        rollbacks.create(&PostParams::default(), &back).await?;
        if target == "started" {
            // As if the operator had looked at it and found nothing wrong.
            let to = json!({ "target": target, "name": name });
            let now = Timestamp::now().to_string();
            let status = json!({ "startTime": now, "toReleaseRef": to, "attemptCount": 1 });
            forge(&rollbacks, "back-started", status).await?;
        }
    }
    // A Release that says that it is active, and a record that says anything.
    let made = release("active", "v9.9.9", "acme/web")?;
    bed.releases().create(&PostParams::default(), &made).await?;
    let status = json!({
        "images": [{ "container": "app", "asked": evil }],
        "activations": [
            { "ordinal": 1, "startTime": "2026-01-01T00:00:00Z", "initiator": "mallory" },
        ],
        "conditions": [made_up("Active", "True", "Live"), made_up("Ready", "Unknown", "Rolling")],
    });
    forge(&bed.releases(), name_of(&made), status).await?;
    let lies = json!({
        "instance": "mallory/operator", "active": name_of(&made), "current": { "tag": "9.9.9" },
        "conditions": [made_up("Stalled", "True", "Broken")],
    });
    forge(&bed.targets(), "active", lies).await?;
    let operator = start()?;
    let ends = [
        ("elsewhere", "another repository"),
        ("mirror", "configuration does not permit it"),
        ("started", "is not of the target's repository"),
    ];
    for (target, words) in ends {
        let end = ended(&bed, &format!("back-{target}")).await?;
        let message = end.message.as_deref().unwrap_or_default();
        ensure!(message.contains(words), "{target}: {end:?}");
    }
    bed.wait("the lies to be gone", || async {
        let status = bed.targets().get("active").await?.status.unwrap_or_default();
        let current = status.current.as_ref().and_then(|current| current.tag.as_deref());
        let is_right = status.instance.as_deref() != Some("mallory/operator")
            && status.active.as_deref() != Some(name_of(&made))
            && current == Some("1.0.0")
            && condition(&status.conditions, "Stalled").is_none();
        ensure!(is_right, "{status:?}");
        let release = bed.releases().get(name_of(&made)).await?.status.unwrap_or_default();
        let active = condition(&release.conditions, "Active").map(|one| one.status.clone());
        ensure!(active.as_deref() != Some("True"), "{release:?}");
        Ok(())
    })
    .await?;
    // A record that somebody takes away is made again.
    bed.targets().delete("elsewhere", &DeleteParams::default()).await?;
    targets.healthy("elsewhere", "1.0.0").await?;
    bed.release("v1.1.0").await?;
    neighbours.roll(&bed, &targets).await?;
    for name in ["active", "elsewhere"] {
        targets.healthy(name, "1.1.0").await?;
    }
    for name in names {
        let live = bed.live(name).await?;
        ensure!(live.starts_with(bed.world.registry.host()), "{name} runs {live}");
    }
    operator.stop().await?;
    panics::none()
}

/// Waits until a Rollback has ended.
async fn ended(bed: &Bed, name: &str) -> Result<RollbackStatus> {
    bed.wait(&format!("the Rollback {name} to end"), || async {
        let status = bed.rollbacks().get(name).await?.status.unwrap_or_default();
        ensure!(status.is_terminal(), "{status:?}");
        Ok(status)
    })
    .await
}

/// Changes a Rollback before it is made.
type Change = fn(&mut RollbackSpec);

#[tokio::test]
async fn rollbacks_with_odd_content_end_and_say_why() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("odd").await?;
    let targets = Targets::watch(&bed);
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    bed.release("v1.0.0").await?;
    let operator = bed.operator()?;
    follow(&bed, &targets, &["web", "other"]).await?;
    let of_web = release("web", "v1.0.0", "acme/web")?;
    let of_other = release("other", "v1.0.0", "acme/web")?;
    let long = "r".repeat(253);
    let huge: Change = |spec| {
        let text = Value::String("é".repeat(50_000));
        let deep = (0..20).fold(json!(1), |inner, _| json!([inner]));
        spec.deployment_options =
            BTreeMap::from([("text".to_owned(), text), ("deep".to_owned(), deep)]);
        spec.reason = "\u{202e}".repeat(512);
        spec.initiated_by.principal = "p".repeat(512);
    };
    let driver: Change = |spec| spec.driver = Driver::Argocd;
    let github: Change = |spec| spec.driver = Driver::Github;
    let recorded: Change = |spec| spec.driver = Driver::Noop;
    let by_system: Change = |spec| spec.initiated_by.type_ = InitiatorType::System;
    let short: Change = |spec| spec.timeout = Duration::from_secs(1);
    let cases: [(&str, &str, Change, &str); 10] = [
        (&long, "no-such-release", huge, "ReleaseNotFound"),
        ("nothing-to-go-to", "", |_| {}, "NoReleaseToGoTo"),
        ("not-found", "web-0000000", |_| {}, "ReleaseNotFound"),
        ("of-another", name_of(&of_other), |_| {}, "OtherTarget"),
        ("already-there", name_of(&of_web), |spec| spec.force = true, "AlreadyActive"),
        ("argo", name_of(&of_web), driver, "Followed"),
        ("github", name_of(&of_web), github, "Followed"),
        ("recorded", name_of(&of_web), recorded, ""),
        ("by-system", "", by_system, "NoReleaseToGoTo"),
        ("no-time", "web-0000000", short, "ReleaseNotFound"),
    ];
    for (name, to, change, expected) in cases {
        let mut asked = rollback(name, "web", to);
        change(&mut asked.spec);
        bed.rollbacks().create(&PostParams::default(), &asked).await?;
        let end = ended(&bed, name).await?;
        let rejection = end.rejection.as_ref().map(serde_json::to_value).transpose()?;
        let rejection = rejection.as_ref().and_then(Value::as_str).unwrap_or_default();
        ensure!(rejection == expected, "{name}: {end:?}");
    }
    // A crowd: all of them end, and no more are kept than are worth looking at.
    for number in 0..40 {
        let asked = rollback(&format!("crowd-{number}"), "web", "web-0000000");
        bed.rollbacks().create(&PostParams::default(), &asked).await?;
    }
    bed.wait("the crowd to be gone but for ten", || async {
        let left = bed.rollbacks().list(&ListParams::default()).await?.items;
        let open =
            left.iter().filter(|one| !one.status.as_ref().is_some_and(RollbackStatus::is_terminal));
        let (open, left) = (open.count(), left.len());
        ensure!(open == 0 && left <= 10, "{left}, {open} of them have not ended");
        Ok(())
    })
    .await?;
    bed.release("v1.1.0").await?;
    targets.healthy("web", "1.1.0").await?;
    neighbours.roll(&bed, &targets).await?;
    operator.stop().await?;
    panics::none()
}
