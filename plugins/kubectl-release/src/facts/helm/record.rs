//! Helm's release Secrets: base64 of gzip of JSON, within the Secret's own base64 (lab report,
//! section H).

use std::io::Read as _;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::Secret;
use serde::Deserialize;
use serde_json::Value;

/// The largest record that is unpacked, in bytes. A Secret holds 1 MiB, compressed.
const MAX_RECORD: u64 = 64 << 20;

/// How Helm applied a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMethod {
    /// On the client side.
    ClientSide,
    /// On the server side.
    ServerSide,
    /// The record does not say: Helm 3 wrote it, or wrote over it. Helm 4 takes that for client-side.
    Unsaid,
}

/// One revision of a release of Helm. It never holds values of the chart: they may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The release.
    pub name: String,
    /// The namespace it is installed in.
    pub namespace: String,
    /// The revision, from 1.
    pub revision: u64,
    /// Helm's word: `deployed`, `superseded`, `failed`, `pending-upgrade`, …
    pub status: String,
    /// How it was applied.
    pub method: ApplyMethod,
    /// The chart's name.
    pub chart: String,
    /// The chart's version.
    pub version: String,
    /// The manifest that was applied, after any post-renderer.
    pub manifest: String,
    /// All text that the chart makes its manifests of: templates, values, versions.
    sources: Vec<String>,
}

impl Record {
    /// Whether one of the chart's templates or values, or its version, has this text as a whole word.
    pub fn mentions(&self, word: &str) -> bool {
        self.sources.iter().any(|source| has_word(source, word))
    }

    /// Whether a template of the chart looks at the live object.
    pub fn looks_up(&self) -> bool {
        self.sources.iter().any(|source| has_word(source, "lookup"))
    }

    /// `web-2.4.0`, as `helm list` names a chart.
    pub fn chart_name(&self) -> String {
        format!("{}-{}", self.chart, self.version)
    }

    /// Reads the record in a Secret.
    ///
    /// # Errors
    /// Why it is none, as part of a sentence; the record's content is never in it.
    pub fn of(secret: &Secret) -> Result<Self, String> {
        let data = secret.data.as_ref().and_then(|data| data.get("release"));
        let outer = data.ok_or_else(|| "it has no key `release`".to_owned())?;
        Self::decode(&outer.0)
    }

    fn decode(inner: &[u8]) -> Result<Self, String> {
        let packed = BASE64_STANDARD.decode(inner).map_err(|_| "it is not base64".to_owned())?;
        let mut json = Vec::new();
        if packed.starts_with(&[0x1f, 0x8b]) {
            GzDecoder::new(packed.as_slice())
                .take(MAX_RECORD)
                .read_to_end(&mut json)
                .map_err(|_| "it cannot be unpacked".to_owned())?;
        } else {
            // Helm 2 and early Helm 3 did not compress.
            json = packed;
        }
        let raw: Raw =
            serde_json::from_slice(&json).map_err(|_| "it is not a record of Helm".to_owned())?;
        Ok(raw.into())
    }
}

