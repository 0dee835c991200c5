//! What can go wrong on the way to a binary.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a component could not be had. Every sentence ends with what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ComponentError {
    /// No place to keep binaries in.
    #[error("no cache folder: set BELAY_CACHE (or XDG_CACHE_HOME, or HOME)")]
    NoCacheFolder,
    /// A tool that builds components is not installed.
    #[error(
        "{tool} is not on PATH, and {wanted} is built with it: install {tool} ({from}), or set BELAY_COMPONENTS to a folder of ready binaries"
    )]
    ToolMissing {
        /// The tool's command.
        tool: &'static str,
        /// What was about to be built.
        wanted: String,
        /// Where people get it.
        from: &'static str,
    },
    /// A tool could not be started for another reason than being absent.
    #[error("could not start {} for {wanted}", tool.display())]
    Start {
        /// The tool as it was called.
        tool: PathBuf,
        /// What was about to be built.
        wanted: String,
        /// Why.
        source: io::Error,
    },
    /// A pin file is not what it should be.
    #[error("{}: {why}", file.display())]
    Pin {
        /// The pin file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A module could not be downloaded or its checksum differs from the pinned one.
    #[error("download of {module}: {why}")]
    Download {
        /// Module and version.
        module: String,
        /// Go's own words.
        why: String,
    },
    /// The build of one binary failed.
    #[error("build of {wanted} failed ({status}):\n{tail}")]
    Build {
        /// The binary or package.
        wanted: String,
        /// How the tool ended.
        status: String,
        /// The last lines it printed.
        tail: String,
    },
    /// The cache folder has no room.
    #[error("{} is full ({why}): free space there, or set BELAY_CACHE to another folder", folder.display())]
    CacheFull {
        /// The cache folder.
        folder: PathBuf,
        /// How it showed.
        why: String,
    },
    /// The cache folder could not be read or written.
    #[error("could not {what} {}", path.display())]
    Cache {
        /// What was attempted.
        what: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A folder of ready binaries lacks one.
    #[error("{what} is not in {}: put it there, or unset BELAY_COMPONENTS and KUBEBUILDER_ASSETS to have it built", folder.display())]
    NotGiven {
        /// What was looked for.
        what: String,
        /// Where.
        folder: PathBuf,
    },
}

impl ComponentError {
    /// An I/O error in the cache; a full disk gets its own sentence.
    pub(crate) fn cache(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::CacheFull { folder: path, why: format!("{what}: {source}") }
            }
            _ => Self::Cache { what, path, source },
        }
    }
}
