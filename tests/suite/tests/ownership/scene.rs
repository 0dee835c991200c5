//! A Deployment `web` in a namespace of its own, and managers that write to it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use belay_ownership::{
    Answer, Entry, Identity, Operation, Ownership, Schema, Via,
    claim::fields_of,
    conflict::{Conflict, ReportedConflict},
};
use belay_testkit::{Cluster, wait};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::Status,
};
use serde_json::{Value, json};

/// The name of the Deployment.
const WEB: &str = "web";

/// Path of its container `app`, short P.
const APP: &str = ".spec.template.spec.containers[name=\"app\"]";

/// What became of an apply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was accepted.
    Applied,
    /// Refused for these conflicts: `helm/U P.image`, sorted.
    Conflict(Vec<String>),
    /// Refused by validation: the field and what is wrong with it.
    Invalid(String),
}

/// A refusal for these conflicts.
pub(crate) fn conflict(with: &[&str]) -> Outcome {
    Outcome::Conflict(with.iter().map(ToString::to_string).collect())
}

/// The refusal of a container that would have no image.
pub(crate) fn image_required() -> Outcome {
    Outcome::Invalid("spec.template.spec.containers[0].image: Required value".to_owned())
}

/// A body that a chart renders: the Deployment with one container `app`. No pods.
pub(crate) fn chart(container: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": WEB },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "app": WEB } },
            "template": {
                "metadata": { "labels": { "app": WEB } },
                "spec": { "containers": [container] },
            },
        },
    })
}

/// The chart with this image.
pub(crate) fn chart_with(image: &str) -> Value {
    chart(app(image))
}

/// The container `app` with an image.
pub(crate) fn app(image: &str) -> Value {
    json!({ "name": "app", "image": image })
}

/// A body with nothing but containers: what Belay's operator applies.
pub(crate) fn only(containers: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": WEB },
        "spec": { "template": { "spec": { "containers": containers } } },
    })
}

/// A body with nothing but the image of `app`.
pub(crate) fn image(image: &str) -> Value {
    only(json!([app(image)]))
}

/// A body with nothing at all: lets everything go.
pub(crate) fn nothing() -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": WEB } })
}

/// The containers of a Deployment, to change them.
pub(crate) fn containers(object: &mut Value) -> Result<&mut Vec<Value>> {
    object
        .pointer_mut("/spec/template/spec/containers")
        .and_then(Value::as_array_mut)
        .context("the Deployment has no containers")
}

/// The container `app`, to change it.
pub(crate) fn app_of(object: &mut Value) -> Result<&mut Value> {
    let app = containers(object)?.iter_mut().find(|container| container["name"] == "app");
    app.context("the Deployment has no container app")
}

/// The Deployment on the real API server.
pub(crate) struct Scene {
    api: Api<DynamicObject>,
}

impl Scene {
    /// A namespace without the Deployment.
    pub(crate) async fn empty() -> Result<Self> {
        let cluster = Cluster::shared().await?;
        let namespace = cluster.namespace("own").await?;
        let resource = ApiResource::erase::<Deployment>(&());
        Ok(Self { api: Api::namespaced_with(cluster.admin()?, &namespace, &resource) })
    }

    /// The Deployment as a manager creates it by POST, as Helm 3 does.
    pub(crate) async fn created_by(manager: &str, body: Value) -> Result<Self> {
        let scene = Self::empty().await?;
        let params = PostParams { field_manager: Some(manager.to_owned()), dry_run: false };
        scene.api.create(&params, &serde_json::from_value(body)?).await.context("create web")?;
        scene.settled().await?;
        Ok(scene)
    }

    /// The Deployment as a manager creates it by server-side apply, as Helm 4 does.
    pub(crate) async fn applied_by(manager: &str, body: Value) -> Result<Self> {
        let scene = Self::empty().await?;
        let params = PatchParams::apply(manager);
        scene.api.patch(WEB, &params, &Patch::Apply(&body)).await.context("apply web")?;
        scene.settled().await?;
        scene.check_entry(manager, &body).await?;
        Ok(scene)
    }

    /// Waits for the Deployment controller's first status: it also writes an annotation, and so
    /// claims the map of annotations.
    async fn settled(&self) -> Result<()> {
        wait::until("the controller to have seen web", wait::SOON, || async {
            let web = self.api.get(WEB).await.map_err(|error| error.to_string())?;
            let seen = &web.data["status"]["observedGeneration"];
            if *seen == json!(web.metadata.generation) { Ok(()) } else { Err(seen.to_string()) }
        })
        .await?;
        Ok(())
    }

