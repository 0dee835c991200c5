//! The pods of the chart `belay`, whoever makes them: `helm install` as somebody types it, an upgrade,
//! a hook.
//!
//! Each pod that is scheduled is run as [`operator`](super) says, with the command, the environment and
//! the ServiceAccount that the pod itself has. It is reported Ready exactly while its process answers
//! the readiness probe. A pod that is deleted ends its process first, as a kubelet does; a pod of a Job
//! ends with the exit code of its process. A process that ends by itself is not started again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::{sync::watch, time::interval};

use super::{LABEL, Running, readiness};
use crate::{
    TestbedError,
    cluster::Cluster,
    fate::Fate,
    kubelet::{Kubelet, Pace},
};

/// Between two looks at the pods and their processes.
const LOOK: Duration = Duration::from_millis(100);

/// Where a pod has the token of its ServiceAccount.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How long a probe may take.
const PROBE: Duration = Duration::from_secs(1);

/// Runs the chart's pods of one cluster. Dropping it kills their processes.
#[derive(Debug)]
pub struct ChartNode {
    stop: watch::Sender<bool>,
    trouble: Arc<Mutex<String>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ChartNode {
    /// Looks after all pods of the chart from now on, in all namespaces.
    ///
    /// # Errors
    /// When no client or thread can be made.
    pub fn start(cluster: &'static Cluster) -> Result<Self, TestbedError> {
        let selector = format!("{}={}", LABEL.0, LABEL.1);
        let kubelet = Kubelet::of_pods(cluster.admin_access(), None, &selector, Pace::WhenTold)?;
        let failed = |source| TestbedError::Start {
            name: "the node of the chart's pods".to_owned(),
            program: "a thread".into(),
            source,
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = watch::channel(false);
        let trouble = Arc::<Mutex<String>>::default();
        let told = Arc::clone(&trouble);
        // A thread and runtime of its own: it serves tests that each have another runtime.
        let thread = std::thread::Builder::new()
            .name("chart-node".to_owned())
            .spawn(move || runtime.block_on(serve(cluster, &kubelet, &told, stopped)))
            .map_err(failed)?;
        Ok(Self { stop, trouble, thread: Some(thread) })
    }

    /// Why the last pod that did not start did not; empty where every pod was started.
    pub fn trouble(&self) -> String {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ChartNode {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed by its own thread.
            let _ = thread.join();
        }
    }
}

async fn serve(
    cluster: &Cluster,
    kubelet: &Kubelet,
    trouble: &Mutex<String>,
    mut stopped: watch::Receiver<bool>,
) {
    let http = reqwest::Client::builder().timeout(PROBE).build().unwrap_or_default();
    let mut running = BTreeMap::<String, Running>::new();
    let mut look = interval(LOOK);
    loop {
        let pods = kubelet.all_pods();
        let there = |uid: &String| pods.iter().any(|pod| pod.uid().as_ref() == Some(uid));
        let gone: Vec<String> = running.keys().filter(|uid| !there(uid)).cloned().collect();
        // Before others start: two operators at once are what a Deployment of the chart rules out.
        for one in gone.iter().filter_map(|uid| running.remove(uid)) {
            // One that ignores SIGTERM is killed when it is dropped.
            let _ = one.terminate().await;
        }
        for pod in pods.iter().filter(|pod| is_due(pod)) {
            let uid = pod.uid().unwrap_or_default();
            if let Some(one) = running.get(&uid) {
                report(kubelet, &http, pod, one).await;
                continue;
            }
            let started = start(cluster, pod).await;
            let why = started.as_ref().err().map(ToString::to_string).unwrap_or_default();
            *trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
            running.extend(started.ok().map(|one| (uid, one)));
        }
        tokio::select! {
            _ = stopped.changed() => break,
            _ = look.tick() => {}
        }
    }
}

/// Whether it is on a node, and neither leaves it nor has ended.
fn is_due(pod: &Pod) -> bool {
    let scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let ended = matches!(phase, Some("Succeeded" | "Failed"));
    scheduled && !ended && pod.metadata.deletion_timestamp.is_none()
}

async fn start(cluster: &Cluster, pod: &Pod) -> Result<Running, TestbedError> {
    let namespace = pod.namespace().unwrap_or_default();
    let name = format!("pod-{namespace}-{}", pod.name_any());
    let mut spec = pod.spec.clone().unwrap_or_default();
    // `KUBECONFIG` stands for the token that admission adds to a pod.
    for container in &mut spec.containers {
        let mounts = container.volume_mounts.iter_mut();
        mounts.for_each(|mounts| mounts.retain(|mount| mount.mount_path != TOKEN));
    }
    Running::launch(cluster, &name, &namespace, &spec, None).await
}

async fn report(kubelet: &Kubelet, http: &reqwest::Client, pod: &Pod, one: &Running) {
    let ended = one.process.ended();
    match (&one.addresses, ended) {
        (None, Some(status)) => kubelet.complete(pod, status.code().unwrap_or(137)),
        (Some(addresses), None) if readiness::probe(http, &addresses.ready_url).await.is_ok() => {
            kubelet.become_(pod, Fate::Ready);
        }
        _ => kubelet.become_(pod, Fate::NeverReady),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::running(json!({ "spec": { "nodeName": "n", "containers": [] } }), true)]
    #[case::not_scheduled(json!({ "spec": { "containers": [] } }), false)]
    #[case::ended(
        json!({ "spec": { "nodeName": "n", "containers": [] }, "status": { "phase": "Failed" } }),
        false
    )]
    #[case::leaving(
        json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" },
                "spec": { "nodeName": "n", "containers": [] } }),
        false
    )]
    fn pods_that_run_are_looked_after(#[case] pod: Value, #[case] expected: bool) {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        assert_eq!(is_due(&pod), expected);
    }
}
