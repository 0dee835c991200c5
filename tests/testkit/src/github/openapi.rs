//! GitHub's published OpenAPI description, read as JSON Schema.
//!
//! The description is OpenAPI 3.0.3, whose schemas differ from JSON Schema 2020-12 in `nullable` and
//! in that a `$ref` hides what stands beside it. It leaves objects open; here a property that it
//! does not name is refused, so that a misspelt name of an optional property is found.

use std::{collections::BTreeSet, fs::File, io, io::BufReader, path::Path};

use serde_json::{Map, Value, json};
use thiserror::Error;

/// Why the description could not be read.
#[derive(Debug, Error)]
#[error("could not read GitHub's OpenAPI description in {path}")]
pub struct DescriptionError {
    path: String,
    source: io::Error,
}

/// What the description says of one answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Described {
    /// The body has this schema, a JSON Schema document of its own.
    Body(Value),
    /// The answer has no body.
    Empty,
    /// The description does not mention the status (or, for a 409, its body).
    Unmentioned,
}

/// The description.
#[derive(Debug)]
pub struct Description(Value);

impl Description {
    /// Reads the JSON file.
    ///
    /// # Errors
    /// When it is not there or no JSON.
    pub fn read(path: &Path) -> Result<Self, DescriptionError> {
        let failed = |source| DescriptionError { path: path.display().to_string(), source };
        let file = File::open(path).map_err(failed)?;
        serde_json::from_reader(BufReader::new(file))
            .map(Self)
            .map_err(|error| failed(error.into()))
    }

    /// Whether it has an operation.
    pub fn has(&self, method: &str, path: &str) -> bool {
        self.operation(method, path).is_some()
    }

    /// The body of an operation's answer with a status.
    pub fn answer(&self, method: &str, path: &str, status: u16) -> Described {
        let responses = self.operation(method, path).and_then(|it| it.get("responses"));
        let response = responses.and_then(|responses| responses.get(status.to_string()));
        let Some(response) = response.map(|response| self.resolve(response)) else {
            return Described::Unmentioned;
        };
        // The list's own copy of the schema asks of an account to be a user and an enterprise at
        // once, which none can be; an item is what the single installation is.
        let listed = json!({
            "type": "array", "items": { "$ref": "#/components/schemas/installation" },
        });
        match response.pointer("/content/application~1json/schema") {
            Some(_) if path == "/app/installations" => Described::Body(self.document(&listed)),
            Some(schema) => Described::Body(self.document(schema)),
            None if matches!(status, 204 | 304) => Described::Empty,
            // For 301 without content and 409 GitHub documents the status, not the body it sends.
            None => Described::Unmentioned,
        }
    }

    /// The payload of a webhook, by the name the description gives it, such as
    /// `release-published`.
    pub fn webhook(&self, name: &str) -> Option<Value> {
        let pointer = "/post/requestBody/content/application~1json/schema";
        let schema = self.0.get("x-webhooks")?.get(name)?.pointer(pointer)?;
        Some(self.document(schema))
    }

    /// A component by its name, such as `basic-error`.
    pub fn component(&self, name: &str) -> Option<Value> {
        let schema = self.0.pointer("/components/schemas")?.get(name)?;
        Some(self.document(schema))
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        self.0.get("paths")?.get(path)?.get(method.to_ascii_lowercase())
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        let target = value.get("$ref").and_then(Value::as_str);
        let pointer = target.and_then(|target| target.strip_prefix('#'));
        pointer.and_then(|pointer| self.0.pointer(pointer)).unwrap_or(value)
    }

