//! A pseudo-terminal for programs that behave otherwise where a person looks.

use std::{fs::File, os::fd::OwnedFd, path::PathBuf, process::Stdio};

use anyhow::{Context as _, Result};
use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Both ends of a pseudo-terminal.
#[derive(Debug)]
pub struct Pair {
    /// The end of the person: what is read here was shown, what is written here was typed.
    pub person: File,
    program: PathBuf,
}

impl Pair {
    /// Opens one of a size.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn open(rows: u16, columns: u16) -> Result<Self> {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&person)?;
        unlockpt(&person)?;
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&person, size)?;
        let path = ptsname(&person, Vec::new())?;
        let program = path.to_str().context("a terminal's name")?.into();
        Ok(Self { person: person.into(), program })
    }

    /// The end of the program, for one of its streams.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn stream(&self) -> Result<Stdio> {
        let file = File::options().read(true).write(true).open(&self.program)?;
        Ok(OwnedFd::from(file).into())
    }
}
