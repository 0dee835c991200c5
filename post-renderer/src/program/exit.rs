//! How a run ends: the one table of exit codes, from which the reference is generated too.

use std::process::ExitCode;

/// How a run ended. Helm takes anything but [`Done`](Self::Done) for a failure, and applies nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The output is written.
    Done,
    /// Refused, failed, or ended from outside.
    Failed,
    /// Wrong usage.
    Usage,
}

impl Exit {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Done, Self::Failed, Self::Usage];

    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
        }
    }

    /// What it means, in words of the reference.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Done => "the manifests are written; with `--explain`, the report",
            Self::Failed => {
                "refused or failed, or ended by a signal, by the end of its parent or by `--timeout`; \
                 standard error says why, and Helm stops"
            }
            Self::Usage => "an option or a variable is unknown, or has a value that cannot be read",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
