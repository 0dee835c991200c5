//! Exit codes (specification of the plugin, section C.5): the one table, from which help and reference
//! are made too.

use std::process::ExitCode;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, the condition is met, or there was nothing to do.
    Done,
    /// An error: the API server, rights, the connection, or something was not found.
    Error,
    /// Wrong usage, or a confirmation was needed and not given.
    Usage,
    /// It ran to its end and what it found is bad.
    Bad,
    /// A write was refused by a conflict.
    Conflict,
    /// `--timeout` passed.
    Timeout,
    /// Interrupted by the user.
    Interrupted,
    /// Nobody reads the output any more: what a shell reports of a program that SIGPIPE ended.
    ClosedPipe,
}

impl Exit {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Error,
        Self::Usage,
        Self::Bad,
        Self::Conflict,
        Self::Timeout,
        Self::Interrupted,
        Self::ClosedPipe,
    ];

    /// What it means, in words of the help.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Done => "done, the condition is met, or there was nothing to do",
            Self::Error => {
                "an error: the API server, rights, the connection, or something was not found"
            }
            Self::Usage => "wrong usage, or a confirmation was needed and not given",
            Self::Bad => "it ran to its end and what it found is bad",
            Self::Conflict => "a write was refused by a conflict",
            Self::Timeout => "--timeout passed",
            Self::Interrupted => "interrupted",
            Self::ClosedPipe => "nobody reads the output any more",
        }
    }

    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Error => 1,
            Self::Usage => 2,
            Self::Bad => 3,
            Self::Conflict => 4,
            Self::Timeout => 124,
            Self::Interrupted => 130,
            Self::ClosedPipe => 141,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}
