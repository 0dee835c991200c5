//! Registries that answer what no registry should, and images on hosts that nobody should ask.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use belay_api::gates::Gate;
use belay_suite::operator::{Bed, Running, Wiring};
use belay_testkit::{github::NewRelease, objects::Workload, wait};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use serde_json::json;

use crate::{
    neighbours::Neighbours,
    panics,
    servers::{Answer, Server, Trap, head},
    targets::Targets,
    turn,
    words::say_nothing_of,
};

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const INDEX: &str = "Content-Type: application/vnd.oci.image.index.v1+json";
const BAD_DIGEST: &str = "Docker-Content-Digest: sha256:zz";
const PASSWORD: &str = "hunter2-of-the-registry";
/// Of a hostile answer nothing is repeated.
const QUOTED: &str = "a text that nobody should be shown";

const NO_MANIFEST: &str = "the answer is no manifest";
const NOT_ITS_DIGEST: &str = "the answer does not have its digest";
const TOO_SLOW: &str = "no whole answer within 3 s";
const TOO_LARGE: &str = "the answer is too large";
const NOT_ITS_PLACE: &str = "that is not the registry's own place";
/// The same words for what is forbidden and for what is not there.
const NOT_PERMITTED: &str = "is not permitted, or does not exist";

type Script = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

/// What a registry answers, and what must be said of it.
struct Case {
    name: &'static str,
    answer: Script,
    words: &'static str,
}

fn case(
    name: &'static str,
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    words: &'static str,
) -> Case {
    Case { name, answer: Arc::new(answer), words }
}

/// The same to everybody.
fn always(name: &'static str, answer: Answer, words: &'static str) -> Case {
    case(name, move |_| answer.clone(), words)
}

/// A manifest's head is as it should be; what is read after that is not.
fn manifest(name: &'static str, answer: Answer, words: &'static str) -> Case {
    let digest = format!("Docker-Content-Digest: {DIGEST}");
    case(
        name,
        move |head| {
            if head.starts_with("HEAD ") {
                return Answer::whole("200 OK", &[&digest, INDEX], "");
            }
            answer.clone()
        },
        words,
    )
}

/// Sends for a token.
fn realm(trap: &Trap, name: &'static str, realm: &str, words: &'static str) -> Case {
    let demand =
        format!("WWW-Authenticate: Bearer realm=\"{}\",service=\"registry\"", trap.in_text(realm));
    always(name, Answer::whole("401 Unauthorized", &[&demand], ""), words)
}

fn redirect(trap: &Trap, name: &'static str, status: &str, to: &str) -> Case {
    let to = format!("Location: {}", trap.in_text(to));
    always(name, Answer::whole(status, &[&to], ""), NOT_PERMITTED)
}

