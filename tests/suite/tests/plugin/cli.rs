//! Runs `kubectl release` in the process of a test, against the real API server.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use belay_testkit::Cluster;
use jiff::Timestamp;
use kubectl_release::{Exit, Out, out::Terminal, run};
use serde_json::Value;

/// How a run ended and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) exit: Exit,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

/// A run that is prepared.
pub(crate) struct Cli {
    arguments: Vec<String>,
    kubeconfig: String,
    stdin: String,
    terminal: Terminal,
}

impl Cli {
    /// `kubectl release WORDS -n NAMESPACE`, as the administrator of a control plane.
    pub(crate) fn new(cluster: &Cluster, namespace: &str, words: &[&str]) -> Self {
        let kubeconfig = cluster.admin_kubeconfig().display().to_string();
        let mut arguments = vec!["kubectl-release".to_owned()];
        arguments.extend(words.iter().map(|word| (*word).to_owned()));
        arguments.extend(["-n".to_owned(), namespace.to_owned()]);
        Self { arguments, kubeconfig, stdin: String::new(), terminal: Terminal::default() }
    }

    /// With another kubeconfig.
    pub(crate) fn kubeconfig(mut self, file: &std::path::Path) -> Self {
        self.kubeconfig = file.display().to_string();
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

    /// Runs it.
    pub(crate) async fn run(self) -> Ran {
        let now = Timestamp::now();
        let (mut out, captured) = Out::captured(now, self.terminal, BTreeMap::new(), &self.stdin);
        let kubeconfig = ["--kubeconfig".to_owned(), self.kubeconfig];
        let arguments = self.arguments.into_iter().chain(kubeconfig).map(Into::into).collect();
        let exit = Box::pin(run(arguments, &mut out)).await;
        Ran { exit, stdout: captured.stdout.text(), stderr: captured.stderr.text() }
    }
}

impl Ran {
    /// What it printed, if it ended well.
    pub(crate) fn ok(self) -> Result<String> {
        self.ended(Exit::Done)
    }

    /// What it printed, if it ended so.
    pub(crate) fn ended(self, exit: Exit) -> Result<String> {
        ensure!(self.exit == exit, "{self:?}");
        Ok(self.stdout)
    }

    /// What it printed, as JSON.
    pub(crate) fn json(self) -> Result<Value> {
        let text = format!("{self:?}");
        serde_json::from_str(&self.stdout).context(text)
    }
}

/// Asserts that a text has each of these words.
pub(crate) fn has(text: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(text.contains(word), "there is no {word:?} in:\n{text}");
    }
    Ok(())
}
