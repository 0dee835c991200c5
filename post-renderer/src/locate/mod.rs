//! Where Helm is about to apply the manifests: which cluster, as whom, which namespace, which
//! release (the post-renderer specification, section 4).
//!
//! Looking in the wrong place is the worst that can happen: the object is not found, that looks like
//! a first install, and Helm resets the image. So whatever contradicts Helm's own command line is an
//! error, and where nothing tells the place, it is one too. Pure: what the options, the environment
//! and the parent process say comes in as values.

mod given;
mod settle;

use std::{fmt, path::PathBuf};

pub use self::given::Given;
use crate::helm::{Environment, Invocation, Parent, Secret};
use settle::{Helms, Settle};

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An option of belay's, or the variable that stands for it.
    Belay(&'static str),
    /// A variable that Helm reads.
    HelmVariable(&'static str),
    /// Helm's own command line.
    HelmCommandLine,
    /// Nothing was said, so Helm's own default holds.
    HelmDefault,
    /// The live objects agree on it.
    LiveObjects,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Belay(name) | Self::HelmVariable(name) => name,
            Self::HelmCommandLine => "helm's command line",
            Self::HelmDefault => "helm default",
            Self::LiveObjects => "live objects",
        })
    }
}

/// A value, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub from: Source,
}

impl<T> Told<T> {
    /// A value of that source.
    pub fn new(value: T, from: Source) -> Self {
        Self { value, from }
    }
}

/// What decides which API server is asked, and as whom. `None`: as the kubeconfig says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The one kubeconfig file; `None`: those of `KUBECONFIG`, else the one in the home folder.
    pub kubeconfig: Option<Told<PathBuf>>,
    /// The context; `None`: the current one.
    pub context: Option<Told<String>>,
    /// The API server's URL.
    pub server: Option<Told<String>>,
    /// A bearer token.
    pub token: Option<Told<Secret>>,
    /// The file with the server's certificate authority.
    pub ca_file: Option<Told<PathBuf>>,
    /// The user to act as.
    pub as_user: Option<Told<String>>,
    /// The groups to act as.
    pub as_groups: Option<Told<Vec<String>>>,
    /// The name that the server's certificate must carry.
    pub tls_server_name: Option<Told<String>>,
    /// Whether the server's certificate is not looked at.
    pub insecure_skip_tls_verify: bool,
}

/// The place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// How the API server is reached.
    pub access: Access,
    /// How Helm reaches it, where an option of belay's stands in for a default of Helm's: both must
    /// lead to one server.
    pub helm_access: Option<Access>,
    /// The namespace for documents that name none; `None`: that of the context.
    pub namespace: Option<Told<String>>,
    /// Whether a Helm that says nothing of the namespace is our parent: then an option that names
    /// another one than the context's is a contradiction.
    pub namespace_must_be_default: bool,
    /// The release; `None`: the live objects must agree on one.
    pub release: Option<Told<String>>,
}

/// Why the place is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocateError {
    /// Two sources differ.
    #[error(
        "{what}: {one} says {one_value}, but {other} says {other_value}; belay must look where \
         Helm applies, so make them agree or leave {one} out"
    )]
    Contradiction {
        /// The setting, in words.
        what: &'static str,
        /// Whose value was refused.
        one: Source,
        /// Its value; `[redacted]` for a secret.
        one_value: String,
        /// What it contradicts.
        other: Source,
        /// The other value.
        other_value: String,
    },
    /// Nothing tells the setting.
    #[error("{what} is unknown: {why}; add `{add}` to belay's arguments")]
    Unknown {
        /// The setting, in words.
        what: &'static str,
        /// Why nothing tells it.
        why: String,
        /// The option to add.
        add: &'static str,
    },
}

/// Finds the place. `named_by_documents` says that every target names its own namespace.
///
/// # Errors
/// Sources contradict each other, or none tells.
pub fn locate(
    given: &Given,
    environment: &Environment,
    parent: &Parent,
    named_by_documents: bool,
) -> Result<Place, LocateError> {
    let invocation = parent.helm();
    let (access, helm_access, tells_cluster) = access(given, environment, invocation)?;
    let namespace = Settle {
        what: "the namespace",
        belay: given.namespace.clone(),
        variable: environment.namespace.clone().map(|value| (value, "HELM_NAMESPACE")),
        helm: Helms::of(invocation, "namespace", |helm| helm.namespace.clone()),
    }
    .text()?;
    let defaults = match invocation {
        Some(helm) if helm.certain => Ok(()),
        _ => Err(silence(parent)),
    };
    if let Err(why) = &defaults {
        if !tells_cluster {
            let add = "--kube-context NAME";
            return Err(LocateError::Unknown { what: "the cluster", why: why.clone(), add });
        }
        if namespace.is_none() && !named_by_documents {
            let add = "--namespace NAME";
            return Err(LocateError::Unknown { what: "the namespace", why: why.clone(), add });
        }
    }
    let release = Settle {
        what: "the release",
        belay: given.release.clone(),
        variable: None,
        helm: Helms::of(invocation, "", |helm| helm.release.clone()),
    }
    .text()?;
    // Then Helm says nothing of it, or the two would have been compared.
    let ours = namespace.as_ref().is_some_and(|told| matches!(told.from, Source::Belay(_)));
    Ok(Place {
        access,
        helm_access,
        namespace_must_be_default: invocation.is_some() && ours,
        namespace,
        release,
    })
}

