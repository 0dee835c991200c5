//! Each real component does the one thing that later tests build on.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_testkit::{
    Cluster,
    cluster::FIELD_MANAGER,
    keda::Keda,
    kubelet::{Kubelet, Pace},
    objects::{ScaledObject, Workload},
    registry::Registry,
    wait,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use rstest::rstest;
use serde_json::{Value, json};

fn api_of(cluster: &Cluster, namespace: &str, kind: &str) -> Result<Api<DynamicObject>> {
    let (group, version) = match kind {
        "ScaledObject" => ("keda.sh", "v1alpha1"),
        "HorizontalPodAutoscaler" => ("autoscaling", "v2"),
        "Job" => ("batch", "v1"),
        _ => ("apps", "v1"),
    };
    let gvk = kube::api::GroupVersionKind::gvk(group, version, kind);
    Ok(Api::namespaced_with(cluster.admin()?, namespace, &ApiResource::from_gvk(&gvk)))
}

async fn apply(cluster: &Cluster, namespace: &str, object: &Value) -> Result<DynamicObject> {
    let kind = object["kind"].as_str().context("no kind")?;
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let params = PatchParams::apply(FIELD_MANAGER);
    Ok(api_of(cluster, namespace, kind)?.patch(name, &params, &Patch::Apply(object)).await?)
}

