//! The write. The name follows from both Releases, so that a second person's Rollback meets the first
//! one's and joins it.

use belay_api::{GROUP, Rollback, VERSION, limits, rollback::RollbackStatus};
use kube::api::{DynamicObject, PostParams};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{super::change::Target, who};
use crate::{
    Error, FIELD_MANAGER, Session,
    cli::{change::DryRun, rollback::RollbackArgs},
    facts::plan::Plan,
    read::api::kind_of,
};

/// A Rollback that this run began or joined.
pub(super) struct Begun {
    /// Its name.
    pub(super) name: String,
    /// It, as the API server has it; with a dry run of the client, as it would be sent.
    pub(super) object: Value,
    /// Who began it, if that was somebody else.
    pub(super) joined: Option<String>,
}

const DEFAULT_REASON: &str = "rolled back with kubectl release";

/// Creates the Rollback, or joins the one that goes there already.
pub(super) async fn create(
    target: &Target,
    plan: &Plan,
    args: &RollbackArgs,
    session: &mut Session<'_>,
) -> Result<Begun, Error> {
    if let Some(name) = &plan.joins
        && let Some(begun) = join(target, plan, name).await?
    {
        return Ok(begun);
    }
    let principal = who::principal(&target.reader, session).await;
    for name in &plan.names {
        let body = body(target, plan, args, name, &principal)?;
        if args.change.dry_run == DryRun::Client {
            return Ok(Begun { name: name.clone(), object: body, joined: None });
        }
        let sent = DynamicObject::deserialize(&body)
            .map_err(|error| Error::other(format!("make the Rollback: {error}")))?;
        let params = PostParams {
            dry_run: args.change.dry_run == DryRun::Server,
            field_manager: Some(FIELD_MANAGER.to_owned()),
        };
        let kind = kind_of::<Rollback>();
        let api = target.reader.api(&kind, Some(&target.snapshot.namespace));
        let attempt = format!("create rollbacks.belay.dev \"{name}\"");
        match target.reader.within(&attempt, api.create(&params, &sent)).await {
            Ok(created) => {
                let object = serde_json::to_value(created)
                    .map_err(|error| Error::other(format!("read the Rollback: {error}")))?;
                return Ok(Begun { name: name.clone(), object, joined: None });
            }
            Err(error) if error.reason.as_deref() == Some("AlreadyExists") => {
                if let Some(begun) = join(target, plan, name).await? {
                    return Ok(begun);
                }
                // It has ended: the next name.
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::other(format!("every name for a Rollback to {} is taken", plan.to))
        .hint("delete Rollbacks that have ended: kubectl get rollbacks"))
}

/// The Rollback of that name, if it is under way and goes to the same Release.
async fn join(target: &Target, plan: &Plan, name: &str) -> Result<Option<Begun>, Error> {
    let kind = kind_of::<Rollback>();
    let namespace = Some(target.snapshot.namespace.as_str());
    let Some(found) = target.reader.get(&kind, namespace, name).await? else { return Ok(None) };
    let object = serde_json::to_value(found)
        .map_err(|error| Error::other(format!("read the Rollback: {error}")))?;
    let status = object.get("status").and_then(|status| RollbackStatus::deserialize(status).ok());
    if status.as_ref().is_some_and(RollbackStatus::is_terminal) {
        return Ok(None);
    }
    let named = object.pointer("/spec/toReleaseRef/name").and_then(Value::as_str);
    let resolved = status.and_then(|status| status.to_release_ref.map(|to| to.name));
    if resolved.as_deref().or(named) != Some(plan.to.as_str()) {
        return Ok(None);
    }
    let by = object.pointer("/spec/initiatedBy/principal").and_then(Value::as_str);
    let by = by.unwrap_or("somebody").to_owned();
    Ok(Some(Begun { name: name.to_owned(), object, joined: Some(by) }))
}

fn body(
    target: &Target,
    plan: &Plan,
    args: &RollbackArgs,
    name: &str,
    principal: &str,
) -> Result<Value, Error> {
    let reason = args.reason.as_deref().map_or(DEFAULT_REASON, str::trim);
    if reason.is_empty() || reason.chars().count() > limits::ROLLBACK_REASON {
        return Err(Error::usage(format!(
            "--reason must have 1 to {} characters",
            limits::ROLLBACK_REASON
        )));
    }
    let mut spec = json!({
        "toReleaseRef": { "target": target.snapshot.name, "name": plan.to },
        "reason": reason,
        "initiatedBy": { "principal": principal, "type": "user" },
    });
    if args.force
        && let Some(fields) = spec.as_object_mut()
    {
        fields.insert("force".to_owned(), Value::Bool(true));
    }
    Ok(json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "Rollback",
        "metadata": { "name": name, "namespace": target.snapshot.namespace },
        "spec": spec,
    }))
}
