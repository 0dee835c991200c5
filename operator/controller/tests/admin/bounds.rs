//! What a client can hold.

use std::time::Duration;

use belay_operator::admin::Bounds;
use belay_testkit::wait;
use rstest::rstest;

use crate::support::{SOON, Server};

const HASTY: Bounds = Bounds {
    head: Duration::from_millis(100),
    connection: Duration::from_mins(10),
    connections: 64,
};

#[rstest]
#[case::nothing("")]
#[case::half_a_line("GET /heal")]
#[case::half_a_head("GET /healthz HTTP/1.1\r\nhost: test\r\n")]
#[tokio::test]
async fn a_slow_request_is_given_up(#[case] sent: &str) {
    let server = Server::health(HASTY).await;
    let mut client = server.connect().await;
    client.send(sent).await;
    let rest = client.rest().await;
    assert!(!rest.contains("200 OK"), "{rest}");
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_connection_ends_whatever_it_waits_for() {
    let bounds = Bounds { connection: Duration::from_millis(100), ..Bounds::default() };
    let server = Server::health(bounds).await;
    let mut client = server.connect().await;
    assert_eq!(client.rest().await, "");
}

#[rstest]
#[case::one_large(1, 20_000)]
#[case::many(100, 10)]
#[tokio::test]
async fn a_huge_head_is_refused(#[case] count: usize, #[case] length: usize) {
    let server = Server::health(Bounds::default()).await;
    let headers: Vec<_> = (0..count).map(|n| format!("x-{n}: {}", "a".repeat(length))).collect();
    let headers: Vec<_> = headers.iter().map(String::as_str).collect();
    let answer = server.ask("GET", "/healthz", &headers).await;
    assert_eq!(answer.status, 431, "{answer:?}");
}

#[tokio::test]
async fn a_long_path_is_refused() {
    let server = Server::health(Bounds::default()).await;
    let answer = server.get(&format!("/{}", "a".repeat(20_000))).await;
    assert!([414, 431].contains(&answer.status), "{answer:?}");
}

#[rstest]
#[case("hello\r\n\r\n")]
#[case("GET /healthz HTTP/9.9\r\n\r\n")]
#[case("GET /healthz HTTP/1.1\r\ncontent-length: x\r\n\r\n")]
#[case("\u{16}\u{3}\u{1}\u{2}")]
#[tokio::test]
async fn what_is_no_http_does_no_harm(#[case] sent: &str) {
    let server = Server::health(HASTY).await;
    let mut client = server.connect().await;
    client.send(sent).await;
    let rest = client.rest().await;
    assert!(!rest.contains("200 OK"), "{rest}");
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_body_is_not_waited_for() {
    let server = Server::health(Bounds::default()).await;
    let mut client = server.connect().await;
    client.send("GET /healthz HTTP/1.1\r\nhost: test\r\ncontent-length: 1000000\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn a_second_request_needs_a_second_connection() {
    let server = Server::health(Bounds::default()).await;
    let mut client = server.connect().await;
    let request = "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n";
    client.send(&format!("{request}{request}")).await;
    assert_eq!(client.rest().await.matches("200 OK").count(), 1);
}

#[tokio::test]
async fn those_who_hold_connections_for_nothing_make_room() {
    let bounds = Bounds { head: SOON * 10, connection: SOON * 10, connections: 8 };
    let server = Server::health(bounds).await;
    let mut idle = Vec::new();
    for _ in 0..50 {
        idle.push(server.connect().await);
    }
    assert_eq!(server.get("/healthz").await.status, 200);
    for client in idle.iter_mut().take(42) {
        assert_eq!(client.rest().await, "", "the oldest are closed");
    }
    let youngest = idle.last_mut().unwrap();
    youngest.send("GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n").await;
    assert_eq!(youngest.answer().await.status, 200, "the youngest is not");
}

#[tokio::test]
async fn many_at_once_are_all_answered() {
    let server = Server::health(Bounds { connections: 256, ..Bounds::default() }).await;
    let answers = futures::future::join_all((0..200).map(|_| server.get("/metrics"))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
}

#[tokio::test]
async fn it_stops_with_connections_open() {
    let server = Server::health(Bounds::default()).await;
    let address = server.address;
    let mut client = server.connect().await;
    client.send("GET /healthz HTTP/1.1\r\n").await;
    server.stop().await;
    assert_eq!(client.rest().await, "");
    wait::until("the port to be closed", wait::SOON, || async {
        match tokio::net::TcpStream::connect(address).await {
            Ok(_) => Err("somebody answers"),
            Err(_) => Ok(()),
        }
    })
    .await
    .unwrap();
}
