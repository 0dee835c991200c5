//! Everything that goes out, and what decides how: streams, terminal, environment, clock.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, BufRead, BufReader, IsTerminal as _, Write},
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;

use crate::print::{Line, Style};

/// What is known of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terminal {
    /// Standard input is one.
    pub stdin: bool,
    /// Standard output is one.
    pub stdout: bool,
    /// Standard error is one.
    pub stderr: bool,
    /// Columns; `None` if standard output is none.
    pub width: Option<u16>,
    /// Rows.
    pub height: Option<u16>,
}

/// The time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// That of the machine.
    System,
    /// Always the same.
    Fixed(Timestamp),
}

/// A variable of the environment, by name.
pub type Environment = BTreeMap<String, String>;

/// The one way out.
pub struct Out {
    stdin: Box<dyn BufRead + Send>,
    stdout: Box<dyn Write + Send>,
    stderr: Box<dyn Write + Send>,
    /// What the streams are connected to.
    pub terminal: Terminal,
    /// The environment as it was at the start.
    pub environment: Environment,
    clock: Clock,
    /// Colour and characters of standard output.
    pub style: Style,
    /// Colour and characters of standard error.
    pub error_style: Style,
}

impl fmt::Debug for Out {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

/// What a test reads of a run.
#[derive(Debug, Clone, Default)]
pub struct Captured {
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
}

/// Bytes that were written.
#[derive(Debug, Clone, Default)]
pub struct Stream(Arc<Mutex<Vec<u8>>>);

impl Stream {
    /// All that was written so far.
    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Out {
    /// The process's own streams, environment and clock.
    pub fn real() -> Self {
        let size = terminal_size::terminal_size();
        let terminal = Terminal {
            stdin: io::stdin().is_terminal(),
            stdout: io::stdout().is_terminal(),
            stderr: io::stderr().is_terminal(),
            width: size.map(|(width, _)| width.0),
            height: size.map(|(_, height)| height.0),
        };
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self {
            stdin: Box::new(BufReader::new(io::stdin())),
            stdout: Box::new(io::BufWriter::new(io::stdout())),
            stderr: Box::new(io::stderr()),
            terminal,
            environment,
            clock: Clock::System,
            style: Style::default(),
            error_style: Style::default(),
        }
    }

    /// Streams that are kept, and a clock that stands still: for tests.
    pub fn captured(
        now: Timestamp,
        terminal: Terminal,
        environment: Environment,
        stdin: &str,
    ) -> (Self, Captured) {
        let captured = Captured::default();
        let out = Self {
            stdin: Box::new(io::Cursor::new(stdin.to_owned())),
            stdout: Box::new(captured.stdout.clone()),
            stderr: Box::new(captured.stderr.clone()),
            terminal,
            environment,
            clock: Clock::Fixed(now),
            style: Style::default(),
            error_style: Style::default(),
        };
        (out, captured)
    }

    /// Goes on with another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        match self.clock {
            Clock::System => Timestamp::now(),
            Clock::Fixed(time) => time,
        }
    }

    /// Columns and rows of the terminal now; a usual size where it is not known.
    pub fn size(&self) -> (usize, usize) {
        let known = (self.terminal.width, self.terminal.height);
        let (width, height) = match self.clock {
            Clock::System => terminal_size::terminal_size()
                .map_or(known, |(width, height)| (Some(width.0), Some(height.0))),
            Clock::Fixed(_) => known,
        };
        (width.map_or(80, usize::from), height.map_or(24, usize::from))
    }

    /// A variable of the environment that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A line of the answer, on standard output.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn line(&mut self, line: impl Into<Line>) -> io::Result<()> {
        let text = line.into().render(self.style);
        writeln!(self.stdout, "{text}")
    }

    /// A line for people beside the answer, on standard error: a warning, a hint, a note.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&mut self, line: impl Into<Line>) -> io::Result<()> {
        self.stdout.flush()?;
        let text = line.into().render(self.error_style);
        writeln!(self.stderr, "{text}")
    }

    /// Asks on standard error and reads one line of standard input; `None` at its end. Whoever asks
    /// has made sure that both are terminals.
    ///
    /// # Errors
    /// The streams cannot be used.
    pub fn ask(&mut self, question: impl Into<Line>) -> io::Result<Option<String>> {
        self.stdout.flush()?;
        let text = question.into().render(self.error_style);
        write!(self.stderr, "{text}")?;
        self.stderr.flush()?;
        let mut answer = String::new();
        let count = self.stdin.read_line(&mut answer)?;
        Ok((count > 0).then(|| answer.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// All of standard input, at most `limit` bytes.
    ///
    /// # Errors
    /// It cannot be read, or is longer.
    pub fn read_stdin(&mut self, limit: u64) -> io::Result<Vec<u8>> {
        use io::Read as _;
        let mut bytes = Vec::new();
        self.stdin.by_ref().take(limit + 1).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > limit) {
            return Err(io::Error::other(format!("it is longer than {limit} bytes")));
        }
        Ok(bytes)
    }

    /// Text of the answer as it is, for programs: nothing of it is cleaned or coloured.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn raw(&mut self, text: &str) -> io::Result<()> {
        self.stdout.write_all(text.as_bytes())
    }

    /// Sends what is buffered.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()?;
        self.stderr.flush()
    }
}
