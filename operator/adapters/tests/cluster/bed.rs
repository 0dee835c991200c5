//! A namespace of the shared control plane, the operator's client and writer, and a Deployment.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use belay_adapters::{
    Clock,
    cluster::{self, Class, Done, Place, ServerClock, WriteError, Writer, WriterSettings},
};
use belay_api::{AnnotationPrefix, crd};
use belay_engine::{
    annotations::ContainerName,
    observed::WorkloadFacts,
    plan::{IntendedImage, Intent, Precondition, Step},
};
use belay_testkit::{Cluster, TestbedError, cluster::identity::Access, objects::Workload, wait};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        authorization::v1::SelfSubjectAccessReview,
        rbac::v1::{Role, RoleBinding},
    },
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The key of the annotation that names the Release.
pub(crate) const RELEASE: &str = "belay.dev/release";
/// The operator's field manager.
pub(crate) const OPERATOR: &str = "belay-operator";
/// The name of the Deployment, and of its target.
pub(crate) const WEB: &str = "web";

/// A namespace of one test.
pub(crate) struct Bed {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: String,
    /// The administrator, by the client that the operator has.
    pub(crate) client: Client,
    pub(crate) writer: Writer,
}

impl Bed {
    /// A new namespace, with the CRDs in the cluster.
    pub(crate) async fn new() -> Result<Self> {
        static CRDS: OnceCell<()> = OnceCell::const_new();
        let cluster = Cluster::shared().await?;
        let crds = crd::all(&AnnotationPrefix::default());
        CRDS.get_or_try_init(|| cluster.apply_crds(&crds)).await?;
        let namespace = cluster.namespace("write").await?;
        let client = client(cluster.admin_access())?;
        let writer = writer(&client);
        Ok(Self { cluster, namespace, client, writer })
    }

    /// The objects of a kind in the namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates an object by POST, as a manager.
    pub(crate) async fn create<K>(&self, manager: &str, object: &Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + serde::Serialize
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let params = PostParams { field_manager: Some(manager.to_owned()), dry_run: false };
        let object = serde_json::from_value(object.clone()).context("read the object")?;
        self.api::<K>().create(&params, &object).await.context("create the object")
    }

    /// Creates a Deployment as `helm` and waits until its controller is at rest.
    pub(crate) async fn deploy(&self, workload: &Workload) -> Result<Deployment> {
        self.create::<Deployment>("helm", workload.json()).await?;
        self.at_rest(workload.name()).await
    }

    /// The Deployment once its controller has seen the current generation and, where there are no
    /// pods to wait for, has nothing more to write.
    pub(crate) async fn at_rest(&self, name: &str) -> Result<Deployment> {
        let api = self.api::<Deployment>();
        let look = || async {
            let deployment = api.get(name).await.map_err(|error| error.to_string())?;
            let seen = deployment.status.as_ref().and_then(|status| status.observed_generation);
            let has_pods = deployment.spec.as_ref().is_some_and(|spec| spec.replicas != Some(0));
            let conditions = deployment.status.iter().flat_map(|status| &status.conditions);
            let is_complete = conditions
                .flatten()
                .any(|one| one.reason.as_deref() == Some("NewReplicaSetAvailable"));
            let rests = seen == deployment.metadata.generation && (has_pods || is_complete);
            if rests { Ok(deployment) } else { Err(format!("{:?}", deployment.status)) }
        };
        Ok(wait::until("the controller to have seen the Deployment", wait::SOON, look).await?)
    }

    /// The facts of the Deployment `web`.
    pub(crate) async fn facts(&self) -> Result<WorkloadFacts> {
        Ok(facts(&self.at_rest(WEB).await?))
    }

    /// Where a step for a workload belongs.
    pub(crate) fn place<'a>(&'a self, workload: &'a WorkloadFacts) -> Place<'a> {
        Place { namespace: &self.namespace, target: WEB, workload: Some(workload) }
    }

