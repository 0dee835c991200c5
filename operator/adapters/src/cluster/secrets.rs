//! Pull secrets of a workload's pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::{LocalObjectReference, PodSpec, Secret, ServiceAccount};
use kube::{
    Client,
    api::{GetParams, Request},
};

use super::{Class, WriteError, send::Sender};
use crate::{
    clock::Clock,
    registry::{Keyring, PullSecret, UnreadableSecret},
};

/// How long one read may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the credentials of a workload are not known. Nothing of a Secret's content is in it.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The operator has no right to read it.
    #[error("read {kind} {namespace}/{name}: the operator has no right to")]
    Denied {
        /// `Secret` or `ServiceAccount`.
        kind: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// It could not be read.
    #[error("read {kind} {namespace}/{name}: {why}")]
    Unread {
        /// `Secret` or `ServiceAccount`.
        kind: &'static str,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// What kind of error it was.
        why: &'static str,
        /// What may follow.
        class: Class,
    },
    /// It is no pull secret that a kubelet could read.
    #[error("use Secret {namespace}/{}", .source.secret())]
    Content {
        /// Its namespace.
        namespace: String,
        /// What is wrong.
        source: UnreadableSecret,
    },
}

/// The credentials that a kubelet would have for a pod of `namespace` that names these pull secrets
/// and this ServiceAccount (empty is `default`). Secrets that do not exist are passed over, as there.
///
/// Nothing is kept: a Secret may be another one the next time.
///
/// # Errors
/// [`SecretsError`] when one of them cannot be read. To try the others alone would ask a registry
/// with less than the pod has.
pub async fn keyring(
    client: &Client,
    namespace: &str,
    pull_secrets: &[String],
    service_account: &str,
) -> Result<Keyring, SecretsError> {
    let reader =
        Reader { sender: Sender::new(client.clone(), Clock::machine(), PATIENCE), namespace };
    let named = pull_secrets.iter().map(|name| LocalObjectReference { name: name.clone() });
    let pod = PodSpec { image_pull_secrets: Some(named.collect()), ..PodSpec::default() };
    let account: Option<ServiceAccount> = if Keyring::secrets(&pod, None).is_empty() {
        let name = if service_account.is_empty() { "default" } else { service_account };
        reader.get("ServiceAccount", name).await?
    } else {
        None
    };
    let mut secrets = Vec::new();
    for name in Keyring::secrets(&pod, account.as_ref()) {
        let Some(secret) = reader.get::<Secret>("Secret", &name).await? else { continue };
        let secret = PullSecret::read(&secret)
            .map_err(|source| SecretsError::Content { namespace: namespace.to_owned(), source })?;
        secrets.push(secret);
    }
    Ok(Keyring::new(secrets))
}

struct Reader<'a> {
    sender: Sender,
    namespace: &'a str,
}

