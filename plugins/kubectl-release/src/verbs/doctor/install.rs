//! The checks of the installation.

use belay_api::{
    AnnotationPrefix, AutomatedRollbackPolicy, GROUP, Release, ReleaseTarget, Rollback, VERSION,
    crd::{SCHEMA_VERSION, schema_version},
};
use futures::future::join_all;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        authorization::v1::{
            ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
        },
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Resource as _, ResourceExt as _,
    api::{ApiResource, ListParams, PostParams},
};

use crate::{
    facts::{
        doctor::{Check, Finding, Level},
        version::{Skew, of_operator, skew},
    },
    read::{
        Fact, Reader, Why,
        api::{kind_of, resource},
    },
};

/// What was found, and what the heading says.
pub(super) struct Installation {
    pub(super) findings: Vec<Finding>,
    pub(super) operators: Fact<Vec<Deployment>>,
    pub(super) server: Fact<String>,
}

fn kinds() -> [ApiResource; 4] {
    [
        kind_of::<ReleaseTarget>(),
        kind_of::<Release>(),
        kind_of::<Rollback>(),
        kind_of::<AutomatedRollbackPolicy>(),
    ]
}

/// All checks of the installation.
pub(super) async fn findings(
    reader: &Reader,
    prefix: AnnotationPrefix,
    plugin: &str,
    namespace: Option<&str>,
) -> Installation {
    let (served, schema, operators, server, rights) = futures::join!(
        served(reader),
        schema(reader, &prefix),
        reader.operators(),
        reader.server_version(),
        rights(reader, namespace),
    );
    let mut findings = vec![served];
    findings.extend(schema);
    findings.extend(operator(&operators, plugin));
    findings.push(rights);
    Installation { findings, operators, server }
}

async fn served(reader: &Reader) -> Finding {
    let lists = kinds().map(|kind| async move {
        let params = ListParams::default().limit(1);
        let namespace = Some(reader.cluster.namespace.as_str());
        (resource(&kind), reader.list(&kind, namespace, &params).await)
    });
    let answers = join_all(lists).await;
    let mut missing = Vec::new();
    let mut unknown = Vec::new();
    for (name, answer) in answers {
        match answer.map_err(Why::from) {
            Err(Why::NotServed(_)) => missing.push(name),
            // The check of rights says what may not be listed.
            Ok(_) | Err(Why::Forbidden(_)) => {}
            Err(why) => unknown.push(format!("{name}: {}", why.words())),
        }
    }
    if !missing.is_empty() {
        let message = format!("not served in {VERSION}: {}", missing.join(", "));
        return Finding::new(Check::Served, Level::Error, "", message)
            .fix("helm install belay charts/belay");
    }
    if !unknown.is_empty() {
        return Finding::new(Check::Served, Level::Warning, "", unknown.join("; "));
    }
    Finding::new(Check::Served, Level::Ok, "", format!("CRDs installed, served {VERSION}"))
}

async fn schema(reader: &Reader, prefix: &AnnotationPrefix) -> Option<Finding> {
    let api: Api<CustomResourceDefinition> = Api::all(reader.cluster.client.clone());
    let api = &api;
    let reads = kinds().map(|kind| async move {
        let name = resource(&kind);
        let attempt = format!("get customresourcedefinitions.apiextensions.k8s.io \"{name}\"");
        let found = reader.within(&attempt, api.get(&name)).await;
        (name, found)
    });
    let mut older = Vec::new();
    let mut unread = None;
    for (name, found) in join_all(reads).await {
        match found {
            Ok(crd) => {
                if schema_version(&crd, prefix).is_none_or(|found| found < SCHEMA_VERSION) {
                    older.push(name);
                }
            }
            Err(error) => unread = Some(Why::from(error)),
        }
    }
    match unread {
        _ if !older.is_empty() => {
            let message = format!("older than this version of Belay: {}", older.join(", "));
            Some(
                Finding::new(Check::Schema, Level::Warning, "", message)
                    .fix("helm upgrade belay charts/belay"),
            )
        }
        // The check of what is served has said the rest.
        Some(Why::Failed(_) | Why::NotServed(_)) => None,
        Some(why) => {
            let message = format!("schemas of the CRDs: unknown: {}", why.words());
            Some(Finding::new(Check::Schema, Level::Warning, "", message))
        }
        None => {
            let message = format!("schemas of the CRDs in version {SCHEMA_VERSION}");
            Some(Finding::new(Check::Schema, Level::Ok, "", message))
        }
    }
}

