//! From flags and kubeconfig to kube's configuration, by the rules of kubectl: flags, then the
//! context, then the files of `KUBECONFIG`, then the pod.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use http::Uri;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::{Entry, identity, words};
use crate::{
    cli::cluster::ClusterArgs,
    error::{Error, chain},
    out::Environment,
};

/// A cluster that is about to be asked.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) config: Config,
    pub(super) context: Option<String>,
    /// Where the proxy of the configuration stands, if there is one.
    pub(super) proxy_origin: &'static str,
}

/// Finds the cluster.
pub(super) fn resolve(args: &ClusterArgs, environment: &Environment) -> Result<Place, Error> {
    let (mut config, context) = match read(args, environment)? {
        Some(kubeconfig) => of_context(kubeconfig, args)?,
        None if told(args.context.as_ref()).is_some() => return Err(no_context(args, &[])),
        None if told(args.server.as_ref()).is_some() => (anywhere(), None),
        None => (in_cluster(environment)?, None),
    };
    config.default_retry = false;
    if let Some(server) = told(args.server.as_ref()) {
        config.cluster_url = parse_url(server)?;
    }
    let mut proxy_origin = "proxy-url of the kubeconfig";
    if let Some(proxy) = told(args.proxy_url.as_ref()) {
        proxy_origin = "--proxy-url";
        config.proxy_url = Some(proxy.parse().map_err(|error| {
            Error::usage(format!("--proxy-url {:?} is no URL: {error}", words::without_user(proxy)))
        })?);
    }
    trust(args, &mut config)?;
    identity::apply(args, &mut config.auth_info)?;
    if let Some(namespace) = told(args.namespace.as_ref()) {
        namespace.clone_into(&mut config.default_namespace);
    }
    // Some kubeconfigs have an empty namespace, which stands for none.
    if config.default_namespace.is_empty() {
        "default".clone_into(&mut config.default_namespace);
    }
    Ok(Place { config, context, proxy_origin })
}

/// The names of all entries of that kind.
pub(super) fn names(
    args: &ClusterArgs,
    environment: &Environment,
    entry: Entry,
) -> Result<Vec<String>, Error> {
    let config = read(args, environment)?.unwrap_or_default();
    Ok(match entry {
        Entry::Context => config.contexts.into_iter().map(|named| named.name).collect(),
        Entry::Cluster => config.clusters.into_iter().map(|named| named.name).collect(),
        Entry::User => config.auth_infos.into_iter().map(|named| named.name).collect(),
    })
}

/// The URL without user and password.
pub(super) fn shown(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}://{host}{}", uri.scheme_str().unwrap_or("https"), uri.path().trim_end_matches('/'))
}

/// An empty flag says nothing, as in kubectl.
fn told(flag: Option<&String>) -> Option<&str> {
    flag.map(String::as_str).filter(|text| !text.is_empty())
}

fn anywhere() -> Config {
    Config::new(Uri::from_static("https://unset.invalid"))
}

/// `host:port` without a scheme is HTTPS to client-go.
fn parse_url(text: &str) -> Result<Uri, Error> {
    let text = text.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    whole.parse().map_err(|error| {
        Error::usage(format!("--server {:?} is no URL: {error}", words::without_user(text)))
    })
}

/// The merged kubeconfig; `None` where there is no file at all.
fn read(args: &ClusterArgs, environment: &Environment) -> Result<Option<Kubeconfig>, Error> {
    if let Some(path) = args.kubeconfig.as_ref().filter(|path| !path.as_os_str().is_empty()) {
        return read_file(path).map(Some);
    }
    let paths: Vec<PathBuf> = match environment.get("KUBECONFIG").filter(|list| !list.is_empty()) {
        Some(list) => env::split_paths(list).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    };
    let mut merged: Option<Kubeconfig> = None;
    // Like kubectl: files that are not there do not count.
    for path in paths.iter().filter(|path| path.exists()) {
        let mut next = read_file(path)?;
        next.current_context = next.current_context.filter(|name| !name.is_empty());
        merged = Some(match merged {
            None => next,
            Some(merged) => merged.merge(next).map_err(|error| unreadable(path, &chain(&error)))?,
        });
    }
    // An empty file says as much as none.
    Ok(merged.filter(|merged| !merged.contexts.is_empty() || !merged.clusters.is_empty()))
}

fn read_file(path: &Path) -> Result<Kubeconfig, Error> {
    Kubeconfig::read_from(path).map_err(|error| unreadable(path, &words::of_kubeconfig(&error)))
}

fn unreadable(path: &Path, why: &str) -> Error {
    Error::other(format!("read the kubeconfig {}: {why}", path.display()))
}

fn no_context(args: &ClusterArgs, known: &[&str]) -> Error {
    let name = args.context.as_deref().unwrap_or_default();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Error::other(format!("context {name:?} does not exist"))
        .hint(format!("known contexts: {known}"))
}

