//! `belay-operator run`

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use belay_adapters::registry::AllowedHost;
use belay_api::{AnnotationPrefix, Duration, names};
use clap::{ArgAction, Args, ValueEnum};

use super::{GithubArguments, values};
use crate::config::{RegistryRule, RepoRule};

/// `run`
#[derive(Debug, Args)]
pub struct Run {
    /// Which workloads are followed
    #[arg(long, value_enum, default_value_t = ScopeKind::Cluster, env = "BELAY_SCOPE")]
    pub scope: ScopeKind,

    /// The operator's own namespace, where its Lease is; with --scope namespace also the only one
    /// whose workloads are followed
    #[arg(long, value_name = "NS", value_parser = values::namespace, env = "BELAY_NAMESPACE")]
    pub namespace: String,

    /// The prefix of Belay's annotations
    #[arg(long, value_name = "PREFIX", default_value_t, env = "BELAY_ANNOTATION_PREFIX")]
    pub annotation_prefix: AnnotationPrefix,

    /// The field manager that owns the images which Belay writes
    #[arg(
        long,
        value_name = "NAME",
        default_value = names::IMAGE_FIELD_MANAGER,
        value_parser = values::own_manager,
        env = "BELAY_FIELD_MANAGER"
    )]
    pub field_manager: String,

    /// The Lease that marks this instance
    #[arg(
        long,
        value_name = "NAME",
        default_value = "belay-operator",
        value_parser = values::object_name,
        env = "BELAY_LEASE_NAME"
    )]
    pub lease_name: String,

    /// The field manager of an older operator, whose images Belay takes over
    #[arg(
        long,
        value_name = "NAME",
        value_parser = values::manager,
        env = "BELAY_MIGRATE_FROM_FIELD_MANAGER"
    )]
    pub migrate_from_field_manager: Option<String>,

    /// The whole key of an annotation by which an older operator marked its own pauses of
    /// ScaledObjects, which Belay then removes; repeatable
    #[arg(
        long,
        value_name = "KEY",
        value_parser = values::annotation_key,
        value_delimiter = ',',
        env = "BELAY_MIGRATE_PAUSE_MARK"
    )]
    pub migrate_pause_mark: Vec<String>,

    /// How GitHub is reached.
    #[command(flatten)]
    pub github: GithubArguments,

    /// Certificates (PEM) of authorities that are trusted for registries, beside the system's
    #[arg(long, value_name = "FILE", env = "BELAY_REGISTRY_CA_FILE")]
    pub registry_ca_file: Option<PathBuf>,

    /// The shortest time between two looks at a repository; longer where GitHub's limits ask for it
    #[arg(
        long,
        value_name = "D",
        default_value = "60s",
        value_parser = values::interval,
        env = "BELAY_POLL_INTERVAL"
    )]
    pub poll_interval: Duration,

    /// For how long after a Release became healthy an older image that Helm puts back counts as a
    /// rollback by hand, and is not replaced
    #[arg(
        long,
        value_name = "D",
        default_value = "1h",
        value_parser = values::duration,
        env = "BELAY_REVERT_WINDOW"
    )]
    pub revert_window: Duration,

    /// How many rollouts may be under way at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..),
        env = "BELAY_MAX_CONCURRENT_ROLLOUTS"
    )]
    pub max_concurrent_rollouts: u32,

    /// Let workloads set image-check: skip
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set,
        env = "BELAY_ALLOW_IMAGE_CHECK_SKIP"
    )]
    pub allow_image_check_skip: bool,

    /// Ask registries with the pull secrets of pods and ServiceAccounts; needs get of both
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set,
        env = "BELAY_READ_PULL_SECRETS"
    )]
    pub read_pull_secrets: bool,

    /// Check that images are there for the platforms of the cluster's nodes; needs list and watch of
    /// nodes
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        action = ArgAction::Set,
        env = "BELAY_CHECK_PLATFORMS"
    )]
    pub check_platforms: bool,

    /// Ask the second host for images of the first; repeatable
    #[arg(
        long,
        value_name = "HOST=HOST",
        value_parser = values::mirror,
        value_delimiter = ',',
        env = "BELAY_REGISTRY_MIRROR"
    )]
    pub registry_mirror: Vec<(String, String)>,

    /// Private repositories that the workloads of a namespace may follow, with * and ?; repeatable.
    /// Without any: all with --scope namespace, none with --scope cluster and a token. Public ones
    /// need no listing
    #[arg(long, value_name = "NS=OWNER/NAME", value_delimiter = ',', env = "BELAY_ALLOW_REPO")]
    pub allow_repo: Vec<RepoRule>,

    /// Registries that may be asked, or a path on one; repeatable. Without any: the hosts of the
    /// images that a workload runs
    #[arg(long, value_name = "HOST[/PATH]", value_delimiter = ',', env = "BELAY_ALLOW_REGISTRY")]
    pub allow_registry: Vec<RegistryRule>,

    /// Hosts that may be asked although their address is loopback, link-local or private; with
    /// http:// before it also without TLS; repeatable
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', env = "BELAY_ALLOW_HOST")]
    pub allow_host: Vec<AllowedHost>,

    /// Where /healthz, /readyz and /metrics are served
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value_t = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8080)),
        env = "BELAY_HEALTH_BIND"
    )]
    pub health_bind: SocketAddr,

    /// Where /debug/targets/NAMESPACE/NAME is served; only loopback without --admin-token-file
    #[arg(
        long,
        value_name = "IP:PORT",
        default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081)),
        env = "BELAY_ADMIN_BIND"
    )]
    pub admin_bind: SocketAddr,

    /// A file with the token that --admin-bind demands, read anew before each use
    #[arg(long, value_name = "FILE", env = "BELAY_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,

    /// How it logs.
    #[command(flatten)]
    pub log: LogArguments,
}

/// How it logs.
#[derive(Debug, Clone, Args)]
pub struct LogArguments {
    /// How log lines are written, to standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "BELAY_LOG_FORMAT")]
    pub log_format: LogFormat,

    /// What is logged: a level, or directives such as info,belay_operator=debug
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        value_parser = values::log_filter,
        env = "BELAY_LOG_FILTER"
    )]
    pub log_filter: String,
}

/// `--scope`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeKind {
    /// Those of every namespace.
    Cluster,
    /// Those of the operator's own namespace.
    Namespace,
}

/// `--log-format`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object each.
    Json,
}
