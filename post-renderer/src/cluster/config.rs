//! From what was said about the place to kube's configuration, by the rules of client-go, which are
//! Helm's: overrides, then the context, then the files of `KUBECONFIG`, then the pod.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use http::Uri;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use secrecy::ExposeSecret as _;

use crate::{
    cluster::{ConfigError, words},
    helm::Secret,
    locate::{Access, Place, Source, Told},
};

/// A cluster that is about to be asked.
#[derive(Debug)]
pub struct Destination {
    /// kube's configuration.
    pub config: Config,
    /// The API server's URL, without credentials.
    pub server: Told<String>,
    /// The context, or `in-cluster`; `None` where only a URL was given.
    pub context: Option<Told<String>>,
    /// The namespace for documents that name none.
    pub namespace: Told<String>,
    /// The token that was told or that the kubeconfig holds, to be kept out of every message.
    pub token: Option<Secret>,
}

impl Destination {
    /// Whether somebody else than the server has to answer before it can be asked: files, the system's
    /// authorities among them, or a credential plugin.
    pub fn needs_more(&self) -> bool {
        let Config { root_cert, auth_info: identity, .. } = &self.config;
        let files = [&identity.token_file, &identity.client_certificate, &identity.client_key];
        root_cert.is_none()
            || files.iter().any(|file| file.is_some())
            || identity.exec.is_some()
            || identity.auth_provider.is_some()
    }
}

/// Is told of each file before anything is asked of it, since it may let the reader wait.
pub type BeforeReading<'b> = &'b dyn Fn(&Path);

/// Finds the cluster; `expected` is `--expect-server`.
///
/// # Errors
/// The configuration cannot be read or used, leads to another server than expected, or elsewhere
/// than Helm's own.
pub fn resolve(
    place: &Place,
    expected: Option<&str>,
    before: BeforeReading<'_>,
) -> Result<Destination, ConfigError> {
    let mut destination = load(&place.access, before)?;
    let default = destination.namespace.value.clone();
    if let Some(helm) = &place.helm_access {
        let helms = load(helm, before)?;
        same("the API server", &destination.server.value, &helms.server.value)?;
        if place.namespace.is_none() {
            same("the namespace", &default, &helms.namespace.value)?;
        }
    }
    if let Some(namespace) = &place.namespace {
        if place.namespace_must_be_default {
            let helms = match &place.helm_access {
                Some(helm) => load(helm, before)?.namespace.value,
                None => default,
            };
            same("the namespace", &namespace.value, &helms)?;
        }
        destination.namespace = namespace.clone();
    }
    if let Some(expected) = expected {
        let server = &destination.server.value;
        if normal(server) != normal(expected) {
            let (server, expected) = (server.clone(), expected.to_owned());
            return Err(ConfigError::UnexpectedServer { server, expected });
        }
    }
    Ok(destination)
}

fn same(what: &'static str, ours: &str, helms: &str) -> Result<(), ConfigError> {
    if normal(ours) == normal(helms) {
        return Ok(());
    }
    Err(ConfigError::Elsewhere { what, ours: ours.to_owned(), helms: helms.to_owned() })
}

/// A URL as it is compared: `https://Host:443/` is `https://host`.
fn normal(url: &str) -> String {
    let Ok(uri) = url.trim().parse::<Uri>() else { return url.trim().to_owned() };
    let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else {
        return url.trim().trim_end_matches('/').to_owned();
    };
    let default = if scheme == "http" { 80 } else { 443 };
    let port = uri.port_u16().unwrap_or(default);
    let host = host.to_ascii_lowercase();
    format!("{scheme}://{host}:{port}{}", uri.path().trim_end_matches('/'))
}

