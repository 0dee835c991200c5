//! Where the report of the last run is kept: Helm swallows what a post-renderer prints.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The file of the report unless `--log-file` names one: below `$XDG_STATE_HOME`, else
/// `~/.local/state`; on Windows below `%LOCALAPPDATA%`. `None` where there is no such folder.
pub fn default_path(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let state = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        // The XDG specification: a relative path is not valid.
        variable("XDG_STATE_HOME")
            .and_then(absolute)
            .or_else(|| Some(variable("HOME").and_then(absolute)?.join(".local/state")))
    };
    Some(state?.join("belay").join("last-run.log"))
}

/// Replaces the report; readable by its owner alone. Whoever reads it meanwhile finds a whole one, or
/// for a moment none.
///
/// # Errors
/// The file cannot be written; never a reason to fail a run.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Ok(known) = fs::symlink_metadata(path) {
        if misleads(path, &known) {
            return Err(io::Error::other("it is a pipe, or standard output"));
        }
        // Something that is no regular file (a terminal) is written to, not replaced.
        if !known.is_file() {
            return fs::write(path, text);
        }
    } else if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let written = write_private(&beside, text).and_then(|()| {
        // Some file systems write a file to the disk when it is renamed over another one, which
        // takes as long as all the rest; a report is not worth it.
        let _ = fs::remove_file(path);
        fs::rename(&beside, path)
    });
    if written.is_err() {
        // What is left of the attempt; the first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Whether a report there would end up among the manifests, or wait for a reader for ever; `known` is
/// of `path` itself, which may be a link.
#[cfg(unix)]
fn misleads(path: &Path, known: &fs::Metadata) -> bool {
    use std::os::{
        fd::AsFd as _,
        unix::fs::{FileTypeExt as _, MetadataExt as _},
    };
    let led = known.is_symlink().then(|| fs::metadata(path));
    let there = match &led {
        None => known,
        Some(Ok(there)) => there,
        Some(Err(_)) => return false,
    };
    let stdout = io::stdout().as_fd().try_clone_to_owned().map(fs::File::from);
    let stdout = stdout.and_then(|stdout| stdout.metadata());
    there.file_type().is_fifo()
        || stdout.is_ok_and(|stdout| (stdout.dev(), stdout.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn misleads(_: &Path, _: &fs::Metadata) -> bool {
    false
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = match options.open(path) {
        // In a folder that others can write to, the name may be somebody's link: never follow one.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)?
        }
        opened => opened?,
    };
    io::Write::write_all(&mut file, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::xdg(Some("/state"), Some("/users/u"), Some("/state/belay/last-run.log"))]
    #[case::home(None, Some("/users/u"), Some("/users/u/.local/state/belay/last-run.log"))]
    #[case::relative(
        Some("state"),
        Some("/users/u"),
        Some("/users/u/.local/state/belay/last-run.log")
    )]
    #[case::nothing(None, None, None)]
    fn the_report_is_kept_where_state_belongs(
        #[case] xdg: Option<&str>,
        #[case] home: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let variable = |name: &str| match name {
            "XDG_STATE_HOME" => xdg.map(PathBuf::from),
            "HOME" => home.map(PathBuf::from),
            _ => None,
        };
        assert_eq!(default_path(variable), expected.map(PathBuf::from));
    }

    #[test]
    fn a_report_replaces_the_one_before_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/last-run.log");
        write(&path, "first, and longer\n").unwrap();
        write(&path, "second\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second\n");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        write(&file.join("belay/last-run.log"), "text").unwrap_err();
    }
}
