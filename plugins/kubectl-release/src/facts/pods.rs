//! What a pod does, in one word, and what troubles it: at once, not only when a deadline has passed.

use belay_engine::judge::PodFacts;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::print::Icon;

/// A pod in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodLine {
    /// Its name.
    pub name: String,
    /// The sign before the word.
    pub icon: Icon,
    /// The word, as kubectl has it.
    pub word: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// How far it is, or what is wrong.
    pub info: String,
}

/// Waiting for these is no trouble.
const HARMLESS: [&str; 3] = ["ContainerCreating", "PodInitializing", ""];

impl PodLine {
    /// What a pod says.
    pub fn of(pod: &Pod) -> Self {
        let facts = PodFacts::of(pod, true);
        let (icon, word, info) = describe(pod, &facts);
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        Self { name: facts.name, icon, word, created, info }
    }

    /// Whether something is wrong with it that does not pass by itself.
    pub fn is_trouble(&self) -> bool {
        self.icon == Icon::Bad
    }

    /// For a log: `pod web-1 app ImagePullBackOff: manifest unknown`.
    pub fn brief(&self) -> String {
        match self.info.split_once(": ") {
            Some((container, info)) => {
                format!("pod {} {container} {}: {info}", self.name, self.word)
            }
            None => format!("pod {} {} {}", self.name, self.word, self.info),
        }
    }

    /// In words: `pod web-1 ImagePullBackOff: app: manifest unknown`.
    pub fn sentence(&self) -> String {
        format!("pod {} {}: {}", self.name, self.word, self.info)
    }
}

fn describe(pod: &Pod, facts: &PodFacts) -> (Icon, String, String) {
    let ready = ready(pod);
    if facts.deleting {
        return (Icon::Busy, "Terminating".to_owned(), ready);
    }
    if let Some(message) = &facts.unschedulable {
        return (Icon::Bad, "Unschedulable".to_owned(), message.clone());
    }
    let trouble = facts.containers.iter().find_map(|container| {
        let word = container.waiting.as_deref().filter(|word| !HARMLESS.contains(word))?;
        let said = ended(pod, &container.name.name).or_else(|| container.message.clone());
        let info = match said {
            Some(said) => format!("{}: {said}", container.name),
            None => container.name.to_string(),
        };
        Some((Icon::Bad, word.to_owned(), format!("{info}{}", restarts(container.restarts))))
    });
    if let Some(trouble) = trouble {
        return trouble;
    }
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("Unknown");
    let word = status.and_then(|status| status.reason.as_deref()).unwrap_or(phase).to_owned();
    let again = restarts(facts.containers.iter().map(|one| one.restarts).max().unwrap_or_default());
    match phase {
        "Failed" => {
            let message = status.and_then(|status| status.message.clone()).unwrap_or_default();
            // What was evicted is replaced; nobody need act.
            let icon = if facts.disrupted { Icon::Warn } else { Icon::Bad };
            (icon, word, message)
        }
        "Succeeded" => (Icon::Idle, word, ready),
        "Running" if facts.ready => (Icon::Good, word, format!("{ready}{again}")),
        "Running" => (Icon::Busy, word, format!("{ready}{again}")),
        _ => {
            let waiting = facts.containers.iter().find_map(|one| one.waiting.clone());
            (Icon::Busy, waiting.filter(|word| !word.is_empty()).unwrap_or(word), ready)
        }
    }
}

fn restarts(count: i32) -> String {
    match count {
        ..=0 => String::new(),
        1 => ", 1 restart".to_owned(),
        _ => format!(", {count} restarts"),
    }
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_deref());
    let ordinary = status.and_then(|status| status.container_statuses.as_deref());
    init.unwrap_or_default().iter().chain(ordinary.unwrap_or_default())
}

/// How a container that is started again and again ended last: that says more than the back-off.
fn ended(pod: &Pod, container: &str) -> Option<String> {
    let status = statuses(pod).find(|status| status.name == container)?;
    let last = status.last_state.as_ref()?.terminated.as_ref()?;
    let why =
        last.reason.as_deref().filter(|reason| !matches!(*reason, "Error" | "Completed" | ""));
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    Some(format!("exit code {}{why}", last.exit_code))
}

fn ready(pod: &Pod) -> String {
    let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    let ready = status.unwrap_or_default().iter().filter(|one| one.ready).count();
    let all = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    format!("ready {ready}/{all}")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn line(status: Value) -> PodLine {
        let mut pod = json!({
            "metadata": {"name": "web-1"},
            "spec": {"containers": [{"name": "app"}]},
        });
        pod["status"] = status;
        PodLine::of(&serde_json::from_value(pod).unwrap())
    }

    fn container(state: Value, last: Value, restarts: i32) -> Value {
        let mut container = json!({
            "name": "app", "image": "", "imageID": "", "ready": false, "restartCount": restarts,
        });
        container["state"] = state;
        container["lastState"] = last;
        json!([container])
    }

    fn waits(reason: &str, message: Option<&str>) -> Value {
        json!({"waiting": {"reason": reason, "message": message}})
    }

    #[rstest]
    #[case::pull(
        json!({"phase": "Pending",
            "containerStatuses": container(waits("ImagePullBackOff", Some("manifest unknown")), json!({}), 0)}),
        Icon::Bad, "ImagePullBackOff", "app: manifest unknown"
    )]
    #[case::crash(
        json!({"phase": "Running", "containerStatuses": container(
            waits("CrashLoopBackOff", Some("back-off 40s")),
            json!({"terminated": {"exitCode": 1, "reason": "Error"}}), 4)}),
        Icon::Bad, "CrashLoopBackOff", "app: exit code 1, 4 restarts"
    )]
    #[case::killed(
        json!({"phase": "Running", "containerStatuses": container(
            waits("CrashLoopBackOff", None),
            json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), 1)}),
        Icon::Bad, "CrashLoopBackOff", "app: exit code 137 (OOMKilled), 1 restart"
    )]
    #[case::starts(
        json!({"phase": "Pending",
            "containerStatuses": container(waits("ContainerCreating", None), json!({}), 0)}),
        Icon::Busy, "ContainerCreating", "ready 0/1"
    )]
    #[case::no_node(
        json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}),
        Icon::Bad, "Unschedulable", "0/3 nodes"
    )]
    #[case::unready(
        json!({"phase": "Running", "containerStatuses": container(json!({"running": {}}), json!({}), 0)}),
        Icon::Busy, "Running", "ready 0/1"
    )]
    #[case::evicted(
        json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
        Icon::Warn, "Evicted", "low on memory"
    )]
    #[case::nothing(json!({}), Icon::Busy, "Unknown", "ready 0/1")]
    fn a_pod_is_one_word_and_what_is_wrong(
        #[case] status: Value,
        #[case] icon: Icon,
        #[case] word: &str,
        #[case] info: &str,
    ) {
        let line = line(status);
        assert_eq!((line.icon, line.word.as_str(), line.info.as_str()), (icon, word, info));
    }
}
