//! Calling cargo, always for the whole workspace, so that features never differ between two calls.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// The programs that a program looks for beside itself.
fn needs(program: &str) -> &'static [&'static str] {
    match program {
        "bench" => &["belay", "belay-operator", "kubectl-release", "bare", "meter"],
        "dist" => &["kubectl-release"],
        _ => &[],
    }
}

/// Cargo in this work tree.
#[derive(Debug, Clone)]
pub(crate) struct Cargo {
    root: PathBuf,
    target: Option<PathBuf>,
}

/// A test executable.
#[derive(Debug, Clone)]
pub(crate) struct TestBinary {
    /// Package and target, such as `belay-suite/testbed`; `lib` and `bin` targets end in their kind.
    pub(crate) name: String,
    pub(crate) executable: PathBuf,
    /// Cargo runs tests in the package's folder; so do we.
    pub(crate) folder: PathBuf,
}

/// How a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
    /// Optimised, with assertions.
    Fuzz,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact(Artifact),
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
    manifest_path: PathBuf,
    target: Target,
    profile: ArtifactProfile,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ArtifactProfile {
    test: bool,
}

impl Cargo {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), target: None }
    }

    /// The same with another target folder.
    pub(crate) fn with_target(self, target: PathBuf) -> Self {
        Self { target: Some(target), ..self }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root).stdin(Stdio::null());
        if let Some(target) = &self.target {
            command.env("CARGO_TARGET_DIR", target);
        }
        command
    }

    /// Runs cargo to its end.
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<()> {
        let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
        let status = self.command().args(arguments).status().context("start cargo")?;
        ensure!(status.success(), "`cargo {}` failed ({status})", words.join(" "));
        Ok(())
    }

    /// Builds every test executable of the workspace and says where they are.
    pub(crate) fn test_binaries(&self) -> Result<BTreeMap<String, TestBinary>> {
        let mut binaries = BTreeMap::new();
        for artifact in self.build(&["test", "--no-run"])? {
            let (true, Some(executable)) = (artifact.profile.test, artifact.executable) else {
                continue;
            };
            let folder = artifact.manifest_path.parent().context("a manifest has no folder")?;
            let package = folder.strip_prefix(&self.root).unwrap_or(folder).display().to_string();
            let name = match artifact.target.kind.first().map(String::as_str) {
                Some("test") => format!("{package}:{}", artifact.target.name),
                Some("bin") => format!("{package}:bin:{}", artifact.target.name),
                _ => format!("{package}:lib"),
            };
            let folder = folder.to_owned();
            binaries.insert(name.clone(), TestBinary { name, executable, folder });
        }
        Ok(binaries)
    }

    /// Builds programs of the workspace and returns a command that runs one of them: all for
    /// debugging, else this one and those that it needs, for an optimised one takes minutes to link.
    ///
    /// `cargo run` would build for one package alone, with other features, hence anew.
    pub(crate) fn program(&self, name: &str, profile: Profile) -> Result<Command> {
        let mut arguments = vec!["build"];
        match profile {
            Profile::Debug => arguments.push("--bins"),
            Profile::Release => arguments.push("--release"),
            Profile::Fuzz => arguments.push("--profile=fuzz"),
        }
        if !matches!(profile, Profile::Debug) {
            for name in std::iter::once(&name).chain(needs(name)) {
                arguments.extend(["--bin", name]);
            }
        }
        let executable = self
            .build(&arguments)?
            .into_iter()
            .filter(|artifact| artifact.target.name == name && !artifact.profile.test)
            .find_map(|artifact| artifact.executable)
            .with_context(|| format!("the workspace has no program {name}"))?;
        let mut command = Command::new(executable);
        command.current_dir(&self.root);
        Ok(command)
    }

    /// Runs sequences of the operator's model from this seed on.
    pub(crate) fn model(&self, first: u64, sequences: u64) -> Result<()> {
        const NAME: &str = "operator/engine:model";
        let binaries = self.test_binaries()?;
        let model = binaries.get(NAME).with_context(|| format!("there is no test {NAME}"))?;
        let status = Command::new(&model.executable)
            .current_dir(&model.folder)
            .stdin(Stdio::null())
            .env("BELAY_MODEL_FIRST", first.to_string())
            .env("BELAY_MODEL_SEQUENCES", sequences.to_string())
            .status()
            .with_context(|| format!("start {}", model.executable.display()))?;
        ensure!(status.success(), "the model from seed {first} failed ({status})");
        Ok(())
    }

    /// Builds every program of the workspace in the profile of the tests.
    pub(crate) fn build_programs(&self) -> Result<()> {
        self.build(&["build", "--bins"]).map(drop)
    }

    fn build(&self, arguments: &[&str]) -> Result<Vec<Artifact>> {
        let output = self
            .command()
            .args(arguments)
            .args(["--workspace", "--locked", "--message-format=json-render-diagnostics"])
            .stderr(Stdio::inherit())
            .output()
            .context("start cargo")?;
        let words = arguments.join(" ");
        ensure!(output.status.success(), "`cargo {words}` failed ({})", output.status);
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut artifacts = Vec::new();
        for line in lines {
            match serde_json::from_slice(line).context("read cargo's messages")? {
                Message::CompilerArtifact(artifact) => artifacts.push(artifact),
                Message::Other => {}
            }
        }
        Ok(artifacts)
    }

    /// Runs the `testbed` program.
    pub(crate) fn testbed(&self, area: &str, arguments: &[String]) -> Result<ExitCode> {
        let mut command = self.program("testbed", Profile::Debug)?;
        command.arg(area).args(arguments);
        hand_over(command)
    }

    /// Runs the demo.
    pub(crate) fn demo(&self, arguments: &[String]) -> Result<ExitCode> {
        let mut command = self.program("demo", Profile::Debug)?;
        command.args(arguments);
        hand_over(command)
    }

    /// Measures figures.
    pub(crate) fn bench(&self, only: Option<&str>, json: bool) -> Result<ExitCode> {
        let mut command = self.program("bench", Profile::Release)?;
        if let Some(only) = only {
            command.args(["--only", only]);
        }
        if json {
            command.arg("--json");
        }
        hand_over(command)
    }

    /// Packs the plugin.
    pub(crate) fn dist(&self, out: Option<&Path>) -> Result<ExitCode> {
        let mut command = self.program("dist", Profile::Release)?;
        if let Some(out) = out {
            let out = std::path::absolute(out)
                .with_context(|| format!("find the place of {}", out.display()))?;
            command.arg("--out").arg(out);
        }
        hand_over(command)
    }

    /// Computes the plan of a debug file.
    pub(crate) fn replay(&self, file: &Path) -> Result<ExitCode> {
        // Programs run at the top of the work tree, wherever that was typed.
        let file = std::path::absolute(file)
            .with_context(|| format!("find the place of {}", file.display()))?;
        let mut command = self.program("belay-operator", Profile::Debug)?;
        command.arg("replay").arg(file);
        hand_over(command)
    }

    /// Records rollouts.
    pub(crate) fn record_rollouts(
        &self,
        only: Option<&str>,
        out: Option<&Path>,
    ) -> Result<ExitCode> {
        let mut command = self.program("record_rollouts", Profile::Debug)?;
        if let Some(only) = only {
            command.args(["--only", only]);
        }
        if let Some(out) = out {
            let out = std::path::absolute(out)
                .with_context(|| format!("find the place of {}", out.display()))?;
            command.arg("--out").arg(out);
        }
        hand_over(command)
    }

    /// Kills the operator program while releases roll.
    pub(crate) fn kills(&self) -> Result<ExitCode> {
        hand_over(self.program("kills", Profile::Debug)?)
    }

    /// Fuzzes one target.
    pub(crate) fn fuzz(&self, name: &str, seconds: u64, seed: Option<u64>) -> Result<ExitCode> {
        let mut command = self.program("fuzz", Profile::Fuzz)?;
        command.args([name, "--seconds", &seconds.to_string()]);
        if let Some(seed) = seed {
            command.args(["--seed", &seed.to_string()]);
        }
        hand_over(command)
    }
}

/// Runs a command whose exit code is ours.
fn hand_over(mut command: Command) -> Result<ExitCode> {
    let status = command.stdin(Stdio::inherit()).status().context("start cargo")?;
    Ok(exit_code(status))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
