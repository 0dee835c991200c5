//! Colour and characters (specification of the plugin, section C.4).

use std::borrow::Cow;

use anstyle::{AnsiColor, Style as Ansi};

/// What a piece of text means; a colour never stands alone for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// Nothing in particular.
    #[default]
    Plain,
    /// It is as it should be.
    Good,
    /// It is under way, or worth a look.
    Warn,
    /// Somebody must act.
    Bad,
    /// Secondary.
    Dim,
    /// A heading.
    Bold,
    /// A field manager, by the hash of its name: the same one always has the same colour, which is
    /// neither that of good nor that of bad.
    Manager(u64),
}

impl Paint {
    /// The paint of a field manager.
    pub fn manager(name: &str) -> Self {
        // FNV-1a: the same in every run and version.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::Manager(hash)
    }

    fn ansi(self) -> Ansi {
        const MANAGERS: [AnsiColor; 6] = [
            AnsiColor::Cyan,
            AnsiColor::Blue,
            AnsiColor::Magenta,
            AnsiColor::BrightCyan,
            AnsiColor::BrightBlue,
            AnsiColor::BrightMagenta,
        ];
        match self {
            Self::Plain => Ansi::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Dim => Ansi::new().dimmed(),
            Self::Bold => Ansi::new().bold(),
            Self::Manager(hash) => {
                let count = u64::try_from(MANAGERS.len()).unwrap_or(1);
                let index = usize::try_from(hash % count).unwrap_or_default();
                MANAGERS.get(index).copied().unwrap_or(AnsiColor::Cyan).on_default()
            }
        }
    }
}

/// A sign that stands before a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icon {
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Somebody must act.
    Bad,
    /// Under way.
    Busy,
    /// At rest.
    Idle,
    /// Not begun, or not known.
    None,
}

impl Icon {
    /// The sign; [`Style::characters`] has the ASCII one.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "✔",
            Self::Warn => "⚠",
            Self::Bad => "✖",
            Self::Busy => "◌",
            Self::Idle => "•",
            Self::None => "–",
        }
    }

    /// The colour that goes with it.
    pub const fn paint(self) -> Paint {
        match self {
            Self::Good => Paint::Good,
            Self::Warn | Self::Busy => Paint::Warn,
            Self::Bad => Paint::Bad,
            Self::Idle | Self::None => Paint::Dim,
        }
    }
}

/// How one stream is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Escape codes for colour.
    pub colour: bool,
    /// ASCII characters alone.
    pub ascii: bool,
}

impl Style {
    /// The text in its colour.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        if !self.colour || paint == Paint::Plain || text.is_empty() {
            return text.to_owned();
        }
        let ansi = paint.ansi();
        format!("{ansi}{text}{ansi:#}")
    }

    /// The text in the characters that may be used.
    pub fn characters(self, text: &str) -> Cow<'_, str> {
        if !self.ascii || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut ascii = String::with_capacity(text.len());
        for char in text.chars() {
            match char {
                '✔' => ascii.push('+'),
                '⚠' => ascii.push('!'),
                '✖' => ascii.push('x'),
                '◌' => ascii.push('o'),
                '•' => ascii.push('*'),
                '–' | '—' | '─' => ascii.push('-'),
                '→' => ascii.push_str("->"),
                '…' => ascii.push_str("..."),
                '≤' => ascii.push_str("<="),
                '├' | '│' => ascii.push('|'),
                '└' => ascii.push('`'),
                _ if char.is_ascii() => ascii.push(char),
                _ => ascii.extend(char.escape_unicode()),
            }
        }
        Cow::Owned(ascii)
    }
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ColorChoice {
    /// If the stream is a terminal and nothing in the environment speaks against it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorChoice {
    /// Whether a stream is coloured. `variable` gives a variable that is set and not empty: an empty
    /// `NO_COLOR` says nothing (no-color.org).
    pub fn decide<'v>(self, is_terminal: bool, variable: impl Fn(&str) -> Option<&'v str>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if variable("NO_COLOR").is_some() => false,
            Self::Auto if variable("CLICOLOR_FORCE").is_some() => true,
            Self::Auto if variable("CLICOLOR") == Some("0") => false,
            Self::Auto => is_terminal && variable("TERM") != Some("dumb"),
        }
    }
}

/// Whether the locale of the environment says UTF-8, in the order in which C libraries ask; without
/// any locale it is taken for granted.
pub fn is_utf8<'v>(variable: impl Fn(&str) -> Option<&'v str>) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(ColorChoice::Always, false, &[("NO_COLOR", "1")], true)]
    #[case(ColorChoice::Never, true, &[("CLICOLOR_FORCE", "1")], false)]
    #[case(ColorChoice::Auto, true, &[], true)]
    #[case(ColorChoice::Auto, false, &[], false)]
    #[case(ColorChoice::Auto, true, &[("NO_COLOR", "1")], false)]
    #[case(ColorChoice::Auto, true, &[("TERM", "dumb")], false)]
    #[case(ColorChoice::Auto, true, &[("CLICOLOR", "0")], false)]
    #[case(ColorChoice::Auto, true, &[("CLICOLOR", "1")], true)]
    #[case(ColorChoice::Auto, false, &[("CLICOLOR", "1")], false)]
    #[case(ColorChoice::Auto, false, &[("CLICOLOR", "0"), ("CLICOLOR_FORCE", "1")], true)]
    #[case(ColorChoice::Auto, false, &[("CLICOLOR_FORCE", "1")], true)]
    #[case(ColorChoice::Auto, false, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false)]
    fn colour_follows_flag_stream_and_environment(
        #[case] choice: ColorChoice,
        #[case] terminal: bool,
        #[case] environment: &[(&str, &str)],
        #[case] expected: bool,
    ) {
        let variable = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        };
        assert_eq!(choice.decide(terminal, variable), expected);
    }

    #[rstest]
    #[case(&[], true)]
    #[case(&[("LANG", "C")], false)]
    #[case(&[("LANG", "de_DE.UTF-8")], true)]
    #[case(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "POSIX")], false)]
    #[case(&[("LANG", "C"), ("LC_CTYPE", "C.utf8")], true)]
    fn the_locale_says_whether_it_is_utf8(
        #[case] environment: &[(&str, &str)],
        #[case] expected: bool,
    ) {
        let variable = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        };
        assert_eq!(is_utf8(variable), expected);
    }

    #[test]
    fn ascii_has_a_sign_for_each_of_ours() {
        let style = Style { colour: false, ascii: true };
        assert_eq!(style.characters("✔⚠✖◌•–→…├─└│≤é"), "+!xo*-->...|-`|<=\\u{e9}");
    }

    #[test]
    fn managers_are_never_green_or_red() {
        for name in ["helm", "kubectl-edit", "argocd-controller", "x", ""] {
            let ansi = Paint::manager(name).ansi();
            assert_ne!(ansi, Paint::Good.ansi());
            assert_ne!(ansi, Paint::Bad.ansi());
            assert_eq!(ansi, Paint::manager(name).ansi());
        }
    }
}
