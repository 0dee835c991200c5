//! Proxies before the API server, scripted on loopback: those that open a way, and those that do not.
//! The real kubectl goes the same ways.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use belay_components::Binary;
use belay_testkit::cluster::{
    identity::Access,
    pki::{Authority, Identified},
};
use kubectl_release::Exit;
use rstest::rstest;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
        BufStream, copy_bidirectional,
    },
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::{access::kubeconfig, run::Shell, scene::Scene, status::healthy};

/// The user and password of proxies that ask for one, as in the URL, and as in Basic.
const LOGIN: (&str, &str) = ("ann:s%40c", "Basic YW5uOnNAYw==");

/// What a proxy does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    /// It opens a way to the API server, whatever name it is asked for.
    Open,
    /// It opens one for [`LOGIN`] alone.
    Login,
    /// It opens none.
    Refuse,
    /// It takes what it is sent and says nothing.
    Hang,
    /// It closes the connection.
    Close,
}

/// A proxy that runs as long as the test's runtime.
struct Proxy {
    address: String,
    tunnels: Arc<AtomicUsize>,
    /// For `https` proxies: whom to trust.
    authority: Option<String>,
}

impl Proxy {
    /// A proxy of that scheme before a server.
    async fn start(scheme: &str, script: Script, server: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let authority = if scheme == "https" { Some(Authority::new()?) } else { None };
        let tls = authority.as_ref().map(acceptor).transpose()?;
        let is_socks = scheme == "socks5";
        let tunnels = Arc::new(AtomicUsize::new(0));
        let (count, server) = (Arc::clone(&tunnels), server.to_owned());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (count, server, tls) = (Arc::clone(&count), server.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            let stream = tls.accept(stream).await?;
                            connect(BufStream::new(stream), script, &server, &count).await
                        }
                        None if is_socks => socks(stream, script, &server, &count).await,
                        None => connect(BufStream::new(stream), script, &server, &count).await,
                    }
                });
            }
        });
        let authority = authority.map(|authority| authority.certificate().to_owned());
        Ok(Self { address, tunnels, authority })
    }
}

fn acceptor(authority: &Authority) -> Result<TlsAcceptor> {
    let Identified { certificate, key } = authority.server("proxy", &[])?;
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Answers a CONNECT.
async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: BufStream<S>,
    script: Script,
    server: &str,
    count: &AtomicUsize,
) -> Result<()> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(stream.read_line(&mut head).await? > 0, "cut off: {head}");
    }
    ensure!(head.starts_with("CONNECT "), "{head}");
    let is_known = head.contains(&format!("Proxy-Authorization: {}\r\n", LOGIN.1));
    let answer = match script {
        Script::Open => "200 Connection established",
        Script::Login if is_known => "200 Connection established",
        Script::Login => "407 Proxy Authentication Required",
        Script::Refuse => "503 Service Unavailable",
        Script::Hang => return std::future::pending().await,
        Script::Close => return Ok(()),
    };
    stream.write_all(format!("HTTP/1.1 {answer}\r\nVia: 1.1 test\r\n\r\n").as_bytes()).await?;
    stream.flush().await?;
    ensure!(answer.starts_with("200"), "{answer}");
    relay(stream, server, count).await
}

/// Answers the handshake of SOCKS 5 (RFC 1928, RFC 1929).
async fn socks(
    mut stream: TcpStream,
    script: Script,
    server: &str,
    count: &AtomicUsize,
) -> Result<()> {
    let count_of_methods = [stream.read_u8().await?, stream.read_u8().await?][1];
    let mut methods = vec![0; count_of_methods.into()];
    stream.read_exact(&mut methods).await?;
    match script {
        Script::Hang => return std::future::pending().await,
        Script::Close => return Ok(()),
        Script::Login if !methods.contains(&2) => return Ok(stream.write_all(&[5, 0xff]).await?),
        Script::Login => {
            stream.write_all(&[5, 2]).await?;
            let mut pair = Vec::new();
            stream.read_u8().await?;
            for _ in 0..2 {
                let mut part = vec![0; stream.read_u8().await?.into()];
                stream.read_exact(&mut part).await?;
                pair.push(String::from_utf8(part)?);
            }
            let is_known = pair == ["ann", "s@c"];
            stream.write_all(&[1, u8::from(!is_known)]).await?;
            ensure!(is_known, "{pair:?}");
        }
        Script::Open | Script::Refuse => stream.write_all(&[5, 0]).await?,
    }
    let mut request = [0; 4];
    stream.read_exact(&mut request).await?;
    let length = match request[3] {
        1 => 4,
        3 => stream.read_u8().await?.into(),
        other => bail!("no address of kind {other}"),
    };
    let mut address = vec![0; length + 2];
    stream.read_exact(&mut address).await?;
    let code = if script == Script::Refuse { 5 } else { 0 };
    stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    ensure!(code == 0, "refused");
    relay(stream, server, count).await
}

