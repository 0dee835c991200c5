//! kubectl's flags about the cluster, under their exact names (specification of the plugin, section
//! C.2): kubectl passes everything after the plugin's name as it is.

use std::{path::PathBuf, time::Duration};

use clap::Args;

/// The heading of all these flags in the help.
pub const HEADING: &str = "Cluster";

/// Where and as whom.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub struct ClusterArgs {
    /// Path to the kubeconfig file
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Cluster of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub cluster: Option<String>,
    /// User of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub user: Option<String>,
    /// Namespace; by default that of the context
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Address of the API server
    #[arg(short, long, global = true, value_name = "URL", hide_short_help = true)]
    pub server: Option<String>,
    /// Bearer token
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        hide_short_help = true,
        hide_env_values = true
    )]
    pub token: Option<Hidden>,
    /// User name, for servers that ask for a password
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub username: Option<String>,
    /// Password of that user
    #[arg(long, global = true, value_name = "PASSWORD", hide_short_help = true)]
    pub password: Option<Hidden>,
    /// Proxy before the API server: http, https or socks5
    #[arg(long, global = true, value_name = "URL", hide_short_help = true)]
    pub proxy_url: Option<String>,
    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "NAME", hide_short_help = true)]
    pub as_user: Option<String>,
    /// UID to impersonate
    #[arg(long, global = true, value_name = "UID", hide_short_help = true)]
    pub as_uid: Option<String>,
    /// Group to impersonate; may be repeated
    #[arg(long, global = true, value_name = "GROUP", hide_short_help = true)]
    pub as_group: Vec<String>,
    /// Extra value to impersonate, KEY=VALUE; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", hide_short_help = true)]
    pub as_user_extra: Vec<String>,
    /// File with the certificate of the authority
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub certificate_authority: Option<PathBuf>,
    /// File with the client's certificate
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub client_certificate: Option<PathBuf>,
    /// File with the client's key
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub client_key: Option<PathBuf>,
    /// Name that the server's certificate must have
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub tls_server_name: Option<String>,
    /// Do not check the server's certificate
    #[arg(
        long,
        global = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "BOOL",
        hide_short_help = true
    )]
    pub insecure_skip_tls_verify: Option<bool>,
    /// How long each request may take; 0 for as long as it takes
    #[arg(
        long,
        global = true,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = crate::cli::duration
    )]
    pub request_timeout: Duration,
    /// Accepted for kubectl's sake: nothing is cached
    #[arg(long, global = true, value_name = "DIR", hide = true)]
    pub cache_dir: Option<PathBuf>,
    /// Accepted for kubectl's sake: answers are never asked for compressed
    #[arg(
        long,
        global = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_name = "BOOL",
        hide = true
    )]
    pub disable_compression: Option<bool>,
}

/// A token or password, which no debug output shows.
#[derive(Clone)]
pub struct Hidden(String);

impl Hidden {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

impl std::str::FromStr for Hidden {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}
