//! The object as YAML, with the owner of each line before it.

use belay_ownership::{Answer, Element, FieldPath, Operation, Query, Schema, State, Structure};
use jiff::Timestamp;
use serde_json::Value;

use super::{Subject, field::shown};
use crate::{
    Error, Session,
    facts::age,
    print::{Line, Paint, width},
};

/// The widest name of a manager that is not cut.
const MAX_NAME: usize = 30;

/// A line of YAML and who owns it.
struct Row {
    owner: Gutter,
    text: String,
    /// What to say behind it.
    comment: &'static str,
}

/// Who owns a line.
#[derive(Clone, Default)]
struct Gutter {
    manager: String,
    /// `A` or `U`.
    operation: &'static str,
    time: Option<Timestamp>,
    others: usize,
}

/// Prints the pod template, or the whole object.
pub(super) fn print(subject: &Subject, all: bool, session: &mut Session<'_>) -> Result<(), Error> {
    let mut rows = Vec::new();
    let template = FieldPath::of_fields(["spec", "template"]);
    if let Some(value) = template.value_in(&subject.value).filter(|_| !all) {
        let mut walk = Walk { subject, rows: &mut rows };
        walk.entry(&template, "template", value, 2);
    } else {
        let mut walk = Walk { subject, rows: &mut rows };
        walk.children(&FieldPath::root(), &subject.value, 0);
    }
    let name = |row: &Row| match row.owner.others {
        0 => row.owner.manager.clone(),
        others => format!("{} +{others}", row.owner.manager),
    };
    let now = session.out.now();
    let age = |row: &Row| row.owner.time.map(|time| age::between(time, now)).unwrap_or_default();
    let names = rows.iter().map(|row| width(&name(row))).max().unwrap_or_default().min(MAX_NAME);
    let ages = rows.iter().map(|row| width(&age(row))).max().unwrap_or_default();
    for row in &rows {
        let name = name(row);
        let pad = " ".repeat(names.saturating_sub(width(&name)));
        let line = Line::new().with(Paint::manager(&row.owner.manager), name);
        let line =
            line.plain(pad).dim(format!("  {:1}  {:>ages$} | ", row.owner.operation, age(row)));
        let line = line.plain(row.text.clone());
        let line =
            if row.comment.is_empty() { line } else { line.dim(format!("  # {}", row.comment)) };
        session.out.line(line)?;
    }
    Ok(())
}

struct Walk<'w> {
    subject: &'w Subject,
    rows: &'w mut Vec<Row>,
}

impl Walk<'_> {
    fn children(&mut self, path: &FieldPath, value: &Value, indent: usize) {
        for (name, child) in value.as_object().into_iter().flatten() {
            self.entry(&path.clone().join(Element::field(name)), name, child, indent);
        }
    }

    /// `name: value` on one line, or on several.
    fn entry(&mut self, path: &FieldPath, name: &str, value: &Value, indent: usize) {
        let key = format!("{}{}:", " ".repeat(indent), scalar(&Value::from(name)));
        self.valued(path, &key, value, indent);
    }

    fn valued(&mut self, path: &FieldPath, key: &str, value: &Value, indent: usize) {
        let is_whole = Schema::default().structure_at(path.elements()) == Some(Structure::Atomic);
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                self.row(path, key.to_owned(), true);
                self.children(path, value, indent + 2);
            }
            Value::Array(items) if !items.is_empty() => {
                if items.iter().all(|item| !item.is_object() && !item.is_array()) {
                    let flow: Vec<String> = items.iter().map(ToString::to_string).collect();
                    self.row(path, format!("{key} [{}]", flow.join(", ")), false);
                    if is_whole && let Some(row) = self.rows.last_mut() {
                        row.comment = "atomic: one owner for the whole list";
                    }
                    return;
                }
                self.row(path, key.to_owned(), true);
                self.items(path, items, indent);
            }
            value => {
                self.row(path, format!("{key} {}", scalar(value)), false);
            }
        }
    }

    fn items(&mut self, path: &FieldPath, items: &[Value], indent: usize) {
        let paths = self.item_paths(path, items.len());
        for (item, path) in items.iter().zip(paths) {
            let dash = format!("{}-", " ".repeat(indent));
            let Some(fields) = item.as_object().filter(|fields| !fields.is_empty()) else {
                self.row(&path, format!("{dash} {item}"), false);
                continue;
            };
            for (index, (name, value)) in fields.iter().enumerate() {
                let path = path.clone().join(Element::field(name));
                let lead = if index == 0 { format!("{dash} ") } else { " ".repeat(indent + 2) };
                let key = format!("{lead}{}:", scalar(&Value::from(name.as_str())));
                self.valued(&path, &key, value, indent + 2);
            }
        }
    }

    /// The paths of the items of a list: by key where they have one, else by position.
    fn item_paths(&self, path: &FieldPath, count: usize) -> Vec<FieldPath> {
        let star = format!("{path}[*]").parse::<Query>().ok();
        let found = star
            .map(|query| self.subject.ownership.lookup(&query, Some(&self.subject.value)).answers);
        let found = found.unwrap_or_default();
        if found.len() == count {
            return found.into_iter().map(|answer| answer.path).collect();
        }
        let at =
            |index| path.clone().join(Element::Index(i64::try_from(index).unwrap_or_default()));
        (0..count).map(at).collect()
    }

    fn row(&mut self, path: &FieldPath, text: String, is_inner: bool) {
        let answer = self.subject.ownership.at(path);
        let is_default = !is_inner && answer.state == State::Unowned;
        let owner = gutter(&answer, is_inner);
        let comment = if is_default { "API default, or let go: nobody owns it" } else { "" };
        self.rows.push(Row { owner, text, comment });
    }
}