async fn relay<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    server: &str,
    count: &AtomicUsize,
) -> Result<()> {
    let mut server = TcpStream::connect(server).await?;
    count.fetch_add(1, Ordering::Relaxed);
    copy_bidirectional(&mut stream, &mut server).await?;
    Ok(())
}

/// A scene behind a proxy.
struct Behind {
    scene: Scene,
    proxy: Proxy,
    shell: Shell,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

impl Behind {
    /// Whose kubeconfig names the proxy with this user and password, or does not name it.
    async fn start(scheme: &str, script: Script, login: Option<&str>) -> Result<Self> {
        let scene = Scene::new("proxied").await?;
        let access = scene.cluster.admin_access();
        let server = access.server.strip_prefix("https://").context("no address")?;
        let proxy = Proxy::start(scheme, script, server).await?;
        let mut access = Access { namespace: scene.namespace.clone(), ..access.clone() };
        if let Some(authority) = &proxy.authority {
            access.authority.push_str(authority);
        }
        let folder = tempfile::tempdir()?;
        let path = kubeconfig(folder.path(), "proxied", &access, |config| {
            if let Some(login) = login {
                let url = format!("{scheme}://{login}{}", proxy.address);
                config["clusters"][0]["cluster"]["proxy-url"] = json!(url);
            }
        })?;
        let shell = Shell { kubeconfig: path.clone(), ..scene.shell()? };
        Ok(Self { scene, proxy, shell, kubeconfig: path, _folder: folder })
    }

    async fn kubectl(&self, variables: &[(&str, &str)]) -> Result<String> {
        let mut tool = self.scene.cluster.tool_as(Binary::Kubectl, &self.kubeconfig)?;
        for (name, value) in variables {
            tool = tool.env(name, value);
        }
        Ok(tool.args(["get", "releasetarget", "web", "-o", "name"]).run().await?.stdout)
    }
}

#[rstest]
#[case::http("http", Script::Open, "")]
#[case::http_login("http", Script::Login, "ann:s%40c@")]
#[case::https("https", Script::Open, "")]
#[case::https_login("https", Script::Login, "ann:s%40c@")]
#[case::socks("socks5", Script::Open, "")]
#[case::socks_login("socks5", Script::Login, "ann:s%40c@")]
#[tokio::test]
async fn the_proxy_of_a_kubeconfig_is_used(
    #[case] scheme: &str,
    #[case] script: Script,
    #[case] login: &str,
) -> Result<()> {
    ensure!(login.is_empty() || login.trim_end_matches('@') == LOGIN.0);
    let behind = Behind::start(scheme, script, Some(login)).await?;
    healthy(&behind.scene).await?;
    let answer = behind.shell.run("status web").await?.answer()?;
    ensure!(answer.contains("Ready"), "{answer}");
    // One connection carries all requests.
    assert_eq!(behind.proxy.tunnels.load(Ordering::Relaxed), 1);
    let name = behind.kubectl(&[]).await?;
    assert_eq!(name, "releasetarget.belay.dev/web\n");
    ensure!(behind.proxy.tunnels.load(Ordering::Relaxed) > 1, "kubectl went another way");
    Ok(())
}

#[rstest]
#[case::http("http")]
#[case::https("https")]
#[case::socks("socks5")]
#[tokio::test]
async fn the_proxy_of_the_environment_is_used_and_resolves_the_name(
    #[case] scheme: &str,
) -> Result<()> {
    let behind = Behind::start(scheme, Script::Open, None).await?;
    healthy(&behind.scene).await?;
    // A name of the API server's certificate that only the proxy knows how to reach.
    let far = behind.kubeconfig.with_file_name("far");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&behind.kubeconfig)?)?;
    config["clusters"][0]["cluster"]["server"] = json!("https://kubernetes.default.svc:6443");
    std::fs::write(&far, config.to_string())?;
    let behind = Behind { kubeconfig: far.clone(), ..behind };
    let url = format!("{scheme}://{}", behind.proxy.address);
    let run = |words: &[&str]| behind.shell.cli(words).kubeconfig(&far);
    let answer = run(&["status", "web"]).variable("HTTPS_PROXY", &url).run().await.answer()?;
    ensure!(answer.contains("Ready"), "{answer}");
    let name = behind.kubectl(&[("HTTPS_PROXY", &url)]).await?;
    assert_eq!(name, "releasetarget.belay.dev/web\n");
    let tunnels = behind.proxy.tunnels.load(Ordering::Relaxed);
    ensure!(tunnels > 1, "{tunnels}");
    let none = run(&["status", "web", "--request-timeout", "5s"])
        .variable("HTTPS_PROXY", &url)
        .variable("NO_PROXY", ".svc")
        .run()
        .await;
    assert_eq!(none.exit, Exit::Error, "{none:?}");
    assert_eq!(behind.proxy.tunnels.load(Ordering::Relaxed), tunnels);
    Ok(())
}

