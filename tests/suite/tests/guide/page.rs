//! What a page of the guide has for the executor: commands with what they print, and files.

use anyhow::{Result, bail, ensure};
use belay_suite::helms::Major;

/// What a block of commands that nothing runs is marked as.
const TEXT: [&str; 4] = ["json", "sh", "text", "yaml"];

/// Why a command may be left out: it needs a cloud, GitHub itself, or a container engine.
const REASONS: [&str; 3] = ["cloud", "github", "engine"];

/// A page, as one Helm runs it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// What is done, in its order.
    pub(crate) steps: Vec<Step>,
    /// The commands that are not run, each as `REASON: COMMAND`.
    pub(crate) not_run: Vec<String>,
    /// Whether a block belongs to one Helm, so that the page is run with each.
    pub(crate) for_each_helm: bool,
}

/// One step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A command, with its place in the page and what is shown of its output.
    Command { line: usize, command: String, shown: Vec<String> },
    /// A file that the page shows.
    File { name: String, text: String },
}

/// A fenced block: the line of its opening fence, what follows the fence, what is in it.
struct Block<'p> {
    line: usize,
    info: &'p str,
    lines: Vec<&'p str>,
}

impl Page {
    /// Reads a page.
    pub(crate) fn read(text: &str, major: Major) -> Result<Self> {
        let mut page = Self::default();
        for block in blocks(text)? {
            page.add(&block, major)?;
        }
        Ok(page)
    }

    fn add(&mut self, block: &Block<'_>, major: Major) -> Result<()> {
        let Block { line, info, .. } = *block;
        match (info, major) {
            ("console", _) => self.session(block),
            ("console helm3", Major::Three) | ("console helm4", Major::Four) => {
                self.for_each_helm = true;
                self.session(block)
            }
            ("console helm3" | "console helm4", _) => {
                self.for_each_helm = true;
                Ok(())
            }
            (info, _) if info.starts_with("console not-run=") => self.left_out(block),
            (info, _) if info.starts_with("yaml file=") => {
                let name = info.trim_start_matches("yaml file=").to_owned();
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                ensure!(name.chars().all(plain), "line {line}: {name:?} is no plain name");
                self.steps.push(Step::File { name, text: block.lines.join("\n") + "\n" });
                Ok(())
            }
            (info, _) if TEXT.contains(&info) => {
                let command = block.lines.iter().find(|line| line.starts_with("$ "));
                ensure!(command.is_none(), "line {line}: nothing runs {command:?}");
                Ok(())
            }
            (info, _) => bail!("line {line}: a block is marked {info:?}"),
        }
    }

    fn session(&mut self, block: &Block<'_>) -> Result<()> {
        let first = self.steps.len();
        for (number, text) in (block.line + 1..).zip(&block.lines) {
            if let Some(command) = text.strip_prefix("$ ") {
                let command = command.to_owned();
                self.steps.push(Step::Command { line: number, command, shown: Vec::new() });
                continue;
            }
            let step = self.steps[first..].last_mut();
            let Some(Step::Command { command, shown, .. }) = step else {
                bail!("line {number} has no command");
            };
            match text.strip_prefix("> ") {
                Some(more) if shown.is_empty() => {
                    command.push('\n');
                    command.push_str(more);
                }
                _ => shown.push((*text).to_owned()),
            }
        }
        Ok(())
    }

    fn left_out(&mut self, block: &Block<'_>) -> Result<()> {
        let reason = block.info.trim_start_matches("console not-run=");
        let line = block.line;
        ensure!(REASONS.contains(&reason), "line {line}: {reason:?} is no reason to leave it out");
        let commands = block.lines.iter().filter_map(|text| text.strip_prefix("$ "));
        self.not_run.extend(commands.map(|command| format!("{reason}: {command}")));
        Ok(())
    }
}

fn blocks(text: &str) -> Result<Vec<Block<'_>>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (line, text) in (1..).zip(text.lines()) {
        match (text.strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(info), None) => open = Some(Block { line, info, lines: Vec::new() }),
            (None, Some(mut block)) => {
                block.lines.push(text);
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    let left = open.map(|block| block.line);
    ensure!(left.is_none(), "the block of line {left:?} has no end");
    Ok(blocks)
}