fn gutter(answer: &Answer<'_>, is_inner: bool) -> Gutter {
    let operation = |operation| match operation {
        Operation::Apply => "A",
        Operation::Update => "U",
    };
    let mut entries: Vec<_> = answer.owners.iter().map(|owner| owner.entry).collect();
    if entries.is_empty() && is_inner {
        // Nobody owns what only holds other things; who owns those is as much as can be said.
        entries.clone_from(&answer.below);
    }
    // Who applies is meant to own it; who updated may not know.
    entries
        .sort_by_key(|entry| (entry.operation() != Operation::Apply, entry.manager().to_owned()));
    match entries.first() {
        Some(first) => Gutter {
            manager: first.manager().to_owned(),
            operation: operation(first.operation()),
            time: first.time(),
            others: entries.len() - 1,
        },
        None => Gutter { manager: "-".to_owned(), ..Gutter::default() },
    }
}

/// A scalar as YAML in one line.
fn scalar(value: &Value) -> String {
    let Value::String(text) = value else { return shown(value) };
    let is_safe =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-' | ':' | '@' | '+');
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        && !text.ends_with(':')
        && text.chars().all(is_safe)
        && serde_yaml::from_str::<Value>(text).is_ok_and(|read| read == *value);
    if is_plain { text.clone() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!("nginx:1.9.2"), "nginx:1.9.2")]
    #[case(json!("ghcr.io/acme/web@sha256:ab"), "ghcr.io/acme/web@sha256:ab")]
    #[case(json!("true"), "\"true\"")]
    #[case(json!("1"), "\"1\"")]
    #[case(json!("null"), "\"null\"")]
    #[case(json!("0x1f"), "\"0x1f\"")]
    #[case(json!(""), "\"\"")]
    #[case(json!("a b"), "\"a b\"")]
    #[case(json!("a\nb"), "\"a\\nb\"")]
    #[case(json!("a:"), "\"a:\"")]
    #[case(json!(3), "3")]
    #[case(json!(null), "null")]
    #[case(json!({}), "{}")]
    fn a_scalar_is_read_back_as_it_was(#[case] value: Value, #[case] expected: &str) {
        let text = scalar(&value);
        assert_eq!(text, expected);
        assert_eq!(serde_yaml::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn all_lines_together_are_the_object() {
        let value = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": { "replicas": 2, "template": { "spec": {
                "containers": [
                    { "name": "app", "image": "a:1", "args": ["--a", "b"], "env": [{ "name": "X", "value": "1" }] },
                    { "name": "side", "resources": {} },
                ],
                "lists": [[1, 2], []], "tolerations": [{}],
            } } },
        });
        let subject = Subject::new(value.clone(), true, belay_api::AnnotationPrefix::default());
        let subject = subject.unwrap();
        let mut rows = Vec::new();
        let mut walk = Walk { subject: &subject, rows: &mut rows };
        walk.children(&FieldPath::root(), &value, 0);
        let lines: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        let text = lines.join("\n");
        assert_eq!(serde_yaml::from_str::<Value>(&text).unwrap(), value, "{text}");
    }
}
