//! Who a test is when it speaks to the API server, and the kubeconfig for it.

use serde_json::{Value, json};

use super::pki::Identified;

/// How a caller proves who it is.
#[derive(Debug, Clone)]
pub enum Credential {
    /// A client certificate.
    Certificate(Identified),
    /// A bearer token, for example of a ServiceAccount.
    Token(String),
    /// What somebody's kubeconfig says of a user, as it stands there.
    Entry(Value),
}

/// A user that a kubeconfig asks the API server to act as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// User name.
    pub user: String,
    /// UID, if one is to be sent.
    pub uid: Option<String>,
    /// Groups.
    pub groups: Vec<String>,
}

/// Everything a kubeconfig says.
#[derive(Debug, Clone)]
pub struct Access {
    /// Base URL of the API server.
    pub server: String,
    /// Its authority, as PEM; empty for those that the system trusts.
    pub authority: String,
    /// Proof of identity.
    pub credential: Credential,
    /// Whom to act as.
    pub act_as: Option<Impersonation>,
    /// Namespace of the context.
    pub namespace: String,
}

impl Access {
    /// The kubeconfig as a document; JSON is YAML, so every tool reads it.
    pub fn kubeconfig(&self) -> Value {
        let encode = |pem: &str| base64(pem.as_bytes());
        let mut user = match &self.credential {
            Credential::Certificate(own) => json!({
                "client-certificate-data": encode(&own.certificate),
                "client-key-data": encode(&own.key),
            }),
            Credential::Token(token) => json!({ "token": token }),
            Credential::Entry(entry) => entry.clone(),
        };
        if let Some(who) = &self.act_as {
            user["as"] = json!(who.user);
            if let Some(uid) = &who.uid {
                user["as-uid"] = json!(uid);
            }
            if !who.groups.is_empty() {
                user["as-groups"] = json!(who.groups);
            }
        }
        let mut cluster = json!({ "server": self.server });
        if !self.authority.is_empty() {
            cluster["certificate-authority-data"] = json!(encode(&self.authority));
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "testbed",
            "clusters": [{ "name": "testbed", "cluster": cluster }],
            "users": [{ "name": "testbed", "user": user }],
            "contexts": [{ "name": "testbed", "context": {
                "cluster": "testbed", "user": "testbed", "namespace": self.namespace,
            }}],
        })
    }
}

/// Standard base64, as kubeconfigs want it.
fn base64(bytes: &[u8]) -> String {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec()))
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// The bytes of standard base64.
pub(super) fn from_base64(text: &str) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::from_value::<k8s_openapi::ByteString>(json!(text)).map(|bytes| bytes.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impersonation_stands_in_the_user_entry() {
        let access = Access {
            server: "https://127.0.0.1:1".into(),
            authority: "ca".into(),
            credential: Credential::Token("t".into()),
            act_as: Some(Impersonation {
                user: "alice".into(),
                uid: Some("7".into()),
                groups: vec!["dev".into()],
            }),
            namespace: "shop".into(),
        };
        let user = access.kubeconfig()["users"][0]["user"].clone();
        assert_eq!(user, json!({"token": "t", "as": "alice", "as-uid": "7", "as-groups": ["dev"]}));
    }

    #[test]
    fn certificates_are_encoded() {
        assert_eq!(base64(b"ca\n"), "Y2EK");
    }
}