fn operator(operators: &Fact<Vec<Deployment>>, plugin: &str) -> Vec<Finding> {
    let all = match operators {
        Fact::Known(all) if all.is_empty() => {
            let message = "no Deployment of the operator was found";
            return vec![
                Finding::new(Check::Operator, Level::Warning, "", message)
                    .fix("look for it: kubectl get deploy -A -l app.kubernetes.io/name=belay"),
            ];
        }
        Fact::Known(all) => all,
        Fact::Unknown(why) => {
            let message = format!("operator: unknown: {}", why.words());
            return vec![Finding::new(Check::Operator, Level::Warning, "", message)];
        }
    };
    let mut findings = Vec::new();
    for one in all {
        let place = format!("{}/{}", one.namespace().unwrap_or_default(), one.name_any());
        let wanted = one.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let ready = one.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
        let level = if ready > 0 { Level::Ok } else { Level::Error };
        let finding = Finding::new(
            Check::Operator,
            level,
            "",
            format!("operator {place} {ready}/{wanted} ready"),
        );
        findings.push(if level == Level::Ok {
            finding
        } else {
            let name = one.name_any();
            let space = one.namespace().unwrap_or_default();
            finding.fix(format!("kubectl logs deploy/{name} -n {space}"))
        });
        let Some(version) = of_operator(one) else { continue };
        match skew(plugin, &version) {
            Skew::None => {}
            Skew::PluginIsOlder => findings.push(
                Finding::new(
                    Check::Skew,
                    Level::Warning,
                    "",
                    format!("the plugin (v{plugin}) is older than the operator (v{version})"),
                )
                .fix("update the plugin"),
            ),
            Skew::PluginIsNewer => findings.push(
                Finding::new(
                    Check::Skew,
                    Level::Warning,
                    "",
                    format!("the plugin (v{plugin}) is newer than the operator (v{version})"),
                )
                .fix("update the operator"),
            ),
        }
    }
    findings
}

/// What the verbs need: verb, group, resource, and whether they can do without.
const NEEDS: [(&str, &str, &str, bool); 9] = [
    ("list", GROUP, "releasetargets", false),
    ("list", GROUP, "releases", false),
    ("list", GROUP, "rollbacks", false),
    ("create", GROUP, "rollbacks", false),
    ("get", "apps", "deployments", false),
    ("patch", "apps", "deployments", false),
    ("list", "apps", "replicasets", true),
    ("list", "", "pods", true),
    ("list", "", "secrets", true),
];

/// In a namespace, or in all.
async fn rights(reader: &Reader, namespace: Option<&str>) -> Finding {
    let api: Api<SelfSubjectAccessReview> = Api::all(reader.cluster.client.clone());
    let api = &api;
    let asks = NEEDS.map(|(verb, group, resource, optional)| async move {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: Some(verb.to_owned()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    namespace: namespace.map(ToOwned::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let attempt = format!("create {}", SelfSubjectAccessReview::plural(&()));
        let asked = reader.within(&attempt, api.create(&PostParams::default(), &review)).await;
        let allowed = asked.map(|review| review.status.is_some_and(|status| status.allowed));
        (format!("{verb} {resource}"), optional, allowed)
    });
    let mut denied = Vec::new();
    let mut partly = Vec::new();
    for (what, optional, allowed) in join_all(asks).await {
        match allowed {
            Ok(true) => {}
            Ok(false) if optional => partly.push(what),
            Ok(false) => denied.push(what),
            Err(error) => {
                let message = format!("your rights: unknown: {}", error.message);
                return Finding::new(Check::Rights, Level::Warning, "", message);
            }
        }
    }
    let place = namespace
        .map_or_else(|| "in all namespaces".to_owned(), |name| format!("in namespace {name}"));
    if !denied.is_empty() {
        denied.extend(partly);
        let message = format!("you may not: {} ({place})", denied.join(", "));
        return Finding::new(Check::Rights, Level::Warning, "", message)
            .fix("ask for a Role with these rights");
    }
    if !partly.is_empty() {
        let message = format!(
            "you may not: {} ({place}): parts of answers will be unknown",
            partly.join(", ")
        );
        return Finding::new(Check::Rights, Level::Warning, "", message);
    }
    Finding::new(Check::Rights, Level::Ok, "", format!("you may do what every verb does ({place})"))
}
