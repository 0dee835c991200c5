//! What a registry demands, and who gets which credential.

use belay_adapters::registry::{Head, Registry};
use rstest::rstest;

use crate::fake::{
    DIGEST, Fake, Seen, Trap, answer, basic, bob, chain, demands, eve, found, settings, word,
};

const HEAD: &str = "HEAD /v2/acme/web/manifests/v1";

/// A registry that gives tokens itself: `t-USER` for a user, `t-` for nobody.
fn with_tokens(seen: &Seen) -> http::Response<crate::fake::Body> {
    if seen.path == "/token" {
        let who = [("bob", "hunter2"), ("eve", "letmein")]
            .iter()
            .find(|(user, password)| seen.auth == basic(user, password))
            .map(|(user, _)| *user);
        return match who {
            Some(who) => answer(200, &[], &format!(r#"{{"token":"t-{who}"}}"#)),
            None if seen.auth.is_empty() => answer(200, &[], r#"{"access_token":"t-"}"#),
            None => answer(401, &[], ""),
        };
    }
    if seen.auth.starts_with("Bearer t-") {
        return found();
    }
    let host = seen.headers["host"].to_str().unwrap();
    demands(&format!(r#"Bearer realm="http://{host}/token",service="reg",scope="all""#))
}

#[tokio::test]
async fn a_registry_that_demands_nothing_is_asked_once() {
    let fake = Fake::start(|_| found()).await;
    let head = fake.head(None).await;
    assert_eq!(word(&head), format!("found {DIGEST}"));
    let Ok(Head::Found { media_type, .. }) = head else { unreachable!() };
    assert_eq!(media_type.unwrap(), "application/vnd.oci.image.index.v1+json");
    assert_eq!(fake.lines(), [HEAD]);
    let seen = &fake.seen()[0];
    let accept = seen.headers["accept"].to_str().unwrap();
    assert_eq!(accept.split(',').count(), 4, "{accept}");
    assert!(accept.contains("oci.image.index") && accept.contains("manifest.list"), "{accept}");
    assert_eq!(seen.headers.get_all("user-agent").iter().count(), 1);
}

#[tokio::test]
async fn a_token_is_fetched_for_nobody_where_there_is_no_credential() {
    let fake = Fake::start(with_tokens).await;
    assert_eq!(word(&fake.head(None).await), format!("found {DIGEST}"));
    assert_eq!(fake.lines(), [HEAD, "GET /token", &format!("{HEAD} Bearer t-")]);
    let query = &fake.seen()[1].query;
    assert_eq!(query, "service=reg&scope=repository%3Aacme%2Fweb%3Apull", "our own scope");
}

#[tokio::test]
async fn two_tenants_on_one_repository_never_share() {
    let fake = Fake::start(with_tokens).await;
    let client = fake.client();
    let image = fake.image();
    for credential in [Some(bob()), Some(eve()), None, Some(bob())] {
        let head = client.head(&image, credential.as_ref()).await;
        assert_eq!(word(&head), format!("found {DIGEST}"));
    }
    let tokens: Vec<_> = fake.lines().into_iter().filter(|line| line.contains("Bearer")).collect();
    let expected = ["t-bob", "t-eve", "t-", "t-bob"].map(|it| format!("{HEAD} Bearer {it}"));
    assert_eq!(tokens, expected);
    let asked: Vec<_> =
        fake.lines().into_iter().filter(|line| line.starts_with("GET /token")).collect();
    let (bob, eve) = (basic("bob", "hunter2"), basic("eve", "letmein"));
    let expected =
        [bob.as_str(), &eve, "", &bob].map(|it| format!("GET /token {it}").trim_end().to_owned());
    assert_eq!(asked, expected);
}

#[rstest]
#[case("Basic realm=\"x\"")]
#[case("BASIC realm=\"x\"")]
#[case("basic")]
#[tokio::test]
async fn a_password_is_sent_where_it_is_demanded(#[case] challenge: &'static str) {
    let fake = Fake::start(move |seen| {
        if seen.auth == basic("bob", "hunter2") { found() } else { demands(challenge) }
    })
    .await;
    assert_eq!(word(&fake.head(Some(&bob())).await), format!("found {DIGEST}"));
    assert_eq!(fake.lines().len(), 2);
    assert_eq!(word(&fake.head(Some(&eve())).await), "denied Manifest 401");
    assert_eq!(word(&fake.head(None).await), "denied Manifest 401");
    assert_eq!(fake.lines().len(), 5, "nobody has nothing to send: {:?}", fake.lines());
}

#[rstest]
#[case::nothing("")]
#[case::unknown("Negotiate")]
#[case::broken("Bearer realm=\"http://x")]
#[tokio::test]
async fn a_demand_that_is_not_understood_is_a_refusal(#[case] challenge: &'static str) {
    let fake = Fake::start(move |_| demands(challenge)).await;
    assert_eq!(word(&fake.head(Some(&bob())).await), "denied Manifest 401");
    assert_eq!(fake.lines(), [HEAD], "no credential is offered unasked");
}

#[rstest]
#[case(401, "denied Token 401")]
#[case(403, "denied Token 403")]
#[case(404, "upstream Token 404")]
#[case(500, "upstream Token 500")]
#[case(302, "upstream Token 302")]
#[case(429, "throttled Token true")]
#[tokio::test]
async fn after_a_token_that_is_refused_nothing_follows(
    #[case] status: u16,
    #[case] expected: &str,
    #[values(true, false)] has_credential: bool,
) {
    let trap = Trap::new().await;
    let to = format!("http://{}/", trap.address());
    let fake = Fake::start(move |seen| match seen.path.as_str() {
        "/token" => answer(status, &[("location", &to)], ""),
        _ => with_tokens(seen),
    })
    .await;
    let credential = has_credential.then(bob);
    assert_eq!(word(&fake.head(credential.as_ref()).await), expected);
    assert_eq!(fake.lines().len(), 2, "{:?}", fake.lines());
    trap.assert_untouched();
}

#[rstest]
#[case("")]
#[case("{}")]
#[case(r#"{"token":"a\nb"}"#)]
#[case("<html>")]
#[tokio::test]
async fn an_answer_without_a_token_is_no_reason_to_go_on_without(#[case] body: &'static str) {
    let fake = Fake::start(move |seen| match seen.path.as_str() {
        "/token" => answer(200, &[], body),
        _ => with_tokens(seen),
    })
    .await;
    assert_eq!(word(&fake.head(Some(&bob())).await), "unreadable Token");
    assert_eq!(fake.lines().len(), 2);
}

#[rstest]
#[case::elsewhere("https://evil.example/token", "realm")]
#[case::trap_by_address("http://TRAP/token", "realm")]
#[case::trap_by_tls("https://TRAP/token", "realm")]
#[case::metadata("http://169.254.169.254/token", "realm")]
#[case::other_spelling("http://2130706433:TRAPPORT/token", "not-allowed Token")]
#[case::own_host_other_port("http://127.0.0.1:TRAPPORT/token", "not-allowed Token")]
#[case::with_a_user("http://x@HERE/token", "not-allowed Token")]
#[case::no_place("token", "unreadable Token")]
#[case::file("file:///etc/passwd", "realm")]
#[tokio::test]
async fn a_realm_elsewhere_is_refused_and_not_connected_to(
    #[case] realm: &'static str,
    #[case] expected: &str,
) {
    let trap = Trap::new().await;
    let address = trap.address();
    let fake = Fake::start(move |seen| {
        let host = seen.headers["host"].to_str().unwrap();
        let realm = realm
            .replace("TRAPPORT", &address.port().to_string())
            .replace("TRAP", &format!("localhost.test:{}", address.port()))
            .replace("HERE", host);
        demands(&format!(r#"Bearer realm="{realm}""#))
    })
    .await;
    let head = fake.head(Some(&bob())).await;
    assert_eq!(word(&head), expected, "{head:?}");
    assert_eq!(fake.lines(), [HEAD], "the credential went nowhere");
    trap.assert_untouched();
}

#[tokio::test]
async fn a_realm_in_the_registrys_domain_is_used() {
    let tokens = Fake::start(with_tokens).await;
    let port = tokens.port();
    let registry = Fake::start(move |seen| {
        if seen.auth == "Bearer t-bob" {
            return found();
        }
        demands(&format!(r#"Bearer realm="http://auth.acme.test:{port}/token""#))
    })
    .await;
    let allowed = [
        format!("http://registry.acme.test:{}", registry.port()),
        format!("http://auth.acme.test:{port}"),
    ];
    let client = Registry::new(settings(&allowed.each_ref().map(String::as_str))).unwrap();
    let text = format!("registry.acme.test:{}/acme/web:v1", registry.port());
    let image = belay_adapters::registry::Image::parse(&text).unwrap();
    assert_eq!(word(&client.head(&image, Some(&bob())).await), format!("found {DIGEST}"));
    assert_eq!(tokens.lines().len(), 1);
}

#[tokio::test]
async fn the_next_credential_is_tried_where_one_is_refused() {
    let fake =
        Fake::start(
            |seen| {
                if seen.auth == basic("eve", "letmein") { found() } else { demands("Basic") }
            },
        )
        .await;
    let (client, image) = (fake.client(), fake.image());
    let checked = client.check(&image, &[bob(), eve()]).await;
    assert_eq!(word(&checked.head), format!("found {DIGEST}"));
    assert_eq!(checked.secret.as_deref(), Some("pull-eve"));
    let checked = client.check(&image, &[bob()]).await;
    assert_eq!(word(&checked.head), "denied Manifest 401");
    assert_eq!(checked.secret.as_deref(), Some("pull-bob"), "the refusal names it");
    let checked = client.check(&image, &[]).await;
    assert_eq!((word(&checked.head).as_str(), checked.secret), ("denied Manifest 401", None));
}

#[rstest]
#[case(404, "missing")]
#[case(429, "throttled Manifest true")]
#[case(500, "upstream Manifest 500")]
#[tokio::test]
async fn only_a_refusal_leads_to_the_next_credential(#[case] status: u16, #[case] expected: &str) {
    let fake =
        Fake::start(
            move |seen| {
                if seen.auth.is_empty() { demands("Basic") } else { answer(status, &[], "") }
            },
        )
        .await;
    let checked = fake.client().check(&fake.image(), &[bob(), eve()]).await;
    assert_eq!(word(&checked.head), expected);
    assert_eq!(fake.lines().len(), 2, "{:?}", fake.lines());
}

#[tokio::test]
async fn no_secret_is_in_any_word_about_a_failure() {
    let fake = Fake::start(|seen| match seen.path.as_str() {
        "/token" => answer(200, &[], r#"{"token":"sesame"}"#),
        _ if seen.auth.is_empty() => with_tokens(seen),
        _ => answer(403, &[], "hunter2 sesame"),
    })
    .await;
    let trouble = fake.head(Some(&bob())).await.unwrap_err();
    let client = fake.client();
    let head = Fake::start(with_tokens).await.head(Some(&bob())).await;
    let text = format!("{} {client:?} {:?} {head:?}", chain(&trouble), bob());
    for secret in ["hunter2", "sesame", "t-bob", &basic("bob", "hunter2")[6..]] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("Denied") && text.contains("Access"), "{text}");
}