fn load(access: &Access, before: BeforeReading<'_>) -> Result<Destination, ConfigError> {
    let kubeconfig = read_kubeconfig(access, before)?;
    let (mut config, context) = match kubeconfig {
        Some(kubeconfig) => of_context(kubeconfig, access, before)?,
        None => match &access.server {
            Some(_) => (Config::new(Uri::from_static("https://unset")), None),
            None => {
                (in_cluster(before)?, Some(Told::new("in-cluster".to_owned(), Source::HelmDefault)))
            }
        },
    };
    config.default_retry = false;
    let mut from = context.as_ref().map_or(Source::HelmDefault, |context| context.from);
    if let Some(server) = &access.server {
        config.cluster_url = parse_url(server)?;
        from = server.from;
    }
    overrides(&mut config, access, before)?;
    // Some kubeconfigs have an empty namespace, which stands for none.
    if config.default_namespace.is_empty() {
        "default".clone_into(&mut config.default_namespace);
    }
    let namespace = Told::new(config.default_namespace.clone(), Source::HelmDefault);
    Ok(Destination {
        server: Told::new(shown(&config.cluster_url), from),
        context,
        namespace,
        token: config.auth_info.token.as_ref().map(|token| token.expose_secret().to_owned().into()),
        config,
    })
}

/// `host:port` without a scheme is HTTPS to client-go.
fn parse_url(told: &Told<String>) -> Result<Uri, ConfigError> {
    let text = told.value.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    whole.parse().map_err(|cause| ConfigError::Url {
        value: words::without_user(text),
        from: told.from,
        cause,
    })
}

/// The URL without user and password.
fn shown(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}://{host}{}", uri.scheme_str().unwrap_or("https"), uri.path().trim_end_matches('/'))
}

/// The merged kubeconfig; `None` where there is no file at all.
fn read_kubeconfig(
    access: &Access,
    before: BeforeReading<'_>,
) -> Result<Option<Kubeconfig>, ConfigError> {
    if let Some(path) = &access.kubeconfig {
        before(&path.value);
        return read_file(&path.value).map(Some);
    }
    let paths: Vec<PathBuf> = match env::var_os("KUBECONFIG") {
        Some(list) if !list.is_empty() => {
            env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect()
        }
        _ => home_dir(before).map(|home| home.join(".kube/config")).into_iter().collect(),
    };
    for path in &paths {
        before(path);
    }
    merge(&paths)
}

/// Where no variable tells the home folder, the users of the system are looked through.
fn home_dir(before: BeforeReading<'_>) -> Option<PathBuf> {
    if env::var_os("HOME").is_none() {
        before("/etc/passwd".as_ref());
    }
    env::home_dir()
}

