//! What there is after a step: live images and their owners, rollouts, what Helm stored.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use belay_ownership::Ownership;
use belay_testkit::wait;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::data::Place;
use belay_suite::helms::WEB;

/// Where the workloads of one cell are.
pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// The second namespace.
    pub(crate) other: String,
    /// The group of the cell's own CRD.
    pub(crate) group: String,
}

/// All that is looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    /// `1.1.0 by helm/U`, or `absent`.
    pub(crate) live: BTreeMap<Place, String>,
    /// The image in the stored manifest, `none` where the container has none, `absent` where there
    /// is no such object.
    pub(crate) stored: BTreeMap<Place, String>,
    /// Of each Deployment of `apps/v1`.
    pub(crate) rollouts: BTreeMap<Place, Rollouts>,
    /// Versions and states of the release's records.
    pub(crate) records: BTreeMap<u32, String>,
}

/// What tells that a Deployment rolled, or that anything of its spec changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rollouts {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// Counted by the Deployment controller, also when it goes back to an older ReplicaSet.
    pub(crate) revision: i64,
    pub(crate) replica_sets: BTreeSet<String>,
}

impl Look {
    /// The state of a container as the matrix writes it.
    pub(crate) fn state(&self, place: Place) -> String {
        let of = |map: &BTreeMap<Place, String>| map.get(&place).cloned();
        let live = of(&self.live).unwrap_or_else(|| "absent".to_owned());
        format!("{live}, stored {}", of(&self.stored).unwrap_or_else(|| "absent".to_owned()))
    }

    /// The newest record: `2 deployed`.
    pub(crate) fn record(&self) -> String {
        self.records
            .last_key_value()
            .map_or_else(|| "none".to_owned(), |(version, status)| format!("{version} {status}"))
    }
}

/// The live image of a state.
pub(crate) fn image_of(state: &str) -> &str {
    state.split([' ', ',']).next().unwrap_or_default()
}

impl Place {
    /// The container's name.
    pub(crate) fn container(self) -> &'static str {
        match self {
            Self::Web | Self::Other | Self::Hook | Self::Custom => "app",
            Self::Sidecar => "sidecar",
            Self::Init => "init",
        }
    }

    /// The list that the container is in.
    fn list(self) -> &'static str {
        if self == Self::Init { "initContainers" } else { "containers" }
    }

    /// The object's name.
    pub(crate) fn object(self) -> &'static str {
        if self == Self::Hook { "web-hook" } else { WEB }
    }

    /// The containers of one object.
    fn of_object(self) -> &'static [Self] {
        match self {
            Self::Web | Self::Sidecar | Self::Init => &[Self::Web, Self::Sidecar, Self::Init],
            Self::Other => &[Self::Other],
            Self::Hook => &[Self::Hook],
            Self::Custom => &[Self::Custom],
        }
    }
}

impl Scene {
    /// The namespace of a place.
    pub(crate) fn namespace_of(&self, place: Place) -> &str {
        if place == Place::Other { &self.other } else { &self.namespace }
    }

    /// The API group of a place.
    pub(crate) fn group_of(&self, place: Place) -> &str {
        if place == Place::Custom { &self.group } else { "apps" }
    }

