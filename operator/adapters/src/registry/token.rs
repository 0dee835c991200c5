//! Tokens that a registry demands.

use http::{Method, StatusCode};
use oci_client::secrets::RegistryAuth;
use reqwest::Url;
use serde::Deserialize;

use super::{
    Image, PullCredential, Registry, Stage, Trouble,
    exchange::{Ask, name},
    realm,
};
use crate::object::Object;

/// No registry's token is longer.
const LONGEST: usize = 64 << 10;

impl Registry {
    /// Fetches a token to pull an image. A token that is refused is trouble, never a reason to go on
    /// without one.
    pub(crate) async fn token(
        &self,
        registry: &Url,
        challenge: (&str, Option<&str>),
        image: &Image,
        credential: Option<&PullCredential>,
    ) -> Result<RegistryAuth, Trouble> {
        let (stage, host) = (Stage::Token, name(registry));
        let (realm, service) = challenge;
        let Ok(mut url) = realm.parse::<Url>() else {
            let problem = "its challenge names no place for tokens";
            return Err(Trouble::Unreadable { host, stage, problem });
        };
        realm::check(self.hosts(), registry, &url).map_err(|why| match why {
            Some(why) => Trouble::NotAllowed { host: name(&url), stage, why },
            None => Trouble::RealmRefused { host, realm: name(&url) },
        })?;
        {
            let mut query = url.query_pairs_mut();
            if let Some(service) = service {
                query.append_pair("service", service);
            }
            // Not the scope of the challenge: a token for more than this is not asked for.
            query.append_pair("scope", &format!("repository:{}:pull", image.repository()));
        }
        let auth = match credential {
            Some(it) => RegistryAuth::Basic(it.username().to_owned(), it.password().to_owned()),
            None => RegistryAuth::Anonymous,
        };
        let who = credential.map(PullCredential::fingerprint);
        let method = Method::GET;
        let ask = Ask { stage, method, url, accept: "", auth: &auth, who, follow: false };
        let reply = self.ask(ask).await?;
        if reply.status != StatusCode::OK {
            return Err(reply.trouble(stage));
        }
        match read(&reply.body) {
            Some(token) => Ok(RegistryAuth::Bearer(token)),
            None => Err(reply.unreadable(stage, "the answer holds no token")),
        }
    }
}

fn read(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Body {
        #[serde(default)]
        token: Option<String>,
        #[serde(default)]
        access_token: Option<String>,
    }
    let Object(Body { token, access_token }) = serde_json::from_slice(body).ok()?;
    let token = token.filter(|token| !token.is_empty()).or(access_token)?;
    let good = (1..=LONGEST).contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic());
    good.then_some(token)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::read;

    #[rstest]
    #[case(r#"{"token":"a"}"#, Some("a"))]
    #[case(r#"{"access_token":"a"}"#, Some("a"))]
    #[case(r#"{"token":"a","access_token":"b","expires_in":60}"#, Some("a"))]
    #[case(r#"{"token":"","access_token":"b"}"#, Some("b"))]
    #[case(r#"{"token":null,"access_token":"b"}"#, Some("b"))]
    #[case("{}", None)]
    #[case(r#"{"token":""}"#, None)]
    #[case(r#"{"token":7}"#, None)]
    #[case(r#"{"token":"a b"}"#, None)]
    #[case(r#"{"token":"a\r\nx: y"}"#, None)]
    #[case("", None)]
    #[case("[]", None)]
    #[case(r#"["a"]"#, None)]
    fn a_token_is_read(#[case] body: &str, #[case] token: Option<&str>) {
        assert_eq!(read(body.as_bytes()).as_deref(), token);
    }
}
