//! The yardstick of the post-renderer's figures: the least program that does what `belay` cannot do
//! without, in the same language, with the same client libraries, built with the same profile.
//!
//! It decides nothing and looks into no document or answer, but for the list of release records, of
//! which it has to know the newest. Run by `cargo xtask bench`.

use std::{
    env,
    hint::black_box,
    io::{Read as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Request, header::ACCEPT};
use http_body_util::BodyExt as _;
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config, ResourceExt as _,
    client::{Body, ConfigExt as _},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ObjectList, PartialObjectMeta},
};
use memchr::memmem;
use tower::{BoxError, ServiceBuilder};

/// Requests at the same time, as many as `belay` has.
const IN_FLIGHT: usize = 16;

const JSON: &str = "application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

const USAGE: &str = "usage: bare noop
       bare get KUBECONFIG PATH...
       bare get-record KUBECONFIG NAMESPACE RELEASE PATH
       bare split
       bare split-get KUBECONFIG PATH...";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match run(&words.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<()> {
    match words {
        ["noop"] => Ok(()),
        ["get", kubeconfig, paths @ ..] => {
            with_client(kubeconfig, async |client| get_all(&client, paths).await)
        }
        ["get-record", kubeconfig, namespace, release, path] => {
            with_client(kubeconfig, async |client| {
                get(&client, path, JSON).await?;
                get_record(&client, namespace, release).await
            })
        }
        ["split"] => write(&read_and_split()?),
        ["split-get", kubeconfig, paths @ ..] => {
            let input = read_and_split()?;
            with_client(kubeconfig, async |client| get_all(&client, paths).await)?;
            write(&input)
        }
        _ => bail!("{USAGE}"),
    }
}

fn with_client(kubeconfig: &str, requests: impl AsyncFnOnce(Client) -> Result<()>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .context("understand the kubeconfig")?;
        requests(client(config).context("make a client")?).await
    })
}

/// The stack that `belay` has, without its timeouts.
fn client(config: Config) -> kube::Result<Client> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let https = config.rustls_https_connector_with_connector(tcp)?;
    let hyper: HyperClient<_, Body> = HyperClient::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(hyper);
    Ok(Client::new(service, config.default_namespace))
}

async fn get_all(client: &Client, paths: &[&str]) -> Result<()> {
    stream::iter(paths)
        .map(|path| get(client, path, JSON))
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(async |_| Ok(()))
        .await
}

/// A list of metadata by label, then the newest of them: how a release tells how Helm applies.
async fn get_record(client: &Client, namespace: &str, release: &str) -> Result<()> {
    let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
    let selected = format!("{secrets}?labelSelector=owner%3Dhelm%2Cname%3D{release}");
    let list = get(client, &selected, METADATA_LIST).await?;
    let list: ObjectList<PartialObjectMeta> =
        serde_json::from_slice(&list).context("read the list of records")?;
    let revision = |record: &PartialObjectMeta| -> Option<u32> {
        record.labels().get("version").and_then(|version| version.parse().ok())
    };
    let newest = list.items.iter().max_by_key(|record| revision(record));
    let newest = newest.with_context(|| format!("release {release} has no record"))?.name_any();
    get(client, &format!("{secrets}/{newest}"), JSON).await.map(drop)
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Bytes> {
    let request = Request::get(path).header(ACCEPT, accept).body(Body::empty())?;
    let response = client.send(request).await.with_context(|| format!("GET {path}"))?;
    ensure!(response.status().is_success(), "GET {path}: {}", response.status());
    let body = response.into_body().collect().await;
    Ok(body.with_context(|| format!("read the answer to GET {path}"))?.to_bytes())
}

fn read_and_split() -> Result<Vec<u8>> {
    let mut input = Vec::new();
    std::io::stdin().lock().read_to_end(&mut input).context("read standard input")?;
    black_box(memmem::find_iter(&input, b"\n---").count());
    Ok(input)
}

fn write(output: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(output).and_then(|()| stdout.flush()).context("write standard output")
}