fn cases(trap: &Trap) -> Vec<Case> {
    let page = "<html>Please log in</html>";
    vec![
        always("page", Answer::whole("200 OK", &["Content-Type: text/html"], page), NO_MANIFEST),
        always("bad-digest", Answer::whole("200 OK", &[BAD_DIGEST], ""), NO_MANIFEST),
        always("broken", Answer::whole("500 Broken", &[], QUOTED), "it answered 500"),
        always("teapot", Answer::whole("418 Teapot", &[], ""), "it answered 418"),
        always("no-http", Answer::Bytes(b"220 ftp.example ready\r\n".to_vec()), "invalid HTTP"),
        always("closed", Answer::Bytes(Vec::new()), "connection closed before"),
        always("silent", Answer::Silence, TOO_SLOW),
        always("slow-head", Answer::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec()), TOO_SLOW),
        always(
            "endless-head",
            Answer::Endless(b"HTTP/1.1 200 OK\r\nx: ".to_vec()),
            "head is too large",
        ),
        manifest(
            "wrong-types",
            Answer::whole("200 OK", &[INDEX], r#"{"manifests":7}"#),
            NOT_ITS_DIGEST,
        ),
        manifest(
            "other-digest",
            Answer::whole("200 OK", &[INDEX], r#"{"manifests":[]}"#),
            NOT_ITS_DIGEST,
        ),
        manifest("cut", Answer::cut("200 OK", &[INDEX], "{\"manifests\":"), "end of file before"),
        manifest("drips", Answer::Drip(head("200 OK", &[INDEX], Some(1 << 20))), TOO_SLOW),
        manifest(
            "ten-megabytes",
            Answer::Endless(head("200 OK", &[INDEX], Some(10 << 20))),
            TOO_LARGE,
        ),
        manifest("endless", Answer::Endless(head("200 OK", &[INDEX], None)), TOO_LARGE),
        redirect(trap, "to-trap", "307 Elsewhere", "http://127.0.0.1:TRAP/"),
        redirect(trap, "to-trap-tls", "302 Elsewhere", "https://127.0.0.1:TRAP/"),
        redirect(trap, "to-trap-6", "301 Elsewhere", "https://[::1]:TRAP/"),
        redirect(trap, "to-decimal", "308 Elsewhere", "https://2130706433:TRAP/"),
        redirect(trap, "to-name", "307 Elsewhere", "https://localhost:TRAP/"),
        redirect(trap, "to-metadata", "302 Elsewhere", "http://169.254.169.254/latest/"),
        redirect(trap, "to-file", "302 Elsewhere", "file:///etc/passwd"),
        realm(trap, "realm-trap", "http://127.0.0.1:TRAP/token", NOT_PERMITTED),
        realm(trap, "realm-decimal", "https://2130706433:TRAP/token", NOT_PERMITTED),
        realm(trap, "realm-trap-6", "https://[::1]:TRAP/token", NOT_ITS_PLACE),
        realm(trap, "realm-name", "http://localhost:TRAP/token", NOT_ITS_PLACE),
        realm(trap, "realm-metadata", "http://169.254.169.254/token", NOT_ITS_PLACE),
        realm(trap, "realm-elsewhere", "https://evil.example/token", NOT_ITS_PLACE),
        realm(trap, "realm-nowhere", "token", "names no place for tokens"),
    ]
}

/// Waits until the new release of a target is kept back with these words.
async fn kept_back(targets: &Targets, name: &str, words: &str) -> Result<()> {
    let gate =
        if words == NOT_PERMITTED { Gate::RegistryDenied } else { Gate::RegistryUnavailable };
    wait::until(&format!("{name} to be kept back: {words:?}"), wait::SOON, || {
        let status = targets.of(name).unwrap_or_default().status;
        let candidate = status.candidates.iter().find(|one| one.tag == "v1.1.0");
        let is_it = candidate.is_some_and(|one| {
            let at = one.gate.as_ref().and_then(belay_api::Open::known);
            at == Some(gate) && one.message.as_ref().is_some_and(|text| text.contains(words))
        });
        std::future::ready(if is_it { Ok(()) } else { Err(format!("{candidate:?}")) })
    })
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_registries_that_make_no_sense_are_said_so_and_hurt_nobody_else() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("registry").await?;
    let (trap, targets) = (Trap::new()?, Targets::watch(&bed));
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    let cases = cases(&trap);
    let mut servers = Vec::new();
    for Case { name, answer, .. } in &cases {
        let answer = answer.clone();
        let server = Server::start(move |head| answer(head)).await?;
        pull_secret(&bed, name, &server.host()).await?;
        follow(&bed, name, &server.host()).await?;
        servers.push(server);
    }
    let wiring = Wiring {
        registry_patience: Duration::from_secs(3),
        registries: servers.iter().map(|server| format!("http://{}", server.host())).collect(),
        ..Wiring::default()
    };
    let operator = Running::start(&bed, wiring)?;
    neighbours.ready(&targets).await?;
    for Case { name, .. } in &cases {
        targets.healthy(name, "1.0.0").await?;
    }
    bed.github.publish("acme/web", NewRelease::new("v1.1.0"))?;
    for Case { name, words, .. } in &cases {
        kept_back(&targets, name, words).await?;
    }
    neighbours.roll(&bed, &targets).await?;
    for (Case { name, .. }, server) in cases.iter().zip(&servers) {
        let live = bed.live(name).await?;
        ensure!(live == image(&server.host(), "1.0.0"), "{name} was moved to {live}");
        // After a HEAD that is refused nothing else is asked, and no credential is sent anywhere
        // that has not asked for one.
        let heads = server.heads();
        let went = heads.iter().find(|head| head.to_ascii_lowercase().contains("authorization:"));
        ensure!(went.is_none(), "{name} was shown a credential: {heads:?}");
        let is_refused = name.starts_with("to-") || name.starts_with("realm-");
        let gets = heads.iter().filter(|head| !head.starts_with("HEAD ")).count();
        ensure!(!is_refused || gets == 0, "{name} was asked on: {heads:?}");
    }
    trap.is_untouched()?;
    say_nothing_of(&bed, &[PASSWORD, QUOTED]).await?;
    operator.stop().await?;
    panics::none()
}

fn image(host: &str, tag: &str) -> String {
    format!("{host}/acme/web:{tag}")
}

/// A Deployment with an image of this registry, and the secret of the same name.
async fn follow(bed: &Bed, name: &str, host: &str) -> Result<()> {
    let workload = Workload::deployment(name)
        .replicas(1)
        .image("app", &image(host, "1.0.0"))
        .pod_spec("imagePullSecrets", json!([{ "name": name }]))
        .annotation("belay.dev/repo", "acme/web")
        .annotation("belay.dev/bake", "1s");
    bed.create(&workload, "helm").await?;
    Ok(())
}

async fn pull_secret(bed: &Bed, name: &str, host: &str) -> Result<()> {
    let content = json!({ "auths": { host: { "username": "bob", "password": PASSWORD } } });
    let secret = Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        type_: Some("kubernetes.io/dockerconfigjson".to_owned()),
        data: Some(BTreeMap::from([(
            ".dockerconfigjson".to_owned(),
            ByteString(content.to_string().into_bytes()),
        )])),
        ..Secret::default()
    };
    let api: Api<Secret> = Api::namespaced(bed.client.clone(), &bed.namespace);
    api.create(&PostParams::default(), &secret).await?;
    Ok(())
}

