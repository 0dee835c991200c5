//! Runs of the plugin: in this process with a fixed clock and terminal, or as the program itself.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, Result, ensure};
use belay_suite::programs::beside_test;
use belay_testkit::{Cluster, cluster::identity::Access};
use jiff::Timestamp;
use kubectl_release::{
    Exit,
    out::{Out, Terminal},
};
use serde_json::Value;
use tokio::process::Command;

/// The time of every run of a [`Shell`] that says no other one.
pub(crate) const NOW: &str = "2026-11-30T02:13:31Z";

/// How a run ended and what it printed.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) exit: Exit,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output of a run that was done and had nothing to remark.
    pub(crate) fn answer(self) -> Result<String> {
        ensure!(self.stderr.is_empty(), "{self:?}");
        self.ok()
    }

    /// Standard output, if it ended well.
    pub(crate) fn ok(self) -> Result<String> {
        self.ended(Exit::Done)
    }

    /// Standard output, if it ended so.
    pub(crate) fn ended(self, exit: Exit) -> Result<String> {
        ensure!(self.exit == exit, "{self:?}");
        Ok(self.stdout)
    }

    /// Standard output as JSON.
    pub(crate) fn json(self) -> Result<Value> {
        let text = format!("{self:?}");
        serde_json::from_str(&self.stdout).context(text)
    }
}

/// A run that is prepared.
pub(crate) struct Cli {
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    stdin: String,
    terminal: Terminal,
    now: Timestamp,
}

impl Cli {
    /// `kubectl release WORDS -n NAMESPACE`, now, as the administrator of a control plane.
    pub(crate) fn new(cluster: &Cluster, namespace: &str, words: &[&str]) -> Self {
        let all: Vec<&str> = words.iter().copied().chain(["-n", namespace]).collect();
        let bare = Self {
            arguments: all.into_iter().map(ToOwned::to_owned).collect(),
            environment: BTreeMap::new(),
            stdin: String::new(),
            terminal: Terminal::default(),
            now: Timestamp::now(),
        };
        bare.kubeconfig(&cluster.admin_kubeconfig())
    }

    /// With another kubeconfig.
    pub(crate) fn kubeconfig(self, file: &Path) -> Self {
        self.variable("KUBECONFIG", &file.display().to_string())
    }

    /// With a variable of the environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// As another user, with all rights.
    pub(crate) fn user(mut self, name: &str) -> Self {
        let words = ["--as", name, "--as-group", "system:masters"];
        self.arguments.extend(words.map(ToOwned::to_owned));
        self
    }

    /// With a text on standard input, which is no terminal.
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    /// At a terminal whose user types this.
    pub(crate) fn typing(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self.terminal = Terminal { stdin: true, stderr: true, ..Terminal::default() };
        self
    }

    /// Runs it in this process.
    pub(crate) async fn run(self) -> Ran {
        let (mut out, captured) =
            Out::captured(self.now, self.terminal, self.environment, &self.stdin);
        let words = std::iter::once("kubectl-release".to_owned()).chain(self.arguments);
        let exit = Box::pin(kubectl_release::run(words.map(Into::into).collect(), &mut out)).await;
        Ran { exit, stdout: captured.stdout.text(), stderr: captured.stderr.text() }
    }
}

/// Somebody who runs the plugin, whose time stands still.
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

    /// Prepares a run.
    pub(crate) fn cli(&self, words: &[&str]) -> Cli {
        let bare = Cli {
            arguments: words.iter().map(|word| (*word).to_owned()).collect(),
            environment: BTreeMap::new(),
            stdin: String::new(),
            terminal: self.terminal,
            now: self.now,
        };
        bare.kubeconfig(&self.kubeconfig).variable("LANG", "C.UTF-8")
    }

    /// Runs the plugin in this process; words are split at blanks.
    pub(crate) async fn run(&self, words: &str) -> Result<Ran> {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.run_words(&words).await
    }

    /// The same with words as they are.
    pub(crate) async fn run_words(&self, words: &[&str]) -> Result<Ran> {
        Ok(self.cli(words).run().await)
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
