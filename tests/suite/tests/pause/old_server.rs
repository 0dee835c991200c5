//! A server from before 1.37: its HPAs have no generation, and say not which one was looked at.

use anyhow::{Context as _, Result, ensure};
use belay_suite::{
    keda::{Kind, condition},
    operator::{
        Bed, Running, World,
        support::{events, roll, told},
    },
};
use belay_testkit::{cluster::Options, keda::Keda, objects::ScaledObject};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};

use crate::scene::{HPA, WEB, until_let_go, wired};

#[tokio::test]
async fn without_generations_a_pause_is_proven_by_what_the_hpa_is_to_do() -> Result<()> {
    let options = Options { without_features: &["HPAGeneration"], ..Options::default() };
    let world = World::apart_with(options).await?;
    Keda::apply_crds(world.cluster).await?;
    let bed = Bed::in_world(world, "old").await?;
    let _keda = Keda::of_namespace(world.cluster, &bed.namespace).await?;
    bed.release("v1.0.0").await?;
    bed.create(&bed.web("1.0.0").annotation("belay.dev/scaledobject", WEB), "helm").await?;
    let objects: Api<DynamicObject> =
        Api::namespaced_with(bed.client.clone(), &bed.namespace, &Kind::ScaledObject.resource());
    let body = ScaledObject::of(WEB);
    let author = PatchParams::apply("author");
    objects.patch(WEB, &author, &Patch::Apply(body.json())).await?;
    let hpas: Api<HorizontalPodAutoscaler> = Api::namespaced(bed.client.clone(), &bed.namespace);
    bed.wait("KEDA's HPA", || async {
        let object = serde_json::to_value(objects.get(WEB).await?)?;
        ensure!(condition(&object, "Ready") == "True", "{}", object["status"]);
        hpas.get_opt(HPA.1).await?.context("there is none")
    })
    .await?;
    let operator = Running::start(&bed, wired(|_| ()))?;
    bed.wait_for_healthy(WEB, "v1.0.0").await?;
    roll(&bed, "v1.1.0").await?;
    until_let_go(&bed, &objects).await?;
    let hpa = hpas.get(HPA.1).await?;
    let observed = hpa.status.and_then(|status| status.observed_generation);
    assert_eq!((hpa.metadata.generation, observed), (None, None));
    told(&bed, "Pausing", &[WEB]).await?;
    for note in ["RolledUnpaused", "ResumeUnproven"] {
        ensure!(events(&bed, note).await?.is_empty(), "{note}");
    }
    operator.stop().await
}
