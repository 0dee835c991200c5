//! Builders of objects that tests apply, with values that differ so that a mix-up shows.

use serde_json::{Value, json};

/// A workload under construction.
///
/// ```
/// use belay_testkit::objects::Workload;
/// let web = Workload::deployment("web").image("app", "registry.example/web:1.0.0").replicas(3);
/// assert_eq!(web.json()["spec"]["replicas"], 3);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Workload {
    object: Value,
}

impl Workload {
    fn new(kind: &str, name: &str) -> Self {
        Self {
            object: json!({
                "apiVersion": "apps/v1",
                "kind": kind,
                "metadata": { "name": name, "labels": { "app": name } },
                "spec": {
                    "selector": { "matchLabels": { "app": name } },
                    "template": {
                        "metadata": { "labels": { "app": name } },
                        "spec": { "containers": [] },
                    },
                },
            }),
        }
    }

    /// A Deployment of one replica without containers.
    pub fn deployment(name: &str) -> Self {
        Self::new("Deployment", name)
    }

    /// A StatefulSet.
    pub fn stateful_set(name: &str) -> Self {
        let mut set = Self::new("StatefulSet", name);
        set.object["spec"]["serviceName"] = json!(name);
        set
    }

    /// A DaemonSet.
    pub fn daemon_set(name: &str) -> Self {
        Self::new("DaemonSet", name)
    }

    /// A Job of one pod that is not restarted.
    pub fn job(name: &str) -> Self {
        let mut job = Self::new("Job", name);
        job.object["apiVersion"] = json!("batch/v1");
        if let Some(spec) = job.object["spec"].as_object_mut() {
            spec.remove("selector");
            spec.insert("backoffLimit".to_owned(), json!(0));
        }
        job.pod_spec("restartPolicy", json!("Never"))
    }

    /// Adds a container.
    pub fn image(self, container: &str, image: &str) -> Self {
        self.push("containers", container, image)
    }

    /// Adds an init container.
    pub fn init_image(self, container: &str, image: &str) -> Self {
        self.push("initContainers", container, image)
    }

    /// Sets the number of replicas.
    pub fn replicas(self, replicas: u32) -> Self {
        self.spec("replicas", json!(replicas))
    }

    /// Sets `progressDeadlineSeconds`.
    pub fn progress_deadline(self, seconds: u32) -> Self {
        self.spec("progressDeadlineSeconds", json!(seconds))
    }

    /// Binds its pods to a node, past the scheduler: how a pod gets to a scripted kubelet.
    pub fn on_node(self, node: &str) -> Self {
        self.pod_spec("nodeName", json!(node))
    }

    /// Adds an annotation to the workload itself.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["annotations"][key] = json!(value);
        self
    }

    /// Adds an annotation to its pods.
    pub fn pod_annotation(mut self, key: &str, value: &str) -> Self {
        self.object["spec"]["template"]["metadata"]["annotations"][key] = json!(value);
        self
    }

    /// Sets any field of `spec`.
    pub fn spec(mut self, field: &str, value: Value) -> Self {
        self.object["spec"][field] = value;
        self
    }

    /// Sets any field of the pod template's `spec`.
    pub fn pod_spec(mut self, field: &str, value: Value) -> Self {
        self.object["spec"]["template"]["spec"][field] = value;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The object.
    pub fn json(&self) -> &Value {
        &self.object
    }

    fn push(mut self, list: &str, container: &str, image: &str) -> Self {
        let spec = &mut self.object["spec"]["template"]["spec"][list];
        let entry = json!({ "name": container, "image": image });
        match spec.as_array_mut() {
            Some(containers) => containers.push(entry),
            None => *spec = json!([entry]),
        }
        self
    }
}

/// A ScaledObject under construction.
///
/// ```
/// use belay_testkit::objects::ScaledObject;
/// let web = ScaledObject::of("web").replicas(1, 6);
/// assert_eq!(web.json()["spec"]["scaleTargetRef"]["name"], "web");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ScaledObject {
    object: Value,
}

impl ScaledObject {
    /// One of the name of the Deployment that it scales, with a cron trigger, which needs no metrics
    /// server: between the two minutes of the year that it names nothing is wanted beyond the minimum.
    pub fn of(deployment: &str) -> Self {
        Self {
            object: json!({
                "apiVersion": "keda.sh/v1alpha1",
                "kind": "ScaledObject",
                "metadata": { "name": deployment },
                "spec": {
                    "scaleTargetRef": { "name": deployment },
                    "minReplicaCount": 1,
                    "maxReplicaCount": 4,
                    "pollingInterval": 1,
                    "cooldownPeriod": 1,
                    "triggers": [{ "type": "cron", "metadata": {
                        "timezone": "Etc/UTC", "start": "0 0 29 2 *", "end": "1 0 29 2 *",
                        "desiredReplicas": "4",
                    }}],
                },
            }),
        }
    }

    /// Under another name than that of what it scales.
    pub fn named(mut self, name: &str) -> Self {
        self.object["metadata"]["name"] = json!(name);
        self
    }

    /// Sets the least and the greatest number of replicas.
    pub fn replicas(self, least: u32, greatest: u32) -> Self {
        self.spec("minReplicaCount", json!(least)).spec("maxReplicaCount", json!(greatest))
    }

    /// With this trigger and no other.
    pub fn trigger(self, trigger: Value) -> Self {
        self.spec("triggers", Value::Array(vec![trigger]))
    }

    /// Adds an annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.object["metadata"]["annotations"][key] = json!(value);
        self
    }

    /// Sets any field of `spec`.
    pub fn spec(mut self, field: &str, value: Value) -> Self {
        self.object["spec"][field] = value;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The object.
    pub fn json(&self) -> &Value {
        &self.object
    }
}
