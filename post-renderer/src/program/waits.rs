//! Waits in which the run can look itself whether it has to end, and those that are known to be
//! short, so that no thread need watch (see [`super::guard`]). Where neither is known, one does.

use std::{io::Read, path::Path};

use crate::program::guard::{Guard, LOOK};

/// Whether anything can be known of the waits on this platform.
pub(super) const CAN_BE_SHORT: bool = cfg!(target_os = "linux");

/// So much of an input is read, edited and verified in less time than passes between two looks.
const LITTLE: usize = 64 << 10;

/// Standard input; while it lets the run wait, the run looks whether it has to end.
pub(super) struct Patient<'g, R> {
    from: R,
    guard: &'g Guard,
    is_pipe: bool,
}

impl<'g, R> Patient<'g, R> {
    /// `from` reads standard input.
    pub(super) fn new(from: R, guard: &'g Guard) -> Self {
        Self { from, guard, is_pipe: platform::stdin_is_pipe() }
    }
}

impl<R: Read> Read for Patient<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Self { from, guard, is_pipe } = self;
        if !*is_pipe {
            guard.watch();
        }
        while !guard.watches() {
            match platform::stdin_is_ready(LOOK) {
                Ok(true) => break,
                Ok(false) => guard.look(),
                Err(_) => guard.watch(),
            }
        }
        from.read(buffer)
    }
}

/// Watches unless the work on an input is short. An anchor lets a short text stand for a long one.
pub(super) fn before_work(guard: &Guard, input: &[u8]) {
    if input.len() > LITTLE || memchr::memchr(b'&', input).is_some() {
        guard.watch();
    }
}

/// Watches unless a file can be read without waiting for it.
pub(super) fn before_reading(guard: &Guard, path: &Path) {
    if !guard.watches() && !platform::is_at_hand(path) {
        guard.watch();
    }
}

/// Watches unless standard output takes so many bytes at once.
pub(super) fn before_writing(guard: &Guard, bytes: usize) {
    if !guard.watches() && !platform::stdout_takes(bytes) {
        guard.watch();
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::{io, path::Path, time::Duration};

    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        fs::{
            AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fstat, openat2, statx,
        },
        io::{Errno, ioctl_fionread},
        pipe::fcntl_getpipe_size,
        stdio::{stdin, stdout},
    };

    pub(super) fn stdin_is_pipe() -> bool {
        fstat(stdin()).is_ok_and(|known| FileType::from_raw_mode(known.st_mode).is_fifo())
    }

    /// Whether a pipe has something to read, or its end, within that time.
    pub(super) fn stdin_is_ready(within: Duration) -> io::Result<bool> {
        let stdin = stdin();
        let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
        let within = Timespec::try_from(within).map_err(io::Error::other)?;
        match poll(&mut asked, Some(&within)) {
            Ok(ready) => Ok(ready > 0),
            // A signal.
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether it is a pipe that has room for that many bytes: an empty one has as much as it holds.
    pub(super) fn stdout_takes(bytes: usize) -> bool {
        fcntl_getpipe_size(stdout()).is_ok_and(|holds| bytes <= holds)
            && ioctl_fionread(stdout()).is_ok_and(|unread| unread == 0)
    }

    /// Whether it is a regular file on a disk of this machine, to which the kernel knows the way. A
    /// pipe waits for its writer, a file of the network for its server, and so does the way there;
    /// neither question asks a server. File systems without a disk of their own count as remote.
    pub(super) fn is_at_hand(path: &Path) -> bool {
        let place = OFlags::PATH | OFlags::CLOEXEC;
        let found = openat2(CWD, path, place, Mode::empty(), ResolveFlags::CACHED);
        let known = found.and_then(|found| {
            let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
            statx(found, "", flags, StatxFlags::TYPE)
        });
        known.is_ok_and(|known| {
            let kind = FileType::from_raw_mode(known.stx_mode.into());
            kind.is_file() && known.stx_dev_major != 0
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::{io, path::Path, time::Duration};

    pub(super) fn stdin_is_pipe() -> bool {
        false
    }

    pub(super) fn stdin_is_ready(_: Duration) -> io::Result<bool> {
        Ok(false)
    }

    pub(super) fn stdout_takes(_: usize) -> bool {
        false
    }

    pub(super) fn is_at_hand(_: &Path) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_may_let_a_reader_wait_is_not_at_hand() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [&pipe, folder.path(), "/proc/self/status".as_ref(), "/nowhere".as_ref()] {
            assert!(!platform::is_at_hand(path), "{}", path.display());
        }
    }
}
