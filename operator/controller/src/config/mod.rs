//! What the options of `run` mean together: checked, with every default filled in.

mod allow;
mod error;
mod forge;
mod registry;

use std::{net::SocketAddr, path::PathBuf};

use belay_adapters::registry::HostPolicy;
use belay_engine::settings::Settings;

pub use self::{
    allow::{Allow, RegistryRule, RepoRule},
    error::ConfigError,
    forge::ForgeConfig,
    registry::RegistryConfig,
};
use crate::{
    admin::Access,
    cli::{Run, ScopeKind},
};

/// The operator's configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whose workloads are followed.
    pub scope: Scope,
    /// The operator's own namespace.
    pub namespace: String,
    /// Its Lease there.
    pub lease_name: String,
    /// What decisions depend on.
    pub engine: Settings,
    /// GitHub.
    pub forge: ForgeConfig,
    /// Registries.
    pub registry: RegistryConfig,
    /// What tenants may have asked.
    pub allow: Allow,
    /// Where health and metrics are served.
    pub health_bind: SocketAddr,
    /// Where the debug pages are served.
    pub admin_bind: SocketAddr,
    /// The file of the token that the debug pages demand.
    pub admin_token_file: Option<PathBuf>,
}

/// Whose workloads are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Those of every namespace.
    Cluster,
    /// Those of this namespace.
    Namespace(String),
}

impl Scope {
    /// The one namespace, if it is one.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Cluster => None,
            Self::Namespace(name) => Some(name),
        }
    }
}

impl Config {
    /// Checks what options can only be wrong about together.
    ///
    /// # Errors
    /// [`ConfigError`], which names the options.
    pub fn of(run: &Run) -> Result<Self, ConfigError> {
        let scope = match run.scope {
            ScopeKind::Cluster => Scope::Cluster,
            ScopeKind::Namespace => Scope::Namespace(run.namespace.clone()),
        };
        if run.migrate_from_field_manager.as_ref() == Some(&run.field_manager) {
            return Err(ConfigError::MigratesFromItself { manager: run.field_manager.clone() });
        }
        let is_open = !run.admin_bind.ip().is_loopback();
        if is_open && run.admin_token_file.is_none() {
            return Err(ConfigError::OpenAdmin { bind: run.admin_bind });
        }
        if run.admin_bind == run.health_bind && run.admin_bind.port() != 0 {
            return Err(ConfigError::SameBind { bind: run.admin_bind });
        }
        let hosts = HostPolicy::new(run.allow_host.iter().cloned());
        let forge = ForgeConfig::of(&run.github, run.poll_interval, &hosts)?;
        let allow = Allow::new(
            matches!(scope, Scope::Cluster) && forge.token_file.is_some(),
            run.allow_repo.clone(),
            run.allow_registry.clone(),
        );
        let engine = Settings {
            prefix: run.annotation_prefix.clone(),
            instance: format!("{}/{}", run.namespace, run.lease_name),
            field_manager: run.field_manager.clone(),
            migrate_from: run.migrate_from_field_manager.clone(),
            scaled_objects: true,
            pause_marks: run.migrate_pause_mark.clone(),
            image_check_skip: run.allow_image_check_skip,
            revert_window: run.revert_window,
            max_concurrent_rollouts: run.max_concurrent_rollouts,
            ..Settings::default()
        };
        Ok(Self {
            scope,
            namespace: run.namespace.clone(),
            lease_name: run.lease_name.clone(),
            engine,
            forge,
            registry: RegistryConfig::of(run, hosts)?,
            allow,
            health_bind: run.health_bind,
            admin_bind: run.admin_bind,
            admin_token_file: run.admin_token_file.clone(),
        })
    }

    /// What the debug pages demand of those who ask.
    pub fn admin_access(&self) -> Access {
        match &self.admin_token_file {
            Some(file) => Access::Token(file.clone()),
            None => Access::Loopback,
        }
    }
}

#[cfg(test)]
mod tests;
