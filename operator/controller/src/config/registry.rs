//! How registries are asked.

use std::{collections::BTreeMap, path::PathBuf};

use belay_adapters::{
    Clock,
    registry::{HostPolicy, Image, Registry, Settings},
};

use super::{ConfigError, forge::certificates};
use crate::cli::Run;

/// How registries are asked.
#[derive(Debug, Clone)]
pub struct RegistryConfig {
    /// Certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The host to ask, by the registry as [`Image::registry`] prints it. For checks only: images
    /// are written as they are.
    pub mirrors: BTreeMap<String, String>,
    /// Whether the pull secrets of pods and ServiceAccounts may be read.
    pub read_pull_secrets: bool,
    /// Whether images are checked for the platforms of the cluster's nodes.
    pub check_platforms: bool,
    /// Which hosts may be asked at all.
    pub hosts: HostPolicy,
}

impl RegistryConfig {
    pub(super) fn of(run: &Run, hosts: HostPolicy) -> Result<Self, ConfigError> {
        let mut mirrors = BTreeMap::new();
        for (registry, mirror) in &run.registry_mirror {
            let before = mirrors.insert(registry.clone(), mirror.clone());
            if let Some(first) = before.filter(|first| first != mirror) {
                return Err(ConfigError::TwoMirrors {
                    registry: registry.clone(),
                    first,
                    second: mirror.clone(),
                });
            }
        }
        Ok(Self {
            ca_file: run.registry_ca_file.clone(),
            mirrors,
            read_pull_secrets: run.read_pull_secrets,
            check_platforms: run.check_platforms,
            hosts,
        })
    }

    /// The image as it is asked for: on its registry's mirror, if that has one.
    pub fn asked(&self, image: &Image) -> Image {
        match self.mirrors.get(image.registry()) {
            Some(mirror) => image.on(mirror),
            None => image.clone(),
        }
    }

    /// A client that has asked nothing yet.
    ///
    /// # Errors
    /// [`ConfigError`], when the certificates cannot be used.
    pub fn client(&self, clock: Clock) -> Result<Registry, ConfigError> {
        let ca = certificates("--registry-ca-file", self.ca_file.as_deref())?;
        let settings = Settings { ca, clock, ..Settings::new(self.hosts.clone()) };
        let tls =
            |source: reqwest::Error| ConfigError::Tls { what: "registries", source: source.into() };
        Registry::new(settings).map_err(tls)
    }
}