    /// The objects of a place.
    pub(crate) fn api(&self, place: Place) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(self.group_of(place), "v1", "Deployment");
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.client.clone(), self.namespace_of(place), &resource)
    }

    /// Looks at everything but the stored manifest.
    pub(crate) async fn look(&self, watch: &BTreeSet<Place>) -> Result<Look> {
        let mut look = Look::default();
        for place in watch.iter().chain([&Place::Web]) {
            self.look_at(*place, &mut look).await?;
        }
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let records = ListParams::default().labels(&format!("owner=helm,name={WEB}"));
        for record in secrets.list_metadata(&records).await.context("list records")?.items {
            let label = |name: &str| record.labels().get(name).cloned().unwrap_or_default();
            look.records.insert(label("version").parse()?, label("status"));
        }
        Ok(look)
    }

    async fn look_at(&self, place: Place, look: &mut Look) -> Result<()> {
        let api = self.api(place);
        let Some(mut object) = api.get_opt(place.object()).await? else { return Ok(()) };
        if place != Place::Custom {
            let what = format!("the controller to have seen {}/{}", self.namespace, place.object());
            object = wait::until(&what, wait::SOON, || async {
                let object = api.get(place.object()).await.map_err(|error| error.to_string())?;
                let seen = &object.data["status"]["observedGeneration"];
                let counted = object.annotations().contains_key(REVISION);
                if counted && *seen == json!(object.metadata.generation) {
                    Ok(object)
                } else {
                    Err(format!("{seen} of {:?}", object.metadata.generation))
                }
            })
            .await?;
            look.rollouts.insert(place, self.rollouts(place, &object).await?);
        }
        let entries = object.metadata.managed_fields.clone().unwrap_or_default();
        let ownership = Ownership::decode(&entries);
        for place in place.of_object() {
            let live = live(&ownership, *place, &object.data)?;
            look.live.insert(*place, live);
        }
        Ok(())
    }

    async fn rollouts(&self, place: Place, object: &DynamicObject) -> Result<Rollouts> {
        let sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), self.namespace_of(place));
        let uid = object.uid().context("an object without uid")?;
        let own = |set: &ReplicaSet| set.owner_references().iter().any(|owner| owner.uid == uid);
        let sets = sets.list(&ListParams::default()).await.context("list ReplicaSets")?;
        Ok(Rollouts {
            generation: object.metadata.generation.unwrap_or_default(),
            revision: object.annotations().get(REVISION).context("no revision")?.parse()?,
            replica_sets: sets.iter().filter(|set| own(set)).map(ResourceExt::name_any).collect(),
            uid,
        })
    }

    /// The images of `web` and of what else is watched in a manifest that Helm stored or printed.
    pub(crate) fn images_in(
        &self,
        manifest: &str,
        watch: &BTreeSet<Place>,
    ) -> Result<BTreeMap<Place, String>> {
        let mut objects = Vec::new();
        for document in serde_yaml::Deserializer::from_str(manifest) {
            let object = Value::deserialize(document).context("parse a stored document")?;
            match object["items"].as_array() {
                Some(items) => objects.extend(items.iter().cloned()),
                None => objects.push(object),
            }
        }
        let mut images = BTreeMap::new();
        for place in watch.iter().chain([&Place::Web]).flat_map(|place| place.of_object()) {
            let group = format!("{}/v1", self.group_of(*place));
            let namespace = self.namespace_of(*place);
            let wanted = |object: &&Value| {
                let metadata = &object["metadata"];
                object["kind"] == "Deployment"
                    && object["apiVersion"] == *group
                    && metadata["name"] == place.object()
                    && metadata["namespace"].as_str().unwrap_or(&self.namespace) == namespace
            };
            let mut found = objects.iter().filter(wanted);
            let Some(object) = found.next() else { continue };
            ensure!(found.next().is_none(), "two objects {}", place.object());
            let container = container(object, *place);
            let image = container.map(|container| short(container["image"].as_str()));
            images.insert(*place, image.unwrap_or_else(|| "absent".to_owned()));
        }
        Ok(images)
    }
}

/// What the Deployment controller counts rollouts with.
const REVISION: &str = "deployment.kubernetes.io/revision";

fn container(object: &Value, place: Place) -> Option<&Value> {
    let list = object["spec"]["template"]["spec"][place.list()].as_array()?;
    list.iter().find(|container| container["name"] == place.container())
}

/// `1.1.0 by belay-operator/A + helm/U`.
fn live(ownership: &Ownership, place: Place, object: &Value) -> Result<String> {
    let Some(container) = container(object, place) else { return Ok("absent".to_owned()) };
    let (list, name) = (place.list(), place.container());
    let path = format!("spec.template.spec.{list}[name={name}].image").parse()?;
    let lookup = ownership.lookup(&path, None);
    let mut owners: Vec<_> = lookup
        .answers
        .iter()
        .flat_map(|answer| &answer.owners)
        .map(|owner| {
            let operation = &owner.entry.operation().as_str()[..1];
            format!("{}/{operation}", owner.entry.manager())
        })
        .collect();
    owners.sort_unstable();
    let owners = if owners.is_empty() { "nobody".to_owned() } else { owners.join(" + ") };
    Ok(format!("{} by {owners}", short(container["image"].as_str())))
}

/// The tag alone where the repository is the chart's.
fn short(image: Option<&str>) -> String {
    match image {
        None | Some("") => "none".to_owned(),
        Some(image) => image.strip_prefix("registry.example/web:").unwrap_or(image).to_owned(),
    }
}
