//! The shell that outlives its owner by a moment.

use std::{
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
};

use crate::TestbedError;

/// Reads `+PID` and `-PID` until its input ends, then kills, keeps the logs, removes the folder.
///
/// A child that has ended stays a zombie until its owner reaps it and says `-PID`, so no number in
/// the list can belong to another process while the owner lives. The last line ends whatever else
/// is in the group, the shell itself included.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
pids=' '
while read -r line; do
  case $line in
    +*) pids="$pids${line#+} " ;;
    -*) pids=$(printf %s "$pids" | sed "s/ ${line#-} / /") ;;
  esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
mkdir -p "$(dirname "$2")" && mv "$1/logs" "$2" 2>/dev/null
rm -rf "$1" "$1.owner"
kill -KILL 0
"#;

/// A handle on the shell; the last one dropped ends the run.
#[derive(Debug, Clone)]
pub(super) struct Supervisor {
    group: i32,
    pipe: Arc<Mutex<ChildStdin>>,
}

impl Supervisor {
    pub(super) fn start(folder: &Path, kept_logs: &Path) -> Result<Self, TestbedError> {
        let shell = Path::new("/bin/sh");
        let failed = |source| TestbedError::Start {
            name: "the supervisor".to_owned(),
            program: shell.to_owned(),
            source,
        };
        let mut child = Command::new(shell)
            .args(["-c", SCRIPT, "belay-supervisor"])
            .args([folder, kept_logs])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let pipe =
            child.stdin.take().ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        let group = i32::try_from(child.id())
            .map_err(|_| failed(std::io::ErrorKind::InvalidData.into()))?;
        Ok(Self { group, pipe: Arc::new(Mutex::new(pipe)) })
    }

    pub(super) fn group(&self) -> i32 {
        self.group
    }

    pub(super) fn id(&self) -> u32 {
        self.group.unsigned_abs()
    }

    pub(super) fn add(&self, pid: u32) {
        self.tell('+', pid);
    }

    pub(super) fn remove(&self, pid: u32) {
        self.tell('-', pid);
    }

    fn tell(&self, sign: char, pid: u32) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a supervisor the next start clears up.
        let _ = writeln!(pipe, "{sign}{pid}").and_then(|()| pipe.flush());
    }
}
