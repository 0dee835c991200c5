//! Objects for programs: JSON, YAML, names.

use serde_json::Value;

use super::jsonpath::Template;
use crate::{cli::output::Format, error::Error, out::Out};

/// Prints a value in a format for programs; `names` are the lines of `-o name`.
///
/// # Errors
/// The template is wrong, or the output cannot be written.
pub fn print(value: &Value, names: &[String], format: &Format, out: &mut Out) -> Result<(), Error> {
    let text = match format {
        Format::Json | Format::Wide => json(value),
        Format::Yaml => yaml(value)?,
        Format::Name => names.iter().flat_map(|name| [name.as_str(), "\n"]).collect(),
        Format::JsonPath(template) => {
            let read = Template::parse(template)
                .map_err(|why| Error::usage(format!("-o jsonpath: {why}")))?;
            read.fill(value)
                .map_err(|why| Error::other(format!("-o jsonpath={template}: {why}")))?
        }
    };
    Ok(out.raw(&text)?)
}

/// JSON with four blanks to a level, as kubectl prints it.
pub fn json(value: &Value) -> String {
    use serde::Serialize as _;
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    // A value has string keys alone, and memory takes every byte.
    if sorted(value).serialize(&mut serializer).is_err() {
        return String::new();
    }
    text.push(b'\n');
    escaped(&String::from_utf8(text).unwrap_or_default())
}

/// JSON in one line.
pub fn compact(value: &Value) -> String {
    format!("{}\n", go(value))
}

/// JSON in one line, as Go writes it.
pub fn go(value: &Value) -> String {
    escaped(&sorted(value).to_string())
}

fn sorted(value: &Value) -> Value {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted
}

/// Go escapes what would be markup in HTML; in JSON, these stand in strings alone.
fn escaped(json: &str) -> String {
    let escape = |char| match char {
        '<' => Some("\\u003c"),
        '>' => Some("\\u003e"),
        '&' => Some("\\u0026"),
        '\u{2028}' => Some("\\u2028"),
        '\u{2029}' => Some("\\u2029"),
        _ => None,
    };
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        match escape(char) {
            Some(escape) => text.push_str(escape),
            None => text.push(char),
        }
    }
    text
}

/// YAML with sorted keys, as kubectl prints it.
///
/// # Errors
/// A value cannot be written as YAML.
pub fn yaml(value: &Value) -> Result<String, Error> {
    let text = serde_saphyr::to_string(&sorted(value))
        .map_err(|error| Error::other(format!("print it as YAML: {error}")))?;
    Ok(if text.ends_with('\n') { text } else { format!("{text}\n") })
}

/// `kind.group/name`, in lower case; the core group has no dot.
pub fn name(api_version: &str, kind: &str, name: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    match api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// kubectl leaves managedFields out unless it is asked for them.
pub fn without_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
}

/// kubectl's list of objects of any kind.
pub fn list(items: &[Value]) -> Value {
    serde_json::json!({
        "apiVersion": "v1",
        "items": items,
        "kind": "List",
        "metadata": { "resourceVersion": "" },
    })
}
