//! What belay's own options say.

use std::path::PathBuf;

use crate::{helm::Secret, locate::Told};

/// The options that name a place, each with its spelling or that of its variable; `None`: not given.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// `--namespace`
    pub namespace: Option<Told<String>>,
    /// `--release`
    pub release: Option<Told<String>>,
    /// `--kube-context`; empty: the current one is meant.
    pub kube_context: Option<Told<String>>,
    /// `--kubeconfig`, absolute
    pub kubeconfig: Option<Told<PathBuf>>,
    /// `--kube-apiserver`
    pub kube_apiserver: Option<Told<String>>,
    /// `--kube-token`
    pub kube_token: Option<Told<Secret>>,
    /// `--kube-ca-file`, absolute
    pub kube_ca_file: Option<Told<PathBuf>>,
    /// `--kube-as-user`
    pub kube_as_user: Option<Told<String>>,
    /// `--kube-as-group`
    pub kube_as_groups: Option<Told<Vec<String>>>,
    /// `--kube-tls-server-name`
    pub kube_tls_server_name: Option<Told<String>>,
    /// `--kube-insecure-skip-tls-verify`
    pub kube_insecure_skip_tls_verify: bool,
}
