//! A metric outside of the cluster, whose value the test sets: what lets the real HPA controller move
//! a workload, and KEDA wake it up and put it to sleep.
//!
//! The API server hands requests for `external.metrics.k8s.io` to this server, in place of KEDA's
//! metrics adapter. KEDA itself asks it by a trigger of type `metrics-api`. Both get the same number,
//! one for each ScaledObject.

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Namespace, Service},
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::{
    TestbedError,
    cluster::{Cluster, FIELD_MANAGER, chain},
    wait,
};

/// The API that is served.
const GROUP: &str = "external.metrics.k8s.io";
const VERSION: &str = "v1beta1";
/// The namespace of the Service that leads to this server.
const NAMESPACE: &str = "belay-testbed";
const SERVICE: &str = "external-metrics";
/// The label by which KEDA's HPAs say whose metric they want.
const WHOSE: &str = "scaledobject.keda.sh/name=";

/// A running server. Dropping it stops it, and HPAs then get no metric.
#[derive(Debug)]
pub struct ExternalMetrics {
    shared: Arc<Shared>,
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What is known of one ScaledObject.
#[derive(Debug, Default, Clone, Copy)]
struct Metric {
    value: u32,
    readings: u64,
}

#[derive(Debug, Default)]
struct Shared(Mutex<HashMap<(String, String), Metric>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Metric>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExternalMetrics {
    /// Starts the server, registers it with a cluster's API server, and waits until that reaches it.
    ///
    /// # Errors
    /// What could not be set up.
    pub async fn start(cluster: &Cluster) -> Result<Self, TestbedError> {
        let failed = |source| TestbedError::Start {
            name: "the server of external metrics".to_owned(),
            program: "a thread".into(),
            source,
        };
        let acceptor = acceptor(cluster)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let shared = Arc::<Shared>::default();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        // A thread and runtime of its own: it serves tests that each have another runtime.
        let thread = std::thread::Builder::new()
            .name(format!("metrics-{port}"))
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = accept(listener, acceptor, served) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(failed)?;
        let metrics = Self { shared, port, stop: Some(stop), thread: Some(thread) };
        metrics.register(cluster).await?;
        Ok(metrics)
    }

    async fn register(&self, cluster: &Cluster) -> Result<(), TestbedError> {
        let client = cluster.admin()?;
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE },
        });
        Api::<Namespace>::all(client.clone())
            .patch(NAMESPACE, &params, &Patch::Apply(namespace))
            .await
            .map_err(TestbedError::api(format!("create namespace {NAMESPACE}")))?;
        // A name outside of the cluster, and so one of this host: no certificate of an aggregator and
        // no endpoints are needed.
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": SERVICE },
            "spec": {
                "type": "ExternalName", "externalName": "localhost",
                "ports": [{ "port": self.port, "protocol": "TCP" }],
            },
        });
        Api::<Service>::namespaced(client.clone(), NAMESPACE)
            .patch(SERVICE, &params, &Patch::Apply(service))
            .await
            .map_err(TestbedError::api(format!("apply Service {SERVICE}")))?;
        let name = format!("{VERSION}.{GROUP}");
        let registration = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": name },
            "spec": {
                "group": GROUP, "version": VERSION,
                "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true,
                "service": { "namespace": NAMESPACE, "name": SERVICE, "port": self.port },
            },
        });
        let services: Api<APIService> = Api::all(client);
        services
            .patch(&name, &params, &Patch::Apply(registration))
            .await
            .map_err(TestbedError::api(format!("apply APIService {name}")))?;
        wait::until("the API server to reach the external metrics", wait::SOON, || async {
            let found = services.get(&name).await.map_err(|error| chain(&error))?;
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            let available = conditions.into_iter().find(|one| one.type_ == "Available");
            match available {
                Some(one) if one.status == "True" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    }

    /// Sets the value that a ScaledObject's metric has from now on; at first it is 0.
    pub fn set(&self, namespace: &str, scaled_object: &str, value: u32) {
        let key = (namespace.to_owned(), scaled_object.to_owned());
        self.shared.lock().entry(key).or_default().value = value;
    }

    /// How often the HPA controller has asked for the metric of a ScaledObject.
    pub fn readings(&self, namespace: &str, scaled_object: &str) -> u64 {
        let key = (namespace.to_owned(), scaled_object.to_owned());
        self.shared.lock().get(&key).map_or(0, |metric| metric.readings)
    }

    /// Waits until the HPA controller has asked so many times more: until it has had as many chances
    /// to act on what the metric is now. The first of them may have begun before.
    ///
    /// # Errors
    /// [`TestbedError::Timeout`].
    pub async fn passes(
        &self,
        namespace: &str,
        scaled_object: &str,
        more: u64,
    ) -> Result<(), TestbedError> {
        let begin = self.readings(namespace, scaled_object);
        let what = format!("{more} passes of the HPA controller over {namespace}/{scaled_object}");
        wait::until(&what, wait::SOON, || {
            let passed = self.readings(namespace, scaled_object) - begin;
            std::future::ready(if passed >= more { Ok(()) } else { Err(passed) })
        })
        .await
    }

    /// The trigger by which KEDA asks for the metric of a ScaledObject; each pod is to have `each` of
    /// it.
    pub fn trigger(&self, namespace: &str, scaled_object: &str, each: u32) -> Value {
        json!({ "type": "metrics-api", "metadata": {
            "url": format!("https://localhost:{}/value/{namespace}/{scaled_object}", self.port),
            "valueLocation": "value",
            "targetValue": each.to_string(),
            "unsafeSsl": "true",
        }})
    }
}

impl Drop for ExternalMetrics {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed by its own thread.
            let _ = thread.join();
        }
    }
}

