//! From the text of a template to its parts.

use serde_json::Value;

use super::{End, Node, Part};

type Nodes = Result<Vec<Node>, String>;

/// Reads a template.
pub(super) fn template(text: &str) -> Result<Vec<Part>, String> {
    Ok(parts(&mut &*text, 0)?.0)
}

/// How deep ranges may stand within each other: nobody writes more, and each is a call.
const DEEPEST: usize = 64;

/// So deep may ranges without `{end}` stand.
const DEEPEST_OPEN: usize = 4;

/// Parts up to the end of the range, and whether it was met.
fn parts(rest: &mut &str, depth: usize) -> Result<(Vec<Part>, bool), String> {
    let mut all = Vec::new();
    if depth > DEEPEST {
        return Err("there are too many ranges within each other".to_owned());
    }
    while !rest.is_empty() {
        let Some((text, tail)) = rest.split_once('{') else {
            all.push(Part::Text((*rest).to_owned()));
            *rest = "";
            break;
        };
        if !text.is_empty() {
            all.push(Part::Text(text.to_owned()));
        }
        *rest = tail;
        let mut nodes = action(rest, Some('}'))?;
        match nodes.first() {
            Some(Node::Unknown(word)) if word == "end" => {
                return if depth > 0 {
                    Ok((all, true))
                } else {
                    Err("{end} without {range}".to_owned())
                };
            }
            Some(Node::Unknown(word)) if word == "range" => {
                nodes.remove(0);
                let (inner, is_closed) = parts(rest, depth + 1)?;
                all.push(Part::Range(nodes, inner.clone()));
                if !is_closed {
                    // kubectl takes the parts to stand behind the range too.
                    if depth > DEEPEST_OPEN {
                        return Err("{range} without {end}".to_owned());
                    }
                    all.extend(inner);
                }
            }
            _ => all.push(Part::Action(nodes)),
        }
    }
    Ok((all, false))
}

/// The nodes of an action up to `close`, or to the end of the text.
fn action(rest: &mut &str, close: Option<char>) -> Nodes {
    let mut nodes = Vec::new();
    loop {
        if let Some(tail) = rest.strip_prefix("[?(") {
            *rest = tail;
            nodes.push(filter(rest)?);
            continue;
        }
        if let Some(tail) = rest.strip_prefix("..") {
            if nodes.last() == Some(&Node::Descend) {
                return Err("..: it cannot descend twice".to_owned());
            }
            *rest = tail;
            nodes.push(Node::Descend);
            if rest.starts_with(is_word) {
                nodes.push(field(rest));
            }
            continue;
        }
        let Some(first) = rest.chars().next() else {
            return match close {
                None => Ok(nodes),
                Some(close) => Err(format!("an action is not closed by {close}")),
            };
        };
        match first {
            '+' | '-' | '0'..='9' => {
                nodes.push(number(rest)?);
                continue;
            }
            first if is_word(first) => {
                nodes.push(word(rest));
                continue;
            }
            _ => *rest = rest.get(first.len_utf8()..).unwrap_or_default(),
        }
        match first {
            first if Some(first) == close => return Ok(nodes),
            ' ' | '@' | '$' => {}
            '[' => nodes.append(&mut bracket(rest)?),
            '"' | '\'' => nodes.push(quoted(rest, first)?),
            '.' => nodes.push(field(rest)),
            other => return Err(format!("unexpected {other:?} in an action")),
        }
    }
}

fn is_word(char: char) -> bool {
    char == '_' || char.is_alphanumeric()
}

fn is_end(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// Splits off what stands before `at`.
fn take<'t>(rest: &mut &'t str, at: usize) -> &'t str {
    let (text, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
    *rest = tail;
    text
}

/// A name behind its dot; a backslash makes the next character one of the name.
fn field(rest: &mut &str) -> Node {
    let mut chars = rest.char_indices();
    let mut end = rest.len();
    while let Some((index, char)) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if is_end(char) {
            end = index;
            break;
        }
    }
    match take(rest, end) {
        "*" => Node::Wildcard,
        name => Node::Field(name.replace('\\', "")),
    }
}

fn word(rest: &mut &str) -> Node {
    let end = rest.find(is_end).unwrap_or(rest.len());
    match take(rest, end) {
        "true" => Node::Literal(Value::Bool(true)),
        "false" => Node::Literal(Value::Bool(false)),
        other => Node::Unknown(other.to_owned()),
    }
}

