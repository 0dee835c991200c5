//! What the verbs that write have in common: the target they are about, its annotations, and how a
//! dry run is said.

use std::time::Duration;

use belay_api::{AnnotationPrefix, annotations::Annotation};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Map, Value, json};

use super::owners::{Kind, discover};
use crate::{
    Error, Exit, FIELD_MANAGER, Session,
    cli::change::{ChangeArgs, DryRun},
    facts::live::Live,
    print::{Line, object},
    read::{Fact, Parts, Reader, Snapshot},
};

/// A target that is to be changed, and its workload.
pub(super) struct Target {
    pub(super) reader: Reader,
    pub(super) snapshot: Snapshot,
    pub(super) prefix: AnnotationPrefix,
    pub(super) workload: DynamicObject,
    pub(super) live: Live,
    kind: Kind,
}

impl Target {
    /// Reads the target `name` of the session's namespace.
    ///
    /// # Errors
    /// It is not there, or its workload cannot be read.
    pub(super) async fn read(
        name: &str,
        namespace: Option<&str>,
        parts: Parts,
        session: &mut Session<'_>,
    ) -> Result<Self, Error> {
        let cluster = session.cluster()?;
        let reader = Reader::new(cluster.clone());
        let namespace = namespace.unwrap_or(&cluster.namespace);
        let snapshot = reader.snapshot(namespace, name, parts).await;
        snapshot.required_target()?;
        Self::of(reader, snapshot, session).await
    }

    /// The target of a snapshot.
    ///
    /// # Errors
    /// Its workload could not be read.
    pub(super) async fn of(
        reader: Reader,
        snapshot: Snapshot,
        session: &Session<'_>,
    ) -> Result<Self, Error> {
        let workload = match &snapshot.workload {
            Fact::Known(Some(workload)) => workload.clone(),
            Fact::Known(None) => {
                return Err(Error::other(format!("the workload of {} is gone", snapshot.name)));
            }
            Fact::Unknown(why) => {
                return Err(Error::other(format!(
                    "the workload of {} cannot be read: {}",
                    snapshot.name,
                    why.words()
                )));
            }
        };
        let prefix = snapshot.prefix(session.global.annotation_prefix.as_ref());
        let word = workload.types.as_ref().map(|types| types.kind.to_ascii_lowercase());
        let kind = discover(&reader, &word.unwrap_or_default()).await?;
        let live = Live::of(&workload, &prefix);
        Ok(Self { reader, snapshot, prefix, workload, live, kind })
    }

    /// `web -n shop`, or `web` in the namespace of the context.
    pub(super) fn said(&self) -> String {
        let cluster = &self.reader.cluster;
        if self.snapshot.namespace == cluster.namespace && !cluster.is_namespace_told {
            return self.snapshot.name.clone();
        }
        format!("{} -n {}", self.snapshot.name, self.snapshot.namespace)
    }

    /// `Roll back shop/web in context prod-eu`: what every prompt begins with.
    pub(super) fn heading(&self, what: &str) -> String {
        let place = match &self.reader.cluster.context {
            Some(context) => format!("context {context}"),
            None => self.reader.cluster.server.clone(),
        };
        format!("{what} {}/{} in {place}", self.snapshot.namespace, self.snapshot.name)
    }

    /// The value of an annotation.
    pub(super) fn annotation(&self, annotation: impl Annotation) -> Option<&str> {
        self.live.annotations.get(&self.prefix.key(annotation)).map(String::as_str)
    }

    /// Writes annotations of the workload; `None` removes one. The pod template is not touched.
    ///
    /// # Errors
    /// The API server refuses it.
    pub(super) async fn annotate<A: Annotation>(
        &self,
        changes: &[(A, Option<&str>)],
        dry_run: DryRun,
    ) -> Result<DynamicObject, Error> {
        let mut annotations = Map::new();
        for (annotation, value) in changes {
            annotations
                .insert(self.prefix.key(*annotation), (*value).map_or(Value::Null, Value::from));
        }
        self.patch(&Patch::Merge(json!({ "metadata": { "annotations": annotations } })), dry_run)
            .await
    }

    /// Patches the workload; with a dry run of the client it is returned as it was.
    ///
    /// # Errors
    /// The API server refuses it.
    pub(super) async fn patch(
        &self,
        patch: &Patch<Value>,
        dry_run: DryRun,
    ) -> Result<DynamicObject, Error> {
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            dry_run: match dry_run {
                DryRun::None => false,
                DryRun::Server => true,
                DryRun::Client => return Ok(self.workload.clone()),
            },
            ..PatchParams::default()
        };
        let api = self.reader.api(&self.kind.resource, Some(&self.snapshot.namespace));
        let name = &self.live.name;
        let attempt = format!("patch {}", self.live.resource);
        self.reader.within(&attempt, api.patch(name, &params, patch)).await
    }
}

/// What stands behind a line about a write.
pub(super) fn suffix(dry_run: DryRun) -> &'static str {
    match dry_run {
        DryRun::None => "",
        DryRun::Client => " (dry run)",
        DryRun::Server => " (server dry run)",
    }
}

/// Shows what would be done, and asks if `asks` and it is no dry run. Where stdout is for programs, the
/// plan stands on stderr, and only before a question. `false`: nothing is to be changed, which was said.
///
/// # Errors
/// `refusal`, where nobody can be asked.
pub(super) fn agreed(
    plan: impl IntoIterator<Item = Line>,
    asks: bool,
    refusal: &str,
    change: &ChangeArgs,
    session: &mut Session<'_>,
) -> Result<bool, Error> {
    let asks = asks && change.dry_run == DryRun::None;
    let is_prose = change.output.for_programs().is_none();
    for line in plan {
        if is_prose {
            session.out.line(line)?;
        } else if asks {
            session.out.note(line)?;
        }
    }
    let is_agreed = !asks || session.confirm("Proceed?", refusal)?;
    if !is_agreed {
        session.out.note("nothing was changed")?;
    }
    Ok(is_agreed)
}

/// Says what became of an object: `deployment.apps/web held`, or the object itself.
pub(super) fn say(
    object: &DynamicObject,
    verb: &str,
    change: &ChangeArgs,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let (version, kind) = match &object.types {
        Some(types) => (types.api_version.as_str(), types.kind.as_str()),
        None => ("", ""),
    };
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let named = object::name(version, kind, name);
    match change.output.for_programs() {
        None => session.out.line(format!("{named} {verb}{}", suffix(change.dry_run)))?,
        Some(format) => {
            let mut value = serde_json::to_value(object)
                .map_err(|error| Error::other(format!("print the object: {error}")))?;
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.shift_remove("managedFields");
            }
            object::print(&value, &[named], format, session.out)?;
        }
    }
    Ok(Exit::Done)
}

/// How long to wait for something that only the operator can do.
pub(super) const OPERATOR_PATIENCE: Duration = Duration::from_secs(30);
