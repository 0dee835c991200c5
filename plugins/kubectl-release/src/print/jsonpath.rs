//! kubectl's `-o jsonpath`: text with expressions in braces. What there is: fields (`.a.b`, `['a']`,
//! `\.` for a dot within a name), `[0]`, `[-1]`, slices, unions, `*`, `..`, filters `?(@.a=="b")`,
//! `{range …}…{end}`, and quoted text. What is not there prints nothing, as with kubectl. The
//! expressions themselves are evaluated by the crate that kube evaluates its own with.

use std::fmt::Write as _;

use jsonpath_rust::JsonPath as _;
use serde_json::Value;

/// A template, ready to be filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Node>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Text(String),
    /// In the spelling of RFC 9535.
    Path(String),
    Range(String, Vec<Self>),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        // As kubectl: an expression alone needs no braces.
        let whole = if text.contains('{') { text.to_owned() } else { format!("{{{text}}}") };
        let mut rest = whole.as_str();
        let nodes = nodes(&mut rest, false)?;
        Ok(Self(nodes))
    }

    /// Fills it in.
    ///
    /// # Errors
    /// An expression cannot be evaluated.
    pub fn fill(&self, value: &Value) -> Result<String, String> {
        let mut text = String::new();
        fill(&self.0, value, &mut text)?;
        Ok(text)
    }
}

fn nodes(rest: &mut &str, in_range: bool) -> Result<Vec<Node>, String> {
    let mut all = Vec::new();
    loop {
        let Some(open) = rest.find('{') else {
            if in_range {
                return Err("{range} without {end}".to_owned());
            }
            push_text(&mut all, rest);
            *rest = "";
            return Ok(all);
        };
        let (text, tail) = rest.split_at(open);
        push_text(&mut all, text);
        let close = closing(tail).ok_or_else(|| format!("unclosed action {tail:?}"))?;
        let inner = tail.get(1..close).unwrap_or_default().trim();
        *rest = tail.get(close + 1..).unwrap_or_default();
        if inner == "end" {
            return if in_range { Ok(all) } else { Err("{end} without {range}".to_owned()) };
        }
        if let Some(path) = inner.strip_prefix("range ") {
            let path = rfc(path.trim())?;
            all.push(Node::Range(path, nodes(rest, true)?));
            continue;
        }
        if let Some(text) = quoted(inner) {
            push_text(&mut all, &text?);
            continue;
        }
        all.push(Node::Path(rfc(inner)?));
    }
}

fn push_text(all: &mut Vec<Node>, text: &str) {
    if !text.is_empty() {
        all.push(Node::Text(text.to_owned()));
    }
}

/// Where the brace closes, beyond those within quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (index, char) in text.char_indices() {
        match (quote, char) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), _) if open == char => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None, '}') => return Some(index),
            _ => {}
        }
    }
    None
}

/// Text within quotes, with Go's escapes.
fn quoted(inner: &str) -> Option<Result<String, String>> {
    let quote = inner.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let body = inner.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut text = String::new();
    let mut chars = body.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            text.push(char);
            continue;
        }
        match chars.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some(other @ ('"' | '\'' | '\\')) => text.push(other),
            _ => return Some(Err(format!("the escape in {inner} is not known"))),
        }
    }
    Some(Ok(text))
}

/// A path of kubectl in the spelling of RFC 9535: names go into brackets, for kubectl lets them hold
/// characters that the RFC does not.
fn rfc(path: &str) -> Result<String, String> {
    let mut spelled = String::from("$");
    let mut rest = path.trim_start_matches(['$', '@']);
    while let Some(first) = rest.chars().next() {
        match first {
            '[' => {
                let end = bracket(rest).ok_or_else(|| format!("unterminated [ in {path:?}"))?;
                spelled.push_str(rest.get(..=end).unwrap_or_default());
                rest = rest.get(end + 1..).unwrap_or_default();
            }
            '.' => {
                let descends = rest.starts_with("..");
                rest = rest.get(if descends { 2 } else { 1 }..).unwrap_or_default();
                if descends {
                    spelled.push_str("..");
                }
                let (name, tail) = name(rest);
                match name.as_str() {
                    "" if tail.starts_with('[') || (tail.is_empty() && !descends) => {}
                    "" => return Err(format!("a name is missing in {path:?}")),
                    "*" => spelled.push_str("[*]"),
                    name => {
                        let _ = write!(
                            spelled,
                            "['{}']",
                            name.replace('\\', "\\\\").replace('\'', "\\'")
                        );
                    }
                }
                rest = tail;
            }
            _ if spelled == "$" => {
                // `{items}` is `{.items}`.
                let (name, tail) = name(rest);
                let _ = write!(spelled, "['{}']", name.replace('\'', "\\'"));
                rest = tail;
            }
            _ => return Err(format!("unexpected {first:?} in {path:?}")),
        }
    }
    Ok(spelled)
}

