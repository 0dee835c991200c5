//! The checks of targets, several at a time, and of workloads that should be targets.

use std::collections::BTreeSet;

use belay_api::{AnnotationPrefix, ReleaseTarget, annotations::TargetAnnotation};
use belay_engine::annotations::target_name;
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{ResourceExt as _, api::ListParams};

use super::place;
use crate::{
    Error,
    cli::doctor::DoctorArgs,
    error::Class,
    facts::doctor::{Check, Examined, Finding, Level, examine},
    read::{Parts, Reader, api::kind_of},
};

/// How many targets are read at a time.
const AT_ONCE: usize = 8;

/// All findings about targets.
pub(super) async fn findings(
    reader: &Reader,
    args: &DoctorArgs,
    asked: Option<&AnnotationPrefix>,
    now: Timestamp,
) -> Result<Vec<Finding>, Error> {
    let own = reader.cluster.namespace.as_str();
    let namespace = Some(own).filter(|_| !args.all_namespaces);
    let kind = kind_of::<ReleaseTarget>();
    let targets = if let Some(name) = &args.name {
        let found = reader.get(&kind, Some(own), name).await?;
        let found = found.ok_or_else(|| {
            let message =
                format!("releasetargets.belay.dev \"{name}\" not found in namespace {own}");
            Error::new(Class::NotFound, message).reason("NotFound")
        })?;
        vec![found]
    } else {
        let params = match &args.selector {
            Some(labels) => ListParams::default().labels(labels),
            None => ListParams::default(),
        };
        reader.list(&kind, namespace, &params).await?
    };
    let parts = Parts { helm: true, ..Parts::default() };
    let names: Vec<(String, String)> = targets
        .iter()
        .map(|one| (one.namespace().unwrap_or_else(|| own.to_owned()), one.name_any()))
        .collect();
    let reads = names.iter().map(|(space, name)| async move {
        let snapshot = reader.snapshot(space, name, parts).await;
        let prefix = snapshot.prefix(asked);
        let said = Some(space.as_str()).filter(|space| *space != own);
        examine(&Examined { snapshot: &snapshot, prefix: &prefix, namespace: said }, now)
    });
    let found: Vec<Vec<Finding>> = stream::iter(reads).buffered(AT_ONCE).collect().await;
    let mut findings: Vec<Finding> = found.into_iter().flatten().collect();
    if args.name.is_none() && args.selector.is_none() {
        let prefix = asked.cloned().unwrap_or_default();
        findings.extend(unfollowed(reader, namespace, &names, &prefix).await);
    }
    Ok(findings)
}

/// Deployments that ask to be followed, and that no ReleaseTarget is about.
async fn unfollowed(
    reader: &Reader,
    namespace: Option<&str>,
    targets: &[(String, String)],
    prefix: &AnnotationPrefix,
) -> Vec<Finding> {
    let known: BTreeSet<(&str, &str)> =
        targets.iter().map(|(space, name)| (space.as_str(), name.as_str())).collect();
    let kind = kind_of::<Deployment>();
    let all = match reader.list(&kind, namespace, &ListParams::default()).await {
        Ok(all) => all,
        Err(error) => {
            let message =
                format!("Deployments without a ReleaseTarget: unknown: {}", error.message);
            return vec![Finding::new(Check::Unfollowed, Level::Warning, "", message)];
        }
    };
    let mut findings = Vec::new();
    for one in &all {
        let space = one.namespace().unwrap_or_default();
        let name = one.name_any();
        let target = target_name(prefix, "Deployment", &name, one.annotations());
        let has_repo = one.annotations().contains_key(&prefix.key(TargetAnnotation::Repo));
        let is_known = target
            .as_ref()
            .is_some_and(|target| known.contains(&(space.as_str(), target.as_str())));
        if has_repo && !is_known {
            let key = prefix.key(TargetAnnotation::Repo);
            let message = format!("carries {key}, and the operator has not answered to it");
            findings.push(
                Finding::new(Check::Unfollowed, Level::Error, place(one), message)
                    .fix("see whether the operator runs and watches this namespace"),
            );
        }
    }
    findings
}
