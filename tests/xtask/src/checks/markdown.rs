//! The part of Markdown that the link check needs: links, headings, code.
//!
//! Headings are those with `#`; links stand on one line. The repository's pages are written so.

use std::collections::{BTreeMap, BTreeSet};

/// What a page links to, and what can be linked to in it.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Line, counted from 1, and target as written, without a title.
    pub(super) links: Vec<(usize, String)>,
    /// As GitHub derives them from headings, and `id` or `name` of HTML elements.
    pub(super) anchors: BTreeSet<String>,
    /// Line and content of code within a line.
    pub(super) code: Vec<(usize, String)>,
}

impl Page {
    pub(super) fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut repeats = BTreeMap::new();
        let mut fence: Option<&str> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let start = line.trim_start();
            if let Some(open) = fence {
                // A closing fence is at least as long as the one that opened.
                if start.starts_with(open) && start.trim_end().chars().all(|c| open.starts_with(c))
                {
                    fence = None;
                }
                continue;
            }
            fence = fence_of(start);
            if fence.is_some() {
                continue;
            }
            page.line(number, line, &mut repeats);
        }
        page
    }

    fn line(&mut self, number: usize, line: &str, repeats: &mut BTreeMap<String, usize>) {
        let (visible, code) = split_code(line);
        self.code.extend(code.into_iter().map(|content| (number, content)));
        self.links.extend(links(&visible).into_iter().map(|target| (number, target)));
        for attribute in ["href", "src"] {
            self.links.extend(html(&visible, attribute).map(|target| (number, target)));
        }
        for attribute in ["id", "name"] {
            self.anchors.extend(html(&visible, attribute));
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&level) && line[level..].starts_with(' ') {
            let slug = slug(line[level..].trim_end_matches('#').trim());
            let repeat = repeats.entry(slug.clone()).or_insert(0);
            self.anchors.insert(if *repeat == 0 { slug } else { format!("{slug}-{repeat}") });
            *repeat += 1;
        }
    }
}

fn fence_of(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|next| *next == mark).count();
    let inline = mark == '`' && line[length..].contains('`');
    (length >= 3 && !inline).then(|| &line[..length])
}

/// The line with code replaced by blanks, and the code.
fn split_code(line: &str) -> (String, Vec<String>) {
    let mut visible = String::new();
    let mut code = Vec::new();
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let length = rest[open..].bytes().take_while(|byte| *byte == b'`').count();
        let ticks = &rest[open..open + length];
        let inner = &rest[open + length..];
        visible.push_str(&rest[..open]);
        if let Some(end) = closing_ticks(inner, length) {
            code.push(inner[..end].trim().to_owned());
            visible.push(' ');
            rest = &inner[end + length..];
        } else {
            visible.push_str(ticks);
            rest = inner;
        }
    }
    visible.push_str(rest);
    (visible, code)
}

/// Where a run of exactly `length` backticks starts.
fn closing_ticks(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let run = text[start..].bytes().take_while(|byte| *byte == b'`').count();
        if run == length {
            return Some(start);
        }
        at = start + run;
    }
    None
}

/// Targets of `[text](target "title")` and of `[name]: target`.
fn links(line: &str) -> Vec<String> {
    let mut targets: Vec<String> =
        line.match_indices("](").filter_map(|(at, _)| destination(&line[at + 2..], true)).collect();
    let definition = line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    if let Some((name, target)) = definition
        && !name.contains(']')
    {
        targets.extend(destination(target, false));
    }
    targets
}

fn destination(text: &str, inline: bool) -> Option<String> {
    let text = text.trim_start();
    if let Some(pointed) = text.strip_prefix('<') {
        return pointed.split_once('>').map(|(target, _)| target.to_owned());
    }
    let mut depth = 0_usize;
    let end = text.find(|next: char| match next {
        '(' => {
            depth += 1;
            false
        }
        ')' if depth > 0 => {
            depth -= 1;
            false
        }
        ')' => inline,
        _ => next.is_whitespace(),
    });
    let target = &text[..end.unwrap_or(text.len())];
    (!target.is_empty()).then(|| target.to_owned())
}

/// Values of an attribute of the HTML elements in a line.
fn html<'a>(line: &'a str, attribute: &'a str) -> impl Iterator<Item = String> + 'a {
    line.match_indices('<').filter_map(move |(at, _)| {
        let element = line[at..].split('>').next().unwrap_or_default();
        element
            .split_once(&format!(" {attribute}=\""))
            .and_then(|(_, rest)| rest.split_once('"').map(|(value, _)| value.to_owned()))
    })
}

/// The anchor that GitHub gives to a heading: letters, digits, `-` and `_`, with `-` for each blank.
fn slug(heading: &str) -> String {
    without_targets(heading)
        .to_lowercase()
        .chars()
        .filter_map(|next| match next {
            ' ' => Some('-'),
            '-' | '_' => Some(next),
            _ => next.is_alphanumeric().then_some(next),
        })
        .collect()
}

/// `[text](target)` as `text`.
fn without_targets(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("see [a](b.md).", &["b.md"])]
    #[case::two("[a](b.md) and [c](d.md#e)", &["b.md", "d.md#e"])]
    #[case::title("[a](b.md \"B\")", &["b.md"])]
    #[case::image("[![a](b.png)](c.md)", &["b.png", "c.md"])]
    #[case::brackets("[a](b_(c).md)", &["b_(c).md"])]
    #[case::pointed("[a](<b c.md>)", &["b c.md"])]
    #[case::definition("[a]: b.md", &["b.md"])]
    #[case::code_as_text("[`a`](b.md)", &["b.md"])]
    #[case::code("`[a](b.md)`", &[])]
    #[case::code_with_ticks("`` `[a](b.md) ``", &[])]
    #[case::html("<a href=\"b.md\"><img alt=\"x\" src=\"c.png\"></a>", &["b.md", "c.png"])]
    #[case::fenced("```\n[a](b.md)\n```", &[])]
    #[case::after_a_fence("~~~ text\n```\n~~~\n[a](b.md)", &["b.md"])]
    #[case::longer_fence("````\n```\n[a](b.md)\n````", &[])]
    #[case::empty("[a]() [b]", &[])]
    fn links_are_found_outside_of_code(#[case] text: &str, #[case] expected: &[&str]) {
        let found: Vec<_> = Page::parse(text).links.into_iter().map(|(_, target)| target).collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("# One two", "one-two")]
    #[case("## `cargo xtask`: tests & more", "cargo-xtask-tests--more")]
    #[case("### A [link](b.md) in it", "a-link-in-it")]
    #[case("#### snake_case, kebab-case", "snake_case-kebab-case")]
    #[case("# Größe", "größe")]
    #[case("# Closed #", "closed")]
    #[case("text <a id=\"here\"></a>", "here")]
    fn anchors_are_those_that_github_gives(#[case] text: &str, #[case] anchor: &str) {
        let anchors = Page::parse(text).anchors;
        assert!(anchors.len() == 1 && anchors.contains(anchor), "{anchors:?}");
    }

    #[test]
    fn repeated_headings_are_numbered_and_code_has_none() {
        let page = Page::parse("# A\n# A\n```\n# B\n```\n#no\n# A\n");
        let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["a", "a-1", "a-2"]);
    }

    #[test]
    fn code_and_lines_are_told() {
        let page = Page::parse("a\n`b` and ``c`d``\n[x](y)");
        assert_eq!(page.code, [(2, "b".to_owned()), (2, "c`d".to_owned())]);
        assert_eq!(page.links, [(3, "y".to_owned())]);
    }
}