fn of_context(
    mut kubeconfig: Kubeconfig,
    args: &ClusterArgs,
) -> Result<(Config, Option<String>), Error> {
    let asked = told(args.context.as_ref()).map(str::to_owned);
    let current = kubeconfig.current_context.clone().filter(|name| !name.is_empty());
    let Some(context) = asked.or(current) else {
        if told(args.server.as_ref()).is_some() {
            return Ok((anywhere(), None));
        }
        return Err(Error::other("the kubeconfig has no current context")
            .hint("name one with --context, or set one with kubectl config use-context"));
    };
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
    if !names.contains(&context.as_str()) {
        let args = ClusterArgs { context: Some(context), ..args.clone() };
        return Err(no_context(&args, &names));
    }
    if let Some(cluster) = told(args.cluster.as_ref())
        && !kubeconfig.clusters.iter().any(|named| named.name == cluster)
    {
        return Err(Error::other(format!("cluster {cluster:?} does not exist in the kubeconfig")));
    }
    // kube takes an unknown user for an anonymous one.
    if let Some(user) = told(args.user.as_ref())
        && !kubeconfig.auth_infos.iter().any(|named| named.name == user)
    {
        return Err(Error::other(format!("user {user:?} does not exist in the kubeconfig")));
    }
    let cluster = told(args.cluster.as_ref()).map(str::to_owned);
    let has_proxy = hide_environments_proxy(&mut kubeconfig, &context, cluster.as_deref());
    let options = KubeConfigOptions {
        context: Some(context.clone()),
        cluster,
        user: told(args.user.as_ref()).map(str::to_owned),
    };
    let failed =
        |why: String| Error::other(format!("use context {context:?} of the kubeconfig: {why}"));
    // The function is async, but waits for nothing.
    let loading = Config::from_custom_kubeconfig(kubeconfig, &options);
    let mut config = futures::FutureExt::now_or_never(loading)
        .ok_or_else(|| failed("it could not be read at once".to_owned()))?
        .map_err(|error| failed(words::of_kubeconfig(&error)))?;
    if !has_proxy {
        config.proxy_url = None;
    }
    Ok((config, Some(context)))
}

/// kube would take the proxy of the environment for one of the kubeconfig's, whatever the host and
/// NO_PROXY are; the stack looks at these itself. Whether the kubeconfig has a proxy of its own.
fn hide_environments_proxy(
    kubeconfig: &mut Kubeconfig,
    context: &str,
    cluster: Option<&str>,
) -> bool {
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let of_context = named.and_then(|named| Some(named.context.as_ref()?.cluster.clone()));
    let cluster = cluster.map(str::to_owned).or(of_context);
    let mut clusters = kubeconfig.clusters.iter_mut();
    let own = clusters.find(|own| Some(&own.name) == cluster.as_ref());
    let Some(own) = own.and_then(|own| own.cluster.as_mut()) else { return false };
    if own.proxy_url.as_ref().is_some_and(|proxy| !proxy.is_empty()) {
        return true;
    }
    own.proxy_url = Some("http://unset.invalid".to_owned());
    false
}

fn in_cluster(environment: &Environment) -> Result<Config, Error> {
    if !environment.contains_key("KUBERNETES_SERVICE_HOST") {
        return Err(Error::other("no cluster is configured: there is no kubeconfig")
            .hint("name one with --kubeconfig or in KUBECONFIG"));
    }
    let mut config = Config::incluster()
        .map_err(|error| Error::other(format!("use the pod's account: {}", chain(&error))))?;
    if let Some(namespace) = environment.get("POD_NAMESPACE") {
        namespace.clone_into(&mut config.default_namespace);
    }
    Ok(config)
}

/// Whom to trust: flags go over the kubeconfig.
fn trust(args: &ClusterArgs, config: &mut Config) -> Result<(), Error> {
    let skips = args.insecure_skip_tls_verify == Some(true);
    if let Some(path) = &args.certificate_authority {
        if skips {
            return Err(Error::usage(
                "--certificate-authority and --insecure-skip-tls-verify exclude each other",
            ));
        }
        config.root_cert = Some(certificates(path)?);
        config.root_cert_file = None;
        config.accept_invalid_certs = false;
    }
    if let Some(name) = told(args.tls_server_name.as_ref()) {
        config.tls_server_name = Some(name.to_owned());
    }
    match args.insecure_skip_tls_verify {
        Some(true) => {
            config.accept_invalid_certs = true;
            config.root_cert = None;
            config.root_cert_file = None;
        }
        Some(false) => config.accept_invalid_certs = false,
        None => {}
    }
    Ok(())
}

fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, Error> {
    let failed = |why: String| {
        Error::other(format!("read the certificate authority {}: {why}", path.display()))
    };
    let pem = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let certificates = rustls::pki_types::pem::PemObject::pem_slice_iter(&pem)
        .map(|one: Result<rustls::pki_types::CertificateDer<'_>, _>| one.map(|one| one.to_vec()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failed(error.to_string()))?;
    if certificates.is_empty() {
        return Err(failed("it holds no certificate".to_owned()));
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests;
