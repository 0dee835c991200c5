//! Pull secrets: `kubernetes.io/dockerconfigjson` and the older `kubernetes.io/dockercfg`.

use std::fmt;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use k8s_openapi::api::core::v1::Secret;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::PullCredential;
use crate::object::Object;

/// With padding or without, as docker and people write it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a pull secret says: keys as they are written there, in their order, with credentials.
pub struct PullSecret {
    pub(crate) entries: Vec<(String, PullCredential)>,
}

/// A pull secret that a kubelet cannot read either. It fails the pull, also where other secrets would
/// do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read the pull secret {secret:?}: {problem}")]
pub struct UnreadableSecret {
    secret: String,
    problem: &'static str,
}

impl UnreadableSecret {
    /// The name of the Secret.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl PullSecret {
    /// Reads a Secret. One of another type has no entries, as for a kubelet.
    ///
    /// # Errors
    /// [`UnreadableSecret`], which quotes nothing of the content.
    pub fn read(secret: &Secret) -> Result<Self, UnreadableSecret> {
        let name = secret.metadata.name.clone().unwrap_or_default();
        let data = |key: &str| Some(&secret.data.as_ref()?.get(key)?.0).filter(|it| !it.is_empty());
        let kind = secret.type_.as_deref().unwrap_or_default();
        let entries = match kind {
            "kubernetes.io/dockerconfigjson" => {
                data(".dockerconfigjson").map(|bytes| config_json(bytes))
            }
            "kubernetes.io/dockercfg" => data(".dockercfg").map(|bytes| config(bytes)),
            _ => None,
        };
        let unreadable = |problem| UnreadableSecret { secret: name.clone(), problem };
        let entries = entries.unwrap_or_else(|| Ok(Map::new())).map_err(unreadable)?;
        let mut found = Vec::new();
        for (key, entry) in entries {
            if let Some((username, password)) = self::entry(entry).map_err(unreadable)? {
                found.push((key, PullCredential::new(&*name, username, password)));
            }
        }
        Ok(Self { entries: found })
    }
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullSecret").field("entries", &self.entries.len()).finish()
    }
}

const NO_JSON: &str = "expected JSON, keys with entries";

fn config_json(bytes: &[u8]) -> Result<Map<String, Value>, &'static str> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        auths: Option<Map<String, Value>>,
    }
    let Object(config): Object<Config> = serde_json::from_slice(bytes).map_err(|_| NO_JSON)?;
    Ok(config.auths.unwrap_or_default())
}

fn config(bytes: &[u8]) -> Result<Map<String, Value>, &'static str> {
    serde_json::from_slice(bytes).map_err(|_| NO_JSON)
}

/// User and password of an entry; `None` where it has neither, such as one for a credential helper.
fn entry(entry: Value) -> Result<Option<(String, String)>, &'static str> {
    #[derive(Deserialize, Default)]
    struct Entry {
        #[serde(default)]
        username: Option<String>,
        #[serde(default)]
        password: Option<String>,
        #[serde(default)]
        auth: Option<String>,
    }
    let entry: Option<Object<Entry>> =
        serde_json::from_value(entry).map_err(|_| "expected text in each entry")?;
    let Entry { username, password, auth } = entry.unwrap_or_default().0;
    let (username, password) = match auth.filter(|auth| !auth.is_empty()) {
        Some(auth) => decode(&auth)?,
        None => (username.unwrap_or_default(), password.unwrap_or_default()),
    };
    Ok((!username.is_empty() || !password.is_empty()).then_some((username, password)))
}

