//! The watch of pods under the real Deployment controller; the kubelet is scripted.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use belay_adapters::{
    Clock,
    cluster::{Done, PodWatch, PodsOf},
};
use belay_engine::judge::PodFacts;
use belay_testkit::{
    TestbedError,
    kubelet::{Kubelet, Pace},
    objects::Workload,
    wait,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use tokio::sync::Notify;

use crate::bed::{Bed, WEB, client, facts};

const GOOD: &str = "r.example/web:1";
const BAD: &str = "r.example/no-pull:2";

struct Watched {
    watch: PodWatch,
    changed: Arc<Notify>,
}

impl Watched {
    fn open(client: &Client, deployment: &Deployment) -> Result<Self> {
        let changed = Arc::new(Notify::new());
        let tell = Arc::clone(&changed);
        let of = PodsOf::of(deployment)?;
        let watch = PodWatch::open(client, Clock::machine(), &of, move || tell.notify_one());
        Ok(Self { watch, changed })
    }

    /// Waits for a change after which the pods of `web` are such.
    async fn until(
        &self,
        bed: &Bed,
        what: &str,
        fits: impl Fn(&[PodFacts]) -> bool,
    ) -> Result<Vec<PodFacts>, TestbedError> {
        let changes = async {
            loop {
                let web = bed.api::<Deployment>().get(WEB).await.ok();
                let known = web.map(|web| self.watch.facts(&facts(&web)));
                if let Some(pods) = known.as_ref().and_then(|known| known.value())
                    && fits(pods)
                {
                    return pods.clone();
                }
                self.changed.notified().await;
            }
        };
        let timeout = |_| TestbedError::Timeout {
            what: what.to_owned(),
            within: wait::SOON,
            last: format!("{:?}", self.watch),
        };
        tokio::time::timeout(wait::SOON, changes).await.map_err(timeout)
    }
}

async fn deployed(bed: &Bed) -> Result<(Kubelet, Deployment)> {
    let node = format!("node-of-{}", bed.namespace);
    let kubelet = Kubelet::start(bed.cluster, &node, Pace::AtOnce)?;
    let web = Workload::deployment(WEB).image("app", GOOD).replicas(2).on_node(&node);
    let deployment = bed.deploy(&web).await?;
    Ok((kubelet, deployment))
}

fn are_new_and_ready(pods: &[PodFacts]) -> bool {
    pods.len() == 2 && pods.iter().all(|pod| pod.is_new && pod.ready)
}

fn has_failing_new_one(pods: &[PodFacts]) -> bool {
    let waits = |pod: &PodFacts| {
        let mut reasons = pod.containers.iter().filter_map(|it| it.waiting.as_deref());
        reasons.any(|reason| reason == "ImagePullBackOff")
    };
    let (new, old): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| pod.is_new);
    !old.is_empty()
        && old.iter().all(|pod| pod.ready)
        && new.iter().any(|pod| waits(pod) && !pod.ready)
}

async fn apply(bed: &Bed, image: &str) -> Result<()> {
    let done = bed.apply(&[&format!("app={image}")], true).await?;
    ensure!(matches!(done, Done::Applied { .. }), "{done:?}");
    Ok(())
}

#[tokio::test]
async fn new_pods_are_told_from_old_ones_there_and_back() -> Result<()> {
    let bed = Bed::new().await?;
    let (_kubelet, deployment) = deployed(&bed).await?;
    let watched = Watched::open(&bed.client, &deployment)?;
    let first = watched.until(&bed, "two ready pods", are_new_and_ready).await?;
    let names = |pods: &[PodFacts]| pods.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();

    apply(&bed, BAD).await?;
    let both = watched.until(&bed, "a new pod that fails", has_failing_new_one).await?;
    let old: Vec<_> = both.iter().filter(|pod| !pod.is_new).cloned().collect();
    assert!(old.iter().all(|pod| names(&first).contains(&pod.name)), "{both:?}");

    // Back to the first ReplicaSet: its pods are the new ones again.
    apply(&bed, GOOD).await?;
    let back = watched.until(&bed, "the first pods alone", are_new_and_ready).await?;
    assert!(back.iter().any(|pod| names(&first).contains(&pod.name)), "{back:?}");
    assert_eq!(watched.watch.handicap(), None);
    Ok(())
}

