//! Running a command-line tool to its end, or to its deadline.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use crate::TestbedError;

/// No tool that a test runs takes longer, unless it hangs.
const DEADLINE: Duration = Duration::from_mins(5);

/// A command to be run.
#[derive(Debug)]
#[must_use = "a tool does nothing until it is run"]
pub struct Tool {
    command: Command,
    input: Option<Vec<u8>>,
    deadline: Duration,
}

/// How a tool ended and what it printed.
#[derive(Debug)]
#[must_use = "look at the status, or call `ok`"]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    command: String,
}

impl Tool {
    pub(crate) fn new(command: Command) -> Self {
        Self { command, input: None, deadline: DEADLINE }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the working folder.
    pub fn current_dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Gives it something to read.
    pub fn input(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.input = Some(text.into());
        self
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// [`TestbedError::Start`], or [`TestbedError::Timeout`] after five minutes, when it is killed.
    pub async fn run(self) -> Result<Finished, TestbedError> {
        let program = self.command.get_program().to_owned();
        let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
        let words = self.command.get_args().map(OsStr::to_string_lossy);
        let command = std::iter::once(name.clone()).chain(words).collect::<Vec<_>>().join(" ");
        let failed = |source| TestbedError::Start {
            name: name.clone().into_owned(),
            program: (&program).into(),
            source,
        };
        let mut child = tokio::process::Command::from(self.command)
            .stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let input = child.stdin.take().zip(self.input);
        let feed = async {
            if let Some((mut pipe, text)) = input {
                use tokio::io::AsyncWriteExt as _;
                // A tool that does not read its input to the end is not an error of the test bed.
                let _ = pipe.write_all(&text).await;
            }
        };
        let both = async { tokio::join!(feed, child.wait_with_output()).1 };
        let output = tokio::time::timeout(self.deadline, both)
            .await
            .map_err(|_| TestbedError::Timeout {
                what: format!("`{command}` to end"),
                within: self.deadline,
                last: "it was still running".to_owned(),
            })?
            .map_err(failed)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Finished {
            status: output.status,
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            command,
        })
    }

    /// Runs it and returns what it printed.
    ///
    /// # Errors
    /// As [`Tool::run`], and [`TestbedError::Tool`] when it fails.
    pub async fn ok(self) -> Result<String, TestbedError> {
        self.run().await?.ok()
    }
}

impl Finished {
    /// Standard output, if the tool succeeded.
    ///
    /// # Errors
    /// [`TestbedError::Tool`] with what it printed on standard error.
    pub fn ok(self) -> Result<String, TestbedError> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        Err(TestbedError::Tool {
            command: self.command,
            status: self.status.to_string(),
            stderr: self.stderr,
        })
    }
}
