//! `helm uninstall`: the chart's hook stops the operator and ends its pauses, with no right but its
//! own.

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use belay_adapters::cluster::ScaledObject;
use belay_components::Binary;
use belay_suite::{
    operator::{Bed, describe},
    programs::beside_test,
};
use belay_testkit::{
    Cluster,
    cluster::{FIELD_MANAGER, Options},
    objects,
    operator::{HostedOperator, Installation, chart},
    wait,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{Pod, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use rstest::rstest;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    bed::{self, OPERATOR, RELEASE, keda_crds},
    hosted::{Scope, give_token, values},
};

/// The objects of the hook, and nothing else of the chart.
const HOOK: &str = "app.kubernetes.io/component=release-pauses";
const SCALE_IN: &str = "autoscaling.keda.sh/paused-scale-in";

/// The node of the hook's Job: runs its container's command on this host, as the Job's own
/// ServiceAccount, and tells the API server how it ended.
async fn run_job(cluster: &Cluster, namespace: &str) -> Result<Output> {
    let client = cluster.admin()?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let selected = ListParams::default().labels(HOOK);
    let pod = wait::until("the pod of the Job", wait::SOON, || async {
        let list = pods.list(&selected).await.map_err(|error| error.to_string())?;
        list.items.into_iter().next().ok_or_else(|| "none".to_owned())
    })
    .await?;
    let spec = pod.spec.clone().context("a pod without a spec")?;
    ensure!(spec.restart_policy.as_deref() == Some("Never"));
    let container = spec.containers.first().context("a pod without a container")?;
    let mut words = container.command.iter().flatten().chain(container.args.iter().flatten());
    let program = beside_test(words.next().context("no command")?)?;
    ensure!(container.env.iter().flatten().next().is_none(), "{:?}", container.env);
    let account = spec.service_account_name.context("no ServiceAccount")?;
    let access = cluster.token_of(namespace, &account).await?;
    let kubeconfig = cluster.write_kubeconfig(&format!("hook-{namespace}"), &access)?;
    let mut command = Command::new(program);
    command.args(words).env_clear().env("KUBECONFIG", kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let code = output.status.code().unwrap_or(137);
    let now = jiff::Timestamp::now().to_string();
    let status = json!({ "status": {
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "containerStatuses": [{
            "name": container.name, "image": container.image, "imageID": "", "ready": false,
            "restartCount": 0, "state": { "terminated": {
                "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
                "startedAt": now, "finishedAt": now,
            } },
        }],
    } });
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(output)
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The names of the hook's objects that are there.
async fn left(client: &Client, namespace: &str) -> Result<Vec<String>> {
    async fn of<K>(api: Api<K>, selected: &ListParams, names: &mut Vec<String>) -> Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
    {
        let list = api.list(selected).await?;
        names.extend(list.items.iter().map(|one| format!("{}/{}", K::kind(&()), one.name_any())));
        Ok(())
    }
    let namespaced = ListParams::default().labels(HOOK);
    let mut names = Vec::new();
    let client = || client.clone();
    of::<Job>(Api::namespaced(client(), namespace), &namespaced, &mut names).await?;
    of::<ServiceAccount>(Api::namespaced(client(), namespace), &namespaced, &mut names).await?;
    of::<Role>(Api::namespaced(client(), namespace), &namespaced, &mut names).await?;
    of::<RoleBinding>(Api::namespaced(client(), namespace), &namespaced, &mut names).await?;
    of::<ClusterRole>(Api::all(client()), &namespaced, &mut names).await?;
    of::<ClusterRoleBinding>(Api::all(client()), &namespaced, &mut names).await?;
    names.retain(|name| !name.starts_with("Cluster") || name.contains(&format!("/{namespace}:")));
    Ok(names)
}

#[rstest]
#[case::helm_3(Binary::Helm3, Scope::Namespace)]
#[case::helm_4(Binary::Helm4, Scope::Cluster)]
#[tokio::test]
async fn no_pause_outlives_the_release(#[case] helm: Binary, #[case] scope: Scope) -> Result<()> {
    let cluster = bed::cluster().await?;
    keda_crds(cluster).await?;
    let bed = Bed::new("uninstall").await?;
    let home = match scope {
        Scope::Namespace => bed.namespace.clone(),
        Scope::Cluster => cluster.namespace("belay").await?,
    };
    let mut values = values(&bed, scope);
    give_token(&bed, &home, &mut values).await?;
    let installation = Installation::new(values).helm(helm);
    let operator = HostedOperator::install(cluster, &home, installation).await?;
    let scaled: Api<ScaledObject> = Api::namespaced(bed.client.clone(), &bed.namespace);
    for (name, annotation) in [("web", "team"), ("api", SCALE_IN)] {
        let object = objects::ScaledObject::of(name).annotation(annotation, "true");
        let apply = Patch::Apply(object.json());
        scaled.patch(name, &PatchParams::apply(FIELD_MANAGER), &apply).await?;
    }
    bed.release("v1.0.0").await?;
    let key = |name: &str| format!("{}/{name}", scope.prefix());
    let web = objects::Workload::deployment("web").replicas(1).image("app", &bed.image("1.0.0"));
    let web = web.annotation(&key("repo"), "acme/web").annotation(&key("bake"), "1s");
    let web = web.annotation(&key("scaledobject"), "web").annotation(&key("pause"), "scale-in");
    bed.create(&web, "helm").await?;
    let told = |error: anyhow::Error| error.context(operator.logs().unwrap_or_default());
    bed.wait_for_healthy("web", "v1.0.0").await.map_err(told)?;
    bed.release("v1.1.0").await?;
    let annotations = |name: &'static str| {
        let scaled = scaled.clone();
        async move { anyhow::Ok(scaled.get(name).await?.annotations().clone()) }
    };
    let (pause_owner, pause) = (key("pause-owner"), SCALE_IN.to_owned());
    wait::until("the claim", wait::SOON, || async {
        let found = annotations("web").await.map_err(|error| format!("{error:#}"))?;
        let is_claimed = found.contains_key(&pause_owner) && found.contains_key(&pause);
        if is_claimed { Ok(()) } else { Err(format!("{found:?}\n{}", describe(&bed).await)) }
    })
    .await?;

    // A kubelet ends the operator's process once its Deployment has no pods.
    let deployments: Api<Deployment> = Api::namespaced(bed.client.clone(), &home);
    let node = async {
        wait::until("the operator to be scaled to none", wait::SOON, || async {
            let found = deployments.get(OPERATOR).await.map_err(|error| error.to_string())?;
            let replicas = found.spec.and_then(|spec| spec.replicas);
            if replicas == Some(0) { Ok(()) } else { Err(format!("{replicas:?}")) }
        })
        .await?;
        anyhow::Ok(operator.stop().await?)
    };
    let job = run_job(cluster, &home);
    let tool = cluster.tool(helm)?.args(["uninstall", RELEASE, "--namespace", &home]);
    let uninstall = async { Ok(tool.args(["--timeout", "2m"]).run().await?) };
    let (stopped, output, uninstalled) = tokio::try_join!(node, job, uninstall)?;
    ensure!(stopped.success(), "{stopped}");
    uninstalled.ok()?;
    let said = said(&output);
    ensure!(said.contains("/web: dropped the pause of Release web-"), "{said}");
    let found = annotations("web").await?;
    assert_eq!(found.keys().collect::<Vec<_>>(), ["team"], "{said}");
    // A person's pause is none of ours.
    assert_eq!(annotations("api").await?.get(SCALE_IN).map(String::as_str), Some("true"));
    ensure!(left(&bed.client, &home).await?.is_empty(), "{:?}", left(&bed.client, &home).await?);
    Ok(())
}

#[tokio::test]
async fn without_keda_there_is_nothing_to_end() -> Result<()> {
    let cluster = Cluster::start(Options::without_nodes()).await?;
    let helm = |words: &[&str]| anyhow::Ok(cluster.tool(Binary::Helm4)?.args(words));
    let chart = chart();
    helm(&["install", RELEASE, "-n", "default"])?.arg(&chart).ok().await?;
    let job = run_job(&cluster, "default");
    let uninstall = async {
        Ok(helm(&["uninstall", RELEASE, "-n", "default", "--timeout", "2m"])?.run().await?)
    };
    let (output, uninstalled) = tokio::try_join!(job, uninstall)?;
    uninstalled.ok()?;
    ensure!(output.stdout.is_empty(), "{}", said(&output));
    ensure!(left(&cluster.admin()?, "default").await?.is_empty());
    Ok(())
}

/// What is left is named, and Helm says that the hook failed and keeps the release.
#[tokio::test]
async fn a_pause_that_cannot_be_ended_is_named() -> Result<()> {
    let cluster = bed::cluster().await?;
    keda_crds(cluster).await?;
    let namespace = cluster.namespace("stuck").await?;
    let values = json!({ "scope": "namespace", "crds": { "install": false } });
    let helm = |words: &[&str]| anyhow::Ok(cluster.tool(Binary::Helm4)?.args(words));
    let install = helm(&["install", RELEASE, "-n", &namespace, "--values", "-"])?.arg(chart());
    install.input(values.to_string()).ok().await?;
    let scaled: Api<ScaledObject> = Api::namespaced(cluster.admin()?, &namespace);
    let mut claimed = objects::ScaledObject::of("web").json().clone();
    let owner: Value = json!({
        "instance": "other/operator", "target": "web", "release": "web-1234567",
        "since": "2026-01-01T00:00:00Z",
    });
    scaled.patch("web", &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(&claimed)).await?;
    claimed["metadata"]["annotations"] =
        json!({ SCALE_IN: "true", "belay.dev/pause-owner": owner.to_string() });
    claimed.as_object_mut().context("no object")?.remove("spec");
    let us = PatchParams::apply(belay_api::names::PAUSE_FIELD_MANAGER);
    scaled.patch("web", &us, &Patch::Apply(&claimed)).await?;
    // Nobody may write it any more.
    let access = cluster.token_of(&namespace, "default").await?;
    let kubeconfig = cluster.write_kubeconfig(&format!("nobody-{namespace}"), &access)?;
    let program = beside_test("belay-operator")?;
    let mut command = Command::new(program);
    command.args(["release-pauses", "--timeout=1s", "--namespace", &namespace]);
    command.env_clear().env("KUBECONFIG", kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    ensure!(output.status.code() == Some(1), "{}", said(&output));
    ensure!(said(&output).contains("could not be listed"), "{}", said(&output));

    // The administrator may: the claim of whichever operator goes.
    let mut command = Command::new(beside_test("belay-operator")?);
    command.args(["release-pauses", "--namespace", &namespace]);
    command.env_clear().env("KUBECONFIG", cluster.admin_kubeconfig());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    ensure!(output.status.success(), "{}", said(&output));
    let expected =
        format!("{namespace}/web: dropped the pause of Release web-1234567, target web\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    ensure!(!scaled.get("web").await?.annotations().contains_key(SCALE_IN));
    Ok(())
}
