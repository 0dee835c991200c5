//! A KEDA of a namespace's own, and what tests do to its ScaledObjects and read of them.

use anyhow::{Context as _, Result, ensure};
use belay_testkit::{Cluster, keda::Keda, metrics::ExternalMetrics, objects::ScaledObject, wait};
use k8s_openapi::api::{apps::v1::Deployment, autoscaling::v2::HorizontalPodAutoscaler};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{Kind, Log};
use crate::rollouts::objects::version;

/// The annotation that holds scale-in still.
pub const SCALE_IN: &str = "autoscaling.keda.sh/paused-scale-in";
/// The annotation that holds everything still.
pub const FULL: &str = "autoscaling.keda.sh/paused";
/// The field manager of the operator's pauses.
pub const MANAGER: &str = "belay-operator-pause";
/// The field manager of who wrote a ScaledObject.
const AUTHOR: &str = "author";
/// How much of the metric one pod is to have.
const EACH: u32 = 10;

/// KEDA in a namespace.
pub struct Scaling {
    /// The operator of KEDA, for this namespace alone.
    pub keda: Keda,
    /// The metric that moves.
    pub metrics: &'static ExternalMetrics,
    /// What became of all objects.
    pub log: Log,
    client: Client,
    namespace: String,
}

impl Scaling {
    /// Starts KEDA for a namespace of a cluster. All tests of a process must use the same cluster, for
    /// they share the metrics.
    ///
    /// # Errors
    /// What could not be had.
    pub async fn start(cluster: &'static Cluster, namespace: &str) -> Result<Self> {
        static METRICS: OnceCell<ExternalMetrics> = OnceCell::const_new();
        let metrics = METRICS.get_or_try_init(|| ExternalMetrics::start(cluster)).await?;
        let keda = Keda::of_namespace(cluster, namespace).await?;
        let client = cluster.admin()?;
        let log = Log::open(&client, namespace).await?;
        Ok(Self { keda, metrics, log, client, namespace: namespace.to_owned() })
    }

    /// A ScaledObject of a Deployment and of its name, between 1 and 6 replicas, that follows the metric:
    /// one replica for each ten.
    pub fn of(&self, deployment: &str) -> ScaledObject {
        let trigger = self.metrics.trigger(&self.namespace, deployment, EACH);
        ScaledObject::of(deployment).replicas(1, 6).trigger(trigger)
    }

