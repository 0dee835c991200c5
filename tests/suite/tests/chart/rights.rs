//! What the operator may do and what it may not, asked of the real API server with its own token.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use belay_components::Binary;
use belay_testkit::{
    Cluster,
    cluster::{FIELD_MANAGER, identity::Access},
    operator::chart,
    wait,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    rbac::v1::RoleBinding,
};
use kube::{
    Api,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bed::{self, OPERATOR, RELEASE};

/// Every verb that a rule can name, but those of other worlds (`impersonate`, `bind`, `escalate`:
/// asked for where they mean something).
const VERBS: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// What is asked for. Whatever is not in a table of allowed verbs must be refused.
const RESOURCES: [&str; 40] = [
    "deployments.apps",
    "deployments/status.apps",
    "deployments/scale.apps",
    "replicasets.apps",
    "replicasets/scale.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "pods",
    "pods/log",
    "pods/exec",
    "pods/eviction",
    "pods/ephemeralcontainers",
    "replicationcontrollers",
    "services",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "serviceaccounts/token",
    "events",
    "events.events.k8s.io",
    "namespaces",
    "nodes",
    "nodes/proxy",
    "leases.coordination.k8s.io",
    "horizontalpodautoscalers.autoscaling",
    "scaledobjects.keda.sh",
    "releases.belay.dev",
    "releases/status.belay.dev",
    "rollbacks.belay.dev",
    "rollbacks/status.belay.dev",
    "releasetargets.belay.dev",
    "releasetargets/status.belay.dev",
    "automatedrollbackpolicies.belay.dev",
    "automatedrollbackpolicies/status.belay.dev",
    "roles.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
];

/// What the operator needs wherever it follows workloads.
const FOLLOWED: &str = "
    deployments.apps                     get list watch patch
    scaledobjects.keda.sh                get list watch patch
    horizontalpodautoscalers.autoscaling get
    replicasets.apps                     list watch
    pods                                 list watch
    releases.belay.dev                   get list watch create patch delete
    releases/status.belay.dev            patch update
    rollbacks.belay.dev                  get list watch create patch delete
    rollbacks/status.belay.dev           patch update
    releasetargets.belay.dev             get list watch create patch delete
    releasetargets/status.belay.dev      patch update
    automatedrollbackpolicies.belay.dev  get list watch
    events                               create patch
    events.events.k8s.io                 create patch
    namespaces                           get
    leases.coordination.k8s.io           get
";

const NODES: &str = "nodes  list watch";
const OWN_LEASE: &str = "leases.coordination.k8s.io  create";
const PULL_SECRETS: &str = "
    secrets          get
    serviceaccounts  get
";

/// Verb and resource.
type Right = (&'static str, &'static str);

fn rights(tables: &[&'static str]) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    for line in tables.iter().flat_map(|table| table.lines()) {
        let mut words = line.split_whitespace();
        let Some(resource) = words.next() else { continue };
        ensure!(RESOURCES.contains(&resource), "{resource} is never asked for");
        for verb in words {
            ensure!(VERBS.contains(&verb), "{verb} is never asked for");
            rights.insert((verb, resource));
        }
    }
    Ok(rights)
}

/// An installed chart and who its operator is. No pod of it ever becomes ready, and none is needed.
struct Installed {
    cluster: &'static Cluster,
    namespace: String,
    access: Access,
}

impl Installed {
    async fn with(values: Value) -> Result<Self> {
        let cluster = bed::cluster().await?;
        let namespace = cluster.namespace("rights").await?;
        install(cluster, &namespace, &values, None).await?.ok()?;
        let access = cluster.token_of(&namespace, OPERATOR).await?;
        let installed = Self { cluster, namespace, access };
        // The authorizer hears of new bindings by a watch.
        let own = installed.namespace.clone();
        installed.wait_for(&own, "patch", "deployments.apps").await?;
        Ok(installed)
    }

    async fn wait_for(&self, namespace: &str, verb: &str, resource: &str) -> Result<()> {
        wait::until(&format!("{verb} {resource} to be allowed"), wait::SOON, || async {
            match self.may(namespace, verb, resource, "").await {
                Ok(true) => Ok(()),
                Ok(false) => Err("it is refused".to_owned()),
                Err(error) => Err(format!("{error:#}")),
            }
        })
        .await?;
        Ok(())
    }

    /// Whether the operator may do it; an empty namespace means all, an empty name any.
    async fn may(&self, namespace: &str, verb: &str, resource: &str, name: &str) -> Result<bool> {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let text = |text: &str| Some(text.to_owned());
        let review = SelfSubjectAccessReview {
            metadata: ObjectMeta::default(),
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: text(namespace),
                    verb: text(verb),
                    group: text(group),
                    resource: text(resource),
                    subresource: text(subresource),
                    name: text(name),
                    ..ResourceAttributes::default()
                }),
                non_resource_attributes: None,
            },
            status: None,
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.cluster.client(&self.access)?);
        let answer = reviews.create(&PostParams::default(), &review).await?;
        let status = answer.status.context("an answer without a status")?;
        ensure!(status.evaluation_error.is_none(), "{:?}", status.evaluation_error);
        Ok(status.allowed)
    }

    /// Everything that it may do in a namespace, or in all.
    async fn all(&self, namespace: &str) -> Result<BTreeSet<Right>> {
        let questions =
            RESOURCES.iter().flat_map(|resource| VERBS.iter().map(move |verb| (*verb, *resource)));
        stream::iter(questions)
            .map(|(verb, resource)| async move {
                anyhow::Ok((self.may(namespace, verb, resource, "").await?, (verb, resource)))
            })
            .buffer_unordered(16)
            .try_filter_map(|(allowed, right)| std::future::ready(Ok(allowed.then_some(right))))
            .try_collect()
            .await
    }

    async fn expect(&self, namespace: &str, tables: &[&'static str]) -> Result<()> {
        let (found, wanted) = (self.all(namespace).await?, rights(tables)?);
        let surplus: Vec<_> = found.difference(&wanted).collect();
        let missing: Vec<_> = wanted.difference(&found).collect();
        ensure!(
            surplus.is_empty() && missing.is_empty(),
            "in {namespace:?} it may, and should not: {surplus:?}; it may not, and should: {missing:?}"
        );
        Ok(())
    }
}

