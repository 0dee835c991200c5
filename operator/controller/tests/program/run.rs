//! `run`, with an API server that is not there.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::{SocketAddr, TcpListener},
    process::{Child, ChildStderr, Command, Stdio},
};

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The program at work. Dropping it kills it.
struct Program {
    child: Child,
    log: BufReader<ChildStderr>,
    health: SocketAddr,
    admin: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Program {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("config");
        std::fs::write(&kubeconfig, nowhere().to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_belay-operator"))
            .args(["run", "--namespace", "belay", "--log-format", "json"])
            .args(["--health-bind", "127.0.0.1:0", "--admin-bind", "127.0.0.1:0"])
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let serving: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let address = |name: &str| serving[name].as_str().unwrap().parse().unwrap();
        let (health, admin) = (address("health"), address("admin"));
        Self { child, log, health, admin, _folder: folder }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has mostly ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A kubeconfig that names a port nobody listens on.
fn nowhere() -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": server } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        "users": [{ "name": "u", "user": {} }],
    })
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = http.get(format!("http://{address}{path}")).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn without_an_api_server_it_lives_and_is_not_ready() {
    let program = Program::start();
    assert_eq!(get(program.health, "/healthz").await, (200, "ok\n".to_owned()));
    let (status, why) = get(program.health, "/readyz").await;
    assert_eq!((status, why.lines().count()), (503, 1), "{why}");
    let (status, text) = get(program.health, "/metrics").await;
    assert!(status == 200 && text.contains("belay_build_info"), "{text}");
    let (status, _) = get(program.admin, "/debug/targets/shop/web").await;
    assert_eq!(status, 404);
    // The public port has no debug pages.
    let (status, _) = get(program.health, "/debug/targets/shop/web").await;
    assert_eq!(status, 404);
}

#[rstest]
#[case(Signal::TERM, "SIGTERM")]
#[case(Signal::INT, "SIGINT")]
fn a_signal_ends_it_in_good_order(#[case] signal: Signal, #[case] name: &str) {
    let mut program = Program::start();
    program.signal(signal);
    let status = program.child.wait().unwrap();
    let mut log = String::new();
    program.log.read_to_string(&mut log).unwrap();
    assert!(status.success(), "{status}: {log}");
    assert!(log.contains(name), "{log}");
    let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    assert!(log.lines().all(is_json), "{log}");
}

#[rstest]
#[case::usage(&["run"], 2, "--namespace <NS>")]
#[case::together(&["run", "--namespace", "a", "--admin-bind", "[::]:1"], 2, "--admin-token-file")]
#[case::nothing(&[], 2, "Usage: belay-operator")]
#[case::no_server(&["run", "--namespace", "a", "--health-bind", "127.0.0.1:0", "--admin-bind", "127.0.0.1:0"],
    1, "error: find the API server")]
fn an_error_has_its_exit_code(#[case] words: &[&str], #[case] code: i32, #[case] expected: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_belay-operator"))
        .args(words)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.contains(expected) && output.stdout.is_empty(), "{text}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_belay-operator"))
        .args(["run", "--namespace", "a", "--health-bind", &address])
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&address) && text.contains("--health-bind"), "{text}");
}
