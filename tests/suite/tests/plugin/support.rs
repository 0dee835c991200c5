//! Runs of the plugin: in this process with a fixed clock and terminal, or as the program itself.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context as _, Result, ensure};
use belay_suite::programs::beside_test;
use belay_testkit::{Cluster, cluster::identity::Access};
use jiff::{SignedDuration, Timestamp};
use kubectl_release::{
    Exit,
    out::{Out, Terminal},
};
use tokio::process::Command;

/// The time of every run that says no other one.
pub(crate) const NOW: &str = "2026-11-30T02:13:31Z";

/// How a run ended and what it printed.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output of a run that was done and had nothing to remark.
    pub(crate) fn answer(self) -> Result<String> {
        ensure!(self.exit == Exit::Done && self.stderr.is_empty(), "{self:?}");
        Ok(self.stdout)
    }
}

/// Somebody who runs the plugin.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) now: Timestamp,
    pub(crate) terminal: Terminal,
}

impl Shell {
    /// The administrator, whose context has this namespace.
    pub(crate) fn admin(cluster: &Cluster, namespace: &str) -> Result<Self> {
        let access = Access { namespace: namespace.to_owned(), ..cluster.admin_access().clone() };
        Self::of(cluster, &format!("plugin-{namespace}"), &access)
    }

    /// Somebody with other rights; `name` is that of the kubeconfig.
    pub(crate) fn of(cluster: &Cluster, name: &str, access: &Access) -> Result<Self> {
        Ok(Self {
            kubeconfig: cluster.write_kubeconfig(name, access)?,
            now: NOW.parse()?,
            terminal: Terminal::default(),
        })
    }

    /// Runs the plugin in this process; words are split at blanks.
    pub(crate) async fn run(&self, words: &str) -> Result<Ran> {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.run_words(&words).await
    }

    /// The same with words as they are.
    pub(crate) async fn run_words(&self, words: &[&str]) -> Result<Ran> {
        let kubeconfig = self.kubeconfig.to_str().context("a path that is no text")?;
        let environment = [
            ("KUBECONFIG".to_owned(), kubeconfig.to_owned()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ];
        let (mut out, captured) = Out::captured(self.now, self.terminal, environment.into(), "");
        let all = std::iter::once("kubectl-release").chain(words.iter().copied());
        let exit = Box::pin(kubectl_release::run(all.map(Into::into).collect(), &mut out)).await;
        Ok(Ran { exit, stdout: captured.stdout.text(), stderr: captured.stderr.text() })
    }

    /// The program itself, with nothing of this process's environment but what it needs.
    pub(crate) fn program(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(program()?);
        command
            .args(words)
            .env_clear()
            .env("KUBECONFIG", &self.kubeconfig)
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        Ok(command)
    }
}

/// The program under test.
pub(crate) fn program() -> Result<PathBuf> {
    beside_test("kubectl-release")
}

/// The fixed time, and so many seconds before it.
pub(crate) fn ago(seconds: i64) -> Result<String> {
    let now: Timestamp = NOW.parse()?;
    Ok((now - SignedDuration::from_secs(seconds)).to_string())
}

/// An answer without what differs from run to run: the namespace, the hashes in the names of pods,
/// and ages of objects that the API server dates. Columns move with them, so runs of blanks count as
/// two.
pub(crate) fn masked(text: &str, namespace: &str) -> String {
    let text = text.replace(namespace, "shop");
    let mut masked = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = Vec::new();
        let indent = line.len() - line.trim_start().len();
        for word in line.trim_start().split("  ").filter(|word| !word.is_empty()) {
            words.push(mask(word.trim()));
        }
        masked.push_str(&" ".repeat(indent.min(2)));
        masked.push_str(&words.join("  "));
        masked.push('\n');
    }
    masked
}

/// An answer without the namespace. Columns move with it in the lines that have it alone.
pub(crate) fn shown(text: &str, namespace: &str) -> String {
    let line = |line: &str| {
        if line.contains(namespace) { masked(line, namespace) } else { format!("{line}\n") }
    };
    text.lines().map(line).collect()
}

/// A word without the hash of a ReplicaSet and the suffix of a pod.
fn mask(word: &str) -> String {
    let parts: Vec<&str> = word.split('-').collect();
    let is_hash = |part: &&str| {
        (5..=10).contains(&part.len())
            && part.chars().all(|c| c.is_ascii_digit() || "bcdfghjklmnpqrstvwxz".contains(c))
    };
    match parts.as_slice() {
        [rest @ .., hash, suffix] if !rest.is_empty() && is_hash(hash) && is_hash(suffix) => {
            format!("{}-HASH-POD", rest.join("-"))
        }
        _ => word.to_owned(),
    }
}