/// `helm install`, waiting for nothing, as the administrator or with another kubeconfig.
async fn install(
    cluster: &Cluster,
    namespace: &str,
    values: &Value,
    kubeconfig: Option<&std::path::Path>,
) -> Result<belay_testkit::tool::Finished> {
    let tool = match kubeconfig {
        Some(kubeconfig) => cluster.tool_as(Binary::Helm4, kubeconfig)?,
        None => cluster.tool(Binary::Helm4)?,
    };
    let tool = tool.args(["install", RELEASE]).arg(chart());
    let tool =
        tool.args(["--namespace", namespace, "--values", "-", "--set", "crds.install=false"]);
    Ok(tool.input(values.to_string()).run().await?)
}

#[tokio::test]
async fn with_scope_cluster_the_operator_may_do_this_and_nothing_else() -> Result<()> {
    let installed = Installed::with(json!({ "annotationPrefix": bed::OTHER_PREFIX })).await?;
    installed.expect(&installed.namespace, &[FOLLOWED, NODES, OWN_LEASE]).await?;
    installed.expect("default", &[FOLLOWED, NODES]).await?;
    installed.expect("", &[FOLLOWED, NODES]).await
}

#[tokio::test]
async fn with_scope_namespace_the_operator_may_do_this_and_nothing_else() -> Result<()> {
    let installed = Installed::with(json!({ "scope": "namespace" })).await?;
    installed.expect(&installed.namespace, &[FOLLOWED, NODES, OWN_LEASE, PULL_SECRETS]).await?;
    installed.expect("default", &[NODES]).await?;
    installed.expect("", &[NODES]).await
}

