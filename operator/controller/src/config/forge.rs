//! How GitHub is asked.

use std::{
    fs,
    path::{Path, PathBuf},
};

use belay_adapters::{
    Clock,
    forge::{Client, Credential, Settings, http_client},
    registry::HostPolicy,
};
use belay_api::Duration;
use reqwest::{Certificate, Url};

use super::ConfigError;
use crate::cli::GithubArguments;

/// How GitHub is asked.
#[derive(Debug, Clone)]
pub struct ForgeConfig {
    /// The base of its API.
    pub base: Url,
    /// The file with a token; without one GitHub is asked anonymously.
    pub token_file: Option<PathBuf>,
    /// Certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The shortest time between two readings of a repository.
    pub interval: Duration,
}

impl ForgeConfig {
    /// Checks the options about GitHub.
    ///
    /// # Errors
    /// [`ConfigError::PlainForge`] when GitHub would be asked without TLS, on another host than this
    /// one and without `hosts` naming it.
    pub fn of(
        github: &GithubArguments,
        interval: Duration,
        hosts: &HostPolicy,
    ) -> Result<Self, ConfigError> {
        let base = github.github_url.clone();
        if base.scheme() != "https" && !is_loopback(&base) && hosts.check(&base).is_err() {
            return Err(ConfigError::PlainForge { url: base.to_string() });
        }
        Ok(Self {
            base,
            token_file: github.github_token_file.clone(),
            ca_file: github.github_ca_file.clone(),
            interval,
        })
    }

    /// The credential.
    pub fn credential(&self) -> Credential {
        match &self.token_file {
            Some(file) => Credential::TokenFile(file.clone()),
            None => Credential::Anonymous,
        }
    }

    /// A client that has asked nothing yet.
    ///
    /// # Errors
    /// [`ConfigError`], when the certificates cannot be used.
    pub fn client(&self, clock: Clock) -> Result<Client, ConfigError> {
        let tls = |source| ConfigError::Tls { what: "GitHub", source };
        let ca = certificates("--github-ca-file", self.ca_file.as_deref())?;
        let http = http_client(ca).map_err(|error| tls(error.into()))?;
        let settings = Settings::new(self.base.clone(), self.credential(), http);
        Client::new(Settings { clock, ..settings }).map_err(|error| tls(error.into()))
    }
}

/// Whether a request stays on this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let address = inner.unwrap_or(host).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The certificates of a file; none where no file is named.
pub(super) fn certificates(
    option: &'static str,
    file: Option<&Path>,
) -> Result<Vec<Certificate>, ConfigError> {
    let Some(path) = file else { return Ok(Vec::new()) };
    let path = path.to_owned();
    let pem = match fs::read(&path) {
        Ok(pem) => pem,
        Err(source) => return Err(ConfigError::Certificates { option, path, source }),
    };
    match Certificate::from_pem_bundle(&pem) {
        Ok(found) if !found.is_empty() => Ok(found),
        // A bundle without any is mostly a wrong key of a Secret; nothing of it is repeated.
        Ok(_) | Err(_) => Err(ConfigError::NoCertificate { option, path }),
    }
}