#[rstest]
#[case::http_asks("http", Script::Login, "", "asks for a user and a password")]
#[case::http_declines("http", Script::Login, "ann:hidden@", "does not accept the user")]
#[case::http_refuses("http", Script::Refuse, "", "opened no way to 127.0.0.1:")]
#[case::http_closes("http", Script::Close, "", "opened no way to 127.0.0.1:")]
#[case::https_asks("https", Script::Login, "", "asks for a user and a password")]
#[case::https_closes("https", Script::Close, "", "opened no way to 127.0.0.1:")]
#[case::socks_asks("socks5", Script::Login, "", "asks for a user and a password")]
#[case::socks_declines("socks5", Script::Login, "ann:hidden@", "does not accept the user")]
#[case::socks_refuses("socks5", Script::Refuse, "", "opened no way to 127.0.0.1:")]
#[case::socks_closes("socks5", Script::Close, "", "opened no way to 127.0.0.1:")]
#[tokio::test]
async fn a_proxy_that_opens_no_way_is_named_and_not_the_server(
    #[case] scheme: &str,
    #[case] script: Script,
    #[case] login: &str,
    #[case] words: &str,
) -> Result<()> {
    let behind = Behind::start(scheme, script, Some(login)).await?;
    let ran = behind.shell.run("status web").await?;
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Error, ""), "{ran:?}");
    let proxy = format!("the proxy {scheme}://{} {words}", behind.proxy.address);
    ensure!(ran.stderr.contains(&proxy) && !ran.stderr.contains("hidden"), "{ran:?}");
    ensure!(
        ran.stderr.ends_with("hint: the proxy stands in proxy-url of the kubeconfig\n"),
        "{ran:?}"
    );
    Ok(())
}

#[rstest]
#[case::http("http")]
#[case::https("https")]
#[case::socks("socks5")]
#[tokio::test]
async fn a_proxy_that_says_nothing_is_given_up_after_the_request_timeout(
    #[case] scheme: &str,
) -> Result<()> {
    let behind = Behind::start(scheme, Script::Hang, Some("")).await?;
    let run = behind.shell.run("status web --request-timeout 1s");
    let ran =
        tokio::time::timeout(Duration::from_secs(30), run).await.context("it hangs too")??;
    assert_eq!(ran.exit, Exit::Error, "{ran:?}");
    let through = format!("through the proxy {scheme}://{} within 1s", behind.proxy.address);
    ensure!(ran.stderr.contains(&through), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn nobody_behind_the_proxys_address_is_the_proxys_fault() -> Result<()> {
    let behind = Behind::start("http", Script::Open, None).await?;
    let far = "https://kubernetes.default.svc:6443";
    let ran = behind
        .shell
        .cli(&["status", "web", "-s", far])
        .variable("HTTPS_PROXY", "http://u:hidden@127.0.0.1:1")
        .run()
        .await;
    assert_eq!(ran.exit, Exit::Error, "{ran:?}");
    ensure!(
        ran.stderr.contains("the proxy http://127.0.0.1:1 cannot be connected to: "),
        "{ran:?}"
    );
    let hint = "hint: the proxy stands in HTTPS_PROXY; name the API server in NO_PROXY";
    ensure!(ran.stderr.contains(hint) && !ran.stderr.contains("hidden"), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn an_https_proxy_that_nobody_vouches_for_is_not_trusted() -> Result<()> {
    let behind = Behind::start("https", Script::Open, None).await?;
    let bare = behind.scene.shell()?;
    let url = format!("https://{}", behind.proxy.address);
    let words = ["status", "web", "-s", "https://kubernetes.default.svc:6443"];
    let ran = bare.cli(&words).variable("HTTPS_PROXY", &url).run().await;
    assert_eq!(ran.exit, Exit::Error, "{ran:?}");
    ensure!(
        ran.stderr.contains("cannot be connected to: ") && ran.stderr.contains("certificate"),
        "{ran:?}"
    );
    assert_eq!(behind.proxy.tunnels.load(Ordering::Relaxed), 0);
    Ok(())
}
