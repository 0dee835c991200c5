//! The shell that runs a page: one for all of its commands, with the programs that it names on PATH.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    page::{Page, Step},
    shown,
};

/// A command that hangs ends the test; a page takes less than half a minute.
const DEADLINE: Duration = Duration::from_mins(6);

/// Where and with what the commands of a page run.
#[derive(Debug)]
pub(crate) struct Session {
    /// A folder of this session alone, for the home, the programs and what is printed.
    pub(crate) folder: PathBuf,
    /// The folder in which the commands run.
    pub(crate) work: PathBuf,
    /// Programs, by the names that the page gives them.
    pub(crate) programs: Vec<(&'static str, PathBuf)>,
    /// Variables of the shell.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// The cluster that the commands speak to.
    pub(crate) kubeconfig: PathBuf,
}

impl Session {
    /// Runs all steps in their order. It ends at the first command that fails where none is shown to
    /// fail, or the other way round.
    pub(crate) async fn run(&self, page: &Page) -> Result<()> {
        ensure!(!page.steps.is_empty(), "the page has no commands");
        let (home, bin) = (self.folder.join("home"), self.folder.join("bin"));
        fs::create_dir_all(&home)?;
        fs::create_dir_all(&bin)?;
        for (name, program) in &self.programs {
            std::os::unix::fs::symlink(program, bin.join(name))
                .with_context(|| format!("link {}", program.display()))?;
        }
        // A copy: `kubectl config` writes to it.
        let kubeconfig = home.join("kubeconfig");
        fs::copy(&self.kubeconfig, &kubeconfig).context("copy the kubeconfig")?;
        let script = self.folder.join("script");
        fs::write(&script, self.script(page)?)?;
        let run = tokio::process::Command::new("bash")
            .arg(&script)
            .current_dir(&self.work)
            .env_clear()
            .env("HOME", &home)
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("KUBECONFIG", &kubeconfig)
            .env("KUBECTL_KUBERC", "false")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let Ok(output) = tokio::time::timeout(DEADLINE, run).await else {
            bail!("after {DEADLINE:?} it still ran {}", self.under_way(page));
        };
        let output = output.context("run the page's commands")?;
        let odd = String::from_utf8_lossy(&output.stderr);
        ensure!(odd.is_empty(), "the shell says: {odd}");
        self.check(page)
    }

    /// A script that runs each step in one shell, and keeps output and exit code of each.
    fn script(&self, page: &Page) -> Result<String> {
        // The alias of a page holds in all commands that follow it, as in a shell that people use.
        let mut script = "shopt -s expand_aliases\n".to_owned();
        for (number, step) in page.steps.iter().enumerate() {
            let at = self.folder.join(number.to_string()).display().to_string();
            let part = match step {
                Step::File { name, text } => {
                    fs::write(&at, text).context("write a file of the page")?;
                    format!("cp '{at}' '{name}'\n")
                }
                Step::Command { command, shown, .. } => {
                    let goes_on = if shown::fails(shown) { "-ne" } else { "-eq" };
                    format!(
                        "{{\n{command}\n}} >'{at}.out' 2>&1 </dev/null\n_code=$?\n\
                         echo $_code >'{at}.code'\n[ $_code {goes_on} 0 ] || exit 0\n"
                    )
                }
            };
            script.push_str(&part);
        }
        Ok(script)
    }

    fn check(&self, page: &Page) -> Result<()> {
        let mut wrong = Vec::new();
        for (number, step) in page.steps.iter().enumerate() {
            let Step::Command { line, command, shown } = step else { continue };
            // What follows the command at which the script ended has not run.
            let Some((code, output)) = self.printed(number) else { break };
            println!("$ {command}\n{output}");
            let checked = shown::check(*line, command, shown, code.trim(), &output);
            wrong.extend(checked.err().map(|error| error.to_string()));
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        let last = page.steps.iter().rposition(|step| matches!(step, Step::Command { .. }));
        let ran = last.is_none_or(|number| self.printed(number).is_some());
        ensure!(ran, "the shell ended before the last command");
        Ok(())
    }

    fn printed(&self, number: usize) -> Option<(String, String)> {
        let read = |ending: &str| {
            let file = fs::read(self.folder.join(format!("{number}.{ending}"))).ok()?;
            Some(String::from_utf8_lossy(&file).into_owned())
        };
        Some((read("code")?, read("out")?))
    }

    /// The command that has begun and not ended, with what it has printed.
    fn under_way(&self, page: &Page) -> String {
        for (number, step) in page.steps.iter().enumerate() {
            if let Step::Command { line, command, .. } = step
                && self.printed(number).is_none()
            {
                let out = self.folder.join(format!("{number}.out"));
                let output = fs::read_to_string(out).unwrap_or_default();
                return format!("line {line}: `{command}`, which had printed:\n{output}");
            }
        }
        "nothing".to_owned()
    }
}

/// A file of this repository.
pub(crate) fn top(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