    /// Applies a ScaledObject as its author does; returns it.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn apply(&self, object: &ScaledObject) -> Result<DynamicObject> {
        let params = PatchParams::apply(AUTHOR).force();
        Ok(self.objects().patch(object.name(), &params, &Patch::Apply(object.json())).await?)
    }

    /// Applies a ScaledObject, and waits until KEDA has made its HPA and the HPA controller has seen
    /// it.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn settle(&self, object: &ScaledObject) -> Result<()> {
        self.apply(object).await?;
        self.until_resumed(object.name()).await
    }

    /// Sets the metric of a ScaledObject.
    pub fn metric(&self, scaled_object: &str, value: u32) {
        self.metrics.set(&self.namespace, scaled_object, value);
    }

    /// Waits until the HPA controller has looked at the metric as it is now, and acted on it.
    ///
    /// # Errors
    /// [`belay_testkit::TestbedError::Timeout`].
    pub async fn passes(&self, scaled_object: &str) -> Result<()> {
        // The first may have begun before, and the third has begun after the second acted.
        Ok(self.metrics.passes(&self.namespace, scaled_object, 3).await?)
    }

    /// Applies one annotation as `manager`, or nothing, which drops what it applied before. Returns the
    /// object's revision.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn claim(&self, name: &str, manager: &str, key: Option<(&str, &str)>) -> Result<u64> {
        let mut body = json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": { "name": name },
        });
        // An empty map of annotations would be a field that the manager still owns.
        if let Some((key, value)) = key {
            body["metadata"]["annotations"] = json!({ key: value });
        }
        let applied =
            self.objects().patch(name, &PatchParams::apply(manager), &Patch::Apply(body)).await?;
        version(applied.metadata.resource_version.as_deref())
    }

    /// Annotates as `kubectl annotate` does; null removes. Returns the object's revision.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn annotate(&self, name: &str, key: &str, value: Value) -> Result<u64> {
        let params = PatchParams {
            field_manager: Some("kubectl-annotate".to_owned()),
            ..PatchParams::default()
        };
        let patch = json!({ "metadata": { "annotations": { key: value } } });
        let patched = self.objects().patch(name, &params, &Patch::Merge(patch)).await?;
        version(patched.metadata.resource_version.as_deref())
    }

    /// An annotation of a ScaledObject.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn annotation(&self, name: &str, key: &str) -> Result<Option<String>> {
        Ok(self.objects().get(name).await?.annotations().get(key).cloned())
    }

    /// The ScaledObjects on which `manager` owns anything: how many pauses are held.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn owned_by(&self, manager: &str) -> Result<Vec<String>> {
        let all = self.objects().list(&ListParams::default()).await?;
        let is_owned = |object: &&DynamicObject| {
            let mut entries = object.managed_fields().iter();
            entries.any(|entry| entry.manager.as_deref() == Some(manager))
        };
        Ok(all.items.iter().filter(is_owned).map(ResourceExt::name_any).collect())
    }

    /// The namespace's ScaledObjects.
    pub fn objects(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &Kind::ScaledObject.resource())
    }

    /// The HPA that KEDA made of a ScaledObject, if it is there.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn hpa(&self, name: &str) -> Result<Option<HorizontalPodAutoscaler>> {
        let api: Api<HorizontalPodAutoscaler> =
            Api::namespaced(self.client.clone(), &self.namespace);
        Ok(api.get_opt(&hpa_name(name)).await?)
    }

    /// How many replicas a Deployment is to have.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn replicas(&self, deployment: &str) -> Result<i32> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        let found = api.get(deployment).await?;
        Ok(found.spec.and_then(|spec| spec.replicas).unwrap_or(1))
    }

    /// Waits until a Deployment is to have so many replicas.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn until_replicas(&self, deployment: &str, wanted: i32) -> Result<()> {
        self.until(&format!("{deployment} to have {wanted} replicas"), || async {
            let found = self.replicas(deployment).await?;
            ensure!(found == wanted, "{found}");
            Ok(())
        })
        .await
    }

    /// Waits until the HPA holds scale-in still, and the HPA controller has seen that.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn until_frozen(&self, name: &str) -> Result<()> {
        self.until(&format!("scale-in of {name} to be held still"), || async {
            let hpa = self.hpa(name).await?.context("no HPA")?;
            ensure!(is_frozen(&hpa), "{:?} {:?}", scale_down(&hpa), hpa.metadata.generation);
            Ok(())
        })
        .await
    }

    /// Waits until the HPA is there, does not hold scale-in still, and the HPA controller has seen that.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn until_resumed(&self, name: &str) -> Result<()> {
        self.until(&format!("{name} to scale again"), || async {
            let hpa = self.hpa(name).await?.context("no HPA")?;
            let is_free = scale_down(&hpa) != Some("Disabled") && is_observed(&hpa);
            ensure!(is_free, "{:?} {:?}", scale_down(&hpa), hpa.metadata.generation);
            Ok(())
        })
        .await
    }

    /// Waits until KEDA says that everything is held still, and the HPA is gone.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn until_stopped(&self, name: &str) -> Result<()> {
        self.until(&format!("{name} to be held still"), || async {
            let object = serde_json::to_value(self.objects().get(name).await?)?;
            ensure!(condition(&object, "Paused") == "True", "{}", object["status"]);
            ensure!(self.hpa(name).await?.is_none(), "the HPA is there");
            Ok(())
        })
        .await
    }

    /// Waits until a pause by this annotation has taken hold.
    ///
    /// # Errors
    /// What was there instead.
    pub async fn until_held(&self, name: &str, key: &str) -> Result<()> {
        if key == FULL { self.until_stopped(name).await } else { self.until_frozen(name).await }
    }

    async fn until<F>(&self, what: &str, mut look: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let found = wait::until(what, wait::SOON, || {
            let look = look();
            async move { look.await.map_err(|error| format!("{error:#}")) }
        });
        Ok(found.await?)
    }
}

/// Applies a ScaledObject as its author does, and waits until KEDA has made its HPA and the HPA
/// controller has seen it: what [`Scaling::settle`] does, for a KEDA of all namespaces.
///
/// # Errors
/// What was there instead.
pub async fn settle(client: &Client, namespace: &str, object: &ScaledObject) -> Result<()> {
    let objects: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &Kind::ScaledObject.resource());
    let params = PatchParams::apply(AUTHOR).force();
    objects.patch(object.name(), &params, &Patch::Apply(object.json())).await?;
    let hpas: Api<HorizontalPodAutoscaler> = Api::namespaced(client.clone(), namespace);
    let name = hpa_name(object.name());
    wait::until(&format!("the HPA {name} to be seen"), wait::SOON, || async {
        match hpas.get_opt(&name).await {
            Ok(Some(hpa)) if is_observed(&hpa) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

/// KEDA's name for the HPA of a ScaledObject.
pub(super) fn hpa_name(scaled_object: &str) -> String {
    format!("keda-hpa-{scaled_object}")
}

/// The status of a condition in an object's JSON; empty if it is not there.
pub fn condition<'o>(object: &'o Value, kind: &str) -> &'o str {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut of_kind = conditions.filter(|one| one["type"] == kind);
    of_kind.next().and_then(|one| one["status"].as_str()).unwrap_or_default()
}

/// Which policy an HPA has for scale-in.
pub fn scale_down(hpa: &HorizontalPodAutoscaler) -> Option<&str> {
    let behavior = hpa.spec.as_ref()?.behavior.as_ref()?;
    behavior.scale_down.as_ref()?.select_policy.as_deref()
}

/// Whether the HPA controller has seen an HPA as it is.
pub fn is_observed(hpa: &HorizontalPodAutoscaler) -> bool {
    let observed = hpa.status.as_ref().and_then(|status| status.observed_generation);
    observed.is_some() && observed >= hpa.metadata.generation
}

/// Whether an HPA holds scale-in still.
pub fn is_frozen(hpa: &HorizontalPodAutoscaler) -> bool {
    scale_down(hpa) == Some("Disabled") && is_observed(hpa)
}
