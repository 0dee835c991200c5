//! What one run of a program uses: CPU time, wall-clock time, peak memory.
//!
//! A small program of its own, `meter`, starts the program, feeds and empties its pipes, and asks
//! the system with `wait4` what that one child used. It has to be small, for on Linux a child's peak
//! memory is never told lower than what its parent had when it was started.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use wait4::Wait4 as _;

/// What a program used from its start to its end, with the children it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// From the start to the end.
    pub wall: Duration,
    /// In user and system mode together.
    pub cpu: Duration,
    /// The largest resident set, in bytes.
    pub peak: u64,
    /// The largest resident set of the meter, where the system tells: `peak` says nothing if it is not above it.
    pub floor: Option<u64>,
}

/// Runs a program with `input` on its standard input, its output going to `output`, both by pipes, as Helm does it.
///
/// A program that does not read its input to the end is no error.
///
/// # Errors
/// When it cannot be started, its pipes fail, or it ends without success.
pub fn run(input: &Path, output: &Path, program: &OsStr, arguments: &[OsString]) -> Result<Usage> {
    let input = File::open(input).with_context(|| format!("open {}", input.display()))?;
    let mut output =
        File::create(output).with_context(|| format!("create {}", output.display()))?;
    let name = Path::new(program).display().to_string();
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {name}"))?;
    let (Some(stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("{name} has no pipes");
    };
    let feeder = thread::spawn(|| feed(input, stdin));
    io::copy(&mut stdout, &mut output).with_context(|| format!("read from {name}"))?;
    let ended = child.wait4().with_context(|| format!("wait for {name}"))?;
    let wall = start.elapsed();
    let fed = feeder.join().unwrap_or_else(|_| Err(io::Error::other("the feeder panicked")));
    fed.with_context(|| format!("write to {name}"))?;
    ensure!(ended.status.success(), "{name} ended with {}", ended.status);
    let used = ended.rusage;
    let floor = fs::read_to_string("/proc/self/status").ok().as_deref().and_then(peak);
    Ok(Usage { wall, cpu: used.utime + used.stime, peak: used.maxrss, floor })
}

fn feed(mut input: File, mut stdin: ChildStdin) -> io::Result<()> {
    match io::copy(&mut input, &mut stdin) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// The peak of the resident set in a process's status file, in bytes.
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A program to be run under the meter, again and again.
#[derive(Debug, Clone)]
pub struct Job {
    meter: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    input: PathBuf,
    output: PathBuf,
    expected: Option<Vec<u8>>,
}

impl Job {
    /// A program that reads the file `input` and whose output is kept in `output`, in an environment
    /// that is empty but for `PATH`.
    pub fn new(meter: &Path, program: &Path, input: &Path, output: &Path) -> Self {
        Self {
            meter: meter.to_owned(),
            program: program.to_owned(),
            arguments: Vec::new(),
            environment: std::env::var_os("PATH")
                .map(|path| ("PATH".into(), path))
                .into_iter()
                .collect(),
            input: input.to_owned(),
            output: output.to_owned(),
            expected: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Makes every run fail whose output is not this: what does the wrong thing has no figure.
    #[must_use]
    pub fn expecting(mut self, output: impl Into<Vec<u8>>) -> Self {
        self.expected = Some(output.into());
        self
    }

    /// The file that holds the output of the last run.
    pub fn output(&self) -> &Path {
        &self.output
    }

    /// Runs it once.
    ///
    /// # Errors
    /// When it could not be run or measured, or did not succeed, with what it said; when its output
    /// is not the expected one.
    pub fn run(&self) -> Result<Usage> {
        let name = self.program.file_name().unwrap_or_default().display().to_string();
        let ended = Command::new(&self.meter)
            .arg(&self.input)
            .arg(&self.output)
            .arg(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("start {}", self.meter.display()))?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "{name} could not be measured: {}", said.trim());
        let usage = serde_json::from_slice(&ended.stdout).context("read what the meter printed")?;
        if let Some(expected) = &self.expected {
            let written = fs::read(&self.output)
                .with_context(|| format!("read {}", self.output.display()))?;
            if let Some(at) = first_difference(&written, expected) {
                bail!(
                    "{name} wrote something else than was expected, from byte {at} on: {}",
                    said.trim()
                );
            }
        }
        Ok(usage)
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let differ = a.iter().zip(b).position(|(a, b)| a != b);
    differ.or_else(|| (a.len() != b.len()).then_some(a.len().min(b.len())))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn shell(folder: &Path, script: &str) -> Result<Usage> {
        fs::write(folder.join("in"), "a\nb\n")?;
        let arguments = ["-c".into(), script.into()];
        run(&folder.join("in"), &folder.join("out"), "sh".as_ref(), &arguments)
    }

    #[test]
    fn a_program_gets_its_input_and_its_output_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let usage = shell(folder.path(), "cat; echo end").unwrap();
        assert_eq!(fs::read(folder.path().join("out")).unwrap(), b"a\nb\nend\n");
        let read: Usage = serde_json::from_str(&serde_json::to_string(&usage).unwrap()).unwrap();
        assert_eq!(read, usage);
    }

    #[test]
    fn the_peak_is_of_the_child_and_in_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let usage = shell(folder.path(), "exit 0").unwrap();
        let plausible = 100 << 10..64 << 30;
        assert!(plausible.contains(&usage.peak), "{usage:?}");
        assert!(usage.floor.is_none_or(|floor| plausible.contains(&floor)), "{usage:?}");
    }

    #[test]
    fn a_program_need_not_read_its_input() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("long"), vec![b'x'; 1 << 20]).unwrap();
        let (input, output) = (folder.path().join("long"), folder.path().join("out"));
        run(&input, &output, "true".as_ref(), &[]).unwrap();
    }

    #[rstest]
    #[case::failed("exit 3", "sh ended with exit status: 3")]
    #[case::killed("kill -9 $$", "sh ended with signal: 9")]
    fn a_run_without_success_is_no_measurement(#[case] script: &str, #[case] why: &str) {
        let folder = tempfile::tempdir().unwrap();
        let error = shell(folder.path(), script).unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("in"), "").unwrap();
        let missing = folder.path().join("missing");
        let error =
            run(&folder.path().join("in"), &folder.path().join("out"), missing.as_ref(), &[]);
        assert_eq!(error.unwrap_err().to_string(), format!("start {}", missing.display()));
    }

    /// A shell in the meter's place takes the input for its script, the output for `$1`, the program for `$2`.
    fn job(folder: &Path, script: &str) -> Job {
        let (input, output) = (folder.join("in"), folder.join("out"));
        fs::write(&input, script).unwrap();
        Job::new("/bin/sh".as_ref(), "/some/program".as_ref(), &input, &output).expecting("fine\n")
    }

    const MEASURED: &str =
        r#"{"wall":{"secs":1,"nanos":5},"cpu":{"secs":0,"nanos":7},"peak":9,"floor":null}"#;

    #[test]
    fn a_job_returns_what_the_meter_says_and_hands_arguments_and_variables_on() {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo $3 > $1; echo '{MEASURED}'; test $2$HOME$A = /some/programb");
        let job = job(folder.path(), &script).args(["fine"]).env("A", "b");
        let expected =
            Usage { wall: Duration::new(1, 5), cpu: Duration::from_nanos(7), peak: 9, floor: None };
        assert_eq!(job.run().unwrap(), expected);
        assert_eq!(job.output(), folder.path().join("out"));
    }

    #[rstest]
    #[case::wrong_output(
        "echo fime > $1",
        "program wrote something else than was expected, from byte 2 on: "
    )]
    #[case::no_output("", "read ")]
    #[case::failed("echo 'no server' >&2; exit 1", "program could not be measured: no server")]
    fn a_job_that_does_the_wrong_thing_is_no_measurement(#[case] script: &str, #[case] why: &str) {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("echo '{MEASURED}'; {script}");
        let error = job(folder.path(), &script).run().unwrap_err().to_string();
        assert!(error.starts_with(why), "{error}");
    }

    #[rstest]
    #[case("Name:\tbench\nVmPeak:\t   9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 7 kB\n", Some(2 << 20))]
    #[case("VmPeak:\t   9 kB\n", None)]
    #[case("VmHWM:\t many\n", None)]
    fn the_peak_is_read_from_a_status_file(#[case] status: &str, #[case] expected: Option<u64>) {
        assert_eq!(peak(status), expected);
    }

    #[rstest]
    #[case("same", "same", None)]
    #[case("same", "sane", Some(2))]
    #[case("longer", "long", Some(4))]
    #[case("", "x", Some(0))]
    fn outputs_are_compared_to_the_end(
        #[case] a: &str,
        #[case] b: &str,
        #[case] expected: Option<usize>,
    ) {
        assert_eq!(first_difference(a.as_bytes(), b.as_bytes()), expected);
    }
}
