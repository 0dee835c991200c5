//! A scripted kubelet in the test process: it holds a pod until the test says so.
//!
//! It needs no Node object: pods that name its node in `spec.nodeName` are its own. What an image's
//! name decides ([`Fate`]) holds here too; only *when* is in the test's hand, if it asks for that.
//! It never runs a container. A pod of a Job ends when the test calls [`Kubelet::complete`].
//!
//! It can also look after pods that carry a label, whatever node they are on: see
//! [`operator`](crate::operator).

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    runtime::watcher,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    TestbedError,
    cluster::{self, Cluster, identity::Access},
    fate::Fate,
    wait,
};

/// When pods go on by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once, as their images' names say.
    AtOnce,
    /// Only when [`Kubelet::let_go`] names them.
    WhenTold,
}

/// The kubelet of one node, or of some pods of a namespace. Dropping it stops it.
#[derive(Debug)]
pub struct Kubelet {
    name: String,
    state: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Whose pods it looks after.
#[derive(Debug, Clone)]
enum Whose {
    /// Those that name this node.
    Node(String),
    /// Those that a label selector matches, of one namespace or of all.
    Labelled { namespace: Option<String>, selector: String },
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    pace: Pace,
    pods: BTreeMap<String, Pod>,
    /// What the test said of a pod, by namespace/name.
    told: HashMap<String, Told>,
    /// What was last written, so that nothing is written twice.
    written: HashMap<String, (String, Told)>,
    /// Failed writes, for the test's error message.
    trouble: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Go,
    Become(Fate),
    Exit(i32),
}

impl Kubelet {
    /// Starts a kubelet for the pods of `node`.
    ///
    /// # Errors
    /// When no client or thread can be made.
    pub fn start(cluster: &Cluster, node: &str, pace: Pace) -> Result<Self, TestbedError> {
        Self::with_access(cluster.admin_access(), node, pace)
    }

    /// Starts a kubelet for the pods of `namespace`, or of all namespaces, that `selector` matches.
    /// kwok must leave them alone: `stages.yaml`.
    ///
    /// # Errors
    /// When no client or thread can be made.
    pub(crate) fn of_pods(
        access: &Access,
        namespace: Option<&str>,
        selector: &str,
        pace: Pace,
    ) -> Result<Self, TestbedError> {
        let name = namespace.unwrap_or("all-namespaces").to_owned();
        let whose = Whose::Labelled {
            namespace: namespace.map(ToOwned::to_owned),
            selector: selector.to_owned(),
        };
        Self::of(access, whose, name, pace)
    }

    /// The same on any cluster that a kubeconfig gives access to.
    ///
    /// # Errors
    /// When no client or thread can be made.
    pub fn with_access(access: &Access, node: &str, pace: Pace) -> Result<Self, TestbedError> {
        Self::of(access, Whose::Node(node.to_owned()), node.to_owned(), pace)
    }

