//! Whether the CRDs in the cluster are those that this operator was built for.

use std::time::Duration;

use belay_api::{
    AnnotationPrefix,
    crd::{self, SCHEMA_VERSION},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client, Resource as _,
    api::{GetParams, Request},
};

use super::{WriteError, send::Sender};
use crate::clock::Clock;

/// How long one read may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why the operator must not write yet.
#[derive(Debug, thiserror::Error)]
pub enum SchemaProblem {
    /// A CRD is not there.
    #[error("the CustomResourceDefinition {name} is not in the cluster: {ADVICE}")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A CRD is older than this operator, or its version cannot be told.
    #[error(
        "the CustomResourceDefinition {name} has {}, and this operator needs {SCHEMA_VERSION}: \
         {ADVICE}",
        version(*.found)
    )]
    Older {
        /// Its name.
        name: String,
        /// The version of its schema.
        found: Option<u32>,
    },
    /// It is not known.
    #[error("read the CustomResourceDefinition {name}")]
    Unread {
        /// Its name.
        name: String,
        /// Why.
        source: WriteError,
    },
}

const ADVICE: &str =
    "run `helm upgrade belay charts/belay` with the chart of this operator's version";

fn version(found: Option<u32>) -> String {
    found.map_or_else(|| "no schema version".to_owned(), |found| format!("schema version {found}"))
}

/// Checks that all CRDs are there and not older than this operator.
///
/// # Errors
/// The first [`SchemaProblem`].
pub async fn check_crds(client: &Client, prefix: &AnnotationPrefix) -> Result<(), SchemaProblem> {
    let sender = Sender::new(client.clone(), Clock::machine(), PATIENCE);
    for wanted in crd::all(prefix) {
        let name = wanted.metadata.name.unwrap_or_default();
        let request = Request::new(CustomResourceDefinition::url_path(&(), None));
        let request = request.get(&name, &GetParams::default());
        let attempt = format!("read CustomResourceDefinition {name}");
        match sender.send::<CustomResourceDefinition>(&attempt, request).await {
            Ok(crd) => {
                let found = crd::schema_version(&crd, prefix);
                if found.is_none_or(|found| found < SCHEMA_VERSION) {
                    return Err(SchemaProblem::Older { name, found });
                }
            }
            Err(error) if error.status().is_some_and(|status| status.code == 404) => {
                return Err(SchemaProblem::Missing { name });
            }
            Err(source) => return Err(SchemaProblem::Unread { name, source }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use belay_api::annotations::OwnAnnotation;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::cluster::fake::{Answer, Server};

    fn prefix() -> AnnotationPrefix {
        "example.com".parse().unwrap()
    }

    /// The CRDs as the cluster has them, the last one with this version.
    fn answers(last: Option<&str>) -> Vec<Answer> {
        let mut crds = crd::all(&prefix());
        let annotations = crds.last_mut().unwrap().metadata.annotations.as_mut().unwrap();
        let key = prefix().key(OwnAnnotation::Schema);
        match last {
            Some(version) => annotations.insert(key, version.to_owned()),
            None => annotations.remove(&key),
        };
        crds.iter().map(|crd| Answer::ok(&serde_json::to_value(crd).unwrap())).collect()
    }

    async fn check(answers: Vec<Answer>) -> Result<(), String> {
        let server = Server::answering(answers);
        check_crds(&server.client(), &prefix()).await.map_err(|problem| problem.to_string())
    }

    #[rstest]
    #[case::the_same(SCHEMA_VERSION.to_string())]
    #[case::newer((SCHEMA_VERSION + 1).to_string())]
    #[tokio::test]
    async fn crds_of_this_version_or_a_newer_one_are_right(#[case] version: String) {
        assert_eq!(check(answers(Some(&version))).await, Ok(()));
    }

    #[rstest]
    #[case::older(Some("0"), "has schema version 0")]
    #[case::no_version(None, "has no schema version")]
    #[case::no_number(Some("two"), "has no schema version")]
    #[tokio::test]
    async fn older_crds_are_named_with_the_way_out(
        #[case] version: Option<&str>,
        #[case] says: &str,
    ) {
        let problem = check(answers(version)).await.unwrap_err();
        let expected = format!(
            "the CustomResourceDefinition releasetargets.belay.dev {says}, and this operator \
             needs {SCHEMA_VERSION}: {ADVICE}"
        );
        assert_eq!(problem, expected);
    }

    #[tokio::test]
    async fn a_missing_crd_is_named() {
        let missing = Answer::refusal(404, "NotFound", "", json!({ "name": "x" }));
        let problem = check(vec![missing]).await.unwrap_err();
        let name = "the CustomResourceDefinition releases.belay.dev is not in the cluster: ";
        assert_eq!(problem, format!("{name}{ADVICE}"));
    }

    #[tokio::test]
    async fn a_failed_read_is_not_a_missing_crd() {
        let no = Answer::refusal(503, "ServiceUnavailable", "later", json!({}));
        let server = Server::answering([no]);
        let problem = check_crds(&server.client(), &prefix()).await.unwrap_err();
        assert!(matches!(problem, SchemaProblem::Unread { .. }), "{problem}");
    }
}