    /// A schema with everything it refers to, as one JSON Schema document.
    fn document(&self, schema: &Value) -> Value {
        let mut translation = Translation { description: self, wanted: BTreeSet::new() };
        let mut document = translation.schema(schema, Extra::Refused);
        let mut definitions = Map::new();
        while let Some((name, extra)) = translation.next(&definitions) {
            let pointer = format!("/components/schemas/{name}");
            let component = self.0.pointer(&pointer).unwrap_or(&Value::Bool(false));
            let translated = translation.schema(component, extra);
            definitions.insert(key(&name, extra), translated);
        }
        document["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        document["$defs"] = definitions.into();
        document
    }
}

/// Allows what GitHub sends and its description leaves out.
fn correct(properties: &mut Map<String, Value>) {
    // Every error names its status, not only the basic one.
    if properties.contains_key("documentation_url") {
        properties.entry("status").or_insert_with(|| json!({ "type": "string" }));
    }
    // The documented default of a deployment status' addresses is an empty text, which is no URI.
    if properties.contains_key("deployment_url") {
        for name in ["target_url", "log_url", "environment_url"] {
            if let Some(property) = properties.get_mut(name) {
                *property = json!({ "anyOf": [{ "const": "" }, property.take()] });
            }
        }
    }
}

/// Whether properties that a schema does not name are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extra {
    Refused,
    /// Inside `allOf`, where each part names only some of the properties.
    Allowed,
}

fn key(name: &str, extra: Extra) -> String {
    match extra {
        Extra::Refused => name.to_owned(),
        Extra::Allowed => format!("{name}~open"),
    }
}

struct Translation<'a> {
    description: &'a Description,
    wanted: BTreeSet<(String, Extra)>,
}

impl Translation<'_> {
    /// A component that is referred to and not yet there.
    fn next(&self, done: &Map<String, Value>) -> Option<(String, Extra)> {
        self.wanted.iter().find(|(name, extra)| !done.contains_key(&key(name, *extra))).cloned()
    }

    fn schema(&mut self, schema: &Value, extra: Extra) -> Value {
        let Some(object) = schema.as_object() else { return schema.clone() };
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, extra);
        }
        let mut translated = Map::new();
        for (keyword, value) in object {
            let value = match keyword.as_str() {
                "properties" => self.properties(value),
                "items" | "additionalProperties" | "not" => self.schema(value, Extra::Refused),
                "anyOf" | "oneOf" => self.list(value, extra),
                "allOf" => self.list(value, Extra::Allowed),
                "type" | "required" | "enum" | "format" | "pattern" | "minLength" | "maxLength"
                | "minItems" | "maxItems" | "uniqueItems" | "minimum" | "maximum"
                | "minProperties" | "maxProperties" => value.clone(),
                // Words for people, and `nullable`, which is seen to below.
                _ => continue,
            };
            translated.insert(keyword.clone(), value);
        }
        let composed = object.contains_key("allOf") || object.contains_key("anyOf");
        if object.contains_key("properties")
            && !composed
            && extra == Extra::Refused
            && !object.contains_key("additionalProperties")
        {
            translated.insert("additionalProperties".to_owned(), false.into());
        }
        if object.get("nullable") == Some(&Value::Bool(true)) {
            return json!({ "anyOf": [translated, { "type": "null" }] });
        }
        Value::Object(translated)
    }

    fn reference(&mut self, reference: &str, extra: Extra) -> Value {
        let Some(name) = reference.strip_prefix("#/components/schemas/") else {
            let holder = json!({ "$ref": reference });
            let target = self.description.resolve(&holder).clone();
            return if target == holder { false.into() } else { self.schema(&target, extra) };
        };
        self.wanted.insert((name.to_owned(), extra));
        // A JSON pointer in a URI: `~` is escaped, names have no other special letter.
        let key = key(name, extra).replace('~', "~0");
        json!({ "$ref": format!("#/$defs/{key}") })
    }

    fn properties(&mut self, value: &Value) -> Value {
        let entries = value.as_object().into_iter().flatten();
        let mut properties = entries
            .map(|(name, schema)| (name.clone(), self.schema(schema, Extra::Refused)))
            .collect();
        correct(&mut properties);
        Value::Object(properties)
    }

    fn list(&mut self, value: &Value, extra: Extra) -> Value {
        value.as_array().into_iter().flatten().map(|schema| self.schema(schema, extra)).collect()
    }
}
