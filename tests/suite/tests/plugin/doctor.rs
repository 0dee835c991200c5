//! `doctor` says beforehand what the next `helm upgrade` does: it is asked, then the real Helm runs.

use anyhow::{Result, ensure};
use belay_suite::helms::Major;
use belay_testkit::tool::Finished;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    helms::{IMAGE, Scene},
    run::Cli,
    shown::has,
};

/// What a release has gone through, and the values of its last upgrade.
#[derive(Debug, Clone, Copy)]
enum State {
    /// Born in Helm 3; the operator has moved the image.
    ThreeRolled,
    /// Born in Helm 4 (server-side); the operator has moved the image.
    FourRolled,
    /// Born in Helm 4 with `--server-side=false`; the operator has moved the image.
    FourClientRolled,
    /// Born in Helm 4, upgraded with the post-renderer (stripped), moved again.
    FourStripped,
    /// Born in Helm 3, upgraded with the post-renderer (preserved), moved again.
    ThreePreserved,
    /// Born in Helm 4; the chart was set to what the operator had moved to.
    FourSame,
    /// Born in Helm 3, moved, and reset by a Helm 3 without the post-renderer.
    ThreeReset,
    /// Born in Helm 4, not followed; a person has changed the image.
    FourEdited,
    /// Born in Helm 4; the operator has moved the image, and Belay has left.
    FourLeft,
    /// Born in Helm 4, moved, then upgraded by a Helm 3 with the post-renderer.
    FourThenThree,
    /// Born in Helm 4, moved, and moved back to what the chart says.
    FourBack,
    /// Born in Helm 4 with the image of another repository; the operator has moved it to its own.
    FourOtherRepository,
}

impl State {
    async fn reach(self, scene: &Scene) -> Result<&'static str> {
        const BORN: &str = "--set image.tag=1.0.0";
        const SAME: &str = "--set image.tag=1.1.0";
        const BELAY: &str = "--set image.tag=1.0.0 --post-renderer belay";
        const ALONE: &str = "--set image.tag=1.0.0,follow=false";
        const CLIENT: &str = "--set image.tag=1.0.0 --server-side=false";
        const OTHER: &str = "--set image.tag=1.0.0,image.repository=registry.example/other";
        let born = match self {
            Self::ThreeRolled | Self::ThreePreserved | Self::ThreeReset => Major::Three,
            _ => Major::Four,
        };
        let install = match self {
            Self::FourEdited => ALONE,
            Self::FourClientRolled => CLIENT,
            Self::FourOtherRepository => OTHER,
            _ => BORN,
        };
        let _ = scene.helm(born, "install", install).await?.ok()?;
        if matches!(self, Self::FourEdited) {
            scene.edit("1.1.0").await?;
            scene.target().await?;
            return Ok(ALONE);
        }
        scene.roll("1.1.0").await?;
        scene.target().await?;
        match self {
            Self::FourStripped | Self::ThreePreserved => {
                let _ = scene.helm(born, "upgrade", BELAY).await?.ok()?;
                scene.roll("1.2.0").await?;
            }
            Self::FourSame => {
                let _ = scene.helm(born, "upgrade", SAME).await?.ok()?;
                return Ok(SAME);
            }
            Self::ThreeReset => {
                let _ = scene.helm(born, "upgrade", BORN).await?.ok()?;
            }
            Self::FourThenThree => {
                let _ = scene.helm(Major::Three, "upgrade", BELAY).await?.ok()?;
            }
            Self::FourLeft => {
                let words = ["leave", "web", "--yes"];
                Cli::new(scene.cluster, &scene.namespace, &words).run().await.ok()?;
            }
            Self::FourBack => scene.roll("1.0.0").await?,
            Self::FourOtherRepository => return Ok(OTHER),
            Self::ThreeRolled | Self::FourRolled | Self::FourClientRolled | Self::FourEdited => {}
        }
        Ok(BORN)
    }

    /// What comes of it: by Helm 3, Helm 4, and both with the post-renderer.
    fn expected(self) -> [&'static str; 4] {
        match self {
            Self::ThreeRolled
            | Self::FourClientRolled
            | Self::ThreePreserved
            | Self::FourThenThree => ["Resets", "Resets", "Keeps", "Keeps"],
            Self::FourRolled | Self::FourStripped => ["Resets", "Conflicts", "Keeps", "Keeps"],
            Self::FourSame | Self::ThreeReset => ["Keeps"; 4],
            Self::FourEdited => ["Resets", "Conflicts", "Resets", "Conflicts"],
            Self::FourLeft => ["Resets"; 4],
            Self::FourBack => ["Keeps", "Shares", "Keeps", "Keeps"],
            Self::FourOtherRepository => ["Resets", "Conflicts", "Refuses", "Refuses"],
        }
    }
}

