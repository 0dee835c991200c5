//! The cache folder: places in it, its lock, and how much room is left.

use std::{
    env, fs,
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::ComponentError;

/// What a cold build of everything needs at its peak: binaries, Go's build cache, and some reserve.
const ROOM_FOR_A_BUILD: u64 = 12 << 30;

/// The folder that outlives clones: `$BELAY_CACHE`, else `$XDG_CACHE_HOME/belay`, else `~/.cache/belay`.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Reads the environment.
    ///
    /// # Errors
    /// [`ComponentError::NoCacheFolder`] when nothing names a folder.
    pub fn from_env() -> Result<Self, ComponentError> {
        let var = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = var("BELAY_CACHE")
            .or_else(|| var("XDG_CACHE_HOME").map(|dir| dir.join("belay")))
            .or_else(|| var("HOME").map(|dir| dir.join(".cache/belay")))
            .ok_or(ComponentError::NoCacheFolder)?;
        Ok(Self { root })
    }

    /// A cache in a given folder.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder that `cargo xtask ci` keeps between clones.
    pub fn cargo_target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// Where running test beds keep their data and logs.
    pub fn runs(&self) -> PathBuf {
        self.root.join("run")
    }

    pub(crate) fn go_build(&self) -> PathBuf {
        self.root.join("go-build")
    }

    /// Removes Go's build cache, unless another build is using it.
    pub(crate) fn forget_go_build(&self) {
        let folder = self.go_build();
        if folder.is_dir() && self.lock().is_ok() {
            // What cannot be removed only takes room.
            let _ = fs::remove_dir_all(folder);
        }
    }

    pub(crate) fn entry(&self, name: &str, key: &str) -> PathBuf {
        self.root.join("components").join(name).join(key)
    }

    /// Takes the lock that serialises builds on this machine; it is released when the file is dropped,
    /// also when the process is killed.
    pub(crate) fn lock(&self) -> Result<File, ComponentError> {
        create_dir(&self.root)?;
        let path = self.root.join("components.lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(ComponentError::cache("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("components: waiting for another build ({})", path.display());
                file.lock().map_err(ComponentError::cache("lock", &path))?;
            }
            Err(TryLockError::Error(source)) => {
                return Err(ComponentError::cache("lock", &path)(source));
            }
        }
        Ok(file)
    }

    /// Fails before a long build rather than in its last minute.
    pub(crate) fn require_room(&self) -> Result<(), ComponentError> {
        self.require(ROOM_FOR_A_BUILD)
    }

    fn require(&self, wanted: u64) -> Result<(), ComponentError> {
        let stat = rustix::fs::statvfs(&self.root)
            .map_err(|errno| ComponentError::cache("look at", &self.root)(errno.into()))?;
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        if free < wanted {
            return Err(ComponentError::CacheFull {
                folder: self.root.clone(),
                why: format!("{} MiB free, a build needs {} MiB", free >> 20, wanted >> 20),
            });
        }
        Ok(())
    }
}

/// SHA-256 over length-prefixed parts, in hexadecimal: no two lists of parts share a key.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    HEXLOWER.encode(&hash.finalize())
}

pub(crate) fn create_dir(path: &Path) -> Result<(), ComponentError> {
    fs::create_dir_all(path).map_err(ComponentError::cache("create", path))
}

pub(crate) fn files_with_extension(
    folder: &Path,
    extension: &str,
) -> Result<Vec<PathBuf>, ComponentError> {
    let entries = fs::read_dir(folder).map_err(ComponentError::cache("list", folder))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(ComponentError::cache("list", folder))?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_before_the_build() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        cache.require(1).unwrap();
        let refused = cache.require(u64::MAX).unwrap_err().to_string();
        assert!(refused.contains(&dir.path().display().to_string()), "{refused}");
        assert!(refused.contains("is full") && refused.contains("set BELAY_CACHE"), "{refused}");
    }

    #[test]
    fn a_second_process_waits_for_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let held = cache.lock().unwrap();
        let second = File::open(dir.path().join("components.lock")).unwrap();
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        second.try_lock().unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = Cache::at(file.join("cache")).lock().unwrap_err().to_string();
        assert!(refused.contains("could not create"), "{refused}");
    }
}