    /// The object as it is.
    pub(crate) async fn live(&self) -> Result<Value> {
        Ok(serde_json::to_value(self.api.get(WEB).await?)?)
    }

    /// Who owns what, read and decoded anew.
    pub(crate) async fn ownership(&self) -> Result<Ownership> {
        let metadata = self.api.get_metadata(WEB).await?.metadata;
        let ownership = Ownership::decode(&metadata.managed_fields.unwrap_or_default());
        ensure!(ownership.undecodable().is_empty(), "{:?}", ownership.undecodable());
        Ok(ownership)
    }

    /// The owners of a path: `helm/U + release/A; parent x/U; below y/U`. P is the container `app`.
    pub(crate) async fn owners(&self, path: &str) -> Result<String> {
        let query = long(path).parse()?;
        let ownership = self.ownership().await?;
        let lookup = ownership.lookup(&query, None);
        let [answer] = &lookup.answers[..] else { bail!("{path} stands for several") };
        Ok(line(answer))
    }

    /// The value of a path, where the container `app` is P.
    pub(crate) async fn value(&self, path: &str) -> Result<Value> {
        let live = self.live().await?;
        let ownership = Ownership::decode(&[]);
        let query = long(path).parse()?;
        let value = ownership.lookup(&query, Some(&live)).answers[0].value.cloned();
        Ok(value.unwrap_or_default())
    }

