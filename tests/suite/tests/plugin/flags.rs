//! Every flag that kubectl passes on to a plugin is known to it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use clap::CommandFactory as _;
use kubectl_release::{Exit, cli::Cli};

use crate::{scene::Scene, status::healthy};

/// Flags of kubectl that are about kubectl itself: its preferences, its log, its profile, and how it
/// judges versions and warnings. None says which cluster is asked, or as whom.
const KUBECTLS_OWN: &[&str] = &[
    "kuberc",
    "log-flush-frequency",
    "match-server-version",
    "profile",
    "profile-output",
    "vmodule",
    "warnings-as-errors",
];

#[tokio::test]
async fn every_flag_of_kubectl_about_the_cluster_is_accepted() -> Result<()> {
    let scene = Scene::new("options").await?;
    let tool = scene.cluster.tool_as(Binary::Kubectl, &scene.shell()?.kubeconfig)?;
    let options = tool.args(["options"]).run().await?.stdout;
    // `    -n, --namespace='':`
    let flags = options.lines().filter_map(|line| line.trim().split_once("--"));
    let flags = flags.filter(|(before, _)| before.is_empty() || before.starts_with('-'));
    let theirs: BTreeSet<(Option<char>, &str)> = flags
        .filter_map(|(before, flag)| Some((before.chars().nth(1), flag.split_once('=')?.0)))
        .collect();
    ensure!(theirs.contains(&(Some('n'), "namespace")) && theirs.len() > 20, "{options}");
    let command = Cli::command();
    let ours: BTreeSet<(Option<char>, &str)> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .filter_map(|arg| Some((arg.get_short(), arg.get_long()?)))
        .collect();
    let missing: BTreeSet<&str> = theirs
        .difference(&ours)
        .map(|(_, flag)| *flag)
        .filter(|flag| !KUBECTLS_OWN.contains(flag))
        .collect();
    assert_eq!(missing, BTreeSet::new());
    Ok(())
}

#[tokio::test]
async fn flags_are_accepted_before_and_behind_the_verb() -> Result<()> {
    let scene = Scene::new("anywhere").await?;
    healthy(&scene).await?;
    let shell = scene.shell()?;
    let file = shell.kubeconfig.to_str().context("a path that is no text")?.to_owned();
    let namespace = scene.namespace.clone();
    let flags = [
        "--kubeconfig",
        &file,
        "-n",
        &namespace,
        "--request-timeout=20s",
        "--cache-dir=/nowhere",
        "--disable-compression",
        "--insecure-skip-tls-verify=false",
        "-v=6",
        "--as=admin",
        "--as-group=system:masters",
        "--as-uid=7",
        "--as-user-extra=k=v",
    ];
    let elsewhere = crate::run::Shell { kubeconfig: "/nowhere".into(), ..shell };
    for words in [
        [&flags[..], &["status", "web"]].concat(),
        [&["status", "web"], &flags[..]].concat(),
        [&["status"], &flags[..], &["web"]].concat(),
    ] {
        let ran = elsewhere.run_words(&words).await?;
        assert_eq!(ran.exit, Exit::Done, "{words:?}: {ran:?}");
        ensure!(ran.stdout.starts_with("Release: "), "{ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_proxy_and_the_password_of_the_command_line_are_used() -> Result<()> {
    let scene = Scene::new("told").await?;
    let shell = scene.shell()?;
    let ran = shell.run("status --proxy-url http://u:hidden@127.0.0.1:1").await?;
    assert_eq!(ran.exit, Exit::Error, "{ran:?}");
    ensure!(ran.stderr.contains("the proxy http://127.0.0.1:1 cannot be connected to"), "{ran:?}");
    ensure!(ran.stderr.contains("hint: the proxy stands in --proxy-url"), "{ran:?}");
    let ran = shell.run("status --proxy-url :hidden@:").await?;
    assert_eq!(ran.exit, Exit::Error, "{ran:?}");
    ensure!(ran.stderr.contains("is no proxy's URL\nhint: it stands in --proxy-url"), "{ran:?}");
    ensure!(!ran.stderr.contains("hidden"), "{ran:?}");
    Ok(())
}