/// TLS with a certificate of the cluster's own authority.
fn acceptor(cluster: &Cluster) -> Result<TlsAcceptor, TestbedError> {
    let serving = cluster.authority().server("external-metrics", &[])?;
    let unusable = |why: String| TestbedError::Start {
        name: "the server of external metrics".to_owned(),
        program: "its certificate".into(),
        source: io::Error::other(why),
    };
    let certificate = CertificateDer::from_pem_slice(serving.certificate.as_bytes())
        .map_err(|error| unusable(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes())
        .map_err(|error| unusable(error.to_string()))?;
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(|error| unusable(error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file handles, say: let connections end before the next try.
            wait::pause().await;
            continue;
        };
        // A small answer must not wait for the acknowledgement of the one before it.
        let _ = stream.set_nodelay(true);
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            // A client that ends the handshake, or goes away later, is none of the test's business.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                std::future::ready(Ok::<_, std::convert::Infallible>(answer(&shared, &request)))
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn answer<B>(shared: &Shared, request: &Request<B>) -> Response<Full<Bytes>> {
    let path: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let found = match path[..] {
        ["apis", GROUP, VERSION] => Some(resources()),
        ["apis", GROUP, VERSION, "namespaces", namespace, metric] => {
            let query = request.uri().query().unwrap_or_default();
            whose(query).map(|name| list(shared, namespace, &name, metric))
        }
        ["value", namespace, name] => {
            let key = (namespace.to_owned(), name.to_owned());
            let value = shared.lock().get(&key).map_or(0, |metric| metric.value);
            Some(json!({ "value": value }))
        }
        _ => None,
    };
    let body = Full::new(found.as_ref().map(Value::to_string).unwrap_or_default().into());
    let mut response = Response::new(body);
    if found.is_none() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// The ScaledObject that a label selector names.
fn whose(query: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let (_, selector) = pairs.find(|(key, _)| key == "labelSelector")?;
    let mut parts = selector.split(',');
    parts.find_map(|part| part.strip_prefix(WHOSE)).map(str::to_owned)
}

fn list(shared: &Shared, namespace: &str, scaled_object: &str, metric: &str) -> Value {
    let key = (namespace.to_owned(), scaled_object.to_owned());
    let value = {
        let mut all = shared.lock();
        let known = all.entry(key).or_default();
        known.readings += 1;
        known.value
    };
    json!({
        "kind": "ExternalMetricValueList", "apiVersion": format!("{GROUP}/{VERSION}"),
        "metadata": {},
        "items": [{
            "metricName": metric, "metricLabels": {},
            "timestamp": Timestamp::now().to_string(), "value": value.to_string(),
        }],
    })
}

fn resources() -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/{VERSION}"),
        "resources": [{
            "name": "externalmetrics", "singularName": "externalmetric", "namespaced": true,
            "kind": "ExternalMetricValueList", "verbs": ["get"],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(shared: &Shared, path: &str) -> (u16, String) {
        use http_body_util::BodyExt as _;
        let response = answer(shared, &Request::get(path).body(()).unwrap());
        let status = response.status().as_u16();
        let body = wait::block_on(response.into_body().collect()).unwrap().unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn each_scaled_object_has_a_value_and_only_questions_of_hpas_are_counted() {
        let shared = Shared::default();
        shared.lock().insert(("n".into(), "web".into()), Metric { value: 35, readings: 0 });
        let of_hpa = |name: &str| {
            let root = "/apis/external.metrics.k8s.io/v1beta1/namespaces/n/s0-metric-api";
            get(&shared, &format!("{root}?labelSelector=scaledobject.keda.sh%2Fname%3D{name}"))
        };
        assert_eq!(get(&shared, "/value/n/web"), (200, r#"{"value":35}"#.to_owned()));
        assert_eq!(get(&shared, "/value/n/api"), (200, r#"{"value":0}"#.to_owned()));
        assert_eq!(shared.lock()[&("n".into(), "web".into())].readings, 0);
        assert!(of_hpa("web").1.contains(r#""value":"35""#));
        assert!(of_hpa("api").1.contains(r#""value":"0""#));
        assert_eq!(shared.lock()[&("n".into(), "web".into())].readings, 1);
    }

    #[test]
    fn what_names_no_scaled_object_is_not_found() {
        let shared = Shared::default();
        let root = "/apis/external.metrics.k8s.io/v1beta1";
        assert_eq!(get(&shared, &format!("{root}/namespaces/n/metric?labelSelector=a%3Db")).0, 404);
        assert_eq!(get(&shared, "/openapi/v2").0, 404);
        assert_eq!(get(&shared, root).0, 200);
    }
}
