//! Cuts a stream into documents exactly as Helm and the Kubernetes decoders do: at each line that
//! starts with `---` at column 0 (rule 5.2).
//!
//! No YAML is parsed here. A block scalar cannot hold such a line: its text is indented, and at
//! the top level YAML itself ends the scalar there.

use std::ops::Range;

use memchr::memmem::Finder;

/// A UTF-8 byte order mark; only at the very start of the input is it no content.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

const SEPARATOR: &[u8] = b"---";

/// One document of the input, as offsets into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// All of its bytes, with the separator line that opens it. The ranges of all documents follow
    /// one another without a gap.
    pub range: Range<usize>,
    /// Where its YAML starts: after the separator and the blanks that follow it on the line, so
    /// that `--- {a: b}` and Helm's glued `---apiVersion: v1` are read as Helm reads them.
    pub body: usize,
    /// Whether it holds more than blanks, comments, directives and document ends. Output without a
    /// document where the input had one deletes the release (rule 5.9).
    pub has_content: bool,
}

impl Document {
    /// The YAML of the document.
    pub fn body<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        input.get(self.body..self.range.end).unwrap_or_default()
    }

    fn new(input: &[u8], range: Range<usize>) -> Self {
        let mut body = range.start;
        if body == 0 && input.starts_with(BOM) {
            body += BOM.len();
        }
        if input[body..range.end].starts_with(SEPARATOR) {
            body += SEPARATOR.len();
            let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
            body += input[body..range.end].iter().take_while(blank).count();
        }
        let has_content = has_content(&input[body..range.end]);
        Self { range, body, has_content }
    }
}

/// Cuts `input` into its documents. Joining their ranges gives the input again; no bytes, no
/// documents.
pub fn split(input: &[u8]) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut start = 0;
    for newline in Finder::new(b"\n---").find_iter(input) {
        documents.push(Document::new(input, start..newline + 1));
        start = newline + 1;
    }
    if start < input.len() {
        documents.push(Document::new(input, start..input.len()));
    }
    documents
}

/// How many documents hold content.
pub fn count(documents: &[Document]) -> usize {
    documents.iter().filter(|document| document.has_content).count()
}

fn has_content(body: &[u8]) -> bool {
    // A lone CR ends a line in YAML, and so a comment.
    body.split(|byte| matches!(byte, b'\n' | b'\r')).any(|line| {
        let text = line.trim_ascii_start();
        match text.first() {
            None | Some(b'#') => false,
            Some(b'%') => text.len() != line.len(),
            Some(b'.') => {
                !(text.len() == line.len()
                    && text.strip_prefix(b"...").is_some_and(|rest| {
                        rest.first().is_none_or(|byte| matches!(byte, b' ' | b'\t'))
                    }))
            }
            Some(_) => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn pieces(input: &str) -> Vec<&str> {
        split(input.as_bytes()).into_iter().map(|document| &input[document.range]).collect()
    }

    #[rstest]
    #[case::nothing("", &[])]
    #[case::one_without_separator("a: 1\n", &["a: 1\n"])]
    #[case::a_separator_first("---\na: 1\n---\nb: 2", &["---\na: 1\n", "---\nb: 2"])]
    #[case::crlf("a: 1\r\n---\r\nb: 2\r\n", &["a: 1\r\n", "---\r\nb: 2\r\n"])]
    #[case::a_byte_order_mark("\u{feff}---\na: 1\n---\n", &["\u{feff}---\na: 1\n", "---\n"])]
    #[case::a_block_scalar("a: |\n  ---\n  b\n", &["a: |\n  ---\n  b\n"])]
    #[case::glued("a: 1\n---b: 2\n", &["a: 1\n", "---b: 2\n"])]
    #[case::two_dashes("a: 1\n--\n", &["a: 1\n--\n"])]
    #[case::empty_documents("---\n---\n---\n", &["---\n", "---\n", "---\n"])]
    fn cuts_at_column_0_only(#[case] input: &str, #[case] expected: &[&str]) {
        assert_eq!(pieces(input), expected);
    }

    #[rstest]
    #[case("---\na: 1\n", "\na: 1\n")]
    #[case("--- {a: 1}\n", "{a: 1}\n")]
    #[case("---a: 1\n", "a: 1\n")]
    #[case("--- # note\na: 1\n", "# note\na: 1\n")]
    #[case("\u{feff}a: 1\n", "a: 1\n")]
    #[case("a: 1\n", "a: 1\n")]
    fn the_body_starts_after_the_separator(#[case] input: &str, #[case] body: &str) {
        assert_eq!(split(input.as_bytes())[0].body(input.as_bytes()), body.as_bytes());
    }

    #[rstest]
    #[case("---\n", false)]
    #[case("--- # note\n", false)]
    #[case("# a\n\n   # b\n\t\n", false)]
    #[case("%YAML 1.2\n", false)]
    #[case("# a\n...\n", false)]
    #[case("....\n", true)]
    #[case("--- ~\n", true)]
    #[case("# a\rb: 1\n", true)]
    #[case("{}", true)]
    fn comments_and_blanks_are_no_content(#[case] input: &str, #[case] expected: bool) {
        assert_eq!(count(&split(input.as_bytes())) == 1, expected);
    }
}
