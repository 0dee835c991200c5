//! The groups of tests: which executables belong to them, how they are run, what they counted.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use belay_components::{Component, Components};
use clap::ValueEnum;

use xtask::floors::{self, Floors};

use crate::cargo::{Cargo, Profile, TestBinary};

/// Seconds that each fuzz target gets in CI.
const FUZZ_SECONDS: u64 = 60;

/// A group of tests with a budget of its own in CI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Group {
    /// Crates by themselves, documentation examples, fuzz targets. Starts no server.
    Units,
    /// The post-renderer: goldens, properties, the decision table; `belay` under both Helms.
    PostRenderer,
    /// The test bed: real components, scripted GitHub, faults, clean-up.
    Testbed,
    /// The operator's objects and field ownership on the real API server.
    Operator,
    /// What a newcomer runs first.
    Demo,
}

impl Group {
    /// In the order they run.
    const ALL: [Self; 5] =
        [Self::Units, Self::PostRenderer, Self::Testbed, Self::Operator, Self::Demo];

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The group of a test executable. One that is in none would never run, hence an error.
    fn of(binary: &str) -> Result<Self> {
        if binary.starts_with("post-renderer:") {
            return Ok(Self::PostRenderer);
        }
        if binary.ends_with(":lib") || binary.contains(":bin:") {
            return Ok(Self::Units);
        }
        Ok(match binary {
            "tests/suite:fuzz_corpus" | "tests/suite:rollouts" => Self::Units,
            "tests/suite:guide" | "tests/suite:image_chart" | "tests/suite:post_renderer" => {
                Self::PostRenderer
            }
            "tests/suite:api"
            | "tests/suite:chart"
            | "tests/suite:crashes"
            | "tests/suite:hostile"
            | "tests/suite:kills"
            | "tests/suite:operator"
            | "tests/suite:ownership"
            | "tests/suite:pause"
            | "tests/suite:plugin"
            | "operator/adapters:cluster"
            | "operator/adapters:registry" => Self::Operator,
            "tests/suite:demo" => Self::Demo,
            "tests/suite:keda" | "tests/suite:testbed" => Self::Testbed,
            _ if binary.starts_with("tests/testkit:") => Self::Testbed,
            _ if binary.starts_with("tests/components:") || binary.starts_with("tests/xtask:") => {
                Self::Units
            }
            _ if binary.starts_with("operator/") => Self::Units,
            other => bail!("test executable {other} belongs to no group: add it to groups.rs"),
        })
    }

    fn needs_components(self) -> bool {
        !matches!(self, Self::Units)
    }

    /// Tests that wait for servers may outnumber the cores.
    fn threads(self) -> Option<&'static str> {
        match self {
            Self::Units | Self::Demo => None,
            Self::PostRenderer | Self::Testbed | Self::Operator => Some("--test-threads=8"),
        }
    }
}

/// What to run.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) group: Option<Group>,
    pub(crate) filter: Option<String>,
    pub(crate) bless: bool,
}

/// What one group did.
#[derive(Debug, Default, Clone)]
struct Tally {
    passed: u64,
    failed: u64,
    time: Duration,
    broken: Vec<String>,
}

/// The build of what tests run against, under way in another thread.
pub(crate) struct Building(thread::JoinHandle<Result<()>>);

impl Building {
    /// Begins to build what is not there yet.
    pub(crate) fn start() -> Self {
        Self(thread::spawn(ensure_components))
    }

    fn finish(self) -> Result<()> {
        self.0.join().map_err(|_| anyhow::anyhow!("the build of components panicked"))?
    }
}

/// Runs tests and prints a table; the exit code says whether all passed. `components` is their
/// build: Go works while cargo does, and units need none of it.
pub(crate) fn run(cargo: &Cargo, selection: &Selection, components: Building) -> Result<ExitCode> {
    let mut tallies = BTreeMap::new();
    let mut components = Some(components);
    let binaries = cargo.test_binaries()?;
    // Tests start the workspace's programs, which lie beside them.
    cargo.build_programs()?;
    for binary in binaries.keys() {
        Group::of(binary)?;
    }
    for group in Group::ALL {
        if selection.group.is_some_and(|wanted| wanted != group) {
            continue;
        }
        if group.needs_components()
            && let Some(building) = components.take()
        {
            building.finish()?;
        }
        println!("\n=== {} ===", group.name());
        let start = Instant::now();
        let mut tally = Tally::default();
        for binary in binaries.values() {
            if Group::of(&binary.name)? == group {
                run_binary(group, binary, selection, &mut tally)?;
            }
        }
        extra(cargo, group, selection, &mut tally)?;
        tally.time = start.elapsed();
        tallies.insert(group, tally);
    }
    report(cargo, selection, &tallies)
}

/// Builds every component that is not in the cache yet.
pub(crate) fn ensure_components() -> Result<()> {
    let components = Components::from_env()?;
    components.github_description()?;
    Ok(components.ensure(&Component::ALL)?)
}