/// A name up to the next dot or bracket; `\.` is a dot of the name.
fn name(rest: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = rest.char_indices();
    while let Some((index, char)) = chars.next() {
        match char {
            '\\' => name.extend(chars.next().map(|(_, char)| char)),
            '.' | '[' => return (name, rest.get(index..).unwrap_or_default()),
            _ => name.push(char),
        }
    }
    (name, "")
}

/// Where the bracket closes, beyond those within quotes and brackets.
fn bracket(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut quote = None;
    for (index, char) in text.char_indices() {
        match (quote, char) {
            (Some(open), _) if open == char => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

fn fill(nodes: &[Node], value: &Value, text: &mut String) -> Result<(), String> {
    for node in nodes {
        match node {
            Node::Text(literal) => text.push_str(literal),
            Node::Path(path) => {
                let found = find(value, path)?;
                let words: Vec<String> = found.into_iter().map(shown).collect();
                text.push_str(&words.join(" "));
            }
            Node::Range(path, inner) => {
                for item in find(value, path)? {
                    // A range over a list is one over its items.
                    match item {
                        Value::Array(items) => {
                            items.iter().try_for_each(|item| fill(inner, item, text))?;
                        }
                        item => fill(inner, item, text)?,
                    }
                }
            }
        }
    }
    Ok(())
}

fn find<'v>(value: &'v Value, path: &str) -> Result<Vec<&'v Value>, String> {
    if path == "$" {
        return Ok(vec![value]);
    }
    value.query(path).map_err(|error| format!("evaluate {path}: {error}"))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn value() -> Value {
        json!({
            "kind": "List",
            "metadata": {"annotations": {"belay.dev/repo": "acme/web", "it's": "x"}},
            "items": [
                {"metadata": {"name": "web"}, "status": {"active": "web-1", "n": 3, "conditions": [
                    {"type": "Ready", "reason": "Ready"}, {"type": "Stalled", "reason": "TugOfWar"}]}},
                {"metadata": {"name": "api"}, "status": {"n": 4}},
            ],
        })
    }

    #[rstest]
    #[case("{.kind}", "List")]
    #[case("kind", "List")]
    #[case(".kind", "List")]
    #[case("{$.kind}", "List")]
    #[case("{.items[*].metadata.name}", "web api")]
    #[case("{.items[-1].metadata.name}", "api")]
    #[case("{.items[0:1].metadata.name}", "web")]
    #[case("{.items[0]['metadata']['name']}", "web")]
    #[case("{..name}", "web api")]
    #[case("{.metadata.annotations.belay\\.dev/repo}", "acme/web")]
    #[case("{.metadata.annotations['belay.dev/repo']}", "acme/web")]
    #[case("{.items[?(@.status.n==4)].metadata.name}", "api")]
    #[case("{.items[?(@.metadata.name==\"web\")].status.active}", "web-1")]
    #[case("{.items[0].status.conditions[?(@.type==\"Stalled\")].reason}", "TugOfWar")]
    #[case("{range .items[*]}{.metadata.name}={.status.active}{\"\\n\"}{end}", "web=web-1\napi=\n")]
    #[case("{range .items}[{.metadata.name}]{end}", "[web][api]")]
    #[case("{.nothing.at.all}", "")]
    #[case("{.items[0].metadata}", "{\"name\":\"web\"}")]
    #[case("a {'{'} b", "a { b")]
    fn a_template_prints_what_kubectl_prints(#[case] template: &str, #[case] expected: &str) {
        assert_eq!(Template::parse(template).unwrap().fill(&value()).unwrap(), expected);
    }

    #[rstest]
    #[case("{.a")]
    #[case("{range .items[*]}{.a}")]
    #[case("{end}")]
    #[case("{.a[0}")]
    #[case("{.a..}")]
    #[case("{\"\\q\"}")]
    fn what_is_no_template_is_refused(#[case] template: &str) {
        Template::parse(template).unwrap_err();
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(template in "[{}.\\[\\]@$?()*'\"a-c0-9 :\\\\=]{0,24}") {
            if let Ok(template) = Template::parse(&template) {
                let _ = template.fill(&value());
            }
        }
    }
}