#[tokio::test]
async fn right_after_an_apply_no_old_pod_counts_as_new() -> Result<()> {
    let bed = Bed::new().await?;
    let (_kubelet, deployment) = deployed(&bed).await?;
    let watched = Watched::open(&bed.client, &deployment)?;
    watched.until(&bed, "two ready pods", are_new_and_ready).await?;
    // As the answer to an apply says it, before the controller has done anything.
    let mut after = deployment.clone();
    let pod = after.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
    pod.context("no template")?.containers[0].image = Some(BAD.to_owned());
    after.metadata.generation = after.metadata.generation.map(|it| it + 1);
    let known = watched.watch.facts(&facts(&after));
    let pods = known.value().context("not known")?;
    assert_eq!(pods.iter().map(|pod| pod.is_new).collect::<Vec<_>>(), [false, false]);
    Ok(())
}

#[tokio::test]
async fn pods_of_others_with_the_same_labels_are_not_ours() -> Result<()> {
    let bed = Bed::new().await?;
    let (kubelet, deployment) = deployed(&bed).await?;
    let other = Workload::deployment("other").image("app", GOOD).on_node(kubelet.node());
    let mut other = other.json().clone();
    for pointer in ["/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        let labels = other.pointer_mut(pointer).context("no labels")?;
        *labels = serde_json::json!({ "app": WEB, "other": "yes" });
    }
    bed.create::<Deployment>("helm", &other).await?;
    kubelet
        .pod("the other's pod", &bed.namespace, |pod| {
            pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("other"))
        })
        .await?;
    let watched = Watched::open(&bed.client, &deployment)?;
    watched.until(&bed, "two pods and no third", are_new_and_ready).await?;
    Ok(())
}

#[tokio::test]
async fn without_the_right_to_watch_pods_are_known_from_a_list() -> Result<()> {
    let bed = Bed::new().await?;
    let (_kubelet, deployment) = deployed(&bed).await?;
    let access = bed.with_rights(&[("list", "/pods"), ("list,watch", "apps/replicasets")]).await?;
    let watched = Watched::open(&client(&access)?, &deployment)?;
    watched.until(&bed, "two ready pods", are_new_and_ready).await?;
    let handicap = || std::future::ready(watched.watch.handicap().ok_or("none"));
    let handicap = wait::until("the handicap to be told", wait::SOON, handicap).await?;
    assert_eq!(handicap, "the operator has no right to watch pods, and lists them every 10 s");
    Ok(())
}

#[tokio::test]
async fn without_the_right_to_list_pods_are_unknown() -> Result<()> {
    let bed = Bed::new().await?;
    let (_kubelet, deployment) = deployed(&bed).await?;
    let access = bed.with_rights(&[("list,watch", "apps/replicasets")]).await?;
    let watched = Watched::open(&client(&access)?, &deployment)?;
    let of = facts(&deployment);
    let look = || {
        let known = watched.watch.facts(&of);
        let why = known.get().err().map(str::to_owned);
        let is_told = why.as_deref().is_some_and(|why| why.contains("cannot list resource"));
        std::future::ready(if is_told { Ok(()) } else { Err(format!("{known:?}")) })
    };
    wait::until("the reason to be told", wait::SOON, look).await?;
    Ok(())
}

#[tokio::test]
async fn a_dropped_watch_tells_nothing_any_more() -> Result<()> {
    let bed = Bed::new().await?;
    let (_kubelet, deployment) = deployed(&bed).await?;
    let watched = Watched::open(&bed.client, &deployment)?;
    watched.until(&bed, "two ready pods", are_new_and_ready).await?;
    let Watched { watch, changed } = watched;
    drop(watch);
    // The callback, and with it the other owner of the Notify, goes with the tasks.
    let look = || {
        let owners = Arc::strong_count(&changed);
        std::future::ready(if owners == 1 { Ok(()) } else { Err(owners) })
    };
    wait::until("the tasks to end", wait::SOON, look).await?;
    Ok(())
}
