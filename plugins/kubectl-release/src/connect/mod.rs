//! The cluster that the command line and the kubeconfig name.

mod config;
mod identity;
pub(crate) mod proxy;
mod stack;
mod words;

use std::time::Duration;

use kube::Client;

use self::proxy::Proxy;
use crate::{
    cli::cluster::ClusterArgs,
    error::{Error, chain},
    out::Environment,
};

/// A cluster, as one identity. Nothing has been asked yet.
#[derive(Clone)]
pub struct Cluster {
    /// The client.
    pub client: Client,
    /// The namespace: `-n`, else that of the context, else `default`.
    pub namespace: String,
    /// Whether `-n` says it: then commands must say it too.
    pub is_namespace_told: bool,
    /// The context; `None` where only a server was given, or in a pod.
    pub context: Option<String>,
    /// The API server's URL, without credentials.
    pub server: String,
    /// The URL of the proxy before it, without credentials.
    pub proxy: Option<String>,
    /// How long each request may take; `None` for as long as it takes.
    pub timeout: Option<Duration>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Prepares the connection; a credential plugin of the kubeconfig runs here. Make it inside a runtime.
///
/// # Errors
/// The kubeconfig, the flags, or the credentials cannot be used.
pub fn connect(args: &ClusterArgs, environment: &Environment) -> Result<Cluster, Error> {
    let place = config::resolve(args, environment)?;
    let server = config::shown(&place.config.cluster_url);
    let attempt = format!("prepare the connection to {server}");
    let proxy = Proxy::of(&place.config, place.proxy_origin, environment)
        .map_err(|error| Error::other(format!("{attempt}: {error}")).hint(error.hint))?;
    let shown = proxy.as_ref().map(Proxy::shown);
    let service = stack::stack(&place.config, proxy)
        .map_err(|cause| Error::other(format!("{attempt}: {}", chain(cause.as_ref()))))?;
    Ok(Cluster {
        client: Client::new(service, place.config.default_namespace.clone()),
        namespace: place.config.default_namespace,
        is_namespace_told: args.namespace.as_ref().is_some_and(|name| !name.is_empty()),
        context: place.context,
        server,
        proxy: shown,
        timeout: Some(args.request_timeout).filter(|limit| !limit.is_zero()),
    })
}

/// What a kubeconfig has under names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A cluster, a user and a namespace.
    Context,
    /// Where an API server is.
    Cluster,
    /// Credentials.
    User,
}

/// The names of all entries of that kind of the kubeconfig, for completion.
///
/// # Errors
/// The kubeconfig cannot be read.
pub fn names(
    args: &ClusterArgs,
    environment: &Environment,
    entry: Entry,
) -> Result<Vec<String>, Error> {
    config::names(args, environment, entry)
}
