//! What must hold at every moment of a run, whatever was cut (design.md section 7).

use std::collections::{BTreeMap, BTreeSet};

use belay_api::names::IMAGE_FIELD_MANAGER;
use serde_json::Value;

use super::timeline::{Kind, Seen};

/// The pause that a rollout takes by default, and the annotation that says whose it is.
const PAUSED_SCALE_IN: &str = "autoscaling.keda.sh/paused-scale-in";
const PAUSE_OWNER: &str = "belay.dev/pause-owner";

/// What the rules depend on beside the objects.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// Images that others than the operator wrote.
    pub(super) foreign: BTreeSet<String>,
    /// What admission makes of an image.
    pub(super) admission: Option<fn(&str) -> String>,
}

/// Every breach of a rule in the history of a namespace.
pub(super) fn breaches(history: &[Seen], terms: &Terms) -> Vec<String> {
    let mut world = World::new(terms);
    for seen in history {
        world.see(seen);
    }
    world.breaches
}

struct World<'t> {
    terms: &'t Terms,
    releases: BTreeMap<String, Value>,
    rollbacks: BTreeMap<String, Value>,
    deployment: Option<Value>,
    scaled: Option<Value>,
    /// Automatic Rollbacks by the activation that they leave.
    answered: BTreeMap<(String, u64), String>,
    breaches: Vec<String>,
}

impl<'t> World<'t> {
    fn new(terms: &'t Terms) -> Self {
        Self {
            terms,
            releases: BTreeMap::new(),
            rollbacks: BTreeMap::new(),
            deployment: None,
            scaled: None,
            answered: BTreeMap::new(),
            breaches: Vec::new(),
        }
    }

    fn breach(&mut self, seen: &Seen, what: impl Into<String>) {
        let what = what.into();
        self.breaches.push(format!("at revision {}: {what}", seen.version));
    }

    fn see(&mut self, seen: &Seen) {
        match seen.kind {
            Kind::Deployment => self.see_deployment(seen),
            Kind::Release => {
                keep(&mut self.releases, seen);
                let active: Vec<_> =
                    self.releases.iter().filter(|(_, one)| is_active(one)).collect();
                if active.len() > 1 {
                    let names: Vec<_> = active.iter().map(|(name, _)| name.as_str()).collect();
                    let names = names.join(" and ");
                    self.breach(seen, format!("{names} are active at once"));
                }
            }
            Kind::Rollback => {
                keep(&mut self.rollbacks, seen);
                self.see_rollback(seen);
            }
            Kind::ScaledObject => self.see_scaled_object(seen),
            Kind::Target => {}
        }
    }

    fn see_rollback(&mut self, seen: &Seen) {
        let is_automatic = seen.object["spec"]["initiatedBy"]["type"] == "system";
        let from = seen.object["status"]["fromReleaseRef"]["name"].as_str();
        let Some(from) = from.filter(|_| is_automatic) else { return };
        let activations = self.releases.get(from).map(|one| &one["status"]["activations"]);
        let ordinal = activations
            .and_then(|all| all.as_array()?.last()?["ordinal"].as_u64())
            .unwrap_or_default();
        let key = (from.to_owned(), ordinal);
        let first = self.answered.entry(key).or_insert_with(|| seen.name.clone()).clone();
        if first != seen.name {
            let what = format!("{first} and {} answer activation {ordinal} of {from}", seen.name);
            self.breach(seen, what);
        }
    }

    /// Nothing but a pause that says whose it is may be written to a ScaledObject.
    fn see_scaled_object(&mut self, seen: &Seen) {
        let before = self.scaled.take();
        let annotations = &seen.object["metadata"]["annotations"];
        let is_claimed = annotations[PAUSE_OWNER].is_string();
        if (annotations[PAUSED_SCALE_IN] == "true") != is_claimed {
            self.breach(seen, format!("a pause and its claim are not one: {annotations}"));
        }
        if let Some(owner) = annotations[PAUSE_OWNER].as_str() {
            let claim: Value = serde_json::from_str(owner).unwrap_or_default();
            let release = claim["release"].as_str().unwrap_or_default();
            if !self.releases.contains_key(release) {
                self.breach(seen, format!("the claim {owner} is for a Release that is not there"));
            }
        }
        if before.is_some_and(|before| before["spec"] != seen.object["spec"]) {
            self.breach(seen, "more of the ScaledObject changed than its pause");
        }
        if !seen.gone {
            self.scaled = Some(seen.object.clone());
        }
    }

    fn see_deployment(&mut self, seen: &Seen) {
        let before = self.deployment.take();
        if !seen.gone {
            self.deployment = Some(seen.object.clone());
        }
        let image = image(&seen.object).to_owned();
        let is_ours = is_ours(&seen.object);
        let is_named = if is_ours {
            self.is_of_a_release(&image)
        } else {
            self.terms.foreign.contains(&image)
        };
        if !is_named {
            let who = if is_ours { "Release" } else { "person" };
            self.breach(seen, format!("{image} runs, which no {who} names"));
        }
        let annotated = &seen.object["metadata"]["annotations"]["belay.dev/release"];
        if let Some(name) = annotated.as_str().filter(|name| !self.releases.contains_key(*name)) {
            self.breach(seen, format!("the workload names the Release {name}, which is not there"));
        }
        let Some(before) = before else { return };
        let is_moved = self::image(&before) != image && is_ours;
        if let Some(scaled) = self.scaled.as_ref().filter(|_| is_moved)
            && !scaled["metadata"]["annotations"][PAUSE_OWNER].is_string()
        {
            self.breach(seen, format!("{image} was applied without a pause"));
        }
        if without_image(&before) != without_image(&seen.object) {
            self.breach(seen, "more of the workload changed than its image");
        }
        let lower = match (version_of(self::image(&before)), version_of(&image)) {
            (Some(before), Some(after)) => after < before,
            _ => false,
        };
        if lower && is_ours && self.rollbacks.is_empty() {
            self.breach(seen, format!("{image} is lower, and there is no Rollback"));
        }
    }

