//! Completion: the shim's answers, and the real kubectl that asks for them.

use std::os::unix::fs::symlink;

use anyhow::{Result, ensure};
use belay_components::Binary;
use belay_testkit::wait;
use rstest::rstest;

use crate::{
    run::{Shell, program},
    scene::{Scene, release_name},
    status::healthy,
};

#[rstest]
#[case::verbs(&["st"], "status\t")]
#[case::targets(&["status", "w"], "web\tghcr.io/acme/web:1.9.2")]
#[case::targets_after_flags(&["--color", "never", "rollback", ""], "web\t")]
#[case::tags(&["hold", "web", "1.9"], "1.9.1\tweb:1.9.1, ")]
#[case::contexts(&["status", "--context", ""], "testbed")]
#[case::clusters(&["status", "--cluster", ""], "testbed")]
#[case::users(&["status", "--user", ""], "testbed")]
#[case::namespaces(&["status", "-n", "offers-"], "offers-")]
#[case::managers(&["owners", "web", "--path", "image", "--expect", "hel"], "helm")]
#[case::blocked_tags(&["resume", "web", "--allow", "1.9"], "1.9.1\t")]
#[case::flags(&["status", "--exi"], "--exit-code")]
#[case::values(&["status", "--until", ""], "rolled-out")]
#[tokio::test]
async fn the_shim_offers_what_fits(#[case] words: &[&str], #[case] expected: &str) -> Result<()> {
    let scene = Scene::new("offers").await?;
    healthy(&scene).await?;
    let all: Vec<&str> = ["__complete"].iter().chain(words).copied().collect();
    let answer = offers(&scene.shell()?, &all, expected).await?;
    ensure!(answer.ends_with(":4\n"), "{answer}");
    Ok(())
}

/// Presses the key until a candidate begins so: an answer that is late is none.
async fn offers(shell: &Shell, words: &[&str], expected: &str) -> Result<String> {
    let what = format!("{expected:?} to be offered");
    let answer = wait::until(&what, wait::SOON, || async {
        let ran = shell.run_words(words).await.map_err(|error| error.to_string())?;
        let answer = ran.answer().map_err(|error| error.to_string())?;
        let is_there = answer.lines().any(|line| line.starts_with(expected));
        if is_there { Ok(answer) } else { Err(answer) }
    });
    Ok(answer.await?)
}

#[tokio::test]
async fn the_shim_offers_releases_in_every_spelling_of_a_flag() -> Result<()> {
    let scene = Scene::new("spelled").await?;
    healthy(&scene).await?;
    let name = release_name("web", "1.9.1");
    let shell = scene.shell()?;
    let typed = ["__complete", "rollback", "web", "--to=web-"];
    offers(&shell, &typed, &format!("--to={name}\tweb:1.9.1")).await?;
    let typed = ["__complete", "rollback", "web", "--to", ""];
    offers(&shell, &typed, &format!("{name}\t")).await?;
    Ok(())
}

#[tokio::test]
async fn a_server_that_says_nothing_keeps_nobody_waiting() -> Result<()> {
    let scene = Scene::new("patient").await?;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let server = format!("http://{}", silent.local_addr()?);
    let words = ["__complete", "status", "--server", &server, ""];
    let answer = scene.shell()?.run_words(&words).await?.answer()?;
    assert_eq!(answer, ":4\n");
    Ok(())
}

#[tokio::test]
async fn the_real_kubectl_completes_through_the_shim() -> Result<()> {
    let scene = Scene::new("kubectl").await?;
    healthy(&scene).await?;
    let folder = tempfile::tempdir()?;
    symlink(program()?, folder.path().join("kubectl-release"))?;
    symlink(program()?, folder.path().join("kubectl_complete-release"))?;
    let path = std::env::join_paths([folder.path(), "/usr/bin".as_ref(), "/bin".as_ref()])?;
    let shell = scene.shell()?;
    let tool = |words: &[&str]| -> Result<_> {
        let tool = scene.cluster.tool_as(Binary::Kubectl, &shell.kubeconfig)?;
        Ok(tool.env("PATH", &path).args(words))
    };
    let done = tool(&["__complete", "release", "status", "w"])?.run().await?;
    ensure!(done.stdout.starts_with("web\t") && done.stdout.ends_with(":4\n"), "{done:?}");
    let help = tool(&["release", "status", "--help"])?.run().await?;
    ensure!(help.stdout.contains("Usage: kubectl release status"), "{help:?}");
    let status = tool(&["release", "status", "web"])?.run().await?;
    ensure!(status.stdout.starts_with("Release: "), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn the_shim_that_is_printed_runs_the_program() -> Result<()> {
    let scene = Scene::new("printed").await?;
    let ran = scene.shell()?.run("completion kubectl").await?;
    ensure!(ran.stdout.starts_with("#!/bin/sh\n"), "{ran:?}");
    ensure!(ran.stdout.ends_with("exec kubectl-release __complete \"$@\"\n"), "{ran:?}");
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = scene.shell()?.run(&format!("completion {shell}")).await?.answer()?;
        ensure!(script.contains("kubectl-release"), "{shell}");
    }
    Ok(())
}