    /// Where a step without a workload belongs.
    pub(crate) fn no_workload(&self) -> Place<'_> {
        Place { namespace: &self.namespace, target: WEB, workload: None }
    }

    /// Carries out a step that needs no workload.
    pub(crate) async fn act(&self, step: &Step) -> Result<Done, WriteError> {
        self.writer.act(self.no_workload(), step).await
    }

    /// Applies images as the operator does; once more where the Deployment's controller has written
    /// its status in between.
    pub(crate) async fn apply(&self, images: &[&str], force: bool) -> Result<Done> {
        let done = wait::until("the apply to be answered", wait::SOON, || async {
            let facts = self.facts().await.map_err(|error| format!("{error:#}"))?;
            let step = Step::Apply(intent(&facts, images, force));
            match self.writer.act(self.place(&facts), &step).await {
                Err(error) if error.class() == Class::Conflict => Err(format!("{error:?}")),
                answer => Ok(answer),
            }
        });
        Ok(done.await??)
    }

    /// Access with exactly these rights in the namespace: pairs of `verbs` and `group/resource`.
    pub(crate) async fn with_rights(&self, rights: &[(&str, &str)]) -> Result<Access> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("robot-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let access = self.cluster.service_account(&self.namespace, &name).await?;
        let rules: Vec<_> = rights
            .iter()
            .map(|(verbs, resource)| {
                let (group, resource) = resource.split_once('/').unwrap_or(("", resource));
                let verbs: Vec<_> = verbs.split(',').collect();
                json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
            })
            .collect();
        let group = "rbac.authorization.k8s.io";
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": group, "kind": "Role", "name": name },
            "subjects": [
                { "kind": "ServiceAccount", "name": name, "namespace": self.namespace },
            ],
        });
        self.create::<Role>("test", &role).await?;
        self.create::<RoleBinding>("test", &binding).await?;
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client(&access)?);
        for (verbs, resource) in rights {
            let (group, resource) = resource.split_once('/').unwrap_or(("", resource));
            let review = json!({ "spec": { "resourceAttributes": {
                "namespace": self.namespace, "verb": verbs.split(',').next(),
                "group": group, "resource": resource,
            } } });
            let review = serde_json::from_value(review)?;
            wait::until("the rights to take effect", wait::SOON, || async {
                let answer = reviews.create(&PostParams::default(), &review).await;
                match answer.map(|answer| answer.status) {
                    Ok(Some(status)) if status.allowed => Ok(()),
                    other => Err(format!("{other:?}")),
                }
            })
            .await?;
        }
        Ok(access)
    }

    /// Merges into an object as a manager.
    pub(crate) async fn merge<K>(&self, manager: &str, name: &str, patch: &Value) -> Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.api::<K>().patch(name, &params, &Patch::Merge(patch)).await.context("merge")
    }
}

/// The operator's client with some access.
pub(crate) fn client(access: &Access) -> Result<Client> {
    let config = belay_testkit::cluster::config(access)?;
    Ok(cluster::client(&config, &ServerClock::new())?)
}

/// A writer with the settings of an operator.
pub(crate) fn writer(client: &Client) -> Writer {
    Writer::new(client.clone(), Clock::machine(), WriterSettings::default())
}

/// What a Deployment says.
pub(crate) fn facts(deployment: &Deployment) -> WorkloadFacts {
    WorkloadFacts::of(deployment, RELEASE)
}

/// A Deployment without pods: an init container and two containers, and fields that nobody but its
/// owner may change.
pub(crate) fn web() -> Workload {
    Workload::deployment(WEB)
        .image("app", "r.example/web:1")
        .image("log", "r.example/log:5")
        .init_image("migrate", "r.example/web:1")
        .replicas(0)
        .annotation("team", "shop")
}

/// The apply of these images: `app=IMAGE`, `init:migrate=IMAGE`.
pub(crate) fn intent(workload: &WorkloadFacts, images: &[&str], force: bool) -> Intent {
    let image = |text: &&str| {
        let (name, image) = text.split_once('=').unwrap_or((text, ""));
        let is_init = name.starts_with("init:");
        let name = name.trim_start_matches("init:").to_owned();
        IntendedImage { container: ContainerName { is_init, name }, image: image.to_owned() }
    };
    Intent {
        from: Precondition {
            uid: workload.uid.clone(),
            resource_version: workload.resource_version.clone(),
        },
        generation: workload.rollout.generation,
        images: images.iter().map(image).collect(),
        release: "web-1234567".to_owned(),
        force,
        attempt: None,
    }
}

/// The precondition of a write to what was read.
pub(crate) fn precondition(metadata: &ObjectMeta) -> Precondition {
    Precondition {
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
    }
}

/// Fails unless the write was refused with this class.
pub(crate) fn refused<T: std::fmt::Debug>(
    answer: Result<T, WriteError>,
    class: Class,
) -> Result<WriteError> {
    match answer {
        Ok(done) => bail!("it was carried out: {done:?}"),
        Err(error) => {
            ensure!(error.class() == class, "{:?}: {:?}", error.class(), anyhow::Error::new(error));
            Ok(error)
        }
    }
}

/// Waits until an object of the API server is gone.
pub(crate) async fn gone<K>(api: &Api<K>, name: &str) -> Result<(), TestbedError>
where
    K: Resource + DeserializeOwned + Clone + std::fmt::Debug,
{
    wait::until(&format!("{name} to be gone"), wait::SOON, || async {
        match api.get_opt(name).await {
            Ok(None) => Ok(()),
            Ok(Some(object)) => Err(format!("{:?}", object.meta().deletion_timestamp)),
            Err(error) => Err(error.to_string()),
        }
    })
    .await
}

/// The images of a Deployment: `app=IMAGE`, init containers first.
pub(crate) fn images(deployment: &Deployment) -> Vec<String> {
    let of = facts(deployment);
    of.containers
        .iter()
        .map(|container| format!("{}={}", container.live.name, container.live.image))
        .collect()
}

/// Its annotation `release`.
pub(crate) fn release_of(deployment: &Deployment) -> Option<&str> {
    deployment.annotations().get(RELEASE).map(String::as_str)
}
