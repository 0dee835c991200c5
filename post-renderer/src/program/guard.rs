//! What ends a run from outside: a signal, a parent that is gone, the deadline. Helm waits for a
//! post-renderer without limit, and a Helm that is killed leaves it running (the lab report, item
//! 10), so a run looks after itself.

use std::{
    io::Write as _,
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{
    decide::one_line,
    helm::parent,
    program::cli::Format,
    report::{Report, file},
};

/// How often is looked whether somebody wants the run to end.
const LOOK: Duration = Duration::from_millis(20);

/// A running watch. Its thread goes with the process: to wake it at the end would take longer.
#[derive(Debug)]
pub(super) struct Guard {
    done: Arc<AtomicBool>,
    wake: mpsc::Sender<()>,
}

/// What the last words need.
#[derive(Debug, Clone)]
pub(super) struct LastWords {
    pub(super) log_file: Option<PathBuf>,
    pub(super) format: Format,
    pub(super) so_far: SoFar,
}

/// The report as it was when the run last began to wait for something.
#[derive(Debug, Clone, Default)]
pub(super) struct SoFar(Arc<Mutex<Report>>);

impl SoFar {
    /// The run begins to wait, and this is what is known.
    pub(super) fn keep(&self, report: &Report) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(report);
    }

    fn get(&self) -> Report {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What Helm has got of the manifests.
    fn written(&self) -> &'static str {
        if self.get().succeeded { "what was written is not whole" } else { "nothing was written" }
    }

    /// What the run waits for, as part of a sentence.
    fn waiting(&self) -> String {
        match self.get() {
            Report { succeeded: true, .. } => ": standard output is not read to its end".to_owned(),
            Report { server: Some(server), .. } => format!(": {} has not answered", server.value),
            Report { input, .. } if input.bytes == 0 => ": standard input has not ended".to_owned(),
            _ => String::new(),
        }
    }
}

impl Guard {
    /// Begins to watch. The process ends with exit code 1 as soon as one of the three happens.
    pub(super) fn start(timeout: Duration, parent: Option<u32>, last_words: LastWords) -> Self {
        let start = Instant::now();
        let signals: Vec<_> = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")]
            .into_iter()
            .map(|(signal, name)| {
                let flag = Arc::new(AtomicBool::new(false));
                // Without the handler the signal ends the process all the same, with another code.
                let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
                (flag, name)
            })
            .collect();
        let done = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&done);
        let (wake, woken) = mpsc::channel();
        thread::spawn(move || {
            while woken.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                if ended.load(Ordering::Acquire) {
                    return;
                }
                let signal = signals.iter().find(|(flag, _)| flag.load(Ordering::Relaxed));
                let why = if let Some((_, name)) = signal {
                    format!("ended by {name}")
                } else if parent::id() != parent {
                    "ended, since the process that started it is gone".to_owned()
                } else if start.elapsed() >= timeout {
                    let waiting = last_words.so_far.waiting();
                    format!("not done within {timeout:?}{waiting}; allow more with --timeout")
                } else {
                    continue;
                };
                let written = last_words.so_far.written();
                last_words.say(&format!("{why}; {written}"));
                exit();
            }
        });
        Self { done, wake }
    }

    /// Ends the watch: all that can hang is over.
    pub(super) fn end(self) {
        self.done.store(true, Ordering::Release);
        // Dropped, it would wake the thread.
        mem::forget(self.wake);
    }
}

#[expect(clippy::exit, reason = "the other thread may be blocked in a read or a write for ever")]
fn exit() -> ! {
    std::process::exit(1)
}

impl LastWords {
    /// Keeps a report and tells the error.
    fn say(&self, why: &str) {
        let error = Some(why.to_owned());
        let report = Report { succeeded: false, error, ..self.so_far.get() };
        let kept = self.keep(&report);
        // Nobody may be left to read it.
        let _ = std::io::stderr().write_all(self.shown(report, kept.as_deref()).as_bytes());
    }

    /// Writes the report file; where it is, if that worked.
    pub(super) fn keep(&self, report: &Report) -> Option<PathBuf> {
        let path = self.log_file.clone()?;
        file::write(&path, &self.format(report)).ok().map(|()| path)
    }

    /// What standard error shows. Those who see nothing but the end of Helm's own error find the
    /// error last, with the place of the rest.
    pub(super) fn shown(&self, mut report: Report, kept: Option<&Path>) -> String {
        let place = match kept {
            Some(path) => format!("; report: {}", path.display()),
            None => "; no report could be kept".to_owned(),
        };
        report.error = report.error.map(|error| error + &place);
        match (self.format, report.error.take()) {
            (Format::Text, Some(last)) => {
                format!("{}belay: {}\n", report.text(), one_line(&last))
            }
            (Format::Text, None) => report.text(),
            (Format::Json, last) => Report { error: last, ..report }.json(),
        }
    }

    /// The report as it was asked for.
    pub(super) fn format(&self, report: &Report) -> String {
        match self.format {
            Format::Text => report.text(),
            Format::Json => report.json(),
        }
    }
}
