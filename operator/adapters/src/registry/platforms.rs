//! For which platforms an image is.

use std::fmt;

use http::{Method, StatusCode};
use oci_client::manifest::OciManifest;
use serde::Deserialize;

use super::{
    Image, Registry, Stage, Trouble,
    exchange::Ask,
    head::{Access, sha256},
};
use crate::object::Object;

/// An operating system and an architecture, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Platform {
    /// Such as `linux`.
    pub os: String,
    /// Such as `amd64`.
    pub architecture: String,
    /// Such as `v7`.
    #[serde(default)]
    pub variant: Option<String>,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

impl Registry {
    /// The platforms of a manifest that [`Registry::head`] found: those an index lists, or the one that
    /// the configuration of a single image names. Every answer is checked against its digest.
    ///
    /// # Errors
    /// What stood in the way.
    pub async fn platforms(
        &self,
        image: &Image,
        digest: &str,
        access: &Access,
    ) -> Result<Vec<Platform>, Trouble> {
        self.timed(image.host(), self.read_platforms(image, digest, access)).await
    }

    async fn read_platforms(
        &self,
        image: &Image,
        digest: &str,
        access: &Access,
    ) -> Result<Vec<Platform>, Trouble> {
        let stage = Stage::Manifest;
        let base = self.base(image.host(), stage)?;
        let reply = self.manifest(Method::GET, &base, image, digest, access).await?;
        if reply.status != StatusCode::OK {
            return Err(reply.trouble(stage));
        }
        if sha256(&reply.body) != digest {
            return Err(reply.unreadable(stage, "the answer does not have its digest"));
        }
        let config = match serde_json::from_slice::<OciManifest>(&reply.body) {
            Ok(OciManifest::ImageIndex(index)) => {
                let listed = index.manifests.into_iter().filter_map(|entry| entry.platform);
                let mut platforms: Vec<_> = listed
                    .map(|it| Platform {
                        os: it.os.to_string(),
                        architecture: it.architecture.to_string(),
                        variant: it.variant,
                    })
                    // Attestations stand in an index under this name.
                    .filter(|it| it.os != "unknown")
                    .collect();
                platforms.sort();
                platforms.dedup();
                return Ok(platforms);
            }
            Ok(OciManifest::Image(manifest)) => manifest.config.digest,
            Err(_) => return Err(reply.unreadable(stage, "the answer is no manifest")),
        };
        if !is_sha256(&config) {
            return Err(reply.unreadable(stage, "the manifest names no configuration"));
        }
        let stage = Stage::Blob;
        let mut url = base;
        url.set_path(&format!("/v2/{}/blobs/{config}", image.repository()));
        let (method, auth, who) = (Method::GET, &access.auth, access.who);
        let ask = Ask { stage, method, url, accept: "", auth, who, follow: true };
        let reply = self.ask(ask).await?;
        if reply.status != StatusCode::OK {
            return Err(reply.trouble(stage));
        }
        if sha256(&reply.body) != config {
            return Err(reply.unreadable(stage, "the answer does not have its digest"));
        }
        match serde_json::from_slice(&reply.body) {
            Ok(Object(platform)) => Ok(vec![platform]),
            Err(_) => Err(reply.unreadable(stage, "the answer names no platform")),
        }
    }
}

/// The digest becomes part of a path.
fn is_sha256(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}
