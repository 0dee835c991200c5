//! How Helm 4 applied the release last: `apply_method` of its newest record (the lab report,
//! section H). That is what `--server-side=auto` goes by.

use std::{borrow::Cow, io::Read as _};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::bufread::GzDecoder;
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::cluster::{
    Cluster, ReadError,
    live::{refused, segment},
};

/// The largest record that is unpacked, in bytes. A Secret holds 1 MiB, compressed.
const MAX_RECORD: u64 = 64 << 20;

const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// How Helm applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMethod {
    /// On the client side, or by a Helm that does not say: `auto` takes that for client-side too.
    ClientSide,
    /// On the server side.
    ServerSide,
}

/// What the records say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordAnswer {
    /// The newest record, with its name.
    Method(ApplyMethod, String),
    /// Nothing; why, as part of a sentence.
    Silent(String),
}

#[derive(Debug, Deserialize)]
struct List {
    kind: String,
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: Labels,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Labels {
    version: String,
}

#[derive(Debug, Deserialize)]
struct Secret<'s> {
    #[serde(borrow)]
    data: Data<'s>,
}

#[derive(Debug, Deserialize)]
struct Data<'s> {
    #[serde(borrow)]
    release: Cow<'s, str>,
}

#[derive(Debug, Deserialize)]
struct Record {
    /// Asked for so that something else is no record.
    #[serde(rename = "name")]
    _name: String,
    #[serde(default)]
    apply_method: Option<String>,
}

impl Cluster {
    /// Asks for the newest record of a release: a list of metadata, and one GET.
    pub async fn apply_method(&self, namespace: &str, release: &str) -> RecordAnswer {
        match self.newest_record(namespace, release).await {
            Ok(Some((name, method))) => RecordAnswer::Method(method, name),
            Ok(None) => RecordAnswer::Silent(format!("the release {release} has no record")),
            Err(error) => RecordAnswer::Silent(format!("its record could not be read: {error}")),
        }
    }

    async fn newest_record(
        &self,
        namespace: &str,
        release: &str,
    ) -> Result<Option<(String, ApplyMethod)>, ReadError> {
        let selector = format!("owner=helm,name={release}");
        let secrets = format!("/api/v1/namespaces/{}/secrets", segment(namespace)?);
        let query = utf8_percent_encode(&selector, NON_ALPHANUMERIC);
        let body = self
            .secret(&format!("{secrets}?labelSelector={query}"), LIST, "list", namespace)
            .await?;
        let garbage = |why: String| ReadError::Garbage {
            server: self.server.clone(),
            wanted: format!("the records of the release {namespace}/{release}"),
            why,
        };
        let list: List = serde_json::from_slice(&body).map_err(|e| garbage(e.to_string()))?;
        if !list.kind.ends_with("List") {
            return Err(garbage(format!("it is a {}", list.kind)));
        }
        let numbered = |item: Item| {
            let version: u64 = item.metadata.labels.version.parse().ok()?;
            Some((version, item.metadata.name))
        };
        let Some((_, name)) = list.items.into_iter().filter_map(numbered).max() else {
            return Ok(None);
        };
        let path = format!("{secrets}/{}", segment(&name)?);
        let body = self.secret(&path, "application/json", "get", namespace).await?;
        let method = decode(&body).map_err(garbage)?;
        Ok(Some((name, method)))
    }

    async fn secret(
        &self,
        path: &str,
        accept: &'static str,
        verb: &str,
        namespace: &str,
    ) -> Result<bytes::Bytes, ReadError> {
        let (status, body) = self.get(path, accept).await?;
        if status == StatusCode::OK {
            return Ok(body);
        }
        Err(refused(status, &body, self.server.clone(), || {
            format!(
                "apiGroups: [\"\"], resources: [\"secrets\"], verbs: [\"{verb}\"] in a Role of the \
                 namespace {namespace}"
            )
        }))
    }
}

/// base64 of the Secret, base64 of Helm, gzip, JSON.
fn decode(secret: &[u8]) -> Result<ApplyMethod, String> {
    let Secret { data } = serde_json::from_slice(secret).map_err(|error| error.to_string())?;
    let inner =
        BASE64_STANDARD.decode(data.release.as_bytes()).map_err(|error| error.to_string())?;
    let packed = BASE64_STANDARD.decode(inner).map_err(|error| error.to_string())?;
    // Records shrink to a fifth or so.
    let mut json = Vec::with_capacity(packed.len().saturating_mul(6));
    GzDecoder::new(packed.as_slice())
        .take(MAX_RECORD)
        .read_to_end(&mut json)
        .map_err(|error| format!("unpack it: {error}"))?;
    let record: Record = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    match record.apply_method.as_deref() {
        Some("ssa") => Ok(ApplyMethod::ServerSide),
        None | Some("" | "csa") => Ok(ApplyMethod::ClientSide),
        Some(_) => Err("its apply_method is a word unknown to belay".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn secret(record: &str) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(record.as_bytes()).unwrap();
        let inner = BASE64_STANDARD.encode(packed.finish().unwrap());
        json!({ "data": { "release": BASE64_STANDARD.encode(inner) } }).to_string().into_bytes()
    }

    #[rstest]
    #[case(r#"{"name":"web","apply_method":"ssa"}"#, ApplyMethod::ServerSide)]
    #[case(r#"{"name":"web","apply_method":"csa"}"#, ApplyMethod::ClientSide)]
    #[case(r#"{"name":"web"}"#, ApplyMethod::ClientSide)]
    fn a_record_tells_how_helm_applied(#[case] record: &str, #[case] expected: ApplyMethod) {
        assert_eq!(decode(&secret(record)), Ok(expected));
    }

    #[rstest]
    #[case::no_json(b"{".to_vec())]
    #[case::no_release(br#"{"data":{}}"#.to_vec())]
    #[case::no_base64(br#"{"data":{"release":"*"}}"#.to_vec())]
    #[case::no_gzip(json!({"data":{"release": BASE64_STANDARD.encode(BASE64_STANDARD.encode("x"))}}).to_string().into_bytes())]
    #[case::another_word(secret(r#"{"apply_method":"magic"}"#))]
    #[case::no_record(secret("[]"))]
    fn what_is_no_record_tells_nothing(#[case] secret: Vec<u8>) {
        decode(&secret).unwrap_err();
    }

    #[test]
    fn a_record_that_unpacks_without_end_is_cut_off() {
        let blanks = " ".repeat(65 << 20);
        let bomb = secret(&format!("{blanks}{{}}"));
        assert!(decode(&bomb).is_err());
    }
}