    /// The names of the containers.
    pub(crate) async fn container_names(&self) -> Result<Vec<String>> {
        let mut live = self.live().await?;
        let names =
            containers(&mut live)?.iter().filter_map(|container| container["name"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    /// The fields of one entry, P short; `None` if there is no such entry.
    pub(crate) async fn fields(
        &self,
        manager: &str,
        operation: Operation,
    ) -> Result<Option<Vec<String>>> {
        let ownership = self.ownership().await?;
        let entry = ownership.entry(&Identity::new(manager, operation, "", "apps/v1"));
        Ok(entry.map(|entry| entry.paths().iter().map(|path| short(&path.to_string())).collect()))
    }

    /// Applies without force.
    pub(crate) async fn apply(&self, manager: &str, body: Value) -> Result<Outcome> {
        self.try_apply(&PatchParams::apply(manager), manager, &body).await
    }

    /// Applies with force.
    pub(crate) async fn force(&self, manager: &str, body: Value) -> Result<Outcome> {
        self.try_apply(&PatchParams::apply(manager).force(), manager, &body).await
    }

    async fn try_apply(
        &self,
        params: &PatchParams,
        manager: &str,
        body: &Value,
    ) -> Result<Outcome> {
        let unforced = self.compare_prediction(manager, body).await?;
        let outcome = self.send(params, body).await?;
        match &outcome {
            Outcome::Applied => self.check_entry(manager, body).await?,
            refused if !params.force => ensure!(*refused == unforced, "{refused:?}: {unforced:?}"),
            Outcome::Conflict(with) => bail!("a forced apply conflicts with {with:?}"),
            Outcome::Invalid(_) => {}
        }
        Ok(outcome)
    }

    /// Predicts the conflicts, asks the API server by a dry run without force, and compares.
    async fn compare_prediction(&self, manager: &str, body: &Value) -> Result<Outcome> {
        let object = self.api.get(WEB).await?;
        let entries = object.metadata.managed_fields.clone().unwrap_or_default();
        let ownership = Ownership::decode(&entries);
        let live = serde_json::to_value(object)?;
        let wanted = fields_of(body, Schema::Deployment)?;
        let predicted = ownership.predict(&Identity::applier(manager), &wanted, &live);
        let answer = self.send(&PatchParams::apply(manager).dry_run(), body).await?;
        let expected = match &answer {
            Outcome::Conflict(with) => with.clone(),
            // Conflicts are looked for before the result is validated.
            Outcome::Applied | Outcome::Invalid(_) => Vec::new(),
        };
        let predicted: BTreeSet<_> = predicted.iter().map(conflict_line).collect();
        let predicted: Vec<_> = predicted.into_iter().collect();
        ensure!(predicted == expected, "predicted {predicted:?}, the server says {answer:?}");
        Ok(answer)
    }

    async fn send(&self, params: &PatchParams, body: &Value) -> Result<Outcome> {
        match self.api.patch(WEB, params, &Patch::Apply(body)).await {
            Ok(_) => Ok(Outcome::Applied),
            Err(kube::Error::Api(status)) => outcome_of(&status),
            Err(error) => Err(error.into()),
        }
    }

    /// An applier's entry holds exactly the fields of what it applied last.
    async fn check_entry(&self, manager: &str, body: &Value) -> Result<()> {
        let ownership = self.ownership().await?;
        let wanted = fields_of(body, Schema::Deployment)?;
        let paths: Vec<_> = wanted.iter().map(|wanted| &wanted.path).collect();
        match ownership.entry(&Identity::applier(manager)) {
            Some(entry) => {
                let difference = entry.compare(paths);
                ensure!(difference.is_empty(), "{entry:?} after its apply: {difference:?}");
            }
            None => ensure!(paths.is_empty(), "{manager} has no entry after its apply"),
        }
        Ok(())
    }

    /// Reads the object, changes it, and replaces it by PUT.
    pub(crate) async fn update(
        &self,
        manager: &str,
        change: impl FnOnce(&mut Value) -> Result<()>,
    ) -> Result<()> {
        let mut object = self.live().await?;
        change(&mut object)?;
        // Without them the PUT takes whatever is there, and leaves ownership to the server.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
        let params = PostParams { field_manager: Some(manager.to_owned()), dry_run: false };
        self.api
            .replace(WEB, &params, &serde_json::from_value(object)?)
            .await
            .with_context(|| format!("replace web as {manager}"))?;
        Ok(())
    }

    /// A merge patch, as `kubectl annotate` and most controllers send.
    pub(crate) async fn merge(&self, manager: &str, patch: Value) -> Result<()> {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.api.patch(WEB, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Sets the number of replicas by way of the scale subresource, as an autoscaler does.
    pub(crate) async fn scale(&self, manager: &str, replicas: u32) -> Result<()> {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let patch = json!({ "spec": { "replicas": replicas } });
        self.api.patch_scale(WEB, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }
}

fn outcome_of(status: &Status) -> Result<Outcome> {
    let json = serde_json::to_value(status)?;
    let conflicts = ReportedConflict::of_status(&json);
    match status.code {
        409 if !conflicts.is_empty() => {
            let lines: BTreeSet<_> = conflicts
                .iter()
                .map(|conflict| format!("{} {}", who(&conflict.identity()), short(&conflict.field)))
                .collect();
            Ok(Outcome::Conflict(lines.into_iter().collect()))
        }
        422 => {
            let causes = status.details.as_ref().map(|details| &details.causes[..]);
            let [cause] = causes.unwrap_or_default() else { bail!("not one cause: {status:?}") };
            Ok(Outcome::Invalid(format!("{}: {}", cause.field, cause.message)))
        }
        _ => bail!("an answer of another kind: {status:?}"),
    }
}

fn conflict_line(conflict: &Conflict) -> String {
    format!("{} {}", who(&conflict.owner), short(&conflict.path.api_spelling()))
}

fn long(path: &str) -> String {
    path.strip_prefix('P').map_or_else(|| path.to_owned(), |rest| format!("{APP}{rest}"))
}

fn short(path: &str) -> String {
    path.replace(APP, "P")
}

/// `helm/U`, `autoscaler/U/scale`.
fn who(identity: &Identity) -> String {
    let operation = &identity.operation().as_str()[..1];
    match identity.subresource() {
        "" => format!("{}/{operation}", identity.manager()),
        subresource => format!("{}/{operation}/{subresource}", identity.manager()),
    }
}

fn line(answer: &Answer<'_>) -> String {
    let name = |entry: Entry<'_>| who(entry.identity());
    let owner = |owner: &belay_ownership::Owner<'_>| match &owner.via {
        Via::Field => name(owner.entry),
        Via::Atomic(path) => format!("{} via {}", name(owner.entry), short(&path.to_string())),
    };
    let owners: Vec<_> = answer.owners.iter().map(owner).collect();
    let mut line = if owners.is_empty() { answer.state.to_string() } else { owners.join(" + ") };
    for entry in &answer.parents {
        line = format!("{line}; parent {}", name(*entry));
    }
    for entry in &answer.below {
        line = format!("{line}; below {}", name(*entry));
    }
    line
}
