//! Why a configuration is none.

use std::{net::SocketAddr, path::PathBuf};

/// Options that do not fit together, or files they name that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The debug pages would be open to the network.
    #[error(
        "--admin-bind {bind}: the debug pages would be open to everybody who reaches it; \
         use a loopback address, or give --admin-token-file"
    )]
    OpenAdmin {
        /// The address.
        bind: SocketAddr,
    },
    /// Two servers cannot share an address.
    #[error("--admin-bind {bind}: --health-bind is the same; use another port")]
    SameBind {
        /// The address.
        bind: SocketAddr,
    },
    /// The manager to take over from is our own.
    #[error(
        "--migrate-from-field-manager {manager}: --field-manager is the same; \
         leave one of them out"
    )]
    MigratesFromItself {
        /// The manager.
        manager: String,
    },
    /// GitHub's token would be readable on the way.
    #[error(
        "--github-url {url}: it would be asked without TLS; \
         use https, or name it with --allow-host http://HOST:PORT"
    )]
    PlainForge {
        /// The base.
        url: String,
    },
    /// One registry with two mirrors.
    #[error("--registry-mirror {registry}={second}: {first} is its mirror already; choose one")]
    TwoMirrors {
        /// The registry.
        registry: String,
        /// The mirror that was named first.
        first: String,
        /// The other one.
        second: String,
    },
    /// A file of certificates cannot be read.
    #[error("read the certificates of {option} from {path:?}")]
    Certificates {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file has no certificate.
    #[error("read the certificates of {option} from {path:?}: expected PEM blocks CERTIFICATE")]
    NoCertificate {
        /// The option.
        option: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// TLS cannot be set up.
    #[error("set up TLS for {what}")]
    Tls {
        /// For whom.
        what: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
