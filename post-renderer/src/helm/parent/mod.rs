//! Who runs this program.

mod name;
#[cfg(any(target_os = "macos", test))]
mod ps;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use super::{Command, Doubt, Invocation, command_line};

/// Whose command line is read at most, in bytes: as much as Linux lets a program start with by
/// default.
#[cfg(any(target_os = "linux", test))]
const MOST_BYTES: usize = 2 << 20;

/// The parent process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a process has one parent")]
pub enum Parent {
    /// A Helm, with its command line.
    Helm(Invocation),
    /// Another program.
    Other {
        /// The base name of its executable and nothing of its arguments, which may hold secrets; a
        /// Helm that runs a plugin's command is said to do so.
        program: String,
    },
    /// It does not show.
    Hidden {
        /// Why not, as part of a sentence.
        why: String,
    },
}

impl Parent {
    /// The command line of the Helm that it is.
    pub fn helm(&self) -> Option<&Invocation> {
        match self {
            Self::Helm(invocation) => Some(invocation),
            Self::Other { .. } | Self::Hidden { .. } => None,
        }
    }
}

/// The parent's process ID at this moment: another one than before says that the parent has ended,
/// for its children then have another one. `None` where the platform does not tell.
#[cfg(unix)]
pub fn id() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// The parent's process ID at this moment, which this platform does not tell.
#[cfg(not(unix))]
pub fn id() -> Option<u32> {
    None
}

/// Looks at the parent process.
pub fn look() -> Parent {
    let first = id();
    let seen = match first {
        None => Err("this platform does not show it".to_owned()),
        Some(0) => Err("it runs in another PID namespace".to_owned()),
        Some(id) => platform::process(id),
    };
    // Only now is it sure that what was read was the parent's, and not of a process that came to
    // have its number.
    let seen = if id() == first { seen } else { Err("it ended while it was looked at".to_owned()) };
    seen.map_or_else(|why| Parent::Hidden { why }, judge)
}

/// A process, as its platform shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    /// Its executable, where that shows.
    executable: Option<String>,
    /// Its arguments, the program's name first.
    arguments: Vec<String>,
    /// Whether they were parted at blanks, for want of better marks.
    guessed: bool,
    /// What is odd about them.
    doubt: Option<Doubt>,
    /// The folder it runs in, where that shows.
    folder: Option<PathBuf>,
}

/// Tells what a process is.
fn judge(process: Process) -> Parent {
    let Process { executable, arguments, guessed, doubt, folder } = process;
    let called = executable.as_deref().or(arguments.first().map(String::as_str));
    let Some(program) = called.map(name::base).filter(|name| !name.is_empty()) else {
        return Parent::Hidden { why: "neither its executable nor its name shows".to_owned() };
    };
    if !name::is_helm(program) {
        return Parent::Other { program: program.to_owned() };
    }
    let arguments = arguments.get(1..).unwrap_or_default();
    let mut invocation =
        if guessed { command_line::parse_words(arguments) } else { command_line::parse(arguments) };
    if let Some(doubt) = doubt {
        invocation = invocation.doubted(doubt);
    }
    if invocation.command == Command::Foreign {
        return Parent::Other { program: format!("{program} (a plugin's command)") };
    }
    // Helm starts a post-renderer in the folder it runs in itself.
    if let Some(folder) = folder.or_else(|| std::env::current_dir().ok()) {
        invocation = invocation.resolve(&folder);
    }
    Parent::Helm(invocation)
}

#[cfg(any(target_os = "linux", test))]
mod proc {
    //! What Linux shows, in `/proc`.

    use std::{fs, io::Read as _};

    use super::{Doubt, MOST_BYTES, Process, name};

    /// A process; of one whose executable is no Helm nothing else is read, as nothing else counts.
    pub(super) fn process(id: u32) -> Result<Process, String> {
        match executable(id) {
            Some(program) if !name::is_helm(name::base(&program)) => {
                let arguments = Vec::new();
                let executable = Some(program);
                Ok(Process { executable, arguments, guessed: false, doubt: None, folder: None })
            }
            executable => whole(id, executable),
        }
    }

    /// Its executable, where that shows.
    pub(super) fn executable(id: u32) -> Option<String> {
        let path = fs::read_link(format!("/proc/{id}/exe")).ok()?;
        let path = path.to_string_lossy();
        Some(path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned())
    }

    /// A process with all that counts of a Helm.
    pub(super) fn whole(id: u32, executable: Option<String>) -> Result<Process, String> {
        let folder = format!("/proc/{id}");
        // Room for most command lines: each further read looks into the other process anew.
        let mut bytes = Vec::with_capacity(4 << 10);
        let unreadable = |cause| format!("its command line could not be read: {cause}");
        let file = fs::File::open(format!("{folder}/cmdline")).map_err(unreadable)?;
        let limit = u64::try_from(MOST_BYTES + 1).unwrap_or(u64::MAX);
        file.take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
        let (arguments, doubt) = arguments(&bytes)?;
        let folder = fs::read_link(format!("{folder}/cwd")).ok();
        Ok(Process { executable, arguments, guessed: false, doubt, folder })
    }

    /// Parts the bytes of a `cmdline` file, and says what is wrong with them.
    pub(super) fn arguments(bytes: &[u8]) -> Result<(Vec<String>, Option<Doubt>), String> {
        if bytes.len() > MOST_BYTES {
            return Err(format!("its command line is longer than {MOST_BYTES} bytes"));
        }
        if bytes.is_empty() {
            return Err("its command line is empty".to_owned());
        }
        let text = String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(bytes));
        let doubt = matches!(text, std::borrow::Cow::Owned(_)).then_some(Doubt::Encoding);
        Ok((text.split('\0').map(str::to_owned).collect(), doubt))
    }
}

#[cfg(target_os = "linux")]
use proc as platform;

#[cfg(target_os = "macos")]
mod platform {
    //! What macOS shows, through `ps`.

    pub(super) fn process(id: u32) -> Result<super::Process, String> {
        let ask = |column| super::ps::ask("/bin/ps", column, id);
        Ok(super::ps::process(&ask("comm=")?, &ask("command=")?))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod platform {
    pub(super) fn process(_: u32) -> Result<super::Process, String> {
        Err("this platform does not show it".to_owned())
    }
}
