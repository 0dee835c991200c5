//! `leave`: hands the image back to Helm without a rollout (the operator specification, section 11).
//!
//! One JSON patch, guarded by the resourceVersion and the manager's name, removes the operator's
//! entry of managedFields and Belay's annotations. The image stays, nobody owns it, and the next
//! upgrade takes it without a conflict. To apply under Helm's own name instead would drop every other
//! field that Helm owns.

use belay_api::{
    AnnotationPrefix, NamedValue as _, ReleaseTarget,
    annotations::{OwnAnnotation, TargetAnnotation},
};
use belay_ownership::{FieldPath, Identity, Ownership};
use kube::{
    ResourceExt as _,
    api::{DynamicObject, ListParams, Patch},
};
use serde_json::{Value, json};

use super::{
    adopt::row,
    change::{Target, agreed, say},
};
use crate::{
    Error, Exit, Session,
    cli::{change::DryRun, leave::LeaveArgs},
    error::Class,
    facts::{
        helm::{Forecast, Source},
        live::Live,
        plan::{followed, is_pending},
    },
    print::{Line, Paint},
    read::{Parts, Reader, api::kind_of},
};

/// How often a write is tried again that met a newer object.
const TRIES: usize = 5;

/// Runs it.
///
/// # Errors
/// A target cannot be read, nobody was asked, or the API server refuses the patch.
pub async fn run(args: &LeaveArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let names = names(args, session).await?;
    if names.is_empty() {
        session.out.note("No targets found.")?;
        return Ok(Exit::Done);
    }
    let mut targets = Vec::new();
    for (namespace, name) in &names {
        targets.push(read(name, Some(namespace), session).await?);
    }
    let refusal = "refusing to leave without confirmation; pass --yes";
    let plans = targets.iter().flat_map(plan);
    if !agreed(plans, !args.yes, refusal, &args.change, session)? {
        return Ok(Exit::Done);
    }
    let mut exit = Exit::Done;
    for target in targets {
        match Box::pin(leave(target, args.change.dry_run, session)).await {
            Ok(object) => {
                say(&object, "left", &args.change, session)?;
            }
            // With one target there is nothing else to be done.
            Err(error) if names.len() == 1 => return Err(error),
            Err(error) => {
                for line in error.lines(false) {
                    session.out.note(line)?;
                }
                exit = error.exit();
            }
        }
    }
    Ok(exit)
}

async fn names(
    args: &LeaveArgs,
    session: &mut Session<'_>,
) -> Result<Vec<(String, String)>, Error> {
    let cluster = session.cluster()?;
    if let Some(name) = &args.name {
        return Ok(vec![(cluster.namespace.clone(), name.clone())]);
    }
    let namespace = Some(cluster.namespace.as_str()).filter(|_| !args.all_namespaces);
    let reader = Reader::new(cluster.clone());
    let all = reader.list(&kind_of::<ReleaseTarget>(), namespace, &ListParams::default()).await?;
    Ok(all.iter().map(|one| (one.namespace().unwrap_or_default(), one.name_any())).collect())
}

async fn read(
    name: &str,
    namespace: Option<&str>,
    session: &mut Session<'_>,
) -> Result<Target, Error> {
    let parts = Parts { helm: true, rollbacks: true, ..Parts::default() };
    Target::read(name, namespace, parts, session).await
}

/// The keys of Belay on a workload.
fn keys(live: &Live, prefix: &AnnotationPrefix) -> Vec<String> {
    let own = [OwnAnnotation::Release].into_iter().map(|one| prefix.key(one));
    let all = TargetAnnotation::ALL.iter().map(|one| prefix.key(*one)).chain(own);
    all.filter(|key| live.annotations.contains_key(key)).collect()
}

/// What would happen.
fn plan(target: &Target) -> Vec<Line> {
    let keys = keys(&target.live, &target.prefix);
    let mut lines = vec![Line::from((Paint::Bold, target.heading("Leave").as_str())), Line::new()];
    let containers = followed(&target.snapshot, &target.live, &target.prefix);
    for container in &containers {
        let words = format!("{}  stays {}", container.name, container.image);
        lines.push(row("container", words));
    }
    lines.push(row("pods", "no rollout: the pod template is not touched"));
    lines.push(row("removes", format!("{}; the ReleaseTarget goes", keys.join(", "))));
    lines.push(row("", format!("the entry of {} in managedFields", target.live.operator)));
    let ownership = Ownership::decode(target.workload.managed_fields());
    let repo = target.prefix.key(TargetAnnotation::Repo);
    for owner in ownership.at(&FieldPath::of_fields(["metadata", "annotations", &repo])).owners {
        let manager = owner.entry.manager();
        if manager == crate::facts::helm::MANAGER {
            let words = format!(
                "the chart sets {repo}: take it out there too, or the next `helm upgrade` brings it \
                 back"
            );
            lines.push(row("warning", words));
            break;
        }
    }
    let pending = target.snapshot.rollbacks.value().map(Vec::as_slice).unwrap_or_default();
    if pending.iter().any(|one| is_pending(&one.value)) {
        lines.push(row("warning", "a Rollback is under way and will not be finished"));
    }
    let forecasts = forecasts(target);
    let mut helm: Vec<String> = forecasts.iter().flat_map(Forecast::lines).collect();
    helm.dedup();
    for line in helm {
        lines.push(row("helm, then", line));
    }
    if let Some(bad) = forecasts.iter().find(|one| !one.three.is_good() || !one.four.is_good()) {
        let words = format!("set the chart's image to {} first, so that nothing rolls", bad.live);
        lines.push(row("hint", words));
    }
    lines.push(Line::new());
    lines
}

