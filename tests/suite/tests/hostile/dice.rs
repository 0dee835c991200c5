//! Choices that a seed brings back, and texts that nobody wants to read.

use belay_suite::random::SplitMix64;

/// Letters that are good for no annotation: none of them begins a version, a duration, a name or a
/// word that means something.
const ODD: &[char] = &[
    'ä',
    'ß',
    'é',
    'λ',
    'ж',
    '漢',
    '字',
    'か',
    '💥',
    '\u{202e}',
    '\u{feff}',
    '\u{200d}',
    '\u{301}',
    '\u{0}',
    '\u{7}',
    '\u{1b}',
    '\u{7f}',
    '\u{85}',
    '\u{10ffff}',
];
/// What stands between them.
const MIXED: &[char] = &[
    'a', 'b', 'q', 'r', 'z', ' ', '\t', '\n', '\r', '"', '\'', '`', '\\', '<', '>', '&', ';', '|',
    '$', '(', ')', '[', ']', '{', '}', '#', '@', '!', '?', '%', '+', '-', '_', '.', '/', ':', ',',
];
/// Texts that have hurt others. None has `{version}`, `{tag}` or `=`.
const JUNK: &[&str] = &[
    "",
    " ",
    "\t",
    "\u{0}",
    "\u{1b}[31m",
    "\u{202e}txet",
    "\u{feff}true",
    "ｔｒｕｅ",
    "💥",
    "../../etc/passwd",
    "{{ .Values.x }}",
    "${jndi:ldap://x/y}",
    "$(id)",
    "'; DROP TABLE releases; --",
    "%00",
    "null",
    "[]",
    "{}",
    "-1",
    "1e309",
    "NaN",
    "TRUE",
    "yes",
    "a\nb",
    "\r\n",
    "((((a+)+)+)+)$",
    "<script>alert(1)</script>",
];

/// The longest text that leaves room for all else on one object.
const MOST: usize = 200_000;

/// Whoever chooses.
#[derive(Debug, Clone)]
pub(crate) struct Dice(SplitMix64);

impl Dice {
    /// The choices of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick(&mut self, choices: &[&str]) -> String {
        (*self.0.one_of(choices)).to_owned()
    }

    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        self.0.one_of(choices).clone()
    }

    /// So many characters of these.
    pub(crate) fn text(&mut self, of: &[char], length: usize) -> String {
        (0..length).map(|_| self.one_of(of)).collect()
    }

    /// Text that is no value of any annotation with a grammar.
    pub(crate) fn junk(&mut self) -> String {
        if self.one_in(2) {
            return self.pick(JUNK);
        }
        let (before, after) = (self.below(12), self.below(12));
        format!("{}{}{}", self.text(MIXED, before), self.text(ODD, 1), self.text(MIXED, after))
    }

    /// Text that has at least one letter that no name has.
    pub(crate) fn odd(&mut self) -> String {
        let (before, after) = (self.below(6), self.below(6));
        let (odd, plain) = (self.text(ODD, 1), ['a', 'b', 'c']);
        format!("{}{odd}{}", self.text(&plain, before), self.text(&plain, after))
    }

    /// A text of `unit` that is far too long for anything: most are some thousand bytes, a few
    /// almost what the API server takes.
    pub(crate) fn long(&mut self, unit: &str) -> String {
        let bytes = match self.below(100) {
            0 => MOST,
            1..=4 => 20_000 + self.below(30_000),
            _ => 2_000 + self.below(2_000),
        };
        unit.repeat(bytes / unit.len().max(1))
    }
}