/// Waits until `path` of an object's JSON holds `wanted`.
async fn wait_for(api: &Api<DynamicObject>, name: &str, path: &str, wanted: Value) -> Result<()> {
    wait::until(&format!("{path} of {name} to be {wanted}"), wait::SOON, || async {
        let object = api.get(name).await.map_err(|error| error.to_string())?;
        let object = serde_json::to_value(object).map_err(|error| error.to_string())?;
        let found = object.pointer(path).cloned().unwrap_or_default();
        if found == wanted { Ok(()) } else { Err(format!("{found}, status {}", object["status"])) }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_deployment_a_stateful_set_and_a_daemon_set_become_ready() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("workloads").await?;
    let image = "registry.example/web:1.0.0";
    for (workload, ready) in [
        (Workload::deployment("deploy").replicas(3), ("/status/availableReplicas", 3)),
        (Workload::stateful_set("stateful").replicas(2), ("/status/readyReplicas", 2)),
        (Workload::daemon_set("daemon"), ("/status/numberAvailable", 1)),
    ] {
        let workload = workload.image("app", image);
        let applied = apply(cluster, &namespace, workload.json()).await?;
        let kind = applied.types.context("no kind")?.kind;
        let api = api_of(cluster, &namespace, &kind)?;
        wait_for(&api, workload.name(), ready.0, json!(ready.1)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_reports_its_deadline() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("stuck").await?;
    let workload = Workload::deployment("stuck").image("app", "registry.example/web:no-pull");
    apply(cluster, &namespace, workload.progress_deadline(5).json()).await?;
    let api: Api<Deployment> = Api::namespaced(cluster.admin()?, &namespace);
    wait::until("ProgressDeadlineExceeded", wait::SOON, || async {
        let found = api.get("stuck").await.map_err(|error| error.to_string())?;
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        let progressing = conditions.into_iter().find(|condition| condition.type_ == "Progressing");
        match progressing.and_then(|condition| condition.reason) {
            Some(reason) if reason == "ProgressDeadlineExceeded" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    let pods = cluster
        .tool(Binary::Kubectl)?
        .args(["get", "pods", "-n", &namespace, "--no-headers"])
        .ok()
        .await?;
    ensure!(pods.contains("ImagePullBackOff"), "kubectl shows {pods}");
    Ok(())
}

#[rstest]
#[case::helm_3(Binary::Helm3)]
#[case::helm_4(Binary::Helm4)]
#[tokio::test]
async fn helm_installs_and_upgrades_through_a_post_renderer(#[case] helm: Binary) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("helm").await?;
    let kubelet = Kubelet::start(cluster, &format!("kubelet-{namespace}"), Pace::WhenTold)?;
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/hello");
    let renderer = post_renderer(cluster, helm).await?;
    for (verb, revision, tag) in [("install", "1", "1.0.0"), ("upgrade", "2", "1.1.0")] {
        let run = cluster
            .tool(helm)?
            .args([verb, "web"])
            .arg(&chart)
            .args(["-n", &namespace, "--wait", "--timeout", "2m", "--post-renderer", &renderer])
            .args(["--set", &format!("image.tag={tag},hookNode={}", kubelet.node())])
            .run();
        let hook = async {
            let image = format!("registry.example/migrate:{revision}");
            let pod = kubelet
                .pod("the hook's pod", &namespace, |pod| {
                    let images = pod.spec.iter().flat_map(|spec| &spec.containers);
                    images.into_iter().any(|container| container.image.as_ref() == Some(&image))
                })
                .await?;
            kubelet.complete(&pod, 0);
            Ok::<_, anyhow::Error>(())
        };
        let (finished, hook) = tokio::join!(run, hook);
        hook?;
        finished?.ok()?;
        let api: Api<Deployment> = Api::namespaced(cluster.admin()?, &namespace);
        let deployment = api.get("web").await?;
        let image = deployment.spec.and_then(|spec| spec.template.spec).unwrap_or_default();
        let image = image.containers.first().and_then(|container| container.image.clone());
        assert_eq!(image, Some(format!("registry.example/hello:{tag}")));
    }
    Ok(())
}

/// `cat` changes nothing: what is shown is that Helm runs a post-renderer here at all. Helm 4 takes
/// plugins only, so `cat` is wrapped in one.
async fn post_renderer(cluster: &Cluster, helm: Binary) -> Result<String> {
    if helm == Binary::Helm3 {
        return Ok("cat".to_owned());
    }
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/cat");
    cluster.tool(helm)?.args(["plugin", "install"]).arg(plugin).ok().await?;
    Ok("cat".to_owned())
}

#[tokio::test]
async fn a_scripted_kubelet_holds_a_pod_until_the_test_says_so() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("held").await?;
    let kubelet = Kubelet::start(cluster, &format!("kubelet-{namespace}"), Pace::WhenTold)?;
    let workload = Workload::deployment("held").replicas(1).image("app", "registry.example/web:2");
    apply(cluster, &namespace, workload.on_node(kubelet.node()).json()).await?;
    let api = api_of(cluster, &namespace, "Deployment")?;
    let pod = kubelet.pod("the held pod", &namespace, |_| true).await?;
    // The controller has counted the pod, and it is not available: held, not merely early.
    wait_for(&api, "held", "/status/unavailableReplicas", json!(1)).await?;
    kubelet.let_go(&pod);
    wait_for(&api, "held", "/status/availableReplicas", json!(1)).await?;
    Ok(())
}

#[tokio::test]
async fn keda_becomes_ready_and_pauses_a_scaled_object() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("keda").await?;
    let _keda = Keda::start(cluster).await?;
    let workload = Workload::deployment("web").replicas(1).image("app", "registry.example/web:1");
    apply(cluster, &namespace, workload.json()).await?;
    apply(cluster, &namespace, ScaledObject::of("web").json()).await?;
    let objects = api_of(cluster, &namespace, "ScaledObject")?;
    let condition = |kind: &'static str, status: &'static str| {
        let objects = objects.clone();
        async move {
            wait::until(&format!("{kind}={status} of the ScaledObject"), wait::SOON, || async {
                let object = objects.get("web").await.map_err(|error| error.to_string())?;
                let conditions = object.data["status"]["conditions"].clone();
                let found = conditions.as_array().into_iter().flatten();
                if found.into_iter().any(|c| c["type"] == kind && c["status"] == status) {
                    Ok(())
                } else {
                    Err(conditions.to_string())
                }
            })
            .await
        }
    };
    condition("Ready", "True").await?;
    let pause = json!({ "metadata": { "annotations": {
        "autoscaling.keda.sh/paused-scale-in": "true",
    }}});
    objects.patch("web", &PatchParams::default(), &Patch::Merge(&pause)).await?;
    condition("Paused", "True").await?;
    let hpas = api_of(cluster, &namespace, "HorizontalPodAutoscaler")?;
    wait_for(&hpas, "keda-hpa-web", "/spec/behavior/scaleDown/selectPolicy", json!("Disabled"))
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_registry_answers_a_head_with_the_digest_that_was_pushed() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let registry = Registry::start(cluster).await?;
    let digest = registry.push("acme/web", "1.0.0").await?;
    let http = reqwest::Client::new();
    let head = |tag: &str| {
        let url = format!("http://{}/v2/acme/web/manifests/{tag}", registry.host());
        http.head(url).header("accept", "application/vnd.oci.image.manifest.v1+json").send()
    };
    let answer = head("1.0.0").await?;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["docker-content-digest"], digest.as_str());
    assert_eq!(head("2.0.0").await?.status(), 404);
    Ok(())
}

#[tokio::test]
async fn a_service_account_has_the_rights_that_rbac_gives_it_and_no_others() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("rbac").await?;
    let access = cluster.service_account(&namespace, "reader").await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
        "subjects": [{ "kind": "ServiceAccount", "name": "reader", "namespace": namespace }],
    });
    let bindings: Api<k8s_openapi::api::rbac::v1::RoleBinding> =
        Api::namespaced(cluster.admin()?, &namespace);
    bindings.patch("reader", &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(binding)).await?;
    let own: Api<Deployment> = Api::namespaced(cluster.client(&access)?, &namespace);
    wait::until("the binding to take effect", wait::SOON, || async {
        own.list(&ListParams::default()).await.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    let web = Workload::deployment("web").image("app", "registry.example/web:1");
    let web: Deployment = serde_json::from_value(web.json().clone())?;
    let refused = own.create(&PostParams::default(), &web).await.unwrap_err();
    let who = format!("system:serviceaccount:{namespace}:reader");
    ensure!(refused.to_string().contains(&who), "{refused}");
    Ok(())
}

#[tokio::test]
async fn an_impersonated_user_is_who_the_kubeconfig_says() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let alice = belay_testkit::cluster::identity::Impersonation {
        user: "alice".to_owned(),
        uid: Some("u-1".to_owned()),
        groups: vec!["developers".to_owned()],
    };
    let kubeconfig = cluster.write_kubeconfig("alice", &cluster.impersonating(alice))?;
    let answer = cluster
        .tool_as(Binary::Kubectl, &kubeconfig)?
        .args(["auth", "whoami", "-o", "json"])
        .ok()
        .await?;
    let answer: Value = serde_json::from_str(&answer)?;
    let user = &answer["status"]["userInfo"];
    assert_eq!(user["username"], "alice");
    assert_eq!(user["uid"], "u-1");
    ensure!(user["groups"].as_array().is_some_and(|g| g.contains(&json!("developers"))), "{user}");
    Ok(())
}

#[tokio::test]
async fn kwok_and_the_scripted_kubelet_agree_on_every_fate() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("fates").await?;
    let kubelet = Kubelet::start(cluster, &format!("kubelet-{namespace}"), Pace::AtOnce)?;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(cluster.admin()?, &namespace);
    for (word, phase, ready, reason) in [
        ("1.0.0", "Running", true, None),
        ("never-ready", "Running", false, None),
        ("no-pull", "Pending", false, Some("ImagePullBackOff")),
        ("crash-loop", "Running", false, Some("CrashLoopBackOff")),
    ] {
        for node in ["kwok-0", kubelet.node()] {
            let name = format!("{}-{}", word.replace('.', "-"), &node[..4]);
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
                "spec": { "nodeName": node, "containers": [
                    { "name": "app", "image": format!("registry.example/web:{word}") },
                ]},
            });
            pods.patch(&name, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(pod)).await?;
            wait::until(&format!("the fate of {name}"), wait::SOON, || async {
                let pod = pods.get(&name).await.map_err(|error| error.to_string())?;
                let status = pod.status.unwrap_or_default();
                let container = status.container_statuses.iter().flatten().next().cloned();
                let Some(container) = container else { return Err("no status yet".to_owned()) };
                let waiting = container.state.and_then(|state| state.waiting);
                let found =
                    (status.phase, container.ready, waiting.and_then(|waiting| waiting.reason));
                let wanted = (Some(phase.to_owned()), ready, reason.map(str::to_owned));
                if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .await?;
        }
    }
    let names: Vec<_> = kubelet.pods(&namespace).iter().map(ResourceExt::name_any).collect();
    assert_eq!(names.len(), 4, "the kubelet looks after its own pods alone: {names:?}");
    Ok(())
}