impl Reader<'_> {
    /// Reads an object; `None` if there is none.
    async fn get<K>(&self, kind: &'static str, name: &str) -> Result<Option<K>, SecretsError>
    where
        K: kube::Resource<DynamicType = ()> + serde::de::DeserializeOwned,
    {
        let request = Request::new(K::url_path(&(), Some(self.namespace)));
        let request = request.get(name, &GetParams::default());
        match self.sender.send(kind, request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.status().is_some_and(|status| status.code == 404) => Ok(None),
            Err(error) => Err(self.failed(kind, name, &error)),
        }
    }

    /// Without the error itself: what cannot be parsed may be quoted in it.
    fn failed(&self, kind: &'static str, name: &str, error: &WriteError) -> SecretsError {
        let (namespace, name) = (self.namespace.to_owned(), name.to_owned());
        match error.class() {
            Class::Denied => SecretsError::Denied { kind, namespace, name },
            class => {
                let why = error.category();
                SecretsError::Unread { kind, namespace, name, why, class }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        cluster::fake::{Answer, Server},
        registry::Image,
    };

    fn secret(name: &str, host: &str) -> Value {
        let auth = json!({ "username": name, "password": "hunter2" });
        content(name, &json!({ "auths": { host: auth } }).to_string())
    }

    fn content(name: &str, text: &str) -> Value {
        json!({
            "metadata": { "name": name }, "type": "kubernetes.io/dockerconfigjson",
            "data": { ".dockerconfigjson": STANDARD.encode(text) },
        })
    }

    fn missing() -> Answer {
        Answer::refusal(404, "NotFound", "not found", json!({ "name": "x" }))
    }

    async fn read(
        answers: Vec<Answer>,
        named: &[&str],
        account: &str,
    ) -> (Result<Keyring, SecretsError>, Vec<String>) {
        let server = Server::answering(answers);
        let named: Vec<String> = named.iter().map(ToString::to_string).collect();
        let keyring = keyring(&server.client(), "shop", &named, account).await;
        let lines = server.lines();
        let prefix = "GET /api/v1/namespaces/shop/";
        let short = lines.iter().map(|line| line.strip_prefix(prefix).unwrap().to_owned());
        (keyring, short.collect())
    }

    fn secrets_for(keyring: &Keyring, image: &str) -> Vec<String> {
        let found = keyring.lookup(&Image::parse(image).unwrap());
        found.iter().map(|credential| credential.secret().to_owned()).collect()
    }

    #[tokio::test]
    async fn the_secrets_of_the_pod_are_read_in_order_and_missing_ones_passed_over() {
        let answers = vec![
            Answer::ok(&secret("a", "r.example")),
            missing(),
            Answer::ok(&secret("c", "r.example")),
        ];
        let (keyring, asked) = read(answers, &["a", "b", "", "c"], "robot").await;
        assert_eq!(asked, ["secrets/a", "secrets/b", "secrets/c"]);
        assert_eq!(secrets_for(&keyring.unwrap(), "r.example/web:1"), ["a", "c"]);
    }

    #[rstest]
    #[case::named("robot", "serviceaccounts/robot")]
    #[case::default("", "serviceaccounts/default")]
    #[tokio::test]
    async fn without_any_those_of_the_service_account_are(
        #[case] account: &str,
        #[case] path: &str,
    ) {
        let account_object = json!({ "imagePullSecrets": [{ "name": "a" }] });
        let answers = vec![Answer::ok(&account_object), Answer::ok(&secret("a", "r.example"))];
        let (keyring, asked) = read(answers, &[], account).await;
        assert_eq!(asked, [path, "secrets/a"]);
        assert_eq!(secrets_for(&keyring.unwrap(), "r.example/web:1"), ["a"]);
    }

    #[tokio::test]
    async fn without_a_service_account_there_are_none() {
        let (keyring, asked) = read(vec![missing()], &[], "robot").await;
        assert_eq!(asked.len(), 1);
        assert!(secrets_for(&keyring.unwrap(), "r.example/web:1").is_empty());
    }

    #[rstest]
    #[case::forbidden(
        Answer::refusal(403, "Forbidden", "secrets \"a\" is forbidden", json!({ "name": "a" })),
        "read Secret shop/a: the operator has no right to"
    )]
    #[case::unavailable(
        Answer::refusal(503, "", "", json!({})),
        "read Secret shop/a: unavailable"
    )]
    #[case::no_secret(
        Answer::Of(200, Vec::new(), r#"{"data":{"x":"hunter2!"}}"#.to_owned()),
        "read Secret shop/a: unreadable"
    )]
    #[case::no_pull_secret(Answer::ok(&content("a", "hunter2")), "use Secret shop/a")]
    #[tokio::test]
    async fn one_that_cannot_be_read_is_an_error_that_quotes_nothing(
        #[case] answer: Answer,
        #[case] expected: &str,
    ) {
        let answers = vec![answer, Answer::ok(&secret("b", "r.example"))];
        let (keyring, asked) = read(answers, &["a", "b"], "robot").await;
        let error = keyring.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(asked.len(), 1);
        let mut whole = format!("{error:?}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            whole = format!("{whole} {cause} {cause:?}");
            source = cause.source();
        }
        assert!(!whole.contains("hunter2"), "{whole}");
    }
}