fn merge(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, ConfigError> {
    let mut merged: Option<Kubeconfig> = None;
    // Like kubectl: files that are not there do not count.
    for path in paths.iter().filter(|path| path.exists()) {
        let mut next = read_file(path)?;
        next.current_context = next.current_context.filter(|name| !name.is_empty());
        merged = Some(match merged {
            None => next,
            Some(merged) => merged.merge(next).map_err(|error| ConfigError::Kubeconfig {
                path: path.clone(),
                cause: Box::new(error),
            })?,
        });
    }
    // An empty file says as much as none.
    Ok(merged.filter(|merged| !merged.contexts.is_empty() || !merged.clusters.is_empty()))
}

fn read_file(path: &Path) -> Result<Kubeconfig, ConfigError> {
    Kubeconfig::read_from(path).map_err(|error| ConfigError::Kubeconfig {
        path: path.to_owned(),
        cause: words::of_kubeconfig(error),
    })
}

fn of_context(
    mut kubeconfig: Kubeconfig,
    access: &Access,
    before: BeforeReading<'_>,
) -> Result<(Config, Option<Told<String>>), ConfigError> {
    let context = match (&access.context, &kubeconfig.current_context) {
        (Some(told), _) => told.clone(),
        (None, Some(name)) if !name.is_empty() => {
            let from = match &access.kubeconfig {
                Some(path) => path.from,
                None => Source::HelmDefault,
            };
            Told::new(name.clone(), from)
        }
        // With a URL of its own, a kubeconfig without a context does not matter.
        (None, _) if access.server.is_some() => {
            return Ok((Config::new(Uri::from_static("https://unset")), None));
        }
        (None, _) => return Err(ConfigError::NoCurrentContext),
    };
    if !kubeconfig.contexts.iter().any(|named| named.name == context.value) {
        let names: Vec<_> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(ConfigError::NoContext { name: context.value, known });
    }
    let failed = |cause: Box<dyn std::error::Error + Send + Sync>| ConfigError::Context {
        context: context.value.clone(),
        cause,
    };
    let has_proxy = hide_environments_proxy(&mut kubeconfig, &context.value);
    let options =
        KubeConfigOptions { context: Some(context.value.clone()), ..KubeConfigOptions::default() };
    let clusters = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let authorities = clusters.filter_map(|cluster| cluster.certificate_authority.as_ref());
    authorities.for_each(|path| before(path.as_ref()));
    // The function is async, but waits for nothing.
    let loading = Config::from_custom_kubeconfig(kubeconfig, &options);
    let mut config = futures::FutureExt::now_or_never(loading)
        .ok_or_else(|| failed("it could not be read at once".into()))?
        .map_err(|error| failed(Box::new(error)))?;
    if !has_proxy {
        config.proxy_url = None;
    }
    Ok((config, Some(context)))
}

/// kube would take the proxy of the environment for one of the kubeconfig's, whatever the host and
/// NO_PROXY are; the client looks at these itself. Whether the kubeconfig has a proxy of its own.
fn hide_environments_proxy(kubeconfig: &mut Kubeconfig, context: &str) -> bool {
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let cluster = named.and_then(|named| Some(named.context.as_ref()?.cluster.clone()));
    let mut clusters = kubeconfig.clusters.iter_mut();
    let own = clusters.find(|own| Some(&own.name) == cluster.as_ref());
    let Some(own) = own.and_then(|own| own.cluster.as_mut()) else { return false };
    if own.proxy_url.as_ref().is_some_and(|proxy| !proxy.is_empty()) {
        return true;
    }
    own.proxy_url = Some("http://unset.invalid".to_owned());
    false
}

fn in_cluster(before: BeforeReading<'_>) -> Result<Config, ConfigError> {
    if env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        return Err(ConfigError::NoCluster);
    }
    before("/var/run/secrets/kubernetes.io/serviceaccount".as_ref());
    let mut config = Config::incluster().map_err(|error| ConfigError::Context {
        context: "in-cluster".to_owned(),
        cause: Box::new(error),
    })?;
    // As client-go does.
    if let Ok(namespace) = env::var("POD_NAMESPACE")
        && !namespace.is_empty()
    {
        config.default_namespace = namespace;
    }
    Ok(config)
}

fn overrides(
    config: &mut Config,
    access: &Access,
    before: BeforeReading<'_>,
) -> Result<(), ConfigError> {
    if let Some(path) = &access.ca_file {
        before(&path.value);
        let failed = |cause| ConfigError::Authority { path: path.value.clone(), cause };
        let pem = fs::read(&path.value).map_err(|error| failed(Box::new(error)))?;
        let certificates = rustls::pki_types::pem::PemObject::pem_slice_iter(&pem)
            .map(|certificate: Result<rustls::pki_types::CertificateDer<'_>, _>| {
                certificate.map(|certificate| certificate.to_vec())
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| failed(error.to_string().into()))?;
        if certificates.is_empty() {
            return Err(failed("it holds no certificate".into()));
        }
        config.root_cert = Some(certificates);
        config.root_cert_file = None;
    }
    if let Some(token) = &access.token {
        // As in client-go, the other ways to log in give way to a token.
        config.auth_info.token = Some(token.value.expose().to_owned().into());
        config.auth_info.token_file = None;
        config.auth_info.exec = None;
        config.auth_info.auth_provider = None;
        config.auth_info.username = None;
        config.auth_info.password = None;
    }
    if let Some(user) = &access.as_user {
        config.auth_info.impersonate = Some(user.value.clone());
    }
    if let Some(groups) = &access.as_groups {
        config.auth_info.impersonate_groups = Some(groups.value.clone());
    }
    if let Some(name) = &access.tls_server_name {
        config.tls_server_name = Some(name.value.clone());
    }
    if access.insecure_skip_tls_verify {
        config.accept_invalid_certs = true;
        config.root_cert = None;
        config.root_cert_file = None;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
