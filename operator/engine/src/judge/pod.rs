//! What a pod says of itself.

use belay_api::limits;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodCondition};

use super::{ContainerFacts, PodFacts};
use crate::annotations::ContainerName;

/// The longest message that is kept: others write it.
const MAX_MESSAGE: usize = 1024;
/// Reasons of a pod's status that mean that it was ended from outside.
const DISRUPTIONS: [&str; 6] =
    ["Evicted", "Preempted", "Preempting", "NodeLost", "NodeShutdown", "Terminated"];

impl PodFacts {
    /// What a pod says; `is_new` is whether it is of the workload's current template.
    pub fn of(pod: &Pod, is_new: bool) -> Self {
        let metadata = &pod.metadata;
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let statuses = |is_init: bool, all: Option<&Vec<ContainerStatus>>| {
            let all = all.map(Vec::as_slice).unwrap_or_default();
            all.iter().map(|one| container(is_init, one)).collect::<Vec<_>>()
        };
        let mut containers =
            statuses(true, status.and_then(|status| status.init_container_statuses.as_ref()));
        containers
            .extend(statuses(false, status.and_then(|status| status.container_statuses.as_ref())));
        let reason = status.and_then(|status| status.reason.as_deref());
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            is_new,
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0),
            started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
            ready: is(conditions, "Ready", "True"),
            deleting: metadata.deletion_timestamp.is_some(),
            disrupted: is(conditions, "DisruptionTarget", "True")
                || reason.is_some_and(|reason| DISRUPTIONS.contains(&reason))
                || is_cut_off(conditions),
            unschedulable: unschedulable(conditions),
            containers,
        }
    }
}

fn find<'c>(conditions: &'c [PodCondition], kind: &str) -> Option<&'c PodCondition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

fn is(conditions: &[PodCondition], kind: &str, status: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == status)
}

/// Whether the pod's node no longer reports. Kubernetes then sets `Ready` to False in the kubelet's
/// place and leaves everything else as it was last seen; a kubelet would say why.
fn is_cut_off(conditions: &[PodCondition]) -> bool {
    let says_why =
        |one: &PodCondition| one.reason.as_deref().is_some_and(|reason| !reason.is_empty());
    is(conditions, "ContainersReady", "True")
        && find(conditions, "Ready").is_some_and(|one| one.status == "False" && !says_why(one))
}

fn unschedulable(conditions: &[PodCondition]) -> Option<String> {
    let scheduled = find(conditions, "PodScheduled").filter(|one| one.status == "False")?;
    let reason = scheduled.reason.as_deref()?;
    matches!(reason, "Unschedulable" | "SchedulingGated").then(|| {
        let message = scheduled.message.as_deref().filter(|message| !message.is_empty());
        limits::clip(message.unwrap_or(reason), MAX_MESSAGE)
    })
}