#[rstest]
#[case::cluster("cluster")]
#[case::namespace("namespace")]
#[tokio::test]
async fn names_limit_what_can_be_limited(#[case] scope: &str) -> Result<()> {
    let values = json!({ "scope": scope, "annotationPrefix": bed::OTHER_PREFIX });
    let installed = Installed::with(values).await?;
    let own = installed.namespace.clone();
    let (leases, crds) = ("leases.coordination.k8s.io", RESOURCES[38]);
    let account = "serviceaccounts";
    for (namespace, verb, resource, name, allowed) in [
        (own.as_str(), "update", leases, OPERATOR, true),
        (&own, "patch", leases, OPERATOR, true),
        (&own, "update", leases, "other", false),
        (&own, "delete", leases, OPERATOR, false),
        ("default", "update", leases, OPERATOR, false),
        ("default", "get", leases, "other", scope == "cluster"),
        ("", "get", crds, "releases.belay.dev", true),
        ("", "get", crds, "rollbacks.belay.dev", true),
        ("", "get", crds, "releasetargets.belay.dev", true),
        ("", "get", crds, "automatedrollbackpolicies.belay.dev", true),
        ("", "get", crds, "scaledobjects.keda.sh", false),
        ("", "patch", crds, "releases.belay.dev", false),
        (&own, "impersonate", account, "default", false),
        ("", "escalate", "clusterroles.rbac.authorization.k8s.io", "", false),
        ("", "bind", "clusterroles.rbac.authorization.k8s.io", "cluster-admin", false),
    ] {
        let found = installed.may(namespace, verb, resource, name).await?;
        ensure!(found == allowed, "{verb} {resource} {name:?} in {namespace:?}: {found}");
    }
    Ok(())
}

#[tokio::test]
async fn a_namespace_grants_its_pull_secrets_by_one_binding() -> Result<()> {
    let installed = Installed::with(json!({
        "annotationPrefix": bed::OTHER_PREFIX, "registry": { "readPullSecrets": true },
    }))
    .await?;
    let other = installed.cluster.namespace("granting").await?;
    installed.expect(&other, &[FOLLOWED, NODES]).await?;
    // As NOTES.txt says.
    let role = format!("{}:{OPERATOR}:pull-secrets", installed.namespace);
    installed
        .cluster
        .tool(Binary::Kubectl)?
        .args(["-n", &other, "create", "rolebinding", "belay-pull-secrets"])
        .arg(format!("--clusterrole={role}"))
        .arg(format!("--serviceaccount={}:{OPERATOR}", installed.namespace))
        .ok()
        .await?;
    installed.wait_for(&other, "get", "secrets").await?;
    installed.expect(&other, &[FOLLOWED, NODES, PULL_SECRETS]).await?;
    installed.expect("default", &[FOLLOWED, NODES]).await
}

/// Somebody with all rights in one namespace and none elsewhere.
pub(crate) async fn owner_of(cluster: &Cluster, namespace: &str) -> Result<std::path::PathBuf> {
    let name = format!("owner-of-{namespace}");
    let access = Access { namespace: namespace.to_owned(), ..cluster.user(&name, &[])? };
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": "owner" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name }],
    });
    let bindings: Api<RoleBinding> = Api::namespaced(cluster.admin()?, namespace);
    bindings.patch("owner", &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(binding)).await?;
    let kubeconfig = cluster.write_kubeconfig(&name, &access)?;
    let can = || async {
        let tool = cluster.tool_as(Binary::Kubectl, &kubeconfig).map_err(|it| it.to_string())?;
        let tool = tool.args(["-n", namespace, "auth", "can-i", "create", "roles"]);
        tool.ok().await.map(drop).map_err(|error| error.to_string())
    };
    wait::until("the binding to take effect", wait::SOON, can).await?;
    Ok(kubeconfig)
}

#[tokio::test]
async fn an_owner_of_one_namespace_can_install_with_scope_namespace() -> Result<()> {
    let cluster = bed::cluster().await?;
    let namespace = cluster.namespace("owned").await?;
    let owner = owner_of(cluster, &namespace).await?;
    // The small ClusterRole is more than the owner may make.
    let values = json!({ "scope": "namespace" });
    let refused = install(cluster, &namespace, &values, Some(&owner)).await?;
    if refused.status.success() {
        bail!("a ClusterRole was made without the right to make one");
    }
    ensure!(refused.stderr.contains("clusterroles"), "{}", refused.stderr);
    cluster
        .tool_as(Binary::Helm4, &owner)?
        .args(["uninstall", RELEASE, "--no-hooks", "--ignore-not-found", "--namespace", &namespace])
        .ok()
        .await?;
    let values = json!({ "scope": "namespace", "rbac": { "clusterWide": false } });
    install(cluster, &namespace, &values, Some(&owner)).await?.ok()?;
    let access = cluster.token_of(&namespace, OPERATOR).await?;
    let installed = Installed { cluster, namespace: namespace.clone(), access };
    installed.wait_for(&namespace, "patch", "deployments.apps").await?;
    installed.expect(&namespace, &[FOLLOWED, OWN_LEASE, PULL_SECRETS]).await?;
    installed.expect("default", &[]).await?;
    installed.expect("", &[]).await
}
