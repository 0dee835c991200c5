//! Errors of others in words that quote no secret: a parser quotes the line of the kubeconfig that it
//! does not understand, and a failed credential plugin is quoted with all that it printed.

use kube::{client::AuthError, config::KubeconfigError};
use tower::BoxError;

use crate::error::chain;

/// A kubeconfig that cannot be read: where it is wrong, not what stands there.
pub(super) fn of_kubeconfig(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!("it is wrong at line {}, column {}", at.line(), at.column()),
            None => "it is no kubeconfig".to_owned(),
        },
        other => chain(other),
    }
}

/// Credentials that cannot be had. What a plugin says on standard error is for people; on standard
/// output it prints credentials.
pub(super) fn of_credentials(error: kube::Error) -> BoxError {
    match error {
        kube::Error::Auth(AuthError::AuthExecRun { out, cmd }) => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = belay_api::limits::clip(said.trim(), 500);
            format!("the credential plugin {cmd:?} failed ({}): {said}", out.status).into()
        }
        kube::Error::Auth(AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed) => {
            "the credential plugin printed no ExecCredential with a status".into()
        }
        kube::Error::Auth(AuthError::AuthExecStart(error)) => {
            format!("the credential plugin cannot be started: {error}").into()
        }
        other => Box::new(other),
    }
}

/// A URL, or what was meant to be one, without user and password.
pub(super) fn without_user(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => url.to_owned(),
    }
}
