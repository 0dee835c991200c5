//! The meaning of a Helm command line.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::helm::Secret;

/// One of Helm's own commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `helm install`.
    Install,
    /// `helm upgrade`.
    Upgrade,
    /// `helm template`.
    Template,
    /// Another one of Helm's own, as it was typed; none of these runs a post-renderer.
    Other(String),
    /// A word that is none of Helm's own commands, so that of a plugin, or no word at all. It is
    /// not kept: after a flag that is not known here it might be that flag's value.
    Foreign,
}

/// How Helm was told to apply, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerSide {
    /// Server-side apply.
    True,
    /// Client-side apply.
    False,
    /// As the release's previous revision was applied.
    Auto,
}

/// What `--dry-run` came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DryRun {
    /// Nothing is written, and Helm itself need not reach the cluster.
    Client,
    /// Nothing is written, but Helm asks the cluster.
    Server,
    /// Said to be no dry run.
    None,
}

/// Why an [`Invocation`] is not certain; prints as part of a sentence about Helm's command line.
///
/// It holds places, counts and flags that are known, never an argument: that might be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// A flag that neither Helm 3 nor Helm 4 is known to have, at this place (from 1, `helm`
    /// itself not counted).
    UnknownFlag {
        /// Its place.
        argument: usize,
    },
    /// A flag without the value it needs.
    MissingValue {
        /// Its long name.
        flag: &'static str,
    },
    /// An argument such as `--=x`, which is no flag for Helm.
    Syntax {
        /// Its place.
        argument: usize,
    },
    /// A value that Helm would have refused for its flag.
    Value {
        /// Its long name.
        flag: &'static str,
    },
    /// More or fewer names than the command takes.
    Names {
        /// How many there are.
        count: usize,
    },
    /// A name, and a flag that makes one up.
    NamedTwice,
    /// The platform prints the arguments without saying where one ends and the next begins.
    Blanks,
    /// Bytes that are no UTF-8 text.
    Encoding,
    /// A command that runs no post-renderer.
    Command,
}

impl Doubt {
    /// Whether it leaves open which arguments are names.
    pub(super) fn hides_names(self) -> bool {
        !matches!(self, Self::Value { .. } | Self::Encoding)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFlag { argument } => {
                write!(formatter, "argument {argument} is a flag that is not known here")
            }
            Self::MissingValue { flag } => write!(formatter, "--{flag} lacks its value"),
            Self::Syntax { argument } => write!(formatter, "argument {argument} is no flag"),
            Self::Value { flag } => {
                write!(formatter, "--{flag} has a value that Helm would refuse")
            }
            Self::Names { count } => {
                write!(formatter, "{count} of the arguments are neither flags nor values of flags")
            }
            Self::NamedTwice => formatter.write_str("the release is both named and to be named"),
            Self::Blanks => formatter.write_str("its arguments may hold blanks"),
            Self::Encoding => formatter.write_str("an argument is no UTF-8 text"),
            Self::Command => formatter.write_str("its command runs no post-renderer"),
        }
    }
}

/// What a Helm command line says.
///
/// `None` and `false` mean "not said here": Helm then takes its environment and its own defaults. A
/// text that is said to be empty is not said either, as Helm sees it, but does hide the variable:
/// `-n ""` means the kubeconfig's namespace even where `HELM_NAMESPACE` is set, see
/// [`Invocation::given`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The command.
    pub command: Command,
    /// Whether every argument was understood. Where not, what is read here was still written
    /// there, but there may be more.
    pub certain: bool,
    /// Why it is not certain.
    pub doubt: Option<Doubt>,
    /// The release, where it is named: not with `--generate-name` or `--name-template`, not in
    /// `helm template CHART`, and not where a [`Doubt`] leaves open what the names are.
    pub release: Option<String>,
    /// `--namespace`.
    pub namespace: Option<String>,
    /// `--kube-context`.
    pub kube_context: Option<String>,
    /// `--kubeconfig`, absolute once [`Invocation::resolve`] was called.
    pub kubeconfig: Option<PathBuf>,
    /// `--kube-apiserver`.
    pub kube_apiserver: Option<String>,
    /// `--kube-token`.
    pub kube_token: Option<Secret>,
    /// `--kube-ca-file`, absolute once [`Invocation::resolve`] was called.
    pub kube_ca_file: Option<PathBuf>,
    /// `--kube-as-user`.
    pub kube_as_user: Option<String>,
    /// `--kube-as-group`, each once, in order.
    pub kube_as_groups: Vec<String>,
    /// `--kube-tls-server-name`.
    pub kube_tls_server_name: Option<String>,
    /// `--kube-insecure-skip-tls-verify`.
    pub kube_insecure_skip_tls_verify: bool,
    /// The flags among the ten above that were said at all, by their long names, in order; they
    /// hide the variables of the same settings even where their value is empty or `false`.
    pub given: Vec<&'static str>,
    /// Those of [`Invocation::given`] that Helm took out of another argument, which its user
    /// cannot have meant: Helm reads its command line twice, the first time without knowing the
    /// flags of its commands, so that `--post-renderer-args -n` and `-fnope.yaml` set the
    /// namespace. Written with `=` (`--post-renderer-args=-n`, `--values=nope.yaml`) they do not.
    pub strays: Vec<&'static str>,
    /// `--server-side`; `None` also for a value that Helm refuses.
    pub server_side: Option<ServerSide>,
    /// `--dry-run`; in `helm template`, which is always one, [`DryRun::Server`] is also what
    /// `--validate` and Helm 3's `--dry-run=none` come to.
    pub dry_run: Option<DryRun>,
    /// `--install`.
    pub install: bool,
    /// `--force-replace`, or `--force`, its name in Helm 3.
    pub force_replace: bool,
    /// `--force-conflicts`.
    pub force_conflicts: bool,
    /// `--take-ownership`.
    pub take_ownership: bool,
    /// `--rollback-on-failure`, or `--atomic`, its name in Helm 3.
    pub rollback_on_failure: bool,
    /// `--reuse-values`.
    pub reuse_values: bool,
    /// `--create-namespace`.
    pub create_namespace: bool,
    /// `--post-renderer`: a file for Helm 3, the name of a plugin for Helm 4.
    pub post_renderer: Option<String>,
}

impl Invocation {
    /// `helm COMMAND` with nothing else said.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            certain: true,
            doubt: None,
            release: None,
            namespace: None,
            kube_context: None,
            kubeconfig: None,
            kube_apiserver: None,
            kube_token: None,
            kube_ca_file: None,
            kube_as_user: None,
            kube_as_groups: Vec::new(),
            kube_tls_server_name: None,
            kube_insecure_skip_tls_verify: false,
            given: Vec::new(),
            strays: Vec::new(),
            server_side: None,
            dry_run: None,
            install: false,
            force_replace: false,
            force_conflicts: false,
            take_ownership: false,
            rollback_on_failure: false,
            reuse_values: false,
            create_namespace: false,
            post_renderer: None,
        }
    }

    /// Makes the paths absolute, from the folder that Helm runs in.
    #[must_use]
    pub fn resolve(mut self, folder: &Path) -> Self {
        for path in [&mut self.kubeconfig, &mut self.kube_ca_file].into_iter().flatten() {
            // An absolute path replaces the folder.
            *path = folder.join(&*path);
        }
        self
    }

    /// The same with one more doubt; the first one stays the one that is named.
    pub(super) fn doubted(mut self, doubt: Doubt) -> Self {
        if doubt.hides_names() {
            self.release = None;
        }
        self.certain = false;
        self.doubt.get_or_insert(doubt);
        self
    }
}
