//! What ends a run from outside: a signal, a parent that is gone, the deadline. Helm waits for a
//! post-renderer without limit, and a Helm that is killed leaves it running (the lab report, item
//! 10), so a run looks after itself.

use std::{
    cell::OnceCell,
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
    program::{cli::Format, exit::Exit, waits},
    report::{Report, file},
};

/// How often is looked whether somebody wants the run to end.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// What may end a run from outside.
///
/// To look for it takes a thread where the run itself may be blocked in a read or a write for ever. On
/// Linux that thread is started only before the run does something of that kind: a thread costs more
/// than all that most runs decide. In the other waits, those of [`super::waits`] and for the server,
/// the run looks itself.
#[derive(Debug)]
pub(super) struct Guard {
    watch: Arc<Watch>,
    /// Of the thread, which goes with the process: to wake it at the end would take longer.
    wake: OnceCell<mpsc::Sender<()>>,
}

/// What is looked for.
#[derive(Debug)]
struct Watch {
    start: Instant,
    timeout: Duration,
    parent: Option<u32>,
    signals: [(Arc<AtomicBool>, &'static str); 2],
    done: AtomicBool,
    last_words: LastWords,
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
    /// Takes signals, and the time. From now on the process ends with exit code 1 as soon as one of
    /// the three happens and somebody looks: the thread, or the run itself.
    pub(super) fn start(timeout: Duration, parent: Option<u32>, last_words: LastWords) -> Self {
        let start = Instant::now();
        let signals = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")].map(|(signal, name)| {
            let flag = Arc::new(AtomicBool::new(false));
            // Without the handler the signal ends the process all the same, with another code.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
            (flag, name)
        });
        let done = AtomicBool::new(false);
        let watch = Arc::new(Watch { start, timeout, parent, signals, done, last_words });
        let guard = Self { watch, wake: OnceCell::new() };
        if !waits::CAN_BE_SHORT {
            guard.watch();
        }
        guard
    }

    /// Looks from now on by a thread, since the run may be about to wait.
    pub(super) fn watch(&self) {
        self.wake.get_or_init(|| {
            let (wake, woken) = mpsc::channel();
            let watch = Arc::clone(&self.watch);
            thread::spawn(move || {
                while woken.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                    if watch.done.load(Ordering::Acquire) {
                        return;
                    }
                    watch.look();
                }
            });
            wake
        });
    }

    /// Whether the thread looks.
    pub(super) fn watches(&self) -> bool {
        self.wake.get().is_some()
    }

    /// Ends the process if that is due and the thread does not look: every [`LOOK`] of a wait, and
    /// before anything is written.
    pub(super) fn look(&self) {
        if !self.watches() {
            self.watch.look();
        }
    }

    /// Ends the watch: all that can hang is over.
    pub(super) fn end(&mut self) {
        self.watch.done.store(true, Ordering::Release);
        // Dropped, it would wake the thread.
        mem::forget(self.wake.take());
    }
}

impl Watch {
    /// Ends the process if that is due.
    fn look(&self) {
        let Self { start, timeout, parent, signals, last_words, .. } = self;
        let signal = signals.iter().find(|(flag, _)| flag.load(Ordering::Relaxed));
        let why = if let Some((_, name)) = signal {
            format!("ended by {name}")
        } else if parent::id() != *parent {
            "ended, since the process that started it is gone".to_owned()
        } else if start.elapsed() >= *timeout {
            let waiting = last_words.so_far.waiting();
            format!("not done within {timeout:?}{waiting}; allow more with --timeout")
        } else {
            return;
        };
        let written = last_words.so_far.written();
        last_words.say(&format!("{why}; {written}"));
        exit();
    }
}

#[expect(clippy::exit, reason = "the other thread may be blocked in a read or a write for ever")]
fn exit() -> ! {
    std::process::exit(Exit::Failed.code().into())
}

impl LastWords {
    /// Keeps a report and tells the error.
    fn say(&self, why: &str) {
        let error = Some(why.to_owned());
        let report = Report { succeeded: false, error, ..self.so_far.get() };
        let kept = self.keep(&self.format(&report));
        // Nobody may be left to read it.
        let _ = std::io::stderr().write_all(self.shown(report, kept.as_deref()).as_bytes());
    }

    /// Writes the report file; where it is, if that worked.
    pub(super) fn keep(&self, text: &str) -> Option<PathBuf> {
        let path = self.log_file.clone()?;
        file::write(&path, text).ok().map(|()| path)
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