/// What Helm does once Belay has left.
fn forecasts(target: &Target) -> Vec<Forecast> {
    let mut live = target.live.clone();
    for key in keys(&target.live, &target.prefix) {
        live.annotations.remove(&key);
    }
    let source = Source::of(&live, &target.snapshot.helm);
    let mut forecasts = Vec::new();
    for container in followed(&target.snapshot, &target.live, &target.prefix) {
        let owners: Vec<Identity> = container
            .owners
            .iter()
            .filter(|owner| owner.manager() != target.live.operator)
            .cloned()
            .collect();
        let image = &container.image;
        let after = Forecast::after(&source, &live, container, image, &owners, &target.prefix);
        forecasts.extend(after);
    }
    forecasts
}

async fn leave(
    mut target: Target,
    dry_run: DryRun,
    session: &mut Session<'_>,
) -> Result<DynamicObject, Error> {
    let (name, namespace) = (target.snapshot.name.clone(), target.snapshot.namespace.clone());
    for _ in 1..TRIES {
        let patch = patch(&target.workload, &target.live, &target.prefix)?;
        match target.patch(&patch, dry_run).await {
            // A failed `test` is 422, a stale resourceVersion 409: the object has moved on.
            Err(error) if error.class == Class::Conflict || is_failed_test(&error) => {
                target = read(&name, Some(&namespace), session).await?;
            }
            answer => return answer,
        }
    }
    let patch = patch(&target.workload, &target.live, &target.prefix)?;
    target.patch(&patch, dry_run).await.map_err(|error| {
        if !is_failed_test(&error) {
            return error;
        }
        Error::new(
            Class::Conflict,
            format!("{} was changed by others each time", target.live.resource),
        )
        .hint(format!("try again: kubectl release leave {}", target.said()))
    })
}

fn is_failed_test(error: &Error) -> bool {
    error.reason.as_deref() == Some("Invalid")
        && (error.message.contains("the server rejected our request")
            || error.message.contains("test operation"))
}

/// The guarded patch.
fn patch(
    workload: &DynamicObject,
    live: &Live,
    prefix: &AnnotationPrefix,
) -> Result<Patch<Value>, Error> {
    let mut steps = vec![json!({
        "op": "test", "path": "/metadata/resourceVersion",
        "value": workload.metadata.resource_version,
    })];
    let is_ours = |entry: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(&live.operator)
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    };
    let entries = workload.managed_fields();
    let ours: Vec<usize> =
        (0..entries.len()).filter(|index| entries.get(*index).is_some_and(is_ours)).collect();
    // An empty list would be read as "reset all of them".
    if !ours.is_empty() && ours.len() == entries.len() {
        return Err(Error::other(format!(
            "{} is the only owner of anything in {}",
            live.operator, live.resource
        ))
        .cause("to remove its entry would reset the ownership of the whole object")
        .hint("let Helm or kubectl apply the workload once, then leave"));
    }
    for index in ours.iter().rev() {
        steps.push(json!({
            "op": "test", "path": format!("/metadata/managedFields/{index}/manager"),
            "value": live.operator,
        }));
        steps.push(json!({ "op": "remove", "path": format!("/metadata/managedFields/{index}") }));
    }
    for key in keys(live, prefix) {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        steps.push(json!({ "op": "remove", "path": format!("/metadata/annotations/{escaped}") }));
    }
    let steps = serde_json::from_value(Value::Array(steps))
        .map_err(|error| Error::other(format!("make the patch: {error}")))?;
    Ok(Patch::Json(steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(managers: &[&str]) -> DynamicObject {
        let entry = |manager: &&str| {
            json!({ "manager": manager, "operation": "Apply", "apiVersion": "apps/v1",
                    "fieldsType": "FieldsV1", "fieldsV1": {} })
        };
        serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "resourceVersion": "7",
                "annotations": {
                    "belay.dev/repo": "acme/web", "belay.dev/release": "web-1234567",
                    "belay.dev/of-a-newer-version": "x", "other": "y",
                },
                "managedFields": managers.iter().map(entry).collect::<Vec<_>>(),
            },
        }))
        .unwrap()
    }

    fn steps(managers: &[&str]) -> Result<Value, Error> {
        let workload = workload(managers);
        let prefix = AnnotationPrefix::default();
        let live = Live::of(&workload, &prefix);
        match patch(&workload, &live, &prefix)? {
            Patch::Json(steps) => Ok(serde_json::to_value(steps).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_our_entry_and_known_annotations_go_under_guard() {
        let expected = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
            { "op": "test", "path": "/metadata/managedFields/1/manager", "value": "belay-operator" },
            { "op": "remove", "path": "/metadata/managedFields/1" },
            { "op": "remove", "path": "/metadata/annotations/belay.dev~1repo" },
            { "op": "remove", "path": "/metadata/annotations/belay.dev~1release" },
        ]);
        assert_eq!(steps(&["helm", "belay-operator", "kubectl"]).unwrap(), expected);
    }

    #[test]
    fn a_workload_that_nobody_else_wrote_is_not_left() {
        steps(&["belay-operator"]).unwrap_err();
        assert_eq!(steps(&["helm"]).unwrap().as_array().unwrap().len(), 3);
    }
}