fn number(rest: &mut &str) -> Result<Node, String> {
    let sign = usize::from(rest.starts_with(['+', '-']));
    let is_other = |char: char| char != '.' && !char.is_ascii_digit();
    let digits = rest.get(sign..).unwrap_or_default();
    let text = take(rest, digits.find(is_other).map_or(rest.len(), |end| sign + end));
    let whole = text.parse::<i64>().ok().map(Value::from);
    let value = whole.or_else(|| text.parse::<f64>().ok().map(Value::from));
    value.map(Node::Literal).ok_or_else(|| format!("{text:?} is no number"))
}

/// Text up to its quote, with Go's escapes.
fn quoted(rest: &mut &str, quote: char) -> Result<Node, String> {
    let mut text = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next() {
            None | Some('\n') => return Err(format!("a text is not closed by {quote}")),
            Some(char) if char == quote => break,
            Some('\\') => text.push(escaped(&mut chars, quote)?),
            Some(char) => text.push(char),
        }
    }
    *rest = chars.as_str();
    Ok(Node::Text(text))
}

fn escaped(chars: &mut std::str::Chars<'_>, quote: char) -> Result<char, String> {
    let digits = match chars.next() {
        Some('a') => return Ok('\u{7}'),
        Some('b') => return Ok('\u{8}'),
        Some('f') => return Ok('\u{c}'),
        Some('n') => return Ok('\n'),
        Some('r') => return Ok('\r'),
        Some('t') => return Ok('\t'),
        Some('v') => return Ok('\u{b}'),
        Some(char) if char == quote || char == '\\' => return Ok(char),
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        _ => 0,
    };
    let digits: String = chars.by_ref().take(digits).collect();
    let char = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
    char.ok_or_else(|| "an escape in a text is not known".to_owned())
}

/// What stands in brackets and is no filter.
fn bracket(rest: &mut &str) -> Nodes {
    let end = rest.find(['\n', ']']).filter(|end| rest[*end..].starts_with(']'));
    let end = end.ok_or_else(|| format!("[{rest} is not closed by ]"))?;
    let text = take(rest, end);
    take(rest, 1);
    one_bracket(text)
}

fn one_bracket(text: &str) -> Nodes {
    if text.contains(',') {
        let ways = text.split(',').map(|way| one_bracket(way.trim_matches(' ')));
        return Ok(vec![Node::Union(ways.collect::<Result<_, _>>()?)]);
    }
    let name = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
    if let Some(name) = name.filter(|name| !name.contains('\'')) {
        return action(&mut format!(".{name}").as_str(), None);
    }
    slice(if text == "*" { ":" } else { text }).map(|slice| vec![slice])
}

/// `[from:to:step]`, of which each may be missing, or `[index]`.
fn slice(text: &str) -> Result<Node, String> {
    let number = |text: &str| match text {
        "" => Ok(None),
        text => text.parse::<i64>().map(Some).map_err(|_| format!("[{text}] is no index")),
    };
    let mut numbers = text.split(':').map(number);
    let from = numbers.next().transpose()?.flatten();
    let to = match numbers.next().transpose()? {
        None => End::Index,
        Some(None) => End::Open,
        Some(Some(to)) => End::At(to),
    };
    let step = numbers.next().transpose()?.flatten();
    if numbers.next().is_some() {
        return Err(format!("[{text}] is no index"));
    }
    Ok(Node::Slice { from, to, step })
}

/// A filter behind its `[?(`.
fn filter(rest: &mut &str) -> Result<Node, String> {
    let unclosed = || format!("[?({rest} is not closed by )]");
    let end = filters_end(rest).ok_or_else(unclosed)?;
    let text = rest.get(..end).unwrap_or_default();
    let tail = rest.get(end..).and_then(|tail| tail.strip_prefix(")]")).ok_or_else(unclosed)?;
    let is_operator = |char| matches!(char, '!' | '<' | '>' | '=');
    let node = match text.find(is_operator) {
        Some(at) if at > 0 => {
            let (left, right) = text.split_at(at);
            let length = right.find(|char| !is_operator(char)).unwrap_or(right.len());
            let (operator, right) = right.split_at(length);
            if !matches!(operator, "<" | ">" | "==" | "!=" | "<=" | ">=") {
                return Err(format!("{operator:?} is no comparison"));
            }
            if right.is_empty() {
                return Err(format!("[?({text})] compares with nothing"));
            }
            let right = action(&mut &*right, None)?;
            Node::Filter {
                left: action(&mut &*left, None)?,
                test: Some((operator.to_owned(), right)),
            }
        }
        _ => Node::Filter { left: action(&mut &*text, None)?, test: None },
    };
    *rest = tail;
    Ok(node)
}

/// The parenthesis that closes a filter, beyond those within its quotes.
fn filters_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    for (index, char) in text.char_indices() {
        match (quote, char) {
            (_, '\n') => return None,
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if open == char => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None, ')') => return Some(index),
            _ => {}
        }
    }
    None
}
