//! Which containers and which workloads make a target (operator specification, section 2).

use anyhow::{Context as _, Result};
use belay_api::reasons::{Note, StalledReason};
use belay_ownership::{Identity, Operation, Ownership};
use belay_suite::operator::{Bed, Wiring, condition};
use belay_testkit::objects::Workload;
use kube::api::DeleteParams;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{
    REPO, events, going_on, live, polls, roll, stalled, target, told, wait_for_release,
    wait_for_target,
};

/// A Deployment with an init container and two containers of the repository, and a sidecar of
/// another one between them.
fn several(bed: &Bed, containers: &str) -> Workload {
    let image = bed.image("1.0.0");
    Workload::deployment("web")
        .replicas(1)
        .init_image("wait", "sidecar.example/wait:3")
        .init_image("migrate", &image)
        .image("app", &image)
        .image("proxy", "sidecar.example/proxy:7")
        .image("worker", &image)
        .annotation("belay.dev/repo", REPO)
        .annotation("belay.dev/bake", "1s")
        .annotation("belay.dev/container", containers)
}

/// The images of all containers, init containers first.
async fn images(bed: &Bed) -> Result<Vec<String>> {
    let pod = live(bed, "web").await?["spec"]["template"]["spec"].take();
    let lists = [&pod["initContainers"], &pod["containers"]];
    let all = lists.into_iter().filter_map(Value::as_array).flatten();
    Ok(all.filter_map(|one| one["image"].as_str()).map(ToOwned::to_owned).collect())
}

