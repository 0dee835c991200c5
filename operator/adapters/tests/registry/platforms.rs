//! Platforms, and that nothing is believed without its digest.

use belay_adapters::registry::{Access, Platform, Trouble};
use data_encoding::HEXLOWER;
use rstest::rstest;
use sha2::{Digest as _, Sha256};

use crate::fake::{Fake, Seen, Trap, access, answer, bob, demands, settings, trouble_word};

const INDEX: &str = r#"{"schemaVersion":2,"manifests":[
  {"mediaType":"a","size":1,"digest":"sha256:1","platform":{"os":"linux","architecture":"arm","variant":"v7"}},
  {"mediaType":"a","size":1,"digest":"sha256:2","platform":{"os":"linux","architecture":"amd64"}},
  {"mediaType":"a","size":1,"digest":"sha256:3","platform":{"os":"unknown","architecture":"unknown"}},
  {"mediaType":"a","size":1,"digest":"sha256:4"},
  {"mediaType":"a","size":1,"digest":"sha256:5","platform":{"os":"linux","architecture":"amd64"}}]}"#;
const CONFIG: &str = r#"{"os":"linux","architecture":"arm64","rootfs":{}}"#;

fn sha256(text: &str) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(text)))
}

fn manifest(config: &str) -> String {
    format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"c","size":1,"digest":"{config}"}},"layers":[]}}"#
    )
}

/// A registry with one manifest and one blob, for those who have the token.
fn with(
    manifest: String,
    blob: &'static str,
) -> impl Fn(&Seen) -> http::Response<crate::fake::Body> {
    move |seen| {
        let host = seen.headers["host"].to_str().unwrap();
        match (seen.path.as_str(), seen.auth.as_str()) {
            ("/token", _) => answer(200, &[], r#"{"token":"t"}"#),
            (_, "") => demands(&format!(r#"Bearer realm="http://{host}/token""#)),
            (path, _) if path.contains("/manifests/") => {
                answer(200, &[("docker-content-digest", &sha256(&manifest))], &manifest)
            }
            _ => answer(200, &[], blob),
        }
    }
}

async fn platforms(fake: &Fake) -> Result<Vec<String>, Trouble> {
    let client = fake.client();
    let (digest, access): (String, Access) = access(client.head(&fake.image(), Some(&bob())).await);
    let found = client.platforms(&fake.image(), &digest, &access).await?;
    Ok(found.iter().map(Platform::to_string).collect())
}

#[tokio::test]
async fn an_index_lists_its_platforms_and_is_all_that_is_read() {
    let fake = Fake::start(with(INDEX.to_owned(), "")).await;
    assert_eq!(platforms(&fake).await.unwrap(), ["linux/amd64", "linux/arm/v7"]);
    let lines = fake.lines();
    assert_eq!(lines.len(), 4, "three for the digest, one for the index: {lines:?}");
    let path = format!("GET /v2/acme/web/manifests/{} Bearer t", sha256(INDEX));
    assert_eq!(lines[3], path, "by digest, with the token that was there");
}

#[tokio::test]
async fn a_single_image_has_the_platform_of_its_configuration() {
    let fake = Fake::start(with(manifest(&sha256(CONFIG)), CONFIG)).await;
    assert_eq!(platforms(&fake).await.unwrap(), ["linux/arm64"]);
    let last = fake.lines().pop().unwrap();
    assert_eq!(last, format!("GET /v2/acme/web/blobs/{} Bearer t", sha256(CONFIG)));
}

#[rstest]
#[case::other_blob(manifest(&sha256(CONFIG)), r#"{"os":"linux","architecture":"amd64"}"#, "unreadable Blob")]
#[case::no_platform(manifest(&sha256("{}")), "{}", "unreadable Blob")]
#[case::path_in_a_digest(manifest("../../../secret"), CONFIG, "unreadable Manifest")]
#[case::no_manifest("{}".to_owned(), "", "unreadable Manifest")]
#[case::wrong_types(r#"{"schemaVersion":2,"manifests":"x"}"#.to_owned(), "", "unreadable Manifest")]
#[tokio::test]
async fn what_does_not_fit_is_not_believed(
    #[case] manifest: String,
    #[case] blob: &'static str,
    #[case] expected: &str,
) {
    let fake = Fake::start(with(manifest, blob)).await;
    assert_eq!(trouble_word(&platforms(&fake).await.unwrap_err()), expected);
}

#[tokio::test]
async fn a_manifest_with_another_digest_is_not_believed() {
    let fake = Fake::start(|seen| {
        let digest = sha256(INDEX);
        let headers = [("docker-content-digest", digest.as_str())];
        let other = r#"{"schemaVersion":2,"manifests":[]}"#;
        answer(200, &headers, if seen.method == "HEAD" { "" } else { other })
    })
    .await;
    assert_eq!(trouble_word(&platforms(&fake).await.unwrap_err()), "unreadable Manifest");
}

#[rstest]
#[case(true)]
#[case(false)]
#[tokio::test]
async fn a_blob_elsewhere_is_fetched_without_the_token_and_only_where_that_may_be(
    #[case] allowed: bool,
) {
    let trap = Trap::new().await;
    let store = Fake::start(|_| answer(200, &[], CONFIG)).await;
    let to = if allowed { store.address } else { trap.address() };
    let manifest = with(manifest(&sha256(CONFIG)), "");
    let fake = Fake::start(move |seen| {
        if seen.path.contains("/blobs/") {
            return answer(307, &[("location", &format!("http://{to}/signed?x=1"))], "");
        }
        manifest(seen)
    })
    .await;
    let named = [fake.address, store.address].map(|it| format!("http://{it}"));
    let settings = settings(&named.each_ref().map(String::as_str));
    let client = belay_adapters::registry::Registry::new(settings).unwrap();
    let (digest, access) = access(client.head(&fake.image(), Some(&bob())).await);
    let found = client.platforms(&fake.image(), &digest, &access).await;
    if allowed {
        assert_eq!(found.unwrap()[0].to_string(), "linux/arm64");
        assert_eq!(store.lines(), ["GET /signed"]);
    } else {
        assert_eq!(trouble_word(&found.unwrap_err()), "not-allowed Blob");
    }
    trap.assert_untouched();
}
