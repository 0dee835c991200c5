//! Two who pause one ScaledObject: whose pause survives when the other one drops his.

use anyhow::Result;
use belay_suite::keda::{FULL, MANAGER, SCALE_IN};
use kube::api::{Patch, PatchParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::scene::{Scene, WEB};

/// How a person pauses.
#[derive(Debug, Clone, Copy)]
enum Person {
    /// `kubectl annotate`.
    Patches,
    /// `kubectl apply --server-side`.
    Applies,
}

impl Person {
    async fn pauses(self, scene: &Scene) -> Result<()> {
        match self {
            Self::Patches => scene.annotate(WEB, SCALE_IN, json!("true")).await?,
            Self::Applies => scene.claim(WEB, "person", Some((SCALE_IN, "true"))).await?,
        };
        Ok(())
    }
}

#[rstest]
#[case::patched(Person::Patches)]
#[case::applied(Person::Applies)]
#[tokio::test]
async fn a_pause_of_a_person_from_before_survives_ours(#[case] person: Person) -> Result<()> {
    let scene = Scene::at(5).await?;
    person.pauses(&scene).await?;
    scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    assert_eq!(scene.owned_by(MANAGER).await?, [WEB]);
    scene.claim(WEB, MANAGER, None).await?;
    assert_eq!(scene.annotation(WEB, SCALE_IN).await?.as_deref(), Some("true"));
    assert!(scene.owned_by(MANAGER).await?.is_empty());
    scene.until_frozen(WEB).await
}

/// A patch that changes nothing gives no ownership: our drop takes this person's pause away. Only
/// server-side apply makes it his too.
#[rstest]
#[case::patched(Person::Patches, None)]
#[case::applied(Person::Applies, Some("true"))]
#[tokio::test]
async fn a_human_pause_after_ours_survives_only_by_apply(
    #[case] person: Person,
    #[case] left: Option<&str>,
) -> Result<()> {
    let scene = Scene::at(5).await?;
    scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    scene.until_frozen(WEB).await?;
    person.pauses(&scene).await?;
    scene.claim(WEB, MANAGER, None).await?;
    assert_eq!(scene.annotation(WEB, SCALE_IN).await?.as_deref(), left);
    match left {
        Some(_) => scene.until_frozen(WEB).await,
        None => scene.until_resumed(WEB).await,
    }
}

#[tokio::test]
async fn who_removes_a_shared_key_removes_it_for_both() -> Result<()> {
    let scene = Scene::at(5).await?;
    Person::Applies.pauses(&scene).await?;
    scene.claim(WEB, MANAGER, Some((SCALE_IN, "true"))).await?;
    scene.annotate(WEB, SCALE_IN, Value::Null).await?;
    assert_eq!(scene.annotation(WEB, SCALE_IN).await?, None);
    assert!(scene.owned_by(MANAGER).await?.is_empty());
    scene.until_resumed(WEB).await
}

#[tokio::test]
async fn a_key_with_another_value_is_a_conflict_without_force() -> Result<()> {
    let scene = Scene::at(5).await?;
    scene.annotate(WEB, FULL, json!("false")).await?;
    let error = scene.claim(WEB, MANAGER, Some((FULL, "true"))).await.unwrap_err();
    let kube::Error::Api(status) = error.downcast::<kube::Error>()? else {
        anyhow::bail!("no answer of the API server")
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(scene.annotation(WEB, FULL).await?.as_deref(), Some("false"));
    Ok(())
}

/// What a write of the operator carries as its precondition, and how it is refused.
#[rstest]
#[case::another_uid("uid", "00000000-0000-0000-0000-000000000000", 422)]
#[case::an_older_revision("resourceVersion", "1", 409)]
#[tokio::test]
async fn a_write_to_another_state_than_was_seen_is_refused(
    #[case] field: &str,
    #[case] value: &str,
    #[case] code: u16,
) -> Result<()> {
    let scene = Scene::at(5).await?;
    let mut body = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": { "name": WEB, "annotations": { SCALE_IN: "true" } },
    });
    body["metadata"][field] = json!(value);
    let params = PatchParams::apply(MANAGER);
    let answer = scene.objects().patch(WEB, &params, &Patch::Apply(body)).await;
    let Err(kube::Error::Api(status)) = answer else { anyhow::bail!("{answer:?}") };
    assert_eq!(status.code, code, "{status:?}");
    assert_eq!(scene.annotation(WEB, SCALE_IN).await?, None);
    Ok(())
}
