//! What is shown, act by act.

use std::pin::Pin;

use anyhow::{Result, ensure};

use super::{
    stage::{SHOP, Stage},
    tell,
};
use crate::{
    helms::{Major, WEB},
    keda::{Change, Kind, Log, SCALE_IN},
};

type Played<'s> = Pin<Box<dyn Future<Output = Result<String>> + Send + 's>>;

/// One act: what it is about, and how it is played. It answers with its outcome in a few words.
pub(super) struct Act {
    pub(super) title: &'static str,
    pub(super) play: for<'s> fn(&'s mut Stage) -> Played<'s>,
}

/// All acts.
pub(super) const ACTS: [Act; 8] = [
    Act { title: "Helm installs a web service", play: |stage| Box::pin(install(stage)) },
    Act { title: "A release is published", play: |stage| Box::pin(roll(stage)) },
    Act { title: "Helm 3 without belay", play: |stage| Box::pin(three_alone(stage)) },
    Act { title: "Helm 3 with belay", play: |stage| Box::pin(kept(stage, Major::Three)) },
    Act { title: "Helm 4 without belay", play: |stage| Box::pin(four_alone(stage)) },
    Act { title: "Helm 4 with belay", play: |stage| Box::pin(kept(stage, Major::Four)) },
    Act { title: "A broken release", play: |stage| Box::pin(broken(stage)) },
    Act { title: "A person goes back", play: |stage| Box::pin(person(stage)) },
];

async fn install(stage: &Stage) -> Result<String> {
    stage.publish("1.0.0").await?;
    let _ = stage.helm(Major::Three, "install", "--set image.tag=1.0.0").await?.ok()?;
    tell::say(
        "The chart has a Deployment, annotated with the repository that it follows, and a \
         ScaledObject: KEDA owns the number of replicas.",
    );
    stage.healthy("1.0.0").await?;
    stage
        .wait("KEDA's 3 replicas", || async {
            let count = stage.pods().await?.len();
            ensure!(count == 3, "{count} pods");
            Ok(())
        })
        .await?;
    stage.says("Ready").await?;
    tell::fact("v1.0.0 runs on 3 pods; Belay has taken it for its baseline");
    let _ = stage.kubectl(&format!("release status {WEB}")).await?;
    Ok("v1.0.0 is the baseline".to_owned())
}

async fn roll(stage: &Stage) -> Result<String> {
    let log = Log::open(&stage.client, SHOP).await?;
    let since = stage.version().await?;
    stage.publish("1.1.0").await?;
    stage.healthy("1.1.0").await?;
    let wanted = stage.image("1.1.0");
    let image = "/spec/template/spec/containers/0/image";
    let is_moved = |one: &Change| one.object.pointer(image) == Some(&wanted.as_str().into());
    let moved = log.first(since, (Kind::Deployment, WEB), "the new image", is_moved).await?.version;
    let is_paused = |one: &Change| one.object["metadata"]["annotations"][SCALE_IN].is_string();
    let scaled = (Kind::ScaledObject, WEB);
    let paused = log.first(since, scaled, "a pause", is_paused).await?.version;
    let resumed = log.first(paused, scaled, "no pause", |one| !is_paused(one)).await?.version;
    ensure!(paused < moved && moved < resumed, "{paused}, {moved}, {resumed}");
    tell::fact("KEDA's scale-in was held before the image moved, and let go after the success");
    tell::fact("only the image moved, by server-side apply; v1.1.0 is healthy");
    let _ = stage.kubectl(&format!("release history {WEB}")).await?;
    Ok("paused, rolled, resumed".to_owned())
}

async fn three_alone(stage: &Stage) -> Result<String> {
    tell::say("The chart still says 1.0.0. Somebody changes a variable and upgrades with Helm 3.");
    let more = "--set image.tag=1.0.0 --set motd=three";
    let _ = stage.helm(Major::Three, "upgrade", more).await?.ok()?;
    let live = stage.live().await?;
    ensure!(live == stage.image("1.0.0"), "{live} is live");
    tell::fact("Helm 3 has put 1.0.0 back, and says nothing");
    stage.says("ImageReverted").await?;
    let _ = stage.kubectl(&format!("release why {WEB}")).await?;
    tell::say(
        "Belay says who did it, and applies 1.1.0 again after a minute: three times a day at most. (Within an hour \
         after a success it would take the return for somebody's rollback, and obey; in this demo that time is none.)",
    );
    stage.healthy("1.1.0").await?;
    tell::fact("v1.1.0 is back");
    Ok("silently reset; Belay repaired it after a minute".to_owned())
}