#[tokio::test]
async fn several_containers_and_init_containers_move_in_one_apply() -> Result<()> {
    let bed = Bed::new("several").await?;
    bed.release("v1.0.0").await?;
    bed.create(&several(&bed, "app, init:migrate, worker"), "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    let generation = bed.deployments().get("web").await?.metadata.generation;
    bed.release("v1.1.0").await?;
    let release = bed.wait_for_healthy("web", "v1.1.0").await?;
    let new = bed.image("1.1.0");
    let expected = ["sidecar.example/wait:3", &new, &new, "sidecar.example/proxy:7", &new];
    assert_eq!(images(&bed).await?, expected);
    let after = bed.deployments().get("web").await?.metadata.generation;
    assert_eq!(after, generation.map(|generation| generation + 1), "one change of the template");
    let recorded = release.status.unwrap_or_default().images;
    let names: Vec<&str> = recorded.iter().map(|image| image.container.as_str()).collect();
    assert_eq!(names, ["app", "init:migrate", "worker"]);
    assert!(recorded.iter().all(|image| image.stored.as_ref() == Some(&new)), "{recorded:?}");
    assert_eq!(target(&bed, "web").await?.containers, names);
    let entries = bed.deployments().get_metadata("web").await?.metadata.managed_fields;
    let ownership = Ownership::decode(&entries.unwrap_or_default());
    let identity = Identity::new("belay-operator", Operation::Apply, "", "apps/v1");
    let entry = ownership.entry(&identity).context("no entry")?;
    let is_image = |path: &str| path.rsplit_once('.').is_some_and(|(_, field)| field == "image");
    let paths: Vec<String> = entry.paths().iter().map(ToString::to_string).collect();
    let of_images = paths.iter().filter(|path| is_image(path)).count();
    assert_eq!((of_images, paths.len()), (3, 10), "{paths:?}");
    operator.stop().await
}

#[tokio::test]
async fn a_container_of_the_repository_that_is_left_out_is_said() -> Result<()> {
    let bed = Bed::new("leftout").await?;
    bed.release("v1.0.0").await?;
    bed.create(&several(&bed, "app"), "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    let (old, new) = (bed.image("1.0.0"), bed.image("1.1.0"));
    let expected = ["sidecar.example/wait:3", &old, &new, "sidecar.example/proxy:7", &old];
    assert_eq!(images(&bed).await?, expected);
    let name = belay_api::NamedValue::as_str(Note::ContainerLeftOut);
    let message = wait_for_target(&bed, "web", name, |status| {
        condition(&status.conditions, name).map(|one| one.message.clone())
    })
    .await?;
    assert!(message.contains("worker") && message.contains("init:migrate"), "{message}");
    operator.stop().await
}

/// CVE-2026-40886 of Argo Workflows: an annotation that could not be read ended the controller for
/// the whole cluster. Here it stalls its own target, which names it, and nobody else's.
#[rstest]
#[case::repo("repo", "not a repository")]
#[case::container("container", "missing")]
#[case::range("range", ">=1.0 <")]
#[case::pattern("tag-pattern", "v{version")]
#[case::duration("bake", "soon")]
#[case::number("deadline", "99999999999999999999s")]
#[case::word("on-failure", "explode")]
#[case::take_over("take-over", "kubectl-edit")]
#[case::scaled_object("scaledobject", "web")]
#[case::target("target", "..")]
#[tokio::test]
async fn a_bad_annotation_stalls_its_own_target_alone(
    #[case] key: &str,
    #[case] value: &str,
) -> Result<()> {
    let bed = Bed::new("bad").await?;
    let operator = bed.following(Wiring::default()).await?;
    let bad = bed.workload("bad", "1.0.0").annotation(&format!("belay.dev/{key}"), value);
    bed.create(&bad, "helm").await?;
    let message = stalled(&bed, "bad", StalledReason::InvalidConfig).await?;
    assert!(message.contains(&format!("belay.dev/{key}")), "{message}");
    assert!(message.contains(value), "{message}");
    roll(&bed, "v1.1.0").await?;
    assert_eq!(bed.live("bad").await?, bed.image("1.0.0"));
    let good = match key {
        "repo" => json!(REPO),
        "bake" => json!("1s"),
        _ => json!(null),
    };
    bed.annotate("bad", key, good).await?;
    going_on(&bed, "bad").await?;
    bed.wait_for_image("bad", &bed.image("1.1.0")).await?;
    operator.stop().await
}

#[tokio::test]
async fn of_two_workloads_with_one_target_the_older_keeps_it() -> Result<()> {
    let bed = Bed::new("twins").await?;
    let operator = bed.following(Wiring::default()).await?;
    let created = bed.deployments().get("web").await?.metadata.creation_timestamp;
    let created = created.context("no time")?.0.as_second();
    bed.wait("the next second", || async {
        anyhow::ensure!(jiff::Timestamp::now().as_second() > created, "not yet");
        Ok(())
    })
    .await?;
    // By name it would come first.
    let younger = bed.workload("a-web", "1.0.0").annotation("belay.dev/target", "web");
    bed.create(&younger, "helm").await?;
    told(&bed, "DuplicateTarget", &["Warning", "Deployment/web", "belay.dev/target"]).await?;
    roll(&bed, "v1.1.0").await?;
    polls(&bed, 4).await?;
    assert_eq!(bed.live("a-web").await?, bed.image("1.0.0"));
    let status = target(&bed, "web").await?;
    assert_eq!(status.workload.map(|one| one.name), Some("web".to_owned()));
    assert_eq!(events(&bed, "DuplicateTarget").await?.len(), 1, "said once");
    // The younger one takes its place, and is no move back to the image that it has.
    bed.deployments().delete("web", &DeleteParams::default()).await?;
    wait_for_target(&bed, "web", "about the other workload", |status| {
        let workload = status.workload.as_ref()?;
        (workload.name == "a-web").then_some(())
    })
    .await?;
    bed.wait_for_image("a-web", &bed.image("1.1.0")).await?;
    told(&bed, "Restored", &["v1.1.0"]).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Active", "True", "Restored")).await?;
    let release = bed.wait_for_healthy("web", "v1.1.0").await?;
    let blocked = condition(&release.status.unwrap_or_default().conditions, "Blocked")
        .map(|one| one.status.clone());
    assert_ne!(blocked.as_deref(), Some("True"));
    operator.stop().await
}

/// The name of a Release follows from target and tag, not from the repository.
#[tokio::test]
async fn a_release_of_another_repository_under_the_same_name_is_not_taken_for_ours() -> Result<()> {
    let bed = Bed::new("nametaken").await?;
    let operator = bed.following(Wiring::default()).await?;
    let next = belay_api::Signature::of("web", [("application", "v1.1.0")]);
    let name = format!("web-{}", next.short());
    let other: belay_api::Release = serde_json::from_value(json!({
        "apiVersion": "belay.dev/v1alpha1", "kind": "Release", "metadata": { "name": name },
        "config": {
            "targetName": "web",
            "revisions": [{ "name": "application", "id": "v1.1.0", "source": "evil/web" }],
        },
    }))?;
    bed.releases().create(&kube::api::PostParams::default(), &other).await?;
    bed.release("v1.1.0").await?;
    let message = stalled(&bed, "web", StalledReason::ReleaseNameTaken).await?;
    assert!(message.contains(&name), "{message}");
    polls(&bed, 4).await?;
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    roll(&bed, "v1.2.0").await?;
    operator.stop().await
}

/// There is no ReleaseTarget that it could be said on.
#[tokio::test]
async fn a_target_that_is_no_name_does_not_touch_who_has_the_workloads_name() -> Result<()> {
    let bed = Bed::new("noname").await?;
    bed.release("v1.0.0").await?;
    let shop = bed.workload("shop", "1.0.0").annotation("belay.dev/target", "web");
    bed.create(&shop, "helm").await?;
    let operator = bed.operator()?;
    bed.wait_for_healthy("web", "v1.0.0").await?;
    bed.create(&bed.web("1.0.0").annotation("belay.dev/target", ".."), "helm").await?;
    told(&bed, "InvalidConfig", &["Warning", "belay.dev/target", ".."]).await?;
    bed.release("v1.1.0").await?;
    bed.wait_for_image("shop", &bed.image("1.1.0")).await?;
    bed.wait_for_healthy("web", "v1.1.0").await?;
    assert_eq!(events(&bed, "InvalidConfig").await?.len(), 1);
    let status = target(&bed, "web").await?;
    assert_eq!(status.workload.map(|one| one.name), Some("shop".to_owned()));
    assert_eq!(bed.live("web").await?, bed.image("1.0.0"));
    operator.stop().await
}
