//! Processes that never outlive the test that started them.
//!
//! A [`Run`] is one folder and one process group. The group's leader is a small shell, the
//! supervisor, that reads from a pipe whose only other end is held by the owner. However the owner
//! ends (return, panic, `exit`, SIGKILL), the pipe closes; the supervisor then kills what it was told
//! of, keeps the logs, and removes the folder. Should the supervisor be killed too, the next start
//! finds a folder whose lock nobody holds and does the same: see [`stale`].

mod stale;
mod supervisor;

use std::{
    fs::{self, File},
    io::Write as _,
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use belay_components::Cache;

use crate::{TestbedError, wait};
use supervisor::Supervisor;

/// The variable by which a process of a run is recognised later.
pub(crate) const RUN_VARIABLE: &str = "BELAY_TESTBED_RUN";

/// A folder with data and logs of one test bed, and the processes that use it.
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    logs: PathBuf,
    supervisor: Supervisor,
    // Held, not read: its release tells the next start that the owner is gone.
    _owner: File,
}

/// One started component. Dropping it stops it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Mutex<Child>,
    log: PathBuf,
    supervisor: Supervisor,
}

impl Run {
    /// Makes a new run below `cache`, after clearing away what killed runs left behind.
    ///
    /// # Errors
    /// When the folder cannot be made or no shell can be started.
    pub fn start(cache: &Cache, name: &str) -> Result<Self, TestbedError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let runs = cache.runs();
        fs::create_dir_all(&runs).map_err(TestbedError::file("create", &runs))?;
        let kept_logs = cache.root().join("logs");
        stale::clear(&runs, &kept_logs);
        let id = format!("{name}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = runs.join(&id);
        let logs = folder.join("logs");
        let owner = stale::claim(&folder)?;
        fs::create_dir_all(&logs).map_err(TestbedError::file("create", &logs))?;
        let supervisor = Supervisor::start(&folder, &kept_logs.join(&id))?;
        Ok(Self { folder, logs, supervisor, _owner: owner })
    }

    /// The run's folder; gone soon after the run is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the logs are while the run lives.
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// The process id of the supervisor: for tests that kill it too.
    pub fn supervisor_id(&self) -> u32 {
        self.supervisor.id()
    }

    /// Starts a program in the run's process group with both outputs in one log file.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&self, name: &str, mut command: Command) -> Result<Process, TestbedError> {
        let log = self.logs.join(format!("{name}.log"));
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(TestbedError::file("create", &log))?;
        let copy = output.try_clone().map_err(TestbedError::file("open", &log))?;
        let program = PathBuf::from(command.get_program());
        let child = command
            .env(RUN_VARIABLE, &self.folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(copy)
            .process_group(self.supervisor.group())
            .spawn()
            .map_err(|source| TestbedError::Start { name: name.to_owned(), program, source })?;
        self.supervisor.add(child.id());
        stale::record(&self.folder, child.id());
        Ok(Process {
            name: name.to_owned(),
            child: Mutex::new(child),
            log,
            supervisor: self.supervisor.clone(),
        })
    }
}

impl Process {
    /// Its name in messages and in the log folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child().id()
    }

    /// Its log file.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Waits until `look` says ready; a process that ends meanwhile is an error at once.
    ///
    /// # Errors
    /// [`TestbedError::Died`] with its last words, or [`TestbedError::NotReady`].
    pub async fn ready<F>(
        &self,
        within: Duration,
        mut look: impl FnMut() -> F,
    ) -> Result<(), TestbedError>
    where
        F: Future<Output = Result<(), String>>,
    {
        let start = Instant::now();
        loop {
            let last = match look().await {
                Ok(()) => return Ok(()),
                Err(last) => last,
            };
            if let Some(status) = self.ended() {
                return Err(TestbedError::Died {
                    name: self.name.clone(),
                    status: status.to_string(),
                    tail: self.last_words(),
                    log: self.log.clone(),
                });
            }
            if start.elapsed() >= within {
                let (name, log) = (self.name.clone(), self.log.clone());
                return Err(TestbedError::NotReady { name, within, last, log });
            }
            wait::pause().await;
        }
    }

    /// Its exit status, if it has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }

    /// Kills it (SIGKILL) and waits for its end.
    pub fn kill(&self) {
        let mut child = self.child();
        // An error means that it has ended already.
        let _ = child.kill();
        let _ = child.wait();
        self.supervisor.remove(child.id());
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where test servers listen: below the range from which systems give ports to outgoing connections
/// (32768 and up on Linux, 49152 and up elsewhere), so that none of these takes a port between our
/// look and its server's start.
const PORTS: std::ops::Range<u32> = 10_240..32_000;

/// A loopback port that was free a moment ago, never the same twice from one process.
///
/// Each process begins elsewhere in the range. Should another one still take the port before its
/// server listens, that shows as a component that died with "address already in use".
///
/// # Errors
/// [`TestbedError::NoPort`] when every port of the range is taken.
pub fn free_port() -> Result<u16, TestbedError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let size = PORTS.end - PORTS.start;
    let first = std::process::id().wrapping_mul(97);
    let mut last = std::io::ErrorKind::AddrInUse.into();
    for _ in 0..size {
        let number = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let Ok(port) = u16::try_from(PORTS.start + number % size) else { continue };
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(TestbedError::NoPort(last))
}

/// Fails if `port` is in use.
///
/// # Errors
/// [`TestbedError::PortTaken`].
pub fn require_port(name: &str, port: u16) -> Result<(), TestbedError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map(drop)
        .map_err(|_| TestbedError::PortTaken { name: name.to_owned(), port })
}

/// Writes a file of the run, readable by its owner alone.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), TestbedError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(TestbedError::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_a_taken_one_never() {
        let ports: Vec<_> = (0..50).map(|_| free_port().unwrap()).collect();
        let mut distinct = ports.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), ports.len());
        assert!(ports.iter().all(|port| PORTS.contains(&u32::from(*port))));
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, free_port().unwrap())).unwrap();
        let taken = taken.local_addr().unwrap().port();
        assert!((0..50).all(|_| free_port().unwrap() != taken));
        require_port("etcd", taken).unwrap_err();
    }
}