/// What really happened, in the doctor's words.
async fn outcome(
    scene: &Scene,
    before: &(String, Vec<String>),
    ran: &Finished,
) -> Result<(&'static str, String)> {
    let after = scene.live().await?;
    if !ran.status.success() {
        let word = if ran.stderr.contains("conflict with") { "Conflicts" } else { "Refuses" };
        return Ok((word, ran.stderr.clone()));
    }
    if after.0 != before.0 {
        return Ok(("Resets", after.0));
    }
    let joined = |owners: &[String]| owners.iter().any(|one| one == "helm/A");
    let is_shared = joined(&after.1) && !joined(&before.1) && after.1.len() > 1;
    Ok((if is_shared { "Shares" } else { "Keeps" }, after.0))
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_knows_what_helm_will_do(
    #[values(
        State::ThreeRolled,
        State::FourRolled,
        State::FourClientRolled,
        State::FourStripped,
        State::ThreePreserved,
        State::FourSame,
        State::ThreeReset,
        State::FourEdited,
        State::FourLeft,
        State::FourThenThree,
        State::FourBack,
        State::FourOtherRepository
    )]
    state: State,
    #[values(
        (0, "helm3", Major::Three, ""),
        (1, "helm4", Major::Four, ""),
        (2, "helm3PostRenderer", Major::Three, "--post-renderer belay"),
        (3, "helm4PostRenderer", Major::Four, "--post-renderer belay")
    )]
    next: (usize, &str, Major, &str),
) -> Result<()> {
    let (index, column, major, flags) = next;
    let scene = Scene::new().await?;
    let values = state.reach(&scene).await?;
    let ran = Cli::new(scene.cluster, &scene.namespace, &["doctor", "web", "-o", "json"]).run();
    let report = ran.await.json()?;
    let findings = report.as_array().map(Vec::as_slice).unwrap_or_default();
    let told = findings.iter().find(|one| one["id"] == "RL110");
    let told = told.and_then(|one| one.get("forecast")?.get(column));
    let Some(told) = told else { anyhow::bail!("no forecast {column} in {report:#}") };
    let before = scene.live().await?;
    let run = scene.helm(major, "upgrade", &format!("{values} {flags}")).await?;
    let (happened, words) = outcome(&scene, &before, &run).await?;
    ensure!(told["outcome"] == happened, "told {told}, and it {happened}: {words}");
    let expected = state.expected()[index];
    ensure!(happened == expected, "expected {expected}, and it {happened}: {words}");
    let message = told["message"].as_str().unwrap_or_default();
    if happened == "Resets" && message.contains(IMAGE) {
        has(message, &[&words])?;
    }
    if happened == "Conflicts" {
        let with = message.trim_start_matches("fails: conflict with ");
        has(&words, &[&format!("conflict with \"{with}\"")])?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_somebody_ends_with_3() -> Result<()> {
    let scene = Scene::new().await?;
    let _ = scene.helm(Major::Four, "install", "--set image.tag=1.0.0").await?.ok()?;
    scene.target().await?;
    let doctor = || Cli::new(scene.cluster, &scene.namespace, &["doctor"]);
    let well = doctor().run().await.ok()?;
    has(
        &well,
        &["CRDs installed, served v1alpha1", "you may do what every verb does", "0 errors"],
    )?;
    scene.roll("1.1.0").await?;
    scene.edit("1.2.0").await?;
    let bad = doctor().run().await.ended(kubectl_release::Exit::Bad)?;
    has(&bad, &["RL105", "kubectl-edit (Update) owns app.image", "RL106", "1 error"])?;
    let report = Cli::new(scene.cluster, &scene.namespace, &["doctor", "-o", "json"]).run().await;
    let report = report.json()?;
    let is_complete = |one: &Value| {
        ["id", "level", "object", "message", "fix"].iter().all(|key| one.get(key).is_some())
    };
    ensure!(report.as_array().is_some_and(|all| all.iter().all(is_complete)), "{report:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_a_warning_and_nothing_is_guessed() -> Result<()> {
    let scene = Scene::new().await?;
    let _ = scene.helm(Major::Four, "install", "--set image.tag=1.0.0").await?.ok()?;
    scene.roll("1.1.0").await?;
    scene.target().await?;
    let rules = json!([
        { "apiGroups": ["belay.dev"], "resources": ["*"], "verbs": ["get", "list"] },
        { "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"] },
    ]);
    let kubeconfig = scene.reader(&rules).await?;
    let cli = |words: &[&str]| {
        Cli::new(scene.cluster, &scene.namespace, words).kubeconfig(&kubeconfig).run()
    };
    let doctor = cli(&["doctor"]).await.ok()?;
    has(
        &doctor,
        &[
            "you may not: create rollbacks, patch deployments",
            "operator: unknown",
            "Deployments without a ReleaseTarget: unknown",
            "next `helm upgrade` unknown: secrets is forbidden",
            "next `helm upgrade --post-renderer belay` keeps 1.1.0",
            "0 errors",
        ],
    )?;
    let hold = cli(&["hold", "web"]).await;
    ensure!(hold.exit == kubectl_release::Exit::Error, "{hold:?}");
    has(&hold.stderr, &["Error from server (Forbidden)", "cannot patch resource"])?;
    let why = cli(&["why", "web"]).await;
    ensure!(why.exit == kubectl_release::Exit::Done, "{why:?}");
    has(&why.stderr, &["note: its pods could not be read"])
}