    fn of(access: &Access, whose: Whose, name: String, pace: Pace) -> Result<Self, TestbedError> {
        let state = Arc::new(Shared {
            inner: Mutex::new(Inner {
                pace,
                pods: BTreeMap::new(),
                told: HashMap::new(),
                written: HashMap::new(),
                trouble: Vec::new(),
            }),
            changed: watch::Sender::new(0),
        });
        let (stop, stopped) = watch::channel(false);
        let failed = |source| TestbedError::Start {
            name: format!("the scripted kubelet of {name}"),
            program: "a thread".into(),
            source,
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (access, shared) = (access.clone(), Arc::clone(&state));
        // A thread and runtime of its own: it serves tests that each have another runtime.
        let thread = std::thread::Builder::new()
            .name(format!("kubelet-{name}"))
            .spawn(move || runtime.block_on(serve(&access, &whose, &shared, stopped)))
            .map_err(failed)?;
        Ok(Self { name, state, stop, thread: Some(thread) })
    }

    /// The node's name, for `spec.nodeName` of pod templates.
    pub fn node(&self) -> &str {
        &self.name
    }

    /// From now on pods go on at this pace.
    pub fn set_pace(&self, pace: Pace) {
        self.lock().pace = pace;
        self.wake();
    }

    /// Lets a held pod become what its images' names say.
    pub fn let_go(&self, pod: &Pod) {
        self.tell(pod, Told::Go);
    }

    /// Makes a pod what its images' names do not say, also after it was something else.
    pub fn become_(&self, pod: &Pod, fate: Fate) {
        self.tell(pod, Told::Become(fate));
    }

    /// Ends a pod's containers with this exit code: the only way in which a Job completes.
    pub fn complete(&self, pod: &Pod, exit_code: i32) {
        self.tell(pod, Told::Exit(exit_code));
    }

    /// The pods of this node as last seen, by namespace and name.
    pub fn pods(&self, namespace: &str) -> Vec<Pod> {
        let inner = self.lock();
        let own = inner.pods.values().filter(|pod| pod.namespace().as_deref() == Some(namespace));
        own.cloned().collect()
    }

    /// All of its pods as last seen.
    pub(crate) fn all_pods(&self) -> Vec<Pod> {
        self.lock().pods.values().cloned().collect()
    }

    /// Waits for a pod that fits.
    ///
    /// # Errors
    /// [`TestbedError::Timeout`] with the pods that were there instead.
    pub async fn pod(
        &self,
        what: &str,
        namespace: &str,
        fits: impl Fn(&Pod) -> bool,
    ) -> Result<Pod, TestbedError> {
        wait::until(what, wait::SOON, || {
            let pods = self.pods(namespace);
            let found = pods.iter().find(|pod| fits(pod)).cloned().ok_or_else(|| {
                let names: Vec<_> = pods.iter().map(ResourceExt::name_any).collect();
                format!("pods {names:?}, trouble {:?}", self.lock().trouble)
            });
            std::future::ready(found)
        })
        .await
    }

    fn tell(&self, pod: &Pod, told: Told) {
        self.lock().told.insert(key(pod), told);
        self.wake();
    }

    fn wake(&self) {
        self.state.changed.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed by its own thread.
            let _ = thread.join();
        }
    }
}

fn key(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

async fn serve(
    access: &Access,
    whose: &Whose,
    shared: &Shared,
    mut stopped: watch::Receiver<bool>,
) {
    let client = match cluster::client(access, "the scripted kubelet") {
        Ok(client) => client,
        Err(error) => return shared.note(error.to_string()),
    };
    let config = watcher::Config::default();
    let (pods, config) = match whose {
        Whose::Node(node) => {
            (Api::<Pod>::all(client.clone()), config.fields(&format!("spec.nodeName={node}")))
        }
        Whose::Labelled { namespace: Some(namespace), selector } => {
            (Api::namespaced(client.clone(), namespace), config.labels(selector))
        }
        Whose::Labelled { namespace: None, selector } => {
            (Api::all(client.clone()), config.labels(selector))
        }
    };
    let mut events = watcher(pods, config).boxed();
    let mut changed = shared.changed.subscribe();
    loop {
        tokio::select! {
            biased;
            _ = stopped.changed() => return,
            event = events.next() => match event {
                Some(Ok(event)) => shared.see(event),
                Some(Err(error)) => {
                    shared.note(cluster::chain(&error));
                    wait::pause().await;
                }
                None => return,
            },
            _ = changed.changed() => {}
        }
        work(&client, shared).await;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, trouble: String) {
        self.lock().trouble.push(trouble);
    }

    fn see(&self, event: watcher::Event<Pod>) {
        let mut inner = self.lock();
        match event {
            watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) => {
                inner.pods.insert(key(&pod), pod);
            }
            watcher::Event::Delete(pod) => {
                let key = key(&pod);
                inner.pods.remove(&key);
                inner.told.remove(&key);
                inner.written.remove(&key);
            }
            watcher::Event::Init => inner.pods.clear(),
            watcher::Event::InitDone => {}
        }
    }

    /// What is to be done now, decided under the lock, done outside of it.
    fn due(&self) -> Vec<(Pod, Option<Told>)> {
        let inner = self.lock();
        let mut due = Vec::new();
        for (key, pod) in &inner.pods {
            if pod.metadata.deletion_timestamp.is_some() {
                due.push((pod.clone(), None));
                continue;
            }
            let told = match (inner.told.get(key), inner.pace) {
                (Some(told), _) => *told,
                (None, Pace::AtOnce) => Told::Go,
                (None, Pace::WhenTold) => continue,
            };
            let uid = pod.uid().unwrap_or_default();
            if inner.written.get(key) != Some(&(uid, told)) {
                due.push((pod.clone(), Some(told)));
            }
        }
        due
    }
}

async fn work(client: &Client, shared: &Shared) {
    for (pod, told) in shared.due() {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let result = match told {
            None => {
                let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
                api.delete(&name, &now).await.map(drop)
            }
            Some(told) => {
                let status = json!({ "status": status(&pod, told) });
                let params = PatchParams::default();
                let answer = api.patch_status(&name, &params, &Patch::Strategic(status)).await;
                if answer.is_ok() {
                    let uid = pod.uid().unwrap_or_default();
                    shared.lock().written.insert(key(&pod), (uid, told));
                }
                answer.map(drop)
            }
        };
        match result {
            Ok(()) => {}
            // Gone meanwhile: the watch will say so.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => shared.note(format!("{namespace}/{name}: {}", cluster::chain(&error))),
        }
    }
}

/// The status that a kubelet would report.
fn status(pod: &Pod, told: Told) -> Value {
    let now = Timestamp::now().to_string();
    let spec = pod.spec.clone().unwrap_or_default();
    let image = |image: &Option<String>| image.clone().unwrap_or_default();
    let pulled = |image: &str| json!(format!("testbed://{image}"));
    let done = |code: i32| {
        let reason = if code == 0 { "Completed" } else { "Error" };
        json!({ "terminated": { "exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now } })
    };
    let running = json!({ "running": { "startedAt": now } });
    let mut worst = Fate::Ready;
    let containers: Vec<Value> = spec
        .containers
        .iter()
        .map(|container| {
            let image = image(&container.image);
            let fate = match told {
                Told::Go => Fate::of_image(&image),
                Told::Become(fate) => fate,
                Told::Exit(_) => Fate::NeverReady,
            };
            worst = worst.max(fate);
            let mut entry = json!({
                "name": container.name, "image": image, "imageID": pulled(&image),
                "ready": fate == Fate::Ready, "started": fate <= Fate::NeverReady,
                "restartCount": 0, "state": running,
            });
            match (told, fate) {
                (Told::Exit(code), _) => entry["state"] = done(code),
                (_, Fate::Ready | Fate::NeverReady) => {}
                (_, Fate::CrashLoop) => {
                    entry["restartCount"] = json!(3);
                    entry["lastState"] = done(1);
                    entry["state"] = json!({ "running": null, "waiting": {
                        "reason": "CrashLoopBackOff",
                        "message": "back-off 40s restarting failed container",
                    }});
                }
                (_, Fate::NoPull) => {
                    entry["imageID"] = json!("");
                    entry["state"] = json!({ "running": null, "waiting": {
                        "reason": "ImagePullBackOff",
                        "message": format!("Back-off pulling image \"{image}\": manifest unknown"),
                    }});
                }
            }
            entry
        })
        .collect();
    let init: Vec<Value> = spec
        .init_containers
        .iter()
        .flatten()
        .map(|container| {
            let image = image(&container.image);
            json!({
                "name": container.name, "image": image, "imageID": pulled(&image),
                "ready": true, "restartCount": 0, "state": done(0),
            })
        })
        .collect();
    let phase = match (told, worst) {
        (Told::Exit(0), _) => "Succeeded",
        (Told::Exit(_), _) => "Failed",
        (_, Fate::NoPull) => "Pending",
        _ => "Running",
    };
    let ready = if worst == Fate::Ready { "True" } else { "False" };
    let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "lastTransitionTime": now });
    json!({
        "phase": phase,
        "startTime": now,
        "conditions": [
            condition("PodScheduled", "True"),
            condition("Initialized", "True"),
            condition("ContainersReady", ready),
            condition("Ready", ready),
        ],
        "initContainerStatuses": init,
        "containerStatuses": containers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(image: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "name": "p", "namespace": "n" },
            "spec": { "containers": [{ "name": "app", "image": image }] },
        }))
        .unwrap()
    }

    #[test]
    fn a_job_pod_ends_only_with_an_exit_code() {
        assert_eq!(status(&pod("app:1"), Told::Go)["phase"], "Running");
        assert_eq!(status(&pod("app:1"), Told::Exit(0))["phase"], "Succeeded");
        assert_eq!(status(&pod("app:1"), Told::Exit(7))["phase"], "Failed");
    }

    #[test]
    fn a_pod_that_cannot_pull_stays_pending() {
        let status = status(&pod("app:no-pull"), Told::Go);
        assert_eq!(status["phase"], "Pending");
        assert_eq!(
            status["containerStatuses"][0]["state"]["waiting"]["reason"],
            "ImagePullBackOff"
        );
    }
}
