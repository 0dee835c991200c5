//! `status -w` in a terminal, in a log and for programs (mock-up B.5). The terminal is a real
//! pseudo-terminal, and what it shows is what a terminal emulator makes of every byte.

use std::{
    io::Read as _,
    num::NonZeroU16,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result, ensure};
use belay_api::ReleaseTarget;
use belay_suite::{
    operator::{Bed, Wiring},
    terminal::Pair,
};
use belay_testkit::wait;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kubectl_release::Exit;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    run::{Shell, program},
    scene::{Scene, condition},
    shown::masked,
    status::{healthy, moving},
};

fn size_of(count: u16) -> Result<NonZeroU16> {
    NonZeroU16::new(count).context("a terminal without a cell")
}

/// The program in a terminal of a size.
pub(crate) struct Terminal {
    child: std::process::Child,
    screen: Arc<Mutex<vt100::Parser>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Terminal {
    pub(crate) fn run(
        kubeconfig: &std::path::Path,
        words: &[&str],
        rows: u16,
        columns: u16,
    ) -> Result<Self> {
        let pair = Pair::open(rows, columns)?;
        let child = Command::new(program()?)
            .args(words)
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm")
            .stdin(pair.stream()?)
            .stdout(pair.stream()?)
            .stderr(pair.stream()?)
            .spawn()?;
        let screen =
            Arc::new(Mutex::new(vt100::Parser::new(size_of(rows)?, size_of(columns)?, 1000)));
        let shared = Arc::clone(&screen);
        let mut person = pair.person;
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the program is an error of reading.
            while let Ok(count @ 1..) = person.read(&mut bytes) {
                let mut screen = shared.lock().unwrap_or_else(PoisonError::into_inner);
                screen.process(bytes.get(..count).unwrap_or_default());
            }
        });
        Ok(Self { child, screen, reader: Some(reader) })
    }

    pub(crate) fn text(&self) -> String {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        screen.screen().contents()
    }

    pub(crate) async fn shows(&self, words: &str) -> Result<()> {
        wait::until(&format!("the terminal to show {words:?}"), wait::SOON, || async {
            let text = self.text();
            if text.contains(words) { Ok(()) } else { Err(text) }
        })
        .await?;
        Ok(())
    }

    pub(crate) async fn ends(&mut self) -> Result<Option<i32>> {
        let child = Mutex::new(&mut self.child);
        let status = wait::until("the program to end", wait::SOON, || async {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            let status = child.try_wait().map_err(|error| error.to_string())?;
            status.ok_or_else(|| "it runs".to_owned())
        })
        .await?;
        if let Some(reader) = self.reader.take() {
            reader.join().ok();
        }
        Ok(status.code())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn becomes(scene: &Scene, conditions: Value) -> Result<()> {
    let api: Api<ReleaseTarget> = Api::namespaced(scene.client.clone(), &scene.namespace);
    let patch = json!({"status": {"conditions": conditions, "waiting": null}});
    api.patch_status("web", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

pub(crate) fn ready() -> Result<Value> {
    Ok(json!([
        condition("Ready", "True", "Ready", "2.0.0 runs", 1)?,
        condition("Progressing", "False", "Idle", "", 1)?,
    ]))
}

/// `web` on the way to 2.0.0, whose pods are there.
async fn rolling(prefix: &str) -> Result<Scene> {
    let scene = Scene::new(prefix).await?;
    scene.deployment("web", "1.9.2", 3).await?;
    scene.available("web", 3).await?;
    scene.apply_image("web", "2.0.0", "belay-operator").await?;
    scene.available("web", 3).await?;
    moving(&scene, "2.0.0").await?;
    Ok(scene)
}

#[rstest]
#[case::usual(24, 80)]
#[case::large(60, 200)]
#[case::tiny(5, 30)]
#[tokio::test]
async fn a_watch_is_drawn_in_place_at_every_size(
    #[case] rows: u16,
    #[case] columns: u16,
) -> Result<()> {
    let scene = rolling("terminal").await?;
    let shell = scene.shell()?;
    let mut terminal = Terminal::run(&shell.kubeconfig, &["status", "web", "-w"], rows, columns)?;
    terminal.shows("Release:").await?;
    if rows > 10 {
        terminal.shows("Progressing ◌").await?;
        terminal.shows("revision 3").await?;
    }
    let header = format!("Release:     {}/web", scene.namespace);
    let header: String = header.chars().take(usize::from(columns)).collect();
    let text = terminal.text();
    ensure!(text.lines().next().is_some_and(|first| first.starts_with(&header)), "{text}");
    becomes(&scene, ready()?).await?;
    assert_eq!(terminal.ends().await?, Some(0), "{}", terminal.text());
    let text = terminal.text();
    // In place: the header of the frame before is gone. The last one may be higher than the screen.
    let headers = text.lines().filter(|line| line.starts_with("Release:")).count();
    ensure!(headers == usize::from(rows > 10), "{text}");
    if rows > 10 {
        ensure!(text.contains("Ready ✔") && !text.contains("Progressing"), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn a_log_has_one_line_for_each_change() -> Result<()> {
    let scene = Scene::new("log").await?;
    scene.deployment("web", "1.9.2", 3).await?;
    scene.available("web", 3).await?;
    scene.apply_image("web", "2.0.0-no-pull", "belay-operator").await?;
    scene.trouble("2.0.0-no-pull", "ImagePullBackOff").await?;
    moving(&scene, "2.0.0-no-pull").await?;
    let shell = scene.shell()?;
    let watch = shell.run("status web -w");
    let failed = json!([
        condition("Ready", "False", "Failed", "manifest unknown on 1 pod", 1)?,
        condition("Progressing", "False", "Idle", "", 1)?,
    ]);
    let (ran, changed) = tokio::join!(watch, becomes(&scene, failed));
    changed?;
    let ran = ran?;
    assert_eq!(ran.exit, Exit::Bad, "{ran:?}");
    ensure!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
    let text = masked(&ran.stdout, &scene.namespace);
    let last = text.lines().last().unwrap_or_default();
    let expected = "2026-11-30T02:13:31Z shop/web Failed  manifest unknown on 1 pod; pod ";
    ensure!(last.starts_with(expected), "{text}");
    ensure!(last.contains("app ImagePullBackOff: Back-off pulling image"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_log_names_the_move_and_its_trouble_once() -> Result<()> {
    let scene = Scene::new("logged").await?;
    scene.deployment("web", "1.9.2", 3).await?;
    scene.available("web", 3).await?;
    scene.apply_image("web", "2.0.0-no-pull", "belay-operator").await?;
    scene.trouble("2.0.0-no-pull", "ImagePullBackOff").await?;
    moving(&scene, "2.0.0-no-pull").await?;
    let ran = scene.shell()?.run("status web -w --timeout 3s").await?;
    assert_eq!(ran.exit, Exit::Timeout, "{ran:?}");
    let text = masked(&ran.stdout, &scene.namespace);
    let first =
        "2026-11-30T02:13:31Z shop/web Progressing 1.9.2 -> 2.0.0-no-pull 1/3 updated; pod ";
    ensure!(text.starts_with(first) && text.lines().count() == 1, "{text}");
    ensure!(ran.stderr.starts_with("error: "), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn programs_get_one_document_for_each_change() -> Result<()> {
    let scene = rolling("documents").await?;
    let shell = scene.shell()?;
    let watch = shell.run("status web -w -o json");
    let (ran, changed) = tokio::join!(watch, becomes(&scene, ready()?));
    changed?;
    let ran = ran?;
    assert_eq!(ran.exit, Exit::Done, "{ran:?}");
    let words: Vec<Value> =
        ran.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let last = words.last().context("no document")?;
    assert_eq!(last["status"]["conditions"][0]["reason"], "Ready");
    ensure!(words.len() <= 2, "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn a_list_is_followed_by_rows_of_what_changed() -> Result<()> {
    let scene = Scene::new("rows").await?;
    healthy(&scene).await?;
    let shell = scene.shell()?;
    let watch = shell.run("status -w --timeout 5s");
    let held = json!([
        condition("Ready", "Unknown", "Held", "", 1)?,
        condition("Held", "True", "OnHold", "", 1)?,
    ]);
    let (ran, changed) = tokio::join!(watch, becomes(&scene, held));
    changed?;
    let ran = ran?;
    assert_eq!(ran.exit, Exit::Timeout, "{ran:?}");
    let headers = ran.stdout.lines().filter(|line| line.starts_with("NAME ")).count();
    let last = ran.stdout.lines().last().unwrap_or_default();
    ensure!(headers == 1 && last.starts_with("web   Held"), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn ctrl_c_ends_a_watch_as_shells_expect() -> Result<()> {
    let scene = rolling("interrupted").await?;
    let shell = scene.shell()?;
    let mut terminal = Terminal::run(&shell.kubeconfig, &["status", "web", "-w"], 24, 80)?;
    terminal.shows("Progressing").await?;
    let id = i32::try_from(terminal.child.id())?;
    let id = rustix::process::Pid::from_raw(id).context("a process id")?;
    rustix::process::kill_process(id, rustix::process::Signal::INT)?;
    assert_eq!(terminal.ends().await?, Some(130));
    Ok(())
}

#[tokio::test]
async fn a_roll_of_the_real_operator_is_followed_to_its_end() -> Result<()> {
    let bed = Bed::new("followed").await?;
    let operator = bed.following(Wiring::default()).await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await?;
    // What the operator said of 1.0.0 must not end the watch.
    let shell = Shell::admin(bed.world.cluster, &bed.namespace)?;
    let ran = shell.run("status web -w --timeout 60s").await?;
    assert_eq!(ran.exit, Exit::Done, "{ran:?}");
    let last = ran.stdout.lines().last().unwrap_or_default();
    let expected = format!("{}/web Ready       1.1.0 runs", bed.namespace);
    ensure!(last.ends_with(&expected), "{ran:?}");
    let answer = shell.run("status web").await?.answer()?;
    ensure!(answer.contains("Last change: 1.0.0 → 1.1.0"), "{answer}");
    let history = shell.run("history web --no-headers").await?.answer()?;
    let words: Vec<Vec<&str>> =
        history.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(words[0][1..], ["web:1.1.0", "active"], "{history}");
    assert_eq!(words[1][1..], ["web:1.0.0", "superseded"], "{history}");
    operator.stop().await
}
