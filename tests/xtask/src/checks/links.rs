//! Links between the pages of this repository, and the paths that docs/architecture.md names.
//!
//! Links to other hosts are not followed: a check that needs the network fails for reasons of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, markdown::Page};

const CHECK: &str = "links";

/// The page in which code that looks like a path is a promise that the path exists.
const MAP: &str = "docs/architecture.md";

/// Signs of a pattern or a placeholder rather than a path.
const PLACEHOLDERS: [&str; 8] = ["<", "{", "*", "…", "...", "$", "NNNN", " "];

/// Checks all Markdown pages, by path, against all files of the repository.
pub(super) fn check(files: &BTreeSet<String>, texts: &BTreeMap<String, String>) -> Vec<Finding> {
    let pages: BTreeMap<&str, Page> =
        texts.iter().map(|(path, text)| (path.as_str(), Page::parse(text))).collect();
    let folders = folders(files);
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for (line, target) in &page.links {
            if let Err(why) = follow(path, target, files, &folders, &pages) {
                findings.push(Finding::new(
                    CHECK,
                    format!("{path}:{line}: {target} {why}"),
                    "correct the target; it is relative to the page",
                ));
            }
        }
    }
    for (line, named) in pages.get(MAP).map(|page| page.code.as_slice()).unwrap_or_default() {
        let named_path = named.trim_end_matches('/');
        let missing = !files.contains(named_path) && !folders.contains(named_path);
        if missing && looks_like_a_path(named, &folders) {
            findings.push(Finding::new(
                CHECK,
                format!("{MAP}:{line}: {named} does not exist"),
                "correct it, or write a pattern with <name> if it is one",
            ));
        }
    }
    findings
}

fn folders(files: &BTreeSet<String>) -> BTreeSet<&str> {
    let parents = files.iter().flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]));
    parents.collect()
}

/// Whether its first part is a folder at the top, and nothing in it stands for something else.
fn looks_like_a_path(code: &str, folders: &BTreeSet<&str>) -> bool {
    let plain = !PLACEHOLDERS.iter().any(|sign| code.contains(sign));
    plain && code.split_once('/').is_some_and(|(top, _)| folders.contains(top))
}

fn follow(
    page: &str,
    target: &str,
    files: &BTreeSet<String>,
    folders: &BTreeSet<&str>,
    pages: &BTreeMap<&str, Page>,
) -> Result<(), String> {
    if has_scheme(target) || target.starts_with("//") {
        return Ok(());
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (target, None),
    };
    let path = if path.is_empty() { page.to_owned() } else { resolve(page, &decode(path))? };
    if !files.contains(&path) && !folders.contains(path.as_str()) && !path.is_empty() {
        return Err("does not exist".to_owned());
    }
    match (anchor, pages.get(path.as_str())) {
        (Some(anchor), Some(page)) if !page.anchors.contains(&decode(anchor)) => {
            Err(format!("names no heading of {path}"))
        }
        _ => Ok(()),
    }
}

/// `https:`, `mailto:` and the like.
fn has_scheme(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| {
        let letters = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
        scheme.len() > 1 && letters
    })
}

/// The path from the top of the repository of a target relative to a page.
fn resolve(page: &str, target: &str) -> Result<String, String> {
    if target.starts_with('/') {
        return Err("is absolute".to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or("leaves the repository")?;
            }
            _ => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Percent-encoding undone; what is not valid stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let pair = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        let guide = ("docs/guide.md".to_owned(), "# Guide\n## Größe & Co\n".to_owned());
        let texts = BTreeMap::from([guide, (path.to_owned(), text.to_owned())]);
        let mut files: BTreeSet<String> = texts.keys().cloned().collect();
        for more in ["LICENSE", "docs/img/a b.png", "operator/api/src/lib.rs"] {
            files.insert(more.to_owned());
        }
        check(&files, &texts).into_iter().map(|finding| finding.what).collect()
    }

    #[rstest]
    #[case::file("[a](../LICENSE)")]
    #[case::page("[a](guide.md)")]
    #[case::this_folder("[a](./guide.md)")]
    #[case::folder("[a](../operator/api/)")]
    #[case::top("[a](..)")]
    #[case::anchor("[a](guide.md#guide)")]
    #[case::encoded_anchor("[a](guide.md#gr%C3%B6%C3%9Fe--co)")]
    #[case::own_anchor("# Here\n[a](#here)")]
    #[case::encoded_file("[a](img/a%20b.png)")]
    #[case::line_of_a_source("[a](../operator/api/src/lib.rs#L10)")]
    #[case::other_host("[a](https://example.com/none.md) <mailto:a@example.com>")]
    #[case::code("`[a](none.md)`")]
    fn a_link_to_what_exists_is_no_finding(#[case] text: &str) {
        assert_eq!(whats("docs/page.md", text), Vec::<String>::new());
    }

    #[rstest]
    #[case::file("\n[a](none.md)", "docs/page.md:2: none.md does not exist")]
    #[case::case_matters("[a](Guide.md)", "docs/page.md:1: Guide.md does not exist")]
    #[case::relative_to_the_page(
        "[a](docs/guide.md)",
        "docs/page.md:1: docs/guide.md does not exist"
    )]
    #[case::anchor(
        "[a](guide.md#none)",
        "docs/page.md:1: guide.md#none names no heading of docs/guide.md"
    )]
    #[case::own_anchor("[a](#none)", "docs/page.md:1: #none names no heading of docs/page.md")]
    #[case::outside("[a](../../x)", "docs/page.md:1: ../../x leaves the repository")]
    #[case::absolute("[a](/docs/guide.md)", "docs/page.md:1: /docs/guide.md is absolute")]
    #[case::definition("[a]: none.md", "docs/page.md:1: none.md does not exist")]
    fn a_link_to_what_does_not_exist_is_a_finding(#[case] text: &str, #[case] what: &str) {
        assert_eq!(whats("docs/page.md", text), [what]);
    }

    #[rstest]
    #[case::file("`operator/api/src/lib.rs`", &[])]
    #[case::folder("`operator/api/`", &[])]
    #[case::pattern("`operator/<name>/src` `docs/decisions/NNNN-title.md` `docs/*.md`", &[])]
    #[case::no_path("`a/b` `cargo test` `operator`", &[])]
    #[case::gone("`operator/none/`", &["docs/architecture.md:1: operator/none/ does not exist"])]
    fn the_map_names_only_paths_that_exist(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(whats("docs/architecture.md", text), expected);
        assert_eq!(whats("docs/other.md", text), Vec::<String>::new());
    }
}
