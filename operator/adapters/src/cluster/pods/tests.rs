//! What is made of pods and ReplicaSets, and of refused watches.

use std::{
    slice::from_ref,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use belay_engine::{
    judge::PodFacts,
    observed::{Fact, WorkloadFacts},
};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::Api;
use rstest::rstest;
use serde_json::{Value, json};

use super::{PodsOf, follow::follow, view::View};
use crate::{
    Clock,
    cluster::fake::{Answer, Server},
};

fn deployment(image: &str, seen: bool) -> WorkloadFacts {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web", "uid": "d-1", "generation": 5 },
        "spec": { "selector": {}, "template": { "spec": {
            "initContainers": [{ "name": "migrate", "image": image }],
            "containers": [{ "name": "app", "image": image }, { "name": "log", "image": "l:1" }],
        } } },
        "status": { "observedGeneration": if seen { 5 } else { 4 } },
    }))
    .unwrap();
    WorkloadFacts::of(&deployment, "belay.dev/release")
}

fn set(uid: &str, revision: &str, image: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("web-{uid}"), "uid": uid,
            "annotations": { "deployment.kubernetes.io/revision": revision },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d-1",
                "controller": true,
            }],
        },
        "spec": { "selector": {}, "template": { "spec": {
            "initContainers": [{ "name": "migrate", "image": image }],
            "containers": [{ "name": "app", "image": image }, { "name": "log", "image": "l:1" }],
        } } },
    })
}

fn foreign_set(uid: &str, image: &str) -> Value {
    let mut set = set(uid, "99", image);
    set["metadata"]["ownerReferences"][0]["uid"] = json!("d-0");
    set
}

fn pod(name: &str, set: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "creationTimestamp": "2026-03-01T12:00:00Z",
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s", "uid": set,
                "controller": true,
            }],
        },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

fn read<K: serde::de::DeserializeOwned>(objects: &[Value]) -> Vec<K> {
    objects.iter().map(|object| serde_json::from_value(object.clone()).unwrap()).collect()
}

fn view_with(sets: &[Value], pods: &[Value]) -> View {
    let view = View::new(Clock::machine(), "d-1", || {});
    view.listed(&read::<ReplicaSet>(sets));
    view.listed(&read::<Pod>(pods));
    view
}

/// `a b+`: names, with a plus for the new ones.
fn line(facts: &Fact<Vec<PodFacts>>) -> String {
    let one = |pod: &PodFacts| format!("{}{}", pod.name, if pod.is_new { "+" } else { "" });
    let pods = facts.get().unwrap();
    pods.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[rstest]
#[case::the_newest_of_these_images("i:2", true, "b c+")]
#[case::before_the_controller_has_numbered_it_anew("i:1", false, "b+ c")]
#[case::before_the_controller_has_made_it("i:3", false, "b c")]
#[case::rewritten_by_admission("i:3", true, "b c+")]
fn new_pods_are_those_of_the_current_template(
    #[case] image: &str,
    #[case] seen: bool,
    #[case] expected: &str,
) {
    // Revisions are numbers: 10 is newer than 9.
    let sets = [set("old", "9", "i:1"), set("new", "10", "i:2"), foreign_set("other", "i:3")];
    let view = view_with(&sets, &[pod("c", "new"), pod("b", "old"), pod("x", "other")]);
    assert_eq!(line(&view.facts(&deployment(image, seen))), expected);
}

#[rstest]
#[case::the_newest_of_equal_images(&["3", "4"], "a b+")]
#[case::no_revision_is_the_oldest(&["", "4"], "a b+")]
fn of_several_with_these_images_the_newest_counts(#[case] numbers: &[&str], #[case] pods: &str) {
    let sets = [set("one", numbers[0], "i:1"), set("two", numbers[1], "i:1")];
    let view = view_with(&sets, &[pod("a", "one"), pod("b", "two")]);
    assert_eq!(line(&view.facts(&deployment("i:1", true))), pods);
}

#[test]
fn one_container_more_is_another_template() {
    let mut more = set("more", "2", "i:1");
    let containers = more["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
    containers.push(json!({ "name": "side", "image": "s:1" }));
    let view = view_with(&[set("one", "1", "i:1"), more], &[pod("a", "one"), pod("b", "more")]);
    assert_eq!(line(&view.facts(&deployment("i:1", true))), "a+ b");
}

#[test]
fn nothing_is_known_until_both_kinds_are_listed() {
    let view = View::new(Clock::machine(), "d-1", || {});
    let why = |view: &View| view.facts(&deployment("i:1", true)).get().unwrap_err().to_owned();
    assert_eq!(why(&view), "pods have not been listed yet");
    view.listed(&read::<Pod>(&[pod("a", "one")]));
    assert_eq!(why(&view), "ReplicaSets have not been listed yet");
    view.listed(&read::<ReplicaSet>(&[set("one", "1", "i:1")]));
    assert_eq!(line(&view.facts(&deployment("i:1", true))), "a+");
    view.failed::<Pod>("list pods: no".to_owned());
    assert_eq!(why(&view), "list pods: no");
}

#[test]
fn only_what_differs_is_told() {
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let view = View::new(Clock::machine(), "d-1", move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let told = || told.swap(0, Ordering::Relaxed);
    let pods = |objects: &[Value]| read::<Pod>(objects);
    let ready = pod("a", "one");
    let mut unready = ready.clone();
    unready["status"]["conditions"][0]["status"] = json!("False");
    view.listed(&pods(from_ref(&ready)));
    assert_eq!(told(), 1);
    view.listed(&pods(from_ref(&ready)));
    view.applied(&pods(from_ref(&ready))[0]);
    view.deleted(&pods(&[pod("b", "one")])[0]);
    assert_eq!(told(), 0, "nothing has changed");
    view.applied(&pods(&[unready])[0]);
    assert_eq!(told(), 1);
    view.deleted(&pods(&[ready])[0]);
    assert_eq!(told(), 1);
    view.failed::<Pod>("no".to_owned());
    view.failed::<Pod>("no".to_owned());
    assert_eq!(told(), 1);
}

#[rstest]
#[case::labels(json!({ "matchLabels": { "app": "web", "tier": "front" } }), Some("app=web,tier=front"))]
#[case::expressions(
    json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["a", "b"] }] }),
    Some("app in (a,b)")
)]
#[case::nothing(json!({}), None)]
#[case::an_operator_that_is_not_known(
    json!({ "matchExpressions": [{ "key": "app", "operator": "Near", "values": ["a"] }] }), None
)]
fn a_selector_becomes_a_query_or_an_error(#[case] selector: Value, #[case] expected: Option<&str>) {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "d-1" },
        "spec": { "selector": selector, "template": {} },
    }))
    .unwrap();
    let of = PodsOf::of(&deployment);
    assert_eq!(of.as_ref().ok().map(|of| of.selector.as_str()), expected);
    if let Err(error) = of {
        let text = error.to_string();
        assert!(text.starts_with("watch the pods of Deployment shop/web: "), "{text}");
    }
}