    fn is_of_a_release(&self, image: &str) -> bool {
        let admitted = |asked: &str| self.terms.admission.is_some_and(|rule| rule(asked) == image);
        let images = self.releases.values().filter_map(|one| one["status"]["images"].as_array());
        images.flatten().any(|one| {
            let asked = one["asked"].as_str().unwrap_or_default();
            asked == image || one["stored"] == image || admitted(asked)
        })
    }
}

fn keep(objects: &mut BTreeMap<String, Value>, seen: &Seen) {
    if seen.gone {
        objects.remove(&seen.name);
    } else {
        objects.insert(seen.name.clone(), seen.object.clone());
    }
}

fn is_active(release: &Value) -> bool {
    let conditions = release["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "Active" && one["status"] == "True")
}

/// Whether the operator owns the image.
fn is_ours(deployment: &Value) -> bool {
    let entries = deployment["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut ours =
        entries.filter(|one| one["manager"] == IMAGE_FIELD_MANAGER && one["operation"] == "Apply");
    ours.any(|one| one["fieldsV1"].to_string().contains("f:image"))
}

fn image(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

fn without_image(deployment: &Value) -> Value {
    let mut spec = deployment["spec"].clone();
    spec["template"]["spec"]["containers"][0]["image"] = Value::Null;
    spec
}

/// The numbers of a tag such as `1.1.0_no-pull`.
fn version_of(image: &str) -> Option<Vec<u64>> {
    let (_, tag) = image.rsplit_once(':')?;
    let numbers = tag.split(|one: char| !one.is_ascii_digit() && one != '.').next()?;
    numbers.split('.').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(version: u64, kind: Kind, name: &str, object: Value) -> Seen {
        Seen { version, kind, name: name.to_owned(), gone: false, object }
    }

    fn deployment(version: u64, tag: &str, release: Option<&str>) -> Seen {
        let fields = json!({ "f:spec": { "f:image": {} } });
        let ours = json!({ "manager": "belay-operator", "operation": "Apply", "fieldsV1": fields });
        let managers = if release.is_some() { json!([ours]) } else { json!([]) };
        let object = json!({
            "metadata": {
                "annotations": { "belay.dev/release": release },
                "managedFields": managers,
            },
            "spec": { "replicas": 1, "template": { "spec": {
                "containers": [{ "name": "app", "image": format!("r/web:{tag}") }],
            }}},
        });
        seen(version, Kind::Deployment, "web", object)
    }

    fn release(version: u64, tag: &str, is_active: bool) -> Seen {
        let active = if is_active { "True" } else { "False" };
        let object = json!({ "status": {
            "conditions": [{ "type": "Active", "status": active }],
            "images": [{ "container": "app", "asked": format!("r/web:{tag}") }],
            "activations": [{ "ordinal": 1 }],
        }});
        seen(version, Kind::Release, &format!("web-{tag}"), object)
    }

    fn rollback(version: u64, name: &str, from: &str) -> Seen {
        let object = json!({
            "spec": { "initiatedBy": { "type": "system" } },
            "status": { "fromReleaseRef": { "name": from } },
        });
        seen(version, Kind::Rollback, name, object)
    }

    fn terms() -> Terms {
        Terms { foreign: ["r/web:1.0.0".to_owned()].into(), admission: None }
    }

    #[test]
    fn an_orderly_roll_and_way_back_breaches_nothing() {
        let history = [
            deployment(1, "1.0.0", None),
            release(2, "1.0.0", true),
            release(3, "1.1.0", false),
            deployment(4, "1.1.0", Some("web-1.1.0")),
            release(5, "1.0.0", false),
            release(6, "1.1.0", true),
            rollback(7, "back", "web-1.1.0"),
            deployment(8, "1.0.0", Some("web-1.0.0")),
        ];
        assert_eq!(breaches(&history, &terms()), [""; 0]);
    }

    #[rstest::rstest]
    #[case::no_person(vec![deployment(1, "1.2.0", None)], "which no person names")]
    #[case::no_intent(
        vec![release(1, "1.0.0", false), deployment(2, "1.1.0", Some("web-1.0.0"))],
        "which no Release names"
    )]
    #[case::no_release(
        vec![release(1, "1.0.0", false), deployment(2, "1.0.0", Some("web-1.0.1"))],
        "which is not there"
    )]
    #[case::two_active(vec![release(1, "1.0.0", true), release(2, "1.1.0", true)], "active at once")]
    #[case::down(
        vec![
            release(1, "0.9.0", false),
            deployment(2, "1.0.0", None),
            deployment(3, "0.9.0", Some("web-0.9.0")),
        ],
        "there is no Rollback"
    )]
    #[case::twice(
        vec![release(1, "1.1.0", true), rollback(2, "a", "web-1.1.0"), rollback(3, "b", "web-1.1.0")],
        "answer activation 1"
    )]
    fn each_rule_can_be_breached(#[case] history: Vec<Seen>, #[case] expected: &str) {
        let found = breaches(&history, &terms());
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }

    #[test]
    fn nothing_but_the_image_may_change() {
        let mut second = deployment(2, "1.0.0", None);
        second.object["spec"]["replicas"] = json!(0);
        let found = breaches(&[deployment(1, "1.0.0", None), second], &terms());
        assert!(found[0].contains("more of the workload"), "{found:?}");
    }
}