async fn kept(stage: &Stage, major: Major) -> Result<String> {
    let (motd, more) = match major {
        Major::Three => ("kept-by-three", ""),
        Major::Four => ("kept-by-four", " --server-side=true"),
    };
    tell::say("The same upgrade, with belay as post-renderer.");
    let more = format!("--set image.tag=1.0.0 --set motd={motd} --post-renderer belay{more}");
    let _ = stage.helm(major, "upgrade", &more).await?.ok()?;
    let (live, said) = (stage.live().await?, stage.motd().await?);
    ensure!(live == stage.image("1.1.0") && said == motd, "{live} is live, MOTD is {said}");
    tell::fact("1.1.0 still runs, and the rest of the chart was upgraded");
    stage.healthy("1.1.0").await?;
    Ok("image kept, the rest upgraded".to_owned())
}

async fn four_alone(stage: &Stage) -> Result<String> {
    tell::say("Helm 4 applies on the server's side, where the owner of a field counts.");
    let more = "--set image.tag=1.0.0 --set motd=four --server-side=true";
    let refused = stage.helm(Major::Four, "upgrade", more).await?;
    tell::output(&refused.stderr);
    ensure!(!refused.status.success(), "it was not refused");
    ensure!(refused.stderr.contains("belay-operator"), "it does not name the owner");
    let live = stage.live().await?;
    ensure!(live == stage.image("1.1.0"), "{live} is live");
    tell::fact("the upgrade failed with a conflict; 1.1.0 still runs");
    let _ = stage.kubectl(&format!("release owners deployment/{WEB}")).await?;
    let _ = stage.kubectl("release doctor").await?;
    Ok("conflict with belay-operator".to_owned())
}

async fn broken(stage: &Stage) -> Result<String> {
    tell::say("The image of the next release crashes when it starts.");
    stage.publish("1.2.0+crash-loop").await?;
    let bad = stage.image("1.2.0_crash-loop");
    stage
        .wait("the broken image to be tried", || async {
            let live = stage.live().await?;
            ensure!(live == bad, "{live} is live");
            Ok(())
        })
        .await?;
    tell::say("It is rolled out … and judged by its own pods.");
    stage.healthy("1.1.0").await?;
    let scaled = stage.objects("keda.sh", "v1alpha1", "ScaledObject");
    stage
        .wait("the pause to be dropped", || async {
            let object = scaled.get(WEB).await?;
            let annotations = object.metadata.annotations.unwrap_or_default();
            ensure!(!annotations.contains_key(SCALE_IN), "it is still there");
            Ok(())
        })
        .await?;
    stage.says("RolledBack").await?;
    tell::fact("Belay went back to v1.1.0 by itself; nothing is left paused");
    let _ = stage.kubectl(&format!("release why {WEB}")).await?;
    Ok("rolled back by itself, and remembered".to_owned())
}

async fn person(stage: &Stage) -> Result<String> {
    tell::say("The next release is sound, but somebody does not like it.");
    stage.publish("1.3.0").await?;
    stage.healthy("1.3.0").await?;
    let words = format!("release rollback {WEB} --yes --wait --reason too-green");
    let ran = stage.kubectl(&words).await?;
    ensure!(ran.status.success(), "kubectl release rollback ended with {}", ran.status);
    stage.healthy("1.1.0").await?;
    stage.says("RolledBack").await?;
    let _ = stage.kubectl(&format!("release status {WEB}")).await?;
    let status = stage.objects("belay.dev", "v1alpha1", "ReleaseTarget").get(WEB).await?;
    let blocked = status.data.pointer("/status/blocked/0/from").and_then(|it| it.as_str());
    ensure!(blocked == Some("v1.3.0"), "blocked is {blocked:?}");
    tell::fact("v1.3.0 is refused until somebody allows it, although GitHub still offers it");
    stage.publish("1.4.0").await?;
    stage.healthy("1.4.0").await?;
    tell::fact(&format!("a later release is free: v1.4.0 runs in {SHOP}"));
    let _ = stage.kubectl(&format!("release history {WEB}")).await?;
    Ok("stays back; the next release is free".to_owned())
}
