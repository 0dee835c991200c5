//! The real program as the chart installs it: Helm waits for it, and its rights are enough.

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_suite::operator::Bed;
use belay_testkit::{
    github::Rights,
    objects::Workload,
    operator::{HostedOperator, Installation, LABEL},
    wait,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{Event, Pod, Secret},
};
use kube::{
    Api,
    api::{ListParams, ObjectMeta, PostParams},
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    bed::{self, OPERATOR},
    rights::owner_of,
};

/// The repository of every [`Bed`].
const REPO: &str = "acme/web";

/// Which operator follows what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Cluster,
    Namespace,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Namespace => "namespace",
        }
    }

    /// Only one operator of the cluster follows all namespaces: under a prefix of its own.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Cluster => bed::OTHER_PREFIX,
            Self::Namespace => "belay.dev",
        }
    }
}

/// Values for an operator beside a bed.
pub(crate) fn values(bed: &Bed, scope: Scope) -> Value {
    json!({
        "crds": { "install": false }, "scope": scope.name(), "annotationPrefix": scope.prefix(),
        "github": { "url": bed.github.base_url() }, "pollInterval": "1s",
        "allowHosts": [format!("http://{}", bed.world.registry.host())],
    })
}

/// Gives the operator a token for GitHub, by a Secret beside it; without one it looks once a minute.
pub(crate) async fn give_token(bed: &Bed, home: &str, values: &mut Value) -> Result<String> {
    let token = bed.github.create_token("chart", &Rights::read([REPO]))?;
    let secret = Secret {
        metadata: ObjectMeta { name: Some("github".to_owned()), ..ObjectMeta::default() },
        string_data: Some([("pat".to_owned(), format!("{token}\n"))].into()),
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::namespaced(bed.client.clone(), home);
    secrets.create(&PostParams::default(), &secret).await?;
    values["github"]["tokenSecret"] = json!({ "name": "github", "key": "pat" });
    Ok(token)
}

/// Whether Kubernetes counts the operator as available.
async fn available(operator: &Api<Deployment>, wanted: i32) -> Result<()> {
    wait::until(&format!("{wanted} available operators"), wait::SOON, || async {
        let found = operator.get(OPERATOR).await.map_err(|error| error.to_string())?;
        let status = found.status.unwrap_or_default();
        let count = status.available_replicas.unwrap_or_default();
        if count == wanted { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await?;
    Ok(())
}

#[rstest]
#[case::helm_3(Binary::Helm3)]
#[case::helm_4(Binary::Helm4)]
#[tokio::test]
async fn helm_waits_until_the_program_is_ready_and_the_pod_tells_its_end(
    #[case] helm: Binary,
) -> Result<()> {
    bed::cluster().await?;
    let bed = Bed::new("ready").await?;
    let cluster = bed.world.cluster;
    let installation = Installation::new(values(&bed, Scope::Namespace)).helm(helm);
    let operator = HostedOperator::install(cluster, &bed.namespace, installation).await?;
    let deployments = bed.deployments();
    // Helm has ended, so this holds already.
    let found = deployments.get(OPERATOR).await?.status.unwrap_or_default();
    ensure!(found.available_replicas == Some(1), "{found:?}");
    let pods: Api<Pod> = Api::namespaced(bed.client.clone(), &bed.namespace);
    let own = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
    ensure!(pods.list(&own).await?.items.len() == 1);

    operator.kill();
    available(&deployments, 0).await?;
    operator.ready_url().unwrap_err();
    operator.restart().await?;
    available(&deployments, 1).await?;
    let status = operator.stop().await?;
    ensure!(status.success(), "{status}: {}", operator.logs()?);
    available(&deployments, 0).await?;
    // What it shows the API server is not what it shows people.
    operator.start().await?;
    operator.ready().await?;
    ensure!(!operator.logs()?.contains(&operator.token()?), "the token is in the log");
    Ok(())
}

/// Everything that a roll needs, with no right but those of the chart and a token from a Secret.
#[rstest]
#[case::scope_namespace(Scope::Namespace)]
#[case::scope_cluster(Scope::Cluster)]
#[tokio::test]
async fn a_release_is_rolled_with_the_rights_of_the_chart(#[case] scope: Scope) -> Result<()> {
    bed::cluster().await?;
    let bed = Bed::new("hosted").await?;
    bed.github.set_private(REPO, true)?;
    let home = match scope {
        Scope::Namespace => bed.namespace.clone(),
        Scope::Cluster => bed.world.cluster.namespace("belay").await?,
    };
    let mut values = values(&bed, scope);
    let token = give_token(&bed, &home, &mut values).await?;
    values["allowRepos"] = json!([format!("{}={REPO}", bed.namespace)]);
    let operator =
        HostedOperator::install(bed.world.cluster, &home, Installation::new(values)).await?;

    bed.release("v1.0.0").await?;
    let key = |name: &str| format!("{}/{name}", scope.prefix());
    let web = Workload::deployment("web").replicas(1).image("app", &bed.image("1.0.0"));
    let web = web.annotation(&key("repo"), REPO).annotation(&key("bake"), "1s");
    bed.create(&web, "helm").await?;
    let told = |error: anyhow::Error| error.context(operator.logs().unwrap_or_default());
    bed.wait_for_healthy("web", "v1.0.0").await.map_err(told)?;
    bed.release("v1.1.0").await?;
    bed.wait_for_image("web", &bed.image("1.1.0")).await.map_err(told)?;
    bed.wait_for_healthy("web", "v1.1.0").await.map_err(told)?;

    // Another namespace than that of its token asked nothing.
    ensure!(bed.github.log().count(|request| request.header("authorization").is_none()) == 0);
    let events: Api<Event> = Api::namespaced(bed.client.clone(), &bed.namespace);
    let about = ListParams::default().fields("involvedObject.name=web");
    wait::until("an event about web", wait::SOON, || async {
        let list = events.list(&about).await.map_err(|error| error.to_string())?;
        let ours = list.items.iter().any(|event| {
            [&event.reporting_component, &event.source.as_ref().and_then(|it| it.component.clone())]
                .into_iter()
                .flatten()
                .any(|component| component.contains("belay"))
        });
        if ours { Ok(()) } else { Err(format!("{} events, none of Belay's", list.items.len())) }
    })
    .await?;
    let leases: Api<Lease> = Api::namespaced(bed.client.clone(), &home);
    let holder = leases.get(OPERATOR).await?.spec.and_then(|spec| spec.holder_identity);
    ensure!(holder.is_some_and(|holder| !holder.is_empty()), "nobody holds the Lease");
    let logs = operator.logs()?;
    ensure!(!logs.contains("forbidden"), "something was refused:\n{logs}");
    ensure!(!logs.contains(&token), "GitHub's token is in the log");
    Ok(())
}

/// Somebody who owns one namespace installs it there; what no Role can give is granted by others.
#[tokio::test]
async fn without_cluster_wide_rights_it_is_ready_once_it_may_see_the_crds() -> Result<()> {
    let cluster = bed::cluster().await?;
    let bed = Bed::new("owned").await?;
    let owner = owner_of(cluster, &bed.namespace).await?;
    let mut values = values(&bed, Scope::Namespace);
    values["rbac"] = json!({ "clusterWide": false, "nodes": false });
    let installation = Installation::new(values).installed_by(&owner).without_wait();
    let operator = HostedOperator::install(cluster, &bed.namespace, installation).await?;
    let http = reqwest::Client::new();
    let said = complaint(&http, &operator).await?;
    ensure!(said.contains("could not read") || said.contains("read the"), "{said}");
    let kubectl = |words: &[&str]| anyhow::Ok(cluster.tool(Binary::Kubectl)?.args(words));
    let role = format!("crds-for-{}", bed.namespace);
    let words = ["create", "clusterrole", &role, "--verb=get", "--resource=crds"];
    let names = belay_api::crd::all(&belay_api::AnnotationPrefix::default());
    let names = names.iter().filter_map(|crd| crd.metadata.name.as_ref());
    kubectl(&words)?.args(names.map(|name| format!("--resource-name={name}"))).ok().await?;
    let account = format!("--serviceaccount={}:{OPERATOR}", bed.namespace);
    let role_flag = format!("--clusterrole={role}");
    kubectl(&["create", "clusterrolebinding", &role, &role_flag, &account])?.ok().await?;
    operator.ready().await?;
    available(&bed.deployments(), 1).await
}

/// What the readiness probe says of the CRDs while it fails.
async fn complaint(http: &reqwest::Client, operator: &HostedOperator<'_>) -> Result<String> {
    let url = operator.ready_url()?;
    let text = wait::until("a complaint about the CRDs", wait::SOON, || async {
        let answer = http.get(&url).send().await.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(|error| error.to_string())?;
        // Before it has looked, it says that it is starting.
        let is_one = status == 503 && text.contains("CustomResourceDefinition");
        if is_one { Ok(text) } else { Err(format!("{status}: {text}")) }
    })
    .await?;
    Ok(text)
}

#[tokio::test]
async fn crds_of_another_prefix_keep_it_from_being_ready() -> Result<()> {
    let cluster = bed::cluster().await?;
    let bed = Bed::new("unready").await?;
    let mut values = values(&bed, Scope::Namespace);
    values["annotationPrefix"] = json!("nobody.example");
    let installation = Installation::new(values).without_wait();
    let operator = HostedOperator::install(cluster, &bed.namespace, installation).await?;
    let http = reqwest::Client::new();
    let said = complaint(&http, &operator).await?;
    ensure!(said.contains("belay.dev has no schema version"), "{said}");
    available(&bed.deployments(), 0).await?;
    ensure!(operator.ended()?.is_none(), "{}", operator.logs()?);
    let admin = http.get(operator.admin_url()?).send().await?.status();
    ensure!(admin.as_u16() == 404, "{admin}");
    Ok(())
}

#[tokio::test]
async fn what_the_program_refuses_is_told_at_once() -> Result<()> {
    let cluster = bed::cluster().await?;
    let bed = Bed::new("refused").await?;
    let mut values = values(&bed, Scope::Namespace);
    // The schema cannot know every rule of the program.
    values["logFilter"] = json!("=");
    let error = HostedOperator::install(cluster, &bed.namespace, Installation::new(values))
        .await
        .err()
        .context("it became ready")?;
    ensure!(error.to_string().contains("--log-filter"), "{error}");
    Ok(())
}
