//! What the cluster's own roles for people may do with Belay's objects, asked of the real API server.

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_testkit::{Cluster, operator::chart, wait};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    rbac::v1::RoleBinding,
};
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::bed::{self, RELEASE};

/// Verb, resource, and who of viewer and editor may.
const TABLE: [(&str, &str, bool, bool); 14] = [
    ("get", "releases", true, true),
    ("list", "rollbacks", true, true),
    ("watch", "releasetargets", true, true),
    ("list", "automatedrollbackpolicies", true, true),
    ("patch", "releases", false, true),
    ("create", "releases", false, false),
    ("delete", "releases", false, false),
    ("create", "automatedrollbackpolicies", false, true),
    ("delete", "automatedrollbackpolicies", false, true),
    ("create", "rollbacks", false, false),
    ("patch", "rollbacks", false, false),
    ("delete", "rollbacks", false, false),
    ("patch", "releasetargets", false, false),
    ("create", "releasetargets", false, false),
];

/// Two people of one namespace, one with the role `view`, one with `edit`.
struct People {
    cluster: &'static Cluster,
    namespace: String,
}

impl People {
    async fn new(cluster: &'static Cluster) -> Result<Self> {
        let namespace = cluster.namespace("people").await?;
        let bindings: Api<RoleBinding> = Api::namespaced(cluster.admin()?, &namespace);
        for role in ["view", "edit"] {
            let binding = json!({
                "metadata": { "name": role },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
                "subjects": [
                    { "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user(&namespace, role) }],
            });
            bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
        }
        Ok(Self { cluster, namespace })
    }

    async fn may(&self, role: &str, verb: &str, resource: &str) -> Result<bool> {
        let text = |text: &str| Some(text.to_owned());
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user(&self.namespace, role)),
                resource_attributes: Some(ResourceAttributes {
                    namespace: text(&self.namespace),
                    verb: text(verb),
                    group: text("belay.dev"),
                    resource: text(resource),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.cluster.admin()?);
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.context("an answer without a status")?.allowed)
    }

    /// Roles are put together by a controller, and heard of by a watch.
    async fn will(&self, role: &str, verb: &str, resource: &str) -> Result<()> {
        wait::until(&format!("{role} to {verb} {resource}"), wait::SOON, || async {
            match self.may(role, verb, resource).await {
                Ok(true) => Ok(()),
                Ok(false) => Err("it is refused".to_owned()),
                Err(error) => Err(format!("{error:#}")),
            }
        })
        .await?;
        Ok(())
    }
}

fn user(namespace: &str, role: &str) -> String {
    format!("{role}er-of-{namespace}")
}

#[tokio::test]
async fn those_who_view_see_and_those_who_edit_roll_back_where_that_is_granted() -> Result<()> {
    let cluster = bed::cluster().await?;
    let people = People::new(cluster).await?;
    let helm = |verb: &'static str, values: &'static str| {
        let tool = cluster.tool(Binary::Helm4)?.args([verb, RELEASE]).arg(chart());
        let tool = tool.args(["--namespace", &people.namespace, "--set", "crds.install=false"]);
        anyhow::Ok(tool.args(["--set", "scope=namespace", "--set", values]))
    };
    helm("install", "rbac.editCanRollback=false")?.ok().await?;
    people.will("view", "list", "rollbacks").await?;
    people.will("edit", "patch", "releases").await?;
    for (verb, resource, viewer, editor) in TABLE {
        for (role, expected) in [("view", viewer), ("edit", editor)] {
            let found = people.may(role, verb, resource).await?;
            ensure!(found == expected, "{role} {verb} {resource}: {found}");
        }
    }
    helm("upgrade", "rbac.editCanRollback=true")?.ok().await?;
    people.will("edit", "create", "rollbacks").await?;
    ensure!(!people.may("view", "create", "rollbacks").await?);
    ensure!(!people.may("edit", "delete", "rollbacks").await?);
    Ok(())
}
