//! What is served, to whom, in which words.

use belay_operator::admin::{Access, Bounds};
use rstest::rstest;

use crate::support::{LARGE, Server};

#[tokio::test]
async fn health_is_a_status_and_one_sentence() {
    let server = Server::health(Bounds::default()).await;
    for path in ["/healthz", "/readyz"] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"), "{path}");
    }
    *server.operator.unready.lock().unwrap() = Some("the CRDs\nare older".to_owned());
    let answer = server.get("/readyz").await;
    assert_eq!((answer.status, answer.body.as_str()), (503, "the CRDs are older\n"));
    assert_eq!(server.get("/healthz").await.status, 200, "not ready is not dead");
    *server.operator.dead.lock().unwrap() = Some("it hangs".to_owned());
    let answer = server.get("/healthz").await;
    assert_eq!((answer.status, answer.body.as_str()), (503, "it hangs\n"));
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let server = Server::health(Bounds::default()).await;
    let answer = server.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.has("content-type: text/plain; version=0.0.4; charset=utf-8"), "{answer:?}");
    assert!(answer.body.contains("\nbelay_tug_of_war_total 1\n"), "{}", answer.body);
}

#[rstest]
#[case("POST", "/healthz", 405)]
#[case("DELETE", "/metrics", 405)]
#[case("OPTIONS", "*", 405)]
#[case("HEAD", "/healthz", 200)]
#[case("GET", "/", 404)]
#[case("GET", "/healthz/", 404)]
#[case("GET", "//healthz", 404)]
#[case("GET", "/debug/targets/shop/web", 404)]
#[case("GET", "/healthz?verbose", 200)]
#[tokio::test]
async fn other_methods_and_paths_are_refused(
    #[case] method: &str,
    #[case] path: &str,
    #[case] status: u16,
) {
    let server = Server::health(Bounds::default()).await;
    let answer = server.ask(method, path, &[]).await;
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(status == 405, answer.has("allow: get, head"), "{answer:?}");
    assert!(answer.has("connection: close"), "{answer:?}");
    assert_eq!(answer.body.is_empty(), method == "HEAD", "{answer:?}");
}

#[tokio::test]
async fn a_target_is_shown_as_json() {
    let server = Server::admin(Access::Loopback).await;
    let answer = server.get("/debug/targets/shop/web").await;
    assert_eq!(answer.status, 200);
    assert!(answer.has("content-type: application/json") && answer.has("cache-control: no-store"));
    let value: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(value["now"], "2026-03-01T12:00:00Z");
}

#[tokio::test]
async fn a_large_page_comes_whole() {
    let server = Server::admin(Access::Loopback).await;
    let answer = server.get("/debug/targets/shop/large").await;
    assert_eq!((answer.status, answer.body.len()), (200, LARGE + "\"\"\n".len()));
}

#[rstest]
#[case("/debug/targets/shop/api")]
#[case("/debug/targets/nowhere/web")]
#[case("/debug/targets/shop/web/")]
#[case("/debug/targets/shop%2fweb")]
#[case("/debug/targets/shop")]
#[case("/debug/targets//")]
#[case("/debug/pprof")]
#[case("/metrics")]
#[tokio::test]
async fn what_is_not_there_is_told_in_the_same_words(#[case] path: &str) {
    let server = Server::admin(Access::Loopback).await;
    let answer = server.get(path).await;
    assert_eq!((answer.status, answer.body.as_str()), (404, "not found\n"));
}

#[rstest]
#[case(&["authorization: Bearer s3cret"], 200)]
#[case(&["authorization: Bearer wrong"], 401)]
#[case(&["authorization: Basic s3cret"], 401)]
#[case(&[], 401)]
#[tokio::test]
async fn a_token_is_demanded(#[case] headers: &[&str], #[case] status: u16) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").unwrap();
    let server = Server::admin(Access::Token(file)).await;
    let known = server.ask("GET", "/debug/targets/shop/web", headers).await;
    assert_eq!(known.status, status);
    assert!(!known.body.contains("s3cret"));
    assert_eq!(status == 401, known.has("www-authenticate: bearer"), "{known:?}");
    // Who is not let in learns nothing about what there is.
    let unknown = server.ask("GET", "/debug/targets/shop/api", headers).await;
    let expected = if status == 401 { (401, known.body) } else { (404, "not found\n".to_owned()) };
    assert_eq!((unknown.status, unknown.body), expected);
}

#[tokio::test]
async fn without_its_token_file_nobody_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::admin(Access::Token(folder.path().join("token"))).await;
    let headers = ["authorization: Bearer x"];
    let answer = server.ask("GET", "/debug/targets/shop/web", &headers).await;
    assert_eq!(answer.status, 503);
    assert!(!answer.body.contains(folder.path().to_str().unwrap()), "{answer:?}");
}
