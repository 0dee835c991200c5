//! Runs whose owner and supervisor were both killed.
//!
//! Each run's folder holds a lock file that the kernel releases with its owner, and a list of the
//! processes started. A process is killed only if its environment still names the folder, so a
//! number that was given to another program meanwhile does no harm. (Where there is no `/proc`, the
//! supervisor is the only guard.)

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::process::{Pid, Signal, kill_process};

use super::RUN_VARIABLE;
use crate::TestbedError;

/// Logs of this many runs are kept; the failed one is among them.
const KEPT_LOGS: usize = 20;

fn lock_file(folder: &Path) -> PathBuf {
    folder.with_extension("owner")
}

/// Makes the folder and takes its lock.
pub(super) fn claim(folder: &Path) -> Result<File, TestbedError> {
    let path = lock_file(folder);
    let file = File::create(&path).map_err(TestbedError::file("create", &path))?;
    file.try_lock()
        .map_err(|error| TestbedError::file("lock", &path)(std::io::Error::other(error)))?;
    fs::create_dir_all(folder).map_err(TestbedError::file("create", folder))?;
    Ok(file)
}

/// Notes a started process.
pub(super) fn record(folder: &Path, pid: u32) {
    let appended = File::options()
        .create(true)
        .append(true)
        .open(folder.join("pids"))
        .and_then(|mut file| writeln!(file, "{pid}"));
    // Only the second line of defence depends on it.
    drop(appended);
}

/// Kills and removes every run that nobody owns any more, and thins out kept logs.
pub(super) fn clear(runs: &Path, kept_logs: &Path) {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.extension().is_none_or(|extension| extension != "owner") {
            continue;
        }
        let Ok(owner) = File::options().write(true).open(&path) else { continue };
        if owner.try_lock().is_err() {
            continue;
        }
        let folder = path.with_extension("");
        for pid in fs::read_to_string(folder.join("pids")).unwrap_or_default().lines() {
            kill_if_ours(pid, &folder);
        }
        // What cannot be removed now is tried again at the next start.
        let _ = fs::remove_dir_all(&folder);
        let _ = fs::remove_file(&path);
    }
    thin_out(kept_logs);
}

fn kill_if_ours(pid: &str, folder: &Path) {
    let Some(id) = pid.parse().ok().and_then(Pid::from_raw) else { return };
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mark = format!("{RUN_VARIABLE}={}", folder.display());
    if environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()) {
        let _ = kill_process(id, Signal::KILL);
    }
}

fn thin_out(kept_logs: &Path) {
    let mut folders: Vec<(SystemTime, PathBuf)> = fs::read_dir(kept_logs)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    folders.sort();
    let surplus = folders.len().saturating_sub(KEPT_LOGS);
    for (_, folder) in folders.into_iter().take(surplus) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_owned_is_left_alone_and_an_orphan_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (owned, orphan) = (dir.path().join("owned-1"), dir.path().join("orphan-2"));
        let held = claim(&owned).unwrap();
        drop(claim(&orphan).unwrap());
        clear(dir.path(), &dir.path().join("logs"));
        assert!(owned.is_dir());
        assert!(!orphan.exists() && !lock_file(&orphan).exists());
        drop(held);
    }

    #[test]
    fn a_process_that_does_not_belong_to_the_run_is_never_killed() {
        let dir = tempfile::tempdir().unwrap();
        let orphan = dir.path().join("orphan-1");
        drop(claim(&orphan).unwrap());
        // This very process: were it killed, the test could not pass.
        record(&orphan, std::process::id());
        clear(dir.path(), &dir.path().join("logs"));
        assert!(!orphan.exists());
    }

    #[test]
    fn only_the_newest_logs_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..KEPT_LOGS + 3 {
            fs::create_dir(dir.path().join(format!("run-{number}"))).unwrap();
        }
        thin_out(dir.path());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), KEPT_LOGS);
    }
}