fn decode(auth: &str) -> Result<(String, String), &'static str> {
    const PROBLEM: &str = "expected base64 of user:password in auth";
    let text: String = auth.split_ascii_whitespace().collect();
    let bytes = BASE64.decode(text).map_err(|_| PROBLEM)?;
    let text = String::from_utf8(bytes).map_err(|_| PROBLEM)?;
    let (username, password) = text.split_once(':').ok_or(PROBLEM)?;
    // docker pads with NUL, shells append a newline.
    let password = password.trim_end_matches(['\0', '\n', '\r']);
    Ok((username.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::{ByteString, apimachinery::pkg::apis::meta::v1::ObjectMeta};
    use rstest::rstest;

    use super::*;

    fn secret(kind: &str, key: &str, text: &str) -> Secret {
        Secret {
            metadata: ObjectMeta { name: Some("pull".to_owned()), ..ObjectMeta::default() },
            type_: Some(kind.to_owned()),
            data: Some(BTreeMap::from([(key.to_owned(), ByteString(text.as_bytes().to_vec()))])),
            ..Secret::default()
        }
    }

    fn json(text: &str) -> Secret {
        secret("kubernetes.io/dockerconfigjson", ".dockerconfigjson", text)
    }

    fn found(secret: &Secret) -> Result<Vec<(String, String, String)>, UnreadableSecret> {
        let secret = PullSecret::read(secret)?;
        let entries = secret
            .entries
            .iter()
            .map(|(key, it)| (key.clone(), it.username().to_owned(), it.password().to_owned()));
        Ok(entries.collect())
    }

    #[rstest]
    #[case::padded(r#"{"auth":"dTpwYTpz"}"#, Some(("u", "pa:s")))]
    #[case::needs_padding(r#"{"auth":"dTpw"}"#, Some(("u", "p")))]
    #[case::has_padding(r#"{"auth":"dTpwdw=="}"#, Some(("u", "pw")))]
    #[case::lacks_padding(r#"{"auth":"dTpwdw"}"#, Some(("u", "pw")))]
    #[case::newline(r#"{"auth":"dTpwdwo=\n"}"#, Some(("u", "pw")))]
    #[case::nul(r#"{"auth":"dTpwdwA="}"#, Some(("u", "pw")))]
    #[case::fields(r#"{"username":"u","password":"pw"}"#, Some(("u", "pw")))]
    #[case::auth_wins(r#"{"username":"a","password":"b","auth":"dTpw"}"#, Some(("u", "p")))]
    #[case::empty_auth(r#"{"username":"u","password":"pw","auth":""}"#, Some(("u", "pw")))]
    #[case::no_password(r#"{"auth":"dTo="}"#, Some(("u", "")))]
    #[case::unknown_fields(r#"{"username":"u","email":"e","x":{"y":1}}"#, Some(("u", "")))]
    #[case::identity_token(r#"{"identitytoken":"t"}"#, None)]
    #[case::nothing("{}", None)]
    #[case::null("null", None)]
    fn an_entry_is_read_as_a_kubelet_reads_it(
        #[case] entry: &str,
        #[case] expected: Option<(&str, &str)>,
    ) {
        let text = format!(r#"{{"auths":{{"ghcr.io":{entry}}},"credsStore":"desktop"}}"#);
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(user, pass)| ("ghcr.io".to_owned(), user.to_owned(), pass.to_owned()))
            .collect();
        assert_eq!(found(&json(&text)).unwrap(), expected);
        let old = format!(r#"{{"ghcr.io":{entry}}}"#);
        let old = secret("kubernetes.io/dockercfg", ".dockercfg", &old);
        assert_eq!(found(&old).unwrap(), expected);
    }

    #[rstest]
    #[case("hunter2")]
    #[case("[]")]
    #[case(r#"{"auths":"hunter2"}"#)]
    #[case(r#"{"auths":{"a":"hunter2"}}"#)]
    #[case(r#"{"auths":{"a":{"username":7}}}"#)]
    #[case(r#"{"auths":{"a":{"auth":"hunter2!"}}}"#)]
    #[case(r#"{"auths":{"a":{"auth":"aHVudGVyMg=="}}}"#)]
    #[case(r#"{"auths":{"a":{"auth":"//8="}}}"#)]
    fn a_secret_that_cannot_be_read_is_named_and_not_quoted(#[case] text: &str) {
        let error = found(&json(text)).unwrap_err();
        assert_eq!(error.secret(), "pull");
        let words = format!("{error} {error:?}");
        assert!(!words.contains("hunter2"), "{words}");
    }

    #[test]
    fn another_type_or_an_empty_one_has_no_entries() {
        let text = r#"{"auths":{"ghcr.io":{"username":"u"}}}"#;
        let other = secret("Opaque", ".dockerconfigjson", text);
        let wrong_key = secret("kubernetes.io/dockercfg", ".dockerconfigjson", text);
        for secret in [other, wrong_key, json(""), json("{}"), json(r#"{"auths":null}"#)] {
            assert_eq!(found(&secret).unwrap(), []);
        }
        PullSecret::read(&json(" ")).unwrap_err();
    }

    #[test]
    fn nothing_of_it_is_printed() {
        let text = r#"{"auths":{"ghcr.io":{"username":"robot","password":"hunter2"}}}"#;
        let secret = PullSecret::read(&json(text)).unwrap();
        let text = format!("{secret:?} {:?}", secret.entries[0].1);
        assert!(!text.contains("hunter2") && !text.contains("robot"), "{text}");
        assert!(text.contains("pull"), "{text}");
    }
}