/// Why a parent tells nothing.
fn silence(parent: &Parent) -> String {
    match parent {
        Parent::Helm(helm) => {
            let doubt = helm.doubt.map(|doubt| format!(": {doubt}")).unwrap_or_default();
            format!("Helm's command line could not be understood in full{doubt}")
        }
        Parent::Other { program } => {
            format!("the parent process is {program}, not Helm, so its command line tells nothing")
        }
        Parent::Hidden { why } => format!("the parent's command line cannot be read: {why}"),
    }
}

/// Access for us; that of Helm where it must be compared; whether anything told the cluster.
fn access(
    given: &Given,
    environment: &Environment,
    invocation: Option<&Invocation>,
) -> Result<(Access, Option<Access>, bool), LocateError> {
    let kubeconfig = Settle {
        what: "the kubeconfig",
        belay: given.kubeconfig.clone(),
        variable: None,
        helm: Helms::of(invocation, "kubeconfig", |helm| helm.kubeconfig.clone()),
    }
    .path()?;
    let context = Settle {
        what: "the context",
        belay: given.kube_context.clone(),
        variable: environment.kube_context.clone().map(|value| (value, "HELM_KUBECONTEXT")),
        helm: Helms::of(invocation, "kube-context", |helm| helm.kube_context.clone()),
    }
    .text()?;
    let server = Settle {
        what: "the API server",
        belay: given.kube_apiserver.clone(),
        variable: environment.kube_apiserver.clone().map(|value| (value, "HELM_KUBEAPISERVER")),
        helm: Helms::of(invocation, "kube-apiserver", |helm| helm.kube_apiserver.clone()),
    }
    .text()?;
    let tells_cluster = kubeconfig.is_some() || context.is_some() || server.is_some();
    let access = Access {
        kubeconfig,
        // `--kube-context ''` says that the current one is meant.
        context: context.filter(|told| !told.value.is_empty()),
        server,
        token: Settle {
            what: "the token",
            belay: given.kube_token.clone(),
            variable: environment.kube_token.clone().map(|value| (value, "HELM_KUBETOKEN")),
            helm: Helms::of(invocation, "kube-token", |helm| helm.kube_token.clone()),
        }
        .secret()?,
        ca_file: Settle {
            what: "the certificate authority",
            belay: given.kube_ca_file.clone(),
            variable: environment.kube_ca_file.clone().map(|value| (value, "HELM_KUBECAFILE")),
            helm: Helms::of(invocation, "kube-ca-file", |helm| helm.kube_ca_file.clone()),
        }
        .path()?,
        as_user: Settle {
            what: "the user to act as",
            belay: given.kube_as_user.clone(),
            variable: environment.kube_as_user.clone().map(|value| (value, "HELM_KUBEASUSER")),
            helm: Helms::of(invocation, "kube-as-user", |helm| helm.kube_as_user.clone()),
        }
        .text()?,
        as_groups: Settle {
            what: "the groups to act as",
            belay: given.kube_as_groups.clone(),
            variable: some(&environment.kube_as_groups).map(|value| (value, "HELM_KUBEASGROUPS")),
            helm: Helms::of(invocation, "kube-as-group", |helm| some(&helm.kube_as_groups)),
        }
        .list()?,
        tls_server_name: Settle {
            what: "the TLS server name",
            belay: given.kube_tls_server_name.clone(),
            variable: (environment.kube_tls_server_name.clone())
                .map(|value| (value, "HELM_KUBETLS_SERVER_NAME")),
            helm: Helms::of(invocation, "kube-tls-server-name", |helm| {
                helm.kube_tls_server_name.clone()
            }),
        }
        .text()?,
        insecure_skip_tls_verify: given.kube_insecure_skip_tls_verify
            || skips_tls_verification(environment, invocation),
    };
    let helm_access = invocation.and_then(|_| others_access(&access));
    Ok((access, helm_access, tells_cluster))
}

/// Whether Helm looks at the server's certificate: its flag counts, also as `=false`, before the
/// variable.
fn skips_tls_verification(environment: &Environment, invocation: Option<&Invocation>) -> bool {
    match invocation {
        Some(helm) if helm.given.contains(&"kube-insecure-skip-tls-verify") => {
            helm.kube_insecure_skip_tls_verify
        }
        _ => environment.kube_insecure_skip_tls_verify,
    }
}

/// What Helm uses, where options of belay's replace a default of Helm's and may lead elsewhere.
fn others_access(access: &Access) -> Option<Access> {
    fn is_ours<T>(told: Option<&Told<T>>) -> bool {
        told.is_some_and(|told| matches!(told.from, Source::Belay(_)))
    }
    let mut other = access.clone();
    if is_ours(access.kubeconfig.as_ref()) {
        other.kubeconfig = None;
    }
    if is_ours(access.context.as_ref()) {
        other.context = None;
    }
    if is_ours(access.server.as_ref()) {
        other.server = None;
    }
    (other != *access).then_some(other)
}

fn some(list: &[String]) -> Option<Vec<String>> {
    (!list.is_empty()).then(|| list.to_vec())
}

#[cfg(test)]
mod tests;
