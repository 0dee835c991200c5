//! What image a chart sets on a container, as far as the newest record of its release tells.
//!
//! The manifest in a record is what was applied: with a post-renderer that is not what the chart said.
//! So the stored image counts as the chart's own only where the chart's templates, values or version
//! mention its tag.

use belay_engine::image::ImageRef;
use serde::Deserialize as _;
use serde_json::Value;

use super::record::Record;

/// The image that a chart sets on a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChartImage {
    /// This one.
    Sets(String),
    /// Another one than the record's: the post-renderer preserved the live image then.
    Hidden,
    /// Some image: the post-renderer took it out of the manifest, so the record does not say which.
    Stripped,
    /// Whatever is live: its template looks the image up.
    FollowsLive,
    /// None: the object, or its container, is not in the chart.
    Absent,
}

/// Which container of which object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container<'a> {
    /// The object's kind.
    pub kind: &'a str,
    /// The object's name.
    pub object: &'a str,
    /// `containers` or `initContainers`.
    pub list: &'a str,
    /// The container's name.
    pub name: &'a str,
}

impl ChartImage {
    /// What a record says about a container.
    pub fn of(record: &Record, wanted: Container<'_>) -> Self {
        let Some(container) = find(&record.manifest, wanted) else { return Self::Absent };
        let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
        if image.is_empty() {
            return Self::Stripped;
        }
        if is_the_charts(record, image) {
            return Self::Sets(image.to_owned());
        }
        if record.looks_up() { Self::FollowsLive } else { Self::Hidden }
    }
}

/// Whether the tag or digest of an image can come of the chart.
fn is_the_charts(record: &Record, image: &str) -> bool {
    if record.mentions(image) {
        return true;
    }
    let Ok(parsed) = image.parse::<ImageRef>() else { return false };
    match (parsed.tag(), parsed.digest()) {
        (Some(tag), _) => record.mentions(tag),
        (None, Some(digest)) => {
            let hex = digest.split_once(':').map_or(digest, |(_, hex)| hex);
            record.mentions(hex)
        }
        (None, None) => record.mentions(parsed.repository().spelled()),
    }
}

/// The container in a manifest. A document that cannot be read is not the one.
fn find(manifest: &str, wanted: Container<'_>) -> Option<Value> {
    documents(manifest).find_map(|document| {
        let items = match document.get("items") {
            Some(Value::Array(items)) => items.clone(),
            _ => vec![document],
        };
        items.iter().find_map(|object| container(object, wanted))
    })
}

fn container(object: &Value, wanted: Container<'_>) -> Option<Value> {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str);
    if text("/kind") != Some(wanted.kind) || text("/metadata/name") != Some(wanted.object) {
        return None;
    }
    let containers = object.pointer("/spec/template/spec")?.get(wanted.list)?.as_array()?;
    let is_it = |one: &&Value| one.get("name").and_then(Value::as_str) == Some(wanted.name);
    containers.iter().find(is_it).cloned()
}

/// The documents of a manifest; one that is no YAML is left out, and hides no other.
pub fn documents(text: &str) -> impl Iterator<Item = Value> {
    let mut parts: Vec<String> = vec![String::new()];
    for line in text.lines() {
        let is_separator = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim_start().is_empty() || rest.trim_start().starts_with('#'));
        if is_separator {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts.into_iter().filter_map(|part| {
        let document = serde_yaml::Deserializer::from_str(&part);
        Value::deserialize(document).ok().filter(Value::is_object)
    })
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    use rstest::rstest;
    use serde_json::json;

    use super::{super::record::packed, *};

    fn record(image: &str, tag: &str, template: &str) -> Record {
        let manifest = format!(
            "---\n# Source: web/templates/cm.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  \
             name: web\n--- # note\nkind: [\n---\napiVersion: apps/v1\nkind: Deployment\n\
             metadata:\n  name: web\nspec:\n  template:\n    spec:\n      containers:\n      - \
             name: app\n{image}      - name: side\n        image: proxy:1\n"
        );
        let chart = json!({
            "metadata": { "name": "web", "version": "2.4.0" },
            "templates": [{ "data": BASE64_STANDARD.encode(template) }],
            "values": { "image": { "tag": tag } },
        });
        let raw = json!({ "name": "web", "version": 1, "chart": chart, "manifest": manifest });
        Record::of(&packed(&raw)).unwrap()
    }

    const APP: Container<'_> =
        Container { kind: "Deployment", object: "web", list: "containers", name: "app" };

    fn line(image: &str) -> String {
        format!("        image: \"{image}\"\n")
    }

    #[rstest]
    #[case::the_charts(&line("acme/web:1.0.0"), "1.0.0", "", ChartImage::Sets("acme/web:1.0.0".into()))]
    #[case::preserved(&line("acme/web:1.4.0"), "1.0.0", "", ChartImage::Hidden)]
    #[case::stripped("", "1.0.0", "", ChartImage::Stripped)]
    #[case::looked_up(&line("acme/web:1.4.0"), "1.0.0", "{{ lookup \"apps/v1\" }}", ChartImage::FollowsLive)]
    #[case::written_out(&line("acme/web:1.4.0"), "", "image: acme/web:1.4.0", ChartImage::Sets("acme/web:1.4.0".into()))]
    fn a_stored_image_is_the_charts_only_if_the_chart_says_it(
        #[case] image: &str,
        #[case] tag: &str,
        #[case] template: &str,
        #[case] expected: ChartImage,
    ) {
        assert_eq!(ChartImage::of(&record(image, tag, template), APP), expected);
    }

    #[rstest]
    #[case(Container { object: "other", ..APP })]
    #[case(Container { kind: "StatefulSet", ..APP })]
    #[case(Container { name: "none", ..APP })]
    #[case(Container { list: "initContainers", ..APP })]
    fn what_is_not_in_the_chart_is_absent(#[case] wanted: Container<'_>) {
        let record = record(&line("acme/web:1.0.0"), "1.0.0", "");
        assert_eq!(ChartImage::of(&record, wanted), ChartImage::Absent);
    }

    #[test]
    fn one_broken_document_hides_no_other() {
        assert_eq!(documents("a: 1\n---\nb: [\n--- # c\nd: 2\n---\n").count(), 2);
    }
}