fn run_binary(
    group: Group,
    binary: &TestBinary,
    selection: &Selection,
    tally: &mut Tally,
) -> Result<()> {
    println!("\n     Running {}", binary.name);
    let mut command = Command::new(&binary.executable);
    command.current_dir(&binary.folder).args(group.threads()).args(&selection.filter);
    let (ended, pid) = count(command, tally).with_context(|| format!("run {}", binary.name))?;
    if !ended {
        tally.broken.push(binary.name.clone());
        let logs = Components::from_env()?.cache().root().join("logs");
        eprintln!("logs of what it started: {}/*-{pid}-*", logs.display());
    }
    Ok(())
}

/// Runs a test runner, shows its output, and adds up its closing lines.
fn count(mut command: Command, tally: &mut Tally) -> Result<(bool, u32)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", command.get_program().display()))?;
    let mut closing = false;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.context("read its output")?;
            println!("{line}");
            if let Some((passed, failed)) = closing_line(&line) {
                tally.passed += passed;
                tally.failed += failed;
                closing = true;
            }
        }
    }
    let status = child.wait().context("wait for it")?;
    Ok((status.success() && closing, child.id()))
}

/// `test result: ok. 3 passed; 1 failed; …` → (3, 1).
fn closing_line(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        rest.split("; ").find_map(|part| {
            let count = part.trim_end().strip_suffix(word)?;
            count.rsplit(' ').next()?.parse().ok()
        })
    };
    Some((number(" passed")?, number(" failed")?))
}

/// What a group runs beside test executables.
fn extra(cargo: &Cargo, group: Group, selection: &Selection, tally: &mut Tally) -> Result<()> {
    if selection.filter.is_some() {
        return Ok(());
    }
    match group {
        Group::Units => {
            let mut doc = cargo.command();
            doc.args(["test", "--workspace", "--locked", "--doc"]);
            if !count(doc, tally)?.0 {
                tally.broken.push("documentation examples".to_owned());
            }
            println!("\n     Fuzzing each target for {FUZZ_SECONDS} s");
            // In the profile that is built anyway: what CI wants is the count, not speed.
            let mut fuzz = cargo.program("fuzz", Profile::Debug)?;
            fuzz.args(["all", "--seconds", &FUZZ_SECONDS.to_string(), "--seed", "1"]);
            once(fuzz, "fuzz", tally)?;
        }
        Group::Demo => {
            let mut demo = cargo.program("demo", Profile::Debug)?;
            // What it shows is compared with the recording in docs.
            demo.args(["--record", "--check"]);
            once(demo, "demo", tally)?;
        }
        Group::PostRenderer | Group::Testbed | Group::Operator => {}
    }
    Ok(())
}

/// A program that counts as one test.
fn once(mut command: Command, name: &str, tally: &mut Tally) -> Result<()> {
    if command.status().with_context(|| format!("start {name}"))?.success() {
        tally.passed += 1;
    } else {
        tally.failed += 1;
        tally.broken.push(name.to_owned());
    }
    Ok(())
}

fn report(
    cargo: &Cargo,
    selection: &Selection,
    tallies: &BTreeMap<Group, Tally>,
) -> Result<ExitCode> {
    println!("\n{:<14} {:>7} {:>7} {:>9}", "GROUP", "PASSED", "FAILED", "TIME");
    let mut sum = Tally::default();
    for (group, tally) in tallies {
        let seconds = tally.time.as_secs_f64();
        println!("{:<14} {:>7} {:>7} {seconds:>7.1} s", group.name(), tally.passed, tally.failed);
        sum.passed += tally.passed;
        sum.failed += tally.failed;
        sum.broken.extend(tally.broken.iter().cloned());
    }
    let counts: BTreeMap<String, u64> =
        tallies.iter().map(|(group, tally)| (group.name(), tally.passed)).collect();
    if selection.filter.is_none() && sum.broken.is_empty() {
        floors(cargo, &counts, selection)?;
    }
    println!("\n{} passed, {} failed", sum.passed, sum.failed);
    if sum.broken.is_empty() && sum.failed == 0 {
        ensure!(sum.passed > 0, "no test ran");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("failed: {}", sum.broken.join(", "));
    Ok(ExitCode::FAILURE)
}

/// The number of tests may not fall unnoticed.
fn floors(cargo: &Cargo, counts: &BTreeMap<String, u64>, selection: &Selection) -> Result<()> {
    let path = cargo.root().join(floors::FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let mut floors = Floors::parse(&text)?;
    if selection.bless {
        floors.raise(counts);
        return fs::write(&path, floors.print()?)
            .with_context(|| format!("write {}", path.display()));
    }
    let wrong = floors.compare(counts, selection.group.is_none());
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_of_a_test_runner_is_read() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(closing_line(line), Some((12, 3)));
        assert_eq!(closing_line("test smoke ... ok"), None);
    }

    #[test]
    fn every_executable_has_a_group_or_is_an_error() {
        assert_eq!(Group::of("operator/api:lib").unwrap(), Group::Units);
        assert_eq!(Group::of("tests/suite:api").unwrap(), Group::Operator);
        Group::of("tests/suite:forgotten").unwrap_err();
    }
}
