//! What objects say, for assertions and for errors.

use std::fmt::Write as _;

use belay_api::{Release, conditions::find};
use k8s_openapi::{api::events::v1::Event, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{Api, ResourceExt as _, api::ListParams};

use super::Bed;

/// A condition by type.
pub fn condition<'c>(conditions: &'c [Condition], kind: &str) -> Option<&'c Condition> {
    find(conditions, kind)
}

/// The reason of a condition; empty if there is none.
pub fn reason<'c>(conditions: &'c [Condition], kind: &str) -> &'c str {
    find(conditions, kind).map(|one| one.reason.as_str()).unwrap_or_default()
}

/// Whether a Release is active.
pub fn active(release: &Release) -> bool {
    release.status.as_ref().is_some_and(|status| {
        find(&status.conditions, "Active").is_some_and(|one| one.status == "True")
    })
}

/// All of a bed's objects in a few lines each.
pub async fn describe(bed: &Bed) -> String {
    let mut text = String::new();
    let words = |conditions: &[Condition]| {
        let words = conditions
            .iter()
            .map(|one| format!("{}={}/{} {:?}", one.type_, one.status, one.reason, one.message));
        words.collect::<Vec<_>>().join("\n    ")
    };
    let all = ListParams::default();
    for target in bed.targets().list(&all).await.map(|list| list.items).unwrap_or_default() {
        let status = target.status.clone().unwrap_or_default();
        let _ = writeln!(text, "  rt {}: {}", target.name_any(), words(&status.conditions));
        let _ = writeln!(text, "    {:?} {:?}", status.candidates, status.waiting);
    }
    for release in bed.releases().list(&all).await.map(|list| list.items).unwrap_or_default() {
        let status = release.status.clone().unwrap_or_default();
        let _ = writeln!(text, "  rel {}: {}", release.name_any(), words(&status.conditions));
        let _ = writeln!(text, "    {:?} {:?}", status.activations, status.images);
    }
    for rollback in bed.rollbacks().list(&all).await.map(|list| list.items).unwrap_or_default() {
        let status = rollback.status.clone().unwrap_or_default();
        let _ = writeln!(text, "  rb {}: {}", rollback.name_any(), words(&status.conditions));
    }
    for one in bed.deployments().list(&all).await.map(|list| list.items).unwrap_or_default() {
        let status = one.status.clone().unwrap_or_default();
        let image = one
            .spec
            .as_ref()
            .and_then(|spec| spec.template.spec.as_ref()?.containers.first()?.image.clone());
        let _ = writeln!(
            text,
            "  deploy {}: {image:?} generation {:?} observed {:?} replicas {:?} updated {:?} available {:?}",
            one.name_any(),
            one.metadata.generation,
            status.observed_generation,
            status.replicas,
            status.updated_replicas,
            status.available_replicas,
        );
    }
    let events: Api<Event> = Api::namespaced(bed.client.clone(), &bed.namespace);
    for event in events.list(&all).await.map(|list| list.items).unwrap_or_default() {
        if event.reporting_controller.as_deref() == Some("belay-operator") {
            let (of, note) = (event.regarding.and_then(|it| it.name), event.note);
            let words = [of, event.reason, note].map(Option::unwrap_or_default).join(": ");
            let _ = writeln!(text, "  event {words}");
        }
    }
    text
}
