//! octocrab with one credential, built by hand from its public layers.
//!
//! Its own builder sends two `User-Agent`s; its retries, redirects, cache and TLS are not compiled.

use http::HeaderValue;
use octocrab::{
    AuthState, Octocrab, OctocrabBuilder,
    auth::AppAuth,
    models::{AppId, InstallationId},
    service::middleware::{base_uri::BaseUriLayer, reqwest_connector::ReqwestConnector},
};
use tokio::sync::Mutex;

use super::{
    client::Settings,
    credential::{Loaded, Secret},
    wire::Wire,
};

/// A credential in use.
pub(crate) struct Session {
    crab: Octocrab,
    /// What tells it from the credential that was there before.
    pub(crate) fingerprint: [u8; 32],
    /// Counts credentials; part of the key of entity tags.
    pub(crate) serial: u64,
    /// Held while a token is fetched, so that callers who need one at a time fetch one; `None` where
    /// none is ever fetched.
    minting: Option<Mutex<()>>,
}

impl Session {
    /// Must run inside a tokio runtime.
    pub(crate) fn new(
        settings: &Settings,
        user_agent: &HeaderValue,
        base: &http::Uri,
        loaded: Loaded,
        serial: u64,
    ) -> Result<Self, octocrab::Error> {
        let Loaded { secret, fingerprint } = loaded;
        let build = |auth: AuthState| {
            let wire = Wire {
                inner: ReqwestConnector::new(settings.http.clone()),
                user_agent: user_agent.clone(),
                within: settings.within,
                limit: settings.limit,
            };
            let built = OctocrabBuilder::new_empty()
                .with_service(wire)
                .with_layer(&BaseUriLayer::new(base.clone()))
                .with_auth(auth)
                .build();
            match built {
                Ok(crab) => crab,
                Err(never) => match never {},
            }
        };
        let (crab, minting) = match secret {
            Secret::None => (build(AuthState::None), None),
            Secret::Token(token) => (build(AuthState::AccessToken { token }), None),
            Secret::Key { app, installation, key } => {
                let auth = AppAuth { app_id: AppId(app), key };
                let crab =
                    build(AuthState::App(auth)).installation(InstallationId(installation))?;
                (crab, Some(Mutex::new(())))
            }
        };
        Ok(Self { crab, fingerprint, serial, minting })
    }

    /// The client, with a token that is good for half a minute at least.
    pub(crate) async fn ready(&self) -> Result<&Octocrab, octocrab::Error> {
        if let Some(minting) = &self.minting {
            let _one = minting.lock().await;
            self.crab.installation_token().await?;
        }
        Ok(&self.crab)
    }
}