#[derive(Deserialize)]
struct Raw {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    info: Info,
    #[serde(default)]
    chart: Chart,
    #[serde(default)]
    config: Value,
    #[serde(default)]
    manifest: String,
    #[serde(default)]
    apply_method: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Info {
    status: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Chart {
    metadata: Option<Metadata>,
    templates: Option<Vec<Template>>,
    values: Value,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    version: String,
    app_version: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Template {
    data: String,
}

impl From<Raw> for Record {
    fn from(raw: Raw) -> Self {
        let metadata = raw.chart.metadata.unwrap_or_default();
        let mut sources = vec![metadata.app_version, metadata.version.clone()];
        for template in raw.chart.templates.unwrap_or_default() {
            let bytes = BASE64_STANDARD.decode(template.data).unwrap_or_default();
            sources.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        scalars(&raw.chart.values, &mut sources);
        scalars(&raw.config, &mut sources);
        Self {
            name: raw.name,
            namespace: raw.namespace,
            revision: raw.version,
            status: raw.info.status,
            method: match raw.apply_method.as_deref() {
                Some("ssa") => ApplyMethod::ServerSide,
                Some("csa") => ApplyMethod::ClientSide,
                _ => ApplyMethod::Unsaid,
            },
            chart: metadata.name,
            version: metadata.version,
            manifest: raw.manifest,
            sources,
        }
    }
}

/// All texts and numbers in a value. Its depth is that of serde_json's reader, which is bounded.
fn scalars(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Number(number) => into.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| scalars(item, into)),
        Value::Object(fields) => fields.values().for_each(|field| scalars(field, into)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Whether `text` has `word` with nothing of a version's characters beside it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

/// A record as Helm stores it, for tests.
#[cfg(test)]
pub(crate) fn packed(record: &Value) -> Secret {
    use std::{collections::BTreeMap, io::Write as _};

    use flate2::{Compression, write::GzEncoder};
    use k8s_openapi::ByteString;

    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(record.to_string().as_bytes()).unwrap();
    let text = BASE64_STANDARD.encode(gzip.finish().unwrap());
    Secret {
        data: Some(BTreeMap::from([("release".to_owned(), ByteString(text.into_bytes()))])),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn record(method: &Value) -> Value {
        json!({
            "name": "web", "namespace": "shop", "version": 7, "info": { "status": "deployed" },
            "chart": {
                "metadata": { "name": "web", "version": "2.4.0", "appVersion": "1.9.2" },
                "templates": [{ "name": "t", "data": BASE64_STANDARD.encode("image: {{ .x }}:3.1.4\n") }],
                "values": { "image": { "tag": "1.0.0" }, "number": 12 },
            },
            "config": { "image": { "tag": "1.1.0" }, "password": "hunter2" },
            "manifest": "---\nkind: Deployment\n", "apply_method": method,
        })
    }

    #[rstest]
    #[case(json!("ssa"), ApplyMethod::ServerSide)]
    #[case(json!("csa"), ApplyMethod::ClientSide)]
    #[case(json!(null), ApplyMethod::Unsaid)]
    #[case(json!("later"), ApplyMethod::Unsaid)]
    fn a_record_is_read(#[case] method: Value, #[case] expected: ApplyMethod) {
        let read = Record::of(&packed(&record(&method))).unwrap();
        assert_eq!((read.revision, read.method), (7, expected));
        assert_eq!((read.status.as_str(), read.chart_name().as_str()), ("deployed", "web-2.4.0"));
    }

    #[rstest]
    #[case("1.0.0", true)]
    #[case("1.1.0", true)]
    #[case("1.9.2", true)]
    #[case("3.1.4", true)]
    #[case("12", true)]
    #[case("1.1", false)]
    #[case("1.0.0-rc.1", false)]
    #[case("9.9.9", false)]
    #[case("", false)]
    fn the_chart_mentions_whole_words(#[case] word: &str, #[case] expected: bool) {
        assert_eq!(Record::of(&packed(&record(&json!("ssa")))).unwrap().mentions(word), expected);
    }

    #[rstest]
    #[case::empty(b"")]
    #[case::no_base64(b"***")]
    #[case::no_json(b"aGVsbG8=")]
    #[case::cut_off_gzip(b"H4sIAAAA")]
    fn anything_else_is_no_record_and_shows_nothing(#[case] data: &[u8]) {
        let mut secret = Secret::default();
        secret.data.get_or_insert_default().insert("release".to_owned(), ByteString(data.to_vec()));
        let error = Record::of(&secret).unwrap_err();
        assert!(error.starts_with("it "), "{error}");
        Record::of(&Secret::default()).unwrap_err();
    }

    #[test]
    fn a_record_that_unpacks_without_end_is_cut_off() {
        let blanks = " ".repeat(65 << 20);
        let mut bomb = record(&json!("ssa"));
        bomb["manifest"] = json!(blanks);
        Record::of(&packed(&bomb)).unwrap_err();
    }
}
