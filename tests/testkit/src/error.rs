//! What can go wrong while a test bed is started or asked.

use std::{io, path::PathBuf, time::Duration};

use belay_components::ComponentError;
use thiserror::Error;

/// Why the test bed could not do what was asked. Every sentence names the object and the way out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// A binary could not be had.
    #[error(transparent)]
    Component(#[from] ComponentError),
    /// A file or folder of the run could not be used.
    #[error("could not {what} {}", path.display())]
    File {
        /// What was attempted.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A process could not be started.
    #[error("could not start {name} ({})", program.display())]
    Start {
        /// The component.
        name: String,
        /// The binary.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A component ended before it was ready.
    #[error("{name} ended while starting ({status}); its last words:\n{tail}\nlog: {}", log.display())]
    Died {
        /// The component.
        name: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        tail: String,
        /// Its log.
        log: PathBuf,
    },
    /// A component was not ready in time.
    #[error("{name} was not ready within {} s ({last}); log: {}", within.as_secs(), log.display())]
    NotReady {
        /// The component.
        name: String,
        /// The deadline.
        within: Duration,
        /// What the last look at it said.
        last: String,
        /// Its log.
        log: PathBuf,
    },
    /// A port that was asked for is in use.
    #[error(
        "{name} cannot listen on 127.0.0.1:{port}, the port is in use: free it or ask for another"
    )]
    PortTaken {
        /// The component.
        name: String,
        /// The port.
        port: u16,
    },
    /// No free port could be found.
    #[error("could not find a free loopback port")]
    NoPort(#[source] io::Error),
    /// Certificates could not be made.
    #[error("could not make the certificate of {subject}")]
    Certificate {
        /// Whose.
        subject: String,
        /// Why.
        source: rcgen::Error,
    },
    /// A kubeconfig could not be turned into a client.
    #[error("could not make a client for {identity}")]
    Client {
        /// For whom.
        identity: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A call to the API server failed.
    #[error("could not {what}")]
    Api {
        /// What was attempted, on which object.
        what: String,
        /// Why it failed.
        source: Box<kube::Error>,
    },
    /// A tool that a test runs ended with an error.
    #[error("`{command}` failed ({status}):\n{stderr}")]
    Tool {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// What it printed.
        stderr: String,
    },
    /// A Deployment cannot be run as a host process.
    #[error("could not run Deployment {deployment} as a host process: {why}")]
    Host {
        /// Its namespace and name.
        deployment: String,
        /// What of it the test bed cannot do as a kubelet would.
        why: String,
    },
    /// Something was waited for in vain.
    #[error("waited {} s for {what}; last seen: {last}", within.as_secs())]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        within: Duration,
        /// What was there instead.
        last: String,
    },
}

impl TestbedError {
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }

    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Api { what, source: Box::new(source) }
    }
}
