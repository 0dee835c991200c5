//! What the demo says, and how.

use std::time::Duration;

/// The width of a paragraph.
const WIDTH: usize = 100;

/// The heading of the summary.
pub(super) const SUMMARY: &str = "What was shown";

/// The heading of an act.
pub(super) fn title(text: &str) {
    println!("\n━━ {text} {}\n", "━".repeat(WIDTH.saturating_sub(text.chars().count() + 4)));
}

/// A sentence of the narrator.
pub(super) fn say(text: &str) {
    let mut line = String::from("▸");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            println!("{line}");
            " ".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    println!("{line}");
}

/// A fact that was read back.
pub(super) fn fact(text: &str) {
    println!("  ✔ {text}");
}

/// A command that is run for the viewer.
pub(super) fn command(line: &str) {
    println!("\n  $ {line}");
}

/// What a command printed.
pub(super) fn output(text: &str) {
    for line in text.trim_end().lines() {
        println!("  {line}");
    }
    println!();
}

/// One line for each act.
#[derive(Default)]
pub(super) struct Summary {
    rows: Vec<(&'static str, String, Duration)>,
}

impl Summary {
    pub(super) fn add(&mut self, act: &'static str, outcome: String, time: Duration) {
        self.rows.push((act, outcome, time));
    }

    pub(super) fn print(&self, whole: Duration) {
        title(SUMMARY);
        let width = self.rows.iter().map(|(act, ..)| act.chars().count()).max().unwrap_or_default();
        for (act, outcome, time) in &self.rows {
            let pad = " ".repeat(width - act.chars().count());
            println!("  ✔ {act}{pad}  {:>5.1} s  {outcome}", time.as_secs_f64());
        }
        println!("\n  all of it in {:.0} s", whole.as_secs_f64());
    }
}
