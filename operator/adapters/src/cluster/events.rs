//! Events on a workload.

use std::time::Duration;

use belay_api::{limits, names::Signature};
use belay_engine::{observed::WorkloadFacts, plan::Notice};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// The longest text of an event, in bytes; the API server refuses more.
const MAX_NOTE: usize = 1024;
/// How long the sending of one may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Tells the users of a workload what was done.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// Events of this controller; `instance` is the name of its pod.
    pub fn new(client: Client, controller: &str, instance: &str) -> Self {
        let reporter =
            Reporter { controller: controller.to_owned(), instance: Some(instance.to_owned()) };
        Self { recorder: Recorder::new(client, reporter) }
    }

    /// Sends notices as events on a workload. The same notice again within six minutes is counted on
    /// the first. An event that cannot be sent is logged and lost: what it says stands in the status
    /// of an object too.
    pub async fn send(&self, namespace: &str, workload: &WorkloadFacts, notices: &[Notice]) {
        let regarding = ObjectReference {
            api_version: Some(workload.api_version.clone()),
            kind: Some(workload.kind.clone()),
            name: Some(workload.name.clone()),
            namespace: Some(namespace.to_owned()),
            uid: Some(workload.uid.clone()),
            ..ObjectReference::default()
        };
        for notice in notices {
            let event = event(notice);
            let publish = self.recorder.publish(&event, &regarding);
            let why = match tokio::time::timeout(PATIENCE, publish).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
            };
            tracing::warn!(
                namespace,
                kind = workload.kind,
                name = workload.name,
                reason = notice.reason,
                why,
                "an event was not sent"
            );
        }
    }
}

fn event(notice: &Notice) -> Event {
    // The recorder takes two events for one unless their actions differ, and keeps the first one's
    // text. What says something else is another event.
    let said = Signature::of(&notice.message, []);
    Event {
        type_: if notice.is_warning { EventType::Warning } else { EventType::Normal },
        reason: limits::clip(&notice.reason, 128),
        note: Some(clip_bytes(&notice.message, MAX_NOTE)),
        action: format!("Report-{}", said.as_str()),
        secondary: None,
    }
}

fn clip_bytes(text: &str, limit: usize) -> String {
    let mut clipped = limits::clip(text, limit);
    while clipped.len() > limit {
        let chars = clipped.chars().count();
        clipped = limits::clip(&clipped, chars - 1);
    }
    clipped
}

#[cfg(test)]
mod tests {
    use belay_api::events::EventReason;
    use k8s_openapi::api::apps::v1::Deployment;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::cluster::fake::{Answer, Server};

    fn notice(message: &str) -> Notice {
        Notice::of(EventReason::Failed, message)
    }

    fn workload() -> WorkloadFacts {
        let metadata = json!({ "name": "web", "namespace": "shop", "uid": "u-1" });
        let deployment: Deployment =
            serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        WorkloadFacts::of(&deployment, "belay.dev/release")
    }

    #[tokio::test]
    async fn the_same_notice_again_is_counted_and_another_text_is_another_event() {
        let event = json!({ "metadata": { "name": "web.1" } });
        let server = Server::answering(vec![Answer::ok(&event); 3]);
        let events = Events::new(server.client(), "belay-operator", "pod-1");
        let notices = [notice("v2 failed"), notice("v2 failed"), notice("v3 failed")];
        events.send("shop", &workload(), &notices).await;
        let asked = server.asked();
        let verbs: Vec<_> = asked.iter().filter_map(|it| it.line.split(' ').next()).collect();
        assert_eq!(verbs, ["POST", "PATCH", "POST"]);
        let first = &asked[0].body;
        let found = json!([
            first["type"],
            first["reason"],
            first["note"],
            first["reportingController"],
            first["reportingInstance"],
            first["regarding"]["uid"],
        ]);
        let expected = json!(["Warning", "Failed", "v2 failed", "belay-operator", "pod-1", "u-1"]);
        assert_eq!(found, expected);
        assert_eq!(asked[1].body["series"]["count"], 2);
        assert_eq!(asked[2].body["note"], "v3 failed");
    }

    #[tokio::test]
    async fn one_that_cannot_be_sent_does_not_keep_back_the_next() {
        let no = Answer::refusal(403, "Forbidden", "no", json!({}));
        let server = Server::answering([no, Answer::ok(&json!({ "metadata": {} }))]);
        let events = Events::new(server.client(), "belay-operator", "pod-1");
        events.send("shop", &workload(), &[notice("one"), notice("two")]).await;
        assert_eq!(server.lines().len(), 2);
    }

    #[rstest]
    #[case("short", 1024, "short")]
    #[case("äöü", 6, "äöü")]
    #[case("äöüß", 6, "ä…")]
    #[case("ä", 1, "")]
    fn a_text_is_clipped_to_bytes(#[case] text: &str, #[case] limit: usize, #[case] to: &str) {
        assert_eq!(clip_bytes(text, limit), to);
    }
}