/// Images that a person has put on hosts of his choice: nobody comes there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_on_hosts_of_the_operators_own_network_are_not_asked_for() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("hosts").await?;
    let (trap, targets) = (Trap::new()?, Targets::watch(&bed));
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    bed.github.publish("acme/web", NewRelease::new("v1.0.0"))?;
    let hosts = [
        ("address", "127.0.0.1:TRAP", NOT_PERMITTED),
        ("name", "localhost:TRAP", NOT_PERMITTED),
        ("decimal", "2130706433:TRAP", NOT_PERMITTED),
        ("short", "127.1:TRAP", NOT_PERMITTED),
        ("hexadecimal", "0x7f000001:TRAP", NOT_PERMITTED),
        ("octal", "0177.0.0.1:TRAP", NOT_PERMITTED),
        ("unspecified", "0.0.0.0:TRAP", NOT_PERMITTED),
        ("version-6", "[::1]:TRAP", "invalid reference format"),
        ("metadata", "169.254.169.254", NOT_PERMITTED),
        ("private", "10.96.0.1", NOT_PERMITTED),
    ];
    for (name, host, _) in hosts {
        follow(&bed, name, &trap.in_text(host)).await?;
    }
    let operator = bed.operator()?;
    neighbours.ready(&targets).await?;
    for (name, ..) in hosts {
        targets.healthy(name, "1.0.0").await?;
    }
    bed.github.publish("acme/web", NewRelease::new("v1.1.0"))?;
    for (name, _, words) in hosts {
        kept_back(&targets, name, words).await?;
    }
    neighbours.roll(&bed, &targets).await?;
    trap.is_untouched()?;
    operator.stop().await?;
    panics::none()
}

/// A registry that says "not before the year 9999" is believed for a day, and not asked meanwhile.
#[tokio::test]
async fn a_registrys_wait_without_an_end_is_a_day_at_most() -> Result<()> {
    let _turn = turn::with_others().await;
    panics::watch();
    let bed = Bed::new("wait").await?;
    let targets = Targets::watch(&bed);
    let mut neighbours = Neighbours::new(&bed, 1).await?;
    let headers = ["Retry-After: 99999999999"];
    let answer = Answer::whole("429 Too Many Requests", &headers, "");
    let server = Server::start(move |_| answer.clone()).await?;
    bed.github.publish("acme/web", NewRelease::new("v1.0.0"))?;
    follow(&bed, "web", &server.host()).await?;
    let registries = vec![format!("http://{}", server.host())];
    let operator = Running::start(&bed, Wiring { registries, ..Wiring::default() })?;
    targets.healthy("web", "1.0.0").await?;
    bed.github.publish("acme/web", NewRelease::new("v1.1.0"))?;
    let until = wait::until("web to say that the registry is not asked", wait::SOON, || {
        let status = targets.of("web").unwrap_or_default().status;
        let until = status.waiting.as_ref().and_then(|waiting| waiting.until.clone());
        std::future::ready(until.ok_or(format!("{status:?}")))
    })
    .await?;
    let (wait, day) = (until.0.duration_since(Timestamp::now()), SignedDuration::from_hours(24));
    ensure!(wait > day / 2 && wait <= day, "{wait}");
    let asked = server.heads().len();
    neighbours.roll(&bed, &targets).await?;
    neighbours.roll(&bed, &targets).await?;
    ensure!(server.heads().len() == asked, "{:?}", server.heads());
    operator.stop().await?;
    panics::none()
}
