//! Fuzzing on stable Rust: a corpus, mutations from a printed seed, and panics as findings.
//!
//! A target takes bytes and panics when an invariant is broken. The same seed and corpus give the
//! same inputs, so a finding that kills the process (a stack overflow) can be had again too.

mod mutate;

use std::{
    fs,
    io::Write,
    panic::catch_unwind,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use self::mutate::Mutator;

/// What is fuzzed: a name and a function of bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 2] = [
    ("ownership", belay_ownership::fuzzing::fuzz),
    ("post-renderer", belay_post_renderer::fuzzing::fuzz),
];

/// A run with fewer executions has found out nothing.
pub const MIN_EXECUTIONS: u64 = 10_000;

/// Inputs kept to mutate further, beside the corpus.
const MAX_POOL: usize = 512;

/// How often, of so many executions, an input is kept.
const KEEP_ONE_OF: usize = 64;

/// The files of a target: `corpus/`, `crashes/` and `dictionary`.
#[derive(Debug, Clone)]
pub struct Files {
    folder: PathBuf,
}

/// An input and where it comes from.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its file.
    pub file: PathBuf,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Files {
    /// The committed files of a target.
    pub fn committed(target: &str) -> Self {
        Self { folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(target) }
    }

    /// Files in a folder of one's own.
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Inputs to begin with, sorted by name.
    ///
    /// # Errors
    /// When a file cannot be read, or there is none.
    pub fn corpus(&self) -> Result<Vec<Input>> {
        let folder = self.folder.join("corpus");
        let corpus = inputs(&folder)?;
        ensure!(!corpus.is_empty(), "there is no corpus in {}", folder.display());
        Ok(corpus)
    }

    /// Inputs that once broke something, sorted by name; none if there is no such folder.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn crashes(&self) -> Result<Vec<Input>> {
        inputs(&self.folder.join("crashes"))
    }

    /// Words of the format, one a line; none if there is no such file.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    fn dictionary(&self) -> Result<Vec<Vec<u8>>> {
        let file = self.folder.join("dictionary");
        if !file.exists() {
            return Ok(Vec::new());
        }
        let words = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        let words = words.split(|byte| *byte == b'\n').filter(|word| !word.is_empty());
        Ok(words.map(<[u8]>::to_vec).collect())
    }

    /// Keeps an input that broke something, under a name made of its content.
    fn keep(&self, input: &[u8]) -> Result<PathBuf> {
        let folder = self.folder.join("crashes");
        let file = folder.join(name_of(input));
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&file, input))
            .with_context(|| format!("keep the input as {}", file.display()))?;
        Ok(file)
    }
}

fn name_of(input: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(input)[..8])
}

fn inputs(folder: &Path) -> Result<Vec<Input>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let read = || -> std::io::Result<Vec<Input>> {
        let mut inputs = Vec::new();
        for entry in fs::read_dir(folder)? {
            let file = entry?.path();
            inputs.push(Input { bytes: fs::read(&file)?, file });
        }
        inputs.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(inputs)
    };
    read().with_context(|| format!("read the inputs in {}", folder.display()))
}

/// How long to run, and from where.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to mutate.
    pub time: Duration,
    /// Where the random numbers start.
    pub seed: u64,
    /// Where inputs come from and findings go.
    pub files: Files,
}

/// What a run without findings did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many inputs were run.
    pub executions: u64,
    /// How long that took.
    pub time: Duration,
    /// The longest of them.
    pub slowest: Duration,
}

/// Runs a target: all it has on file, then mutations until the time is over. Tells what it does.
///
/// # Errors
/// A finding, with the file it was kept in; fewer than [`MIN_EXECUTIONS`]; files that cannot be
/// read or written.
pub fn run(target: Target, options: &Options, out: &mut impl Write) -> Result<Summary> {
    let start = Instant::now();
    run_until(target, options, out, |_| start.elapsed() >= options.time)
}

