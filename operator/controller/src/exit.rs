//! How the program ends: the one table of exit codes, from which the reference is generated too.

use std::process::ExitCode;

/// How a run of the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// An error.
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
            Self::Done => {
                "`run` was told to stop (SIGTERM or SIGINT) and has; `explain` has printed its result; \
                 `release-pauses` has left no pause"
            }
            Self::Failed => {
                "an error, told on standard error: `run` cannot start or go on, `explain` cannot read \
                 the repository, `release-pauses` has left pauses or does not know"
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