fn list(pods: &[Value]) -> Answer {
    Answer::ok(&json!({
        "apiVersion": "v1", "kind": "PodList", "metadata": { "resourceVersion": "1" },
        "items": pods,
    }))
}

fn forbidden(verb: &str) -> Answer {
    let message = format!("pods is forbidden: User \"op\" cannot {verb} resource \"pods\"");
    Answer::refusal(403, "Forbidden", &message, json!({}))
}

#[tokio::test(start_paused = true)]
async fn pods_that_may_not_be_watched_are_listed_instead() {
    let server = Server::answering([
        list(&[pod("a", "one")]),
        forbidden("watch"),
        list(&[pod("a", "one"), pod("b", "one")]),
        forbidden("list"),
        list(&[pod("b", "one")]),
    ]);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let view = Arc::new(View::new(Clock::machine(), "d-1", move || {
        let _ = tell.send(());
    }));
    view.listed(&read::<ReplicaSet>(&[set("one", "1", "i:1")]));
    told.recv().await.unwrap();
    let start = tokio::time::Instant::now();
    let (api, shared) = (Api::<Pod>::namespaced(server.client(), "shop"), Arc::clone(&view));
    let _task = tokio::task::JoinSet::from_iter([async move {
        follow(api, "app=web", &shared).await;
    }]);
    let mut facts = Vec::new();
    for _ in 0..4 {
        told.recv().await.unwrap();
        let known = view.facts(&deployment("i:1", true));
        let line = known.get().map_or_else(ToOwned::to_owned, |_| line(&known));
        facts.push((start.elapsed().as_secs(), line));
    }
    let refused = "list pods: the API server answered 403: pods is forbidden: User \"op\" cannot \
                   list resource \"pods\"";
    let expected = [(0, "a+"), (10, "a+ b+"), (20, refused), (30, "b+")];
    let expected: Vec<_> = expected.map(|(time, line)| (time, line.to_owned())).into();
    assert_eq!(facts, expected);
    assert_eq!(
        view.handicap().as_deref(),
        Some("the operator has no right to watch pods, and lists them every 10 s")
    );
    let asked = server.asked();
    assert!(asked.iter().all(|it| it.query.contains(&"labelSelector=app%3Dweb".to_owned())));
    let is_watch = |it: &&crate::cluster::fake::Asked| it.query.contains(&"watch=true".to_owned());
    assert_eq!(asked.iter().filter(is_watch).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn pods_that_may_not_even_be_listed_are_unknown() {
    let server = Server::answering([forbidden("list"), list(&[])]);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let view = Arc::new(View::new(Clock::machine(), "d-1", move || {
        let _ = tell.send(());
    }));
    view.listed(&read::<ReplicaSet>(&[]));
    told.recv().await.unwrap();
    let (api, shared) = (Api::<Pod>::namespaced(server.client(), "shop"), Arc::clone(&view));
    let _task = tokio::task::JoinSet::from_iter([async move {
        follow(api, "app=web", &shared).await;
    }]);
    told.recv().await.unwrap();
    let facts = view.facts(&deployment("i:1", true));
    assert!(facts.get().unwrap_err().contains("cannot list resource"), "{facts:?}");
    told.recv().await.unwrap();
    assert_eq!(line(&view.facts(&deployment("i:1", true))), "", "the right was given meanwhile");
}