fn run_until(
    (name, run): Target,
    Options { time: _, seed, files }: &Options,
    out: &mut impl Write,
    mut is_over: impl FnMut(u64) -> bool,
) -> Result<Summary> {
    writeln!(out, "fuzz {name}: seed {seed}")?;
    let corpus = files.corpus()?;
    let mut mutator = Mutator::new(*seed, files.dictionary()?);
    let start = Instant::now();
    let mut execute =
        Executor { name, run, seed: *seed, files, executions: 0, slowest: Duration::ZERO };
    for input in corpus.iter().chain(&files.crashes()?) {
        execute.once(&input.bytes, Some(&input.file))?;
    }
    let first = corpus.len();
    let mut pool: Vec<Vec<u8>> = corpus.into_iter().map(|input| input.bytes).collect();
    while !is_over(execute.executions) {
        let input = mutator.mutate(&pool);
        execute.once(&input, None)?;
        if mutator.random.below(KEEP_ONE_OF) == 0 {
            if pool.len() < first + MAX_POOL {
                pool.push(input);
            } else {
                // The corpus stays: mutations of mutations alone end as noise.
                let place = first + mutator.random.below(MAX_POOL);
                pool[place] = input;
            }
        }
    }
    let (executions, slowest, time) = (execute.executions, execute.slowest, start.elapsed());
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let rate = executions as f64 / time.as_secs_f64();
    writeln!(
        out,
        "fuzz {name}: {executions} executions in {:.1} s, {rate:.0} a second, the slowest took {:.1} ms",
        time.as_secs_f64(),
        slowest.as_secs_f64() * 1e3,
    )?;
    ensure!(
        executions >= MIN_EXECUTIONS,
        "only {executions} executions, at least {MIN_EXECUTIONS} are needed: give it more seconds"
    );
    Ok(Summary { executions, time, slowest })
}

struct Executor<'a> {
    name: &'static str,
    run: fn(&[u8]),
    seed: u64,
    files: &'a Files,
    executions: u64,
    slowest: Duration,
}

impl Executor<'_> {
    /// Runs one input. One that is not on file yet is kept if it breaks something.
    fn once(&mut self, input: &[u8], on_file: Option<&Path>) -> Result<()> {
        let before = Instant::now();
        let outcome = catch_unwind(|| (self.run)(input));
        self.executions += 1;
        self.slowest = self.slowest.max(before.elapsed());
        let Err(panic) = outcome else { return Ok(()) };
        let file = match on_file {
            Some(file) => file.to_owned(),
            None => self.files.keep(input)?,
        };
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message");
        bail!("{} panicked on {} (seed {}): {message}", self.name, file.display(), self.seed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static SUM: Cell<u64> = const { Cell::new(0) };
    }

    fn files(inputs: &[&[u8]]) -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("corpus")).unwrap();
        for (index, input) in inputs.iter().enumerate() {
            fs::write(folder.path().join(format!("corpus/{index}")), input).unwrap();
        }
        fs::write(folder.path().join("dictionary"), "f:\nboom\n").unwrap();
        let files = Files::in_folder(folder.path());
        (folder, files)
    }

    fn options(files: &Files, seconds: u64) -> Options {
        Options { time: Duration::from_secs(seconds), seed: 7, files: files.clone() }
    }

    fn breaks_on_a_word(input: &[u8]) {
        assert!(!input.windows(4).any(|window| window == b"boom"), "it was said");
    }

    #[test]
    fn a_panic_is_found_kept_and_replayed() {
        let (folder, files) = files(&[b"hello", b"world"]);
        let target: Target = ("words", breaks_on_a_word);
        let mut out = Vec::new();
        let error = run(target, &options(&files, 600), &mut out).unwrap_err().to_string();
        assert_eq!(String::from_utf8(out).unwrap(), "fuzz words: seed 7\n");
        let crashes = files.crashes().unwrap();
        let [crash] = &crashes[..] else { panic!("{crashes:?}") };
        assert!(crash.bytes.windows(4).any(|window| window == b"boom"));
        let name = crash.file.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, name_of(&crash.bytes));
        let file = crash.file.display();
        assert_eq!(error, format!("words panicked on {file} (seed 7): it was said"));
        // Replayed first the next time, and not kept again.
        let error = run(target, &options(&files, 0), &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, format!("words panicked on {file} (seed 7): it was said"));
        assert_eq!(files.crashes().unwrap().len(), 1);
        drop(folder);
    }

    #[test]
    fn a_run_without_executions_proves_nothing() {
        let (_folder, files) = files(&[b"hello"]);
        let error = run(("none", |_| ()), &options(&files, 0), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("only 1 executions, at least 10000"), "{error}");
    }

    #[test]
    fn a_missing_corpus_is_an_error() {
        let (_folder, files) = files(&[]);
        let error = run(("none", |_| ()), &options(&files, 1), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("there is no corpus in "), "{error}");
    }

    #[test]
    fn one_seed_gives_the_same_inputs() {
        let pool = [b"hello".to_vec(), b"world, and more".to_vec()];
        let words = || vec![b"f:".to_vec()];
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed, words());
            (0..500).map(|_| mutator.mutate(&pool)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn what_ran_is_told() {
        let (_folder, files) = files(&[b"hello"]);
        let target: Target = ("sum", |input| SUM.set(SUM.get() + input.len() as u64));
        let mut out = Vec::new();
        let summary =
            run_until(target, &options(&files, 0), &mut out, |count| count >= MIN_EXECUTIONS)
                .unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains(&format!("{} executions", summary.executions)), "{out}");
        assert_eq!(summary.executions, MIN_EXECUTIONS);
        assert!(SUM.get() > summary.executions, "inputs are empty");
    }
}