fn container(is_init: bool, status: &ContainerStatus) -> ContainerFacts {
    let state = status.state.as_ref();
    let waiting = state.and_then(|state| state.waiting.as_ref());
    let has_run = |state: &ContainerState| state.running.is_some() || state.terminated.is_some();
    let was_run = [state, status.last_state.as_ref()].into_iter().flatten().any(has_run);
    ContainerFacts {
        name: ContainerName { is_init, name: status.name.clone() },
        waiting: waiting.map(|waiting| waiting.reason.clone().unwrap_or_default()),
        message: waiting
            .and_then(|waiting| waiting.message.as_deref())
            .map(|message| limits::clip(message, MAX_MESSAGE)),
        restarts: status.restart_count,
        pulled: !status.image_id.is_empty() || was_run,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn facts(status: &Value) -> PodFacts {
        let pod = json!({
            "metadata": {"name": "web-1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": status,
        });
        PodFacts::of(&serde_json::from_value(pod).unwrap(), true)
    }

    fn condition(kind: &str, status: &str, reason: Option<&str>, message: Option<&str>) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": message})
    }

    fn status(state: &Value, image_id: &str) -> Value {
        json!({
            "name": "app", "image": "web:1", "imageID": image_id, "ready": false,
            "restartCount": 0, "state": state,
        })
    }

    #[test]
    fn a_pod_that_says_nothing_is_new_and_not_ready() {
        let pod = PodFacts::of(&Pod::default(), false);
        assert_eq!((pod.name.as_str(), pod.is_new, pod.created), ("", false, Timestamp::MIN));
        assert_eq!(
            (pod.started, pod.ready, pod.deleting, pod.disrupted),
            (None, false, false, false)
        );
        assert_eq!((pod.unschedulable, pod.containers), (None, Vec::new()));
    }

    #[test]
    fn a_pod_says_when_it_was_made_and_taken_and_whether_it_is_ready() {
        let ready = json!([condition("Ready", "True", None, None)]);
        let pod = facts(&json!({"startTime": "2026-01-01T00:00:05Z", "conditions": ready}));
        assert_eq!(pod.created.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(pod.started.unwrap().to_string(), "2026-01-01T00:00:05Z");
        assert!(pod.ready && pod.is_new && !pod.disrupted);
    }

    #[test]
    fn a_pod_that_goes_says_so() {
        let pod = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(PodFacts::of(&serde_json::from_value(pod).unwrap(), true).deleting);
    }

    #[rstest]
    #[case::image_pull("ImagePullBackOff", Some("manifest unknown"))]
    #[case::crash("CrashLoopBackOff", Some("back-off 40s"))]
    #[case::config("CreateContainerConfigError", Some("configmap \"x\" not found"))]
    #[case::name("InvalidImageName", None)]
    #[case::harmless("ContainerCreating", None)]
    fn a_container_says_why_it_waits(
        #[values(true, false)] is_init: bool,
        #[case] reason: &str,
        #[case] message: Option<&str>,
    ) {
        let field = if is_init { "initContainerStatuses" } else { "containerStatuses" };
        let state = json!({"waiting": {"reason": reason, "message": message}});
        let pod = facts(&json!({field: [status(&state, "")]}));
        let [container] = pod.containers.as_slice() else { panic!("{pod:?}") };
        assert_eq!(container.name, ContainerName { is_init, name: "app".to_owned() });
        assert_eq!(container.waiting.as_deref(), Some(reason));
        assert_eq!(container.message.as_deref(), message);
        assert!(!container.pulled);
    }

    #[test]
    fn init_containers_come_first() {
        let pod = facts(&json!({
            "containerStatuses": [status(&json!({}), "")],
            "initContainerStatuses": [status(&json!({}), "")],
        }));
        let names: Vec<_> = pod.containers.iter().map(|one| one.name.to_string()).collect();
        assert_eq!(names, ["init:app", "app"]);
    }

    #[rstest]
    #[case::image_id(json!({}), json!({}), "ghcr.io/acme/web@sha256:00", true)]
    #[case::running(json!({"running": {}}), json!({}), "", true)]
    #[case::ended(json!({"terminated": {"exitCode": 1}}), json!({}), "", true)]
    #[case::ran_before(json!({"waiting": {}}), json!({"terminated": {"exitCode": 1}}), "", true)]
    #[case::waiting(json!({"waiting": {}}), json!({}), "", false)]
    #[case::nothing(json!({}), json!({}), "", false)]
    fn an_image_was_pulled_if_it_is_known_or_ran(
        #[case] state: Value,
        #[case] last: Value,
        #[case] image_id: &str,
        #[case] pulled: bool,
    ) {
        let mut container = status(&state, image_id);
        container["lastState"] = last;
        container["restartCount"] = json!(4);
        let pod = facts(&json!({"containerStatuses": [container]}));
        assert_eq!((pod.containers[0].pulled, pod.containers[0].restarts), (pulled, 4));
    }

    #[rstest]
    #[case::target(json!({"conditions": [condition("DisruptionTarget", "True", None, None)]}), true)]
    #[case::target_no_more(
        json!({"conditions": [condition("DisruptionTarget", "False", None, None)]}),
        false
    )]
    #[case::evicted(json!({"reason": "Evicted"}), true)]
    #[case::preempted(json!({"reason": "Preempted"}), true)]
    #[case::preempting(json!({"reason": "Preempting"}), true)]
    #[case::node_lost(json!({"reason": "NodeLost"}), true)]
    #[case::node_shut_down(json!({"reason": "NodeShutdown"}), true)]
    #[case::another_reason(json!({"reason": "OutOfcpu"}), false)]
    #[case::nothing(json!({}), false)]
    #[case::node_does_not_report(
        json!({"conditions": [
            condition("ContainersReady", "True", None, None),
            condition("Ready", "False", None, None),
        ]}),
        true
    )]
    #[case::readiness_gate(
        json!({"conditions": [
            condition("ContainersReady", "True", None, None),
            condition("Ready", "False", Some("ReadinessGatesNotReady"), None),
        ]}),
        false
    )]
    #[case::not_ready_by_itself(
        json!({"conditions": [
            condition("ContainersReady", "False", Some("ContainersNotReady"), None),
            condition("Ready", "False", Some("ContainersNotReady"), None),
        ]}),
        false
    )]
    fn a_pod_is_disrupted_from_outside(#[case] status: Value, #[case] disrupted: bool) {
        assert_eq!(facts(&status).disrupted, disrupted);
    }

    #[rstest]
    #[case::no_node("False", Some("Unschedulable"), Some("0/3 nodes"), Some("0/3 nodes"))]
    #[case::no_message("False", Some("Unschedulable"), Some(""), Some("Unschedulable"))]
    #[case::gated("False", Some("SchedulingGated"), None, Some("SchedulingGated"))]
    #[case::another_reason("False", Some("SchedulerError"), Some("x"), None)]
    #[case::no_reason("False", None, Some("x"), None)]
    #[case::scheduled("True", Some("Unschedulable"), Some("x"), None)]
    fn a_pod_without_a_node_says_why(
        #[case] status: &str,
        #[case] reason: Option<&str>,
        #[case] message: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let conditions = json!([condition("PodScheduled", status, reason, message)]);
        assert_eq!(facts(&json!({"conditions": conditions})).unschedulable.as_deref(), expected);
    }

    #[test]
    fn long_messages_of_others_are_cut() {
        let long = "x".repeat(1_000_000);
        let state = json!({"waiting": {"reason": "ErrImagePull", "message": long}});
        let pod = facts(&json!({
            "containerStatuses": [status(&state, "")],
            "conditions": [condition("PodScheduled", "False", Some("Unschedulable"), Some(&long))],
        }));
        assert!(pod.containers[0].message.as_ref().unwrap().len() <= MAX_MESSAGE + 8);
        assert!(pod.unschedulable.unwrap().len() <= MAX_MESSAGE + 8);
    }
}
