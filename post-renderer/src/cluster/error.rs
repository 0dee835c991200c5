//! What can go wrong on the way to a live object, in words that a person can act on.

use std::path::PathBuf;

use crate::locate::Source;

/// A cluster that cannot be reached because of how it is configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A kubeconfig cannot be read.
    #[error("read the kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is none, and no pod around us.
    #[error(
        "find a cluster: there is no kubeconfig in KUBECONFIG or the home folder, and this is no \
         pod; add `--kubeconfig FILE`, or `--offline` to contact no cluster"
    )]
    NoCluster,
    /// The kubeconfig has no such context.
    #[error("use the context {name:?} of the kubeconfig: it has {known}")]
    NoContext {
        /// The name.
        name: String,
        /// Those it has.
        known: String,
    },
    /// The kubeconfig names no current context.
    #[error("use the kubeconfig's current context: it has none; add `--kube-context NAME`")]
    NoCurrentContext,
    /// kube does not take the configuration.
    #[error("use the kubeconfig's context {context:?}")]
    Context {
        /// The context.
        context: String,
        /// Why not.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value is no URL.
    #[error("use {value:?} as the API server's URL ({from})")]
    Url {
        /// The value.
        value: String,
        /// Where it comes from.
        from: Source,
        /// Why not.
        #[source]
        cause: http::uri::InvalidUri,
    },
    /// A certificate authority cannot be used.
    #[error("read the certificate authority {}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The API server is not the one that `--expect-server` names.
    #[error(
        "use the API server {server}: --expect-server allows {expected} only; nothing was asked of \
         it"
    )]
    UnexpectedServer {
        /// The server.
        server: String,
        /// The expected one.
        expected: String,
    },
    /// An option of belay's leads to another server than Helm's defaults.
    #[error(
        "use {what} {ours}: Helm, which has no such option on its command line, applies to \
         {helms}; leave the option out, or give it to Helm too"
    )]
    Elsewhere {
        /// What differs: the API server, the namespace.
        what: &'static str,
        /// Ours.
        ours: String,
        /// Helm's.
        helms: String,
    },
    /// The client cannot be made of the configuration.
    #[error("prepare the connection to {server}")]
    Client {
        /// The server.
        server: String,
        /// Why not.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// An object that could not be read. It may exist, or not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No answer: no connection, TLS, a broken answer.
    #[error(
        "{server} cannot be reached: {why}; check the cluster; `--offline`, for `helm template` and \
         client dry runs, contacts none"
    )]
    Unreachable {
        /// The server.
        server: String,
        /// The whole chain of causes: a reader of Helm's output sees no other.
        why: String,
    },
    /// An answer without end.
    #[error("{server} gave an answer that is larger than {limit} MiB, as no object is")]
    TooLarge {
        /// The server.
        server: String,
        /// The largest answer that is read.
        limit: usize,
    },
    /// 401.
    #[error("{server} does not know who asks (401); check the credentials of the kubeconfig")]
    Unauthorized {
        /// The server.
        server: String,
    },
    /// 403.
    #[error("{message} (403); the rule to add: {rule}")]
    Forbidden {
        /// The server's words.
        message: String,
        /// What RBAC would have to say.
        rule: String,
    },
    /// A redirect.
    #[error("{server} redirects ({status}), which is not followed: is it an API server?")]
    Redirect {
        /// The server.
        server: String,
        /// The status.
        status: u16,
    },
    /// Another status than 200 and 404.
    #[error("{server} answered {status}: {message}")]
    Status {
        /// The server.
        server: String,
        /// The status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// An answer that is not the object that was asked for.
    #[error("{server} gave an answer that is not {wanted}: {why}")]
    Garbage {
        /// The server.
        server: String,
        /// What was asked for.
        wanted: String,
        /// What is wrong.
        why: String,
    },
    /// The manifest's words cannot be part of a request.
    #[error("{0:?} is no name of an object")]
    Name(String),
}
