//! Which calls of a run are cut, and how they are found again in another run.
//!
//! A call is told by what it asks for, by what it says, and by its place among those of its phase that
//! ask for the same and say the same. A phase begins where the world changes: where the test publishes a
//! release, pushes an image, creates an object. Thus a call has the same [`Mark`] in every run, however
//! often a poll was repeated before it, and however many steps of a rollout a write before it has told of.
//!
//! What is left out is what Sieve leaves out as well (reliability.md 1.3): a read that was answered
//! as the same read before it in its phase. No later write depends on it, and a crash there is a crash
//! between the calls beside it. These are the polls of GitHub (304), and those of a registry that does
//! not have an image yet.

use std::{collections::HashMap, fmt};

use belay_testkit::fault::{Call, CallId, Calls, Fault, Outcome, PatchKind, Target, Verb};
use http::StatusCode;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::plain::Names;

/// What a call asks for and says, the same in every run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Mark(String);

/// A call of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PhaseCall {
    /// The phase.
    pub(super) phase: &'static str,
    /// Which call.
    pub(super) mark: Mark,
    /// The how-manieth of these in its phase, from 1.
    pub(super) nth: u32,
    /// One of these calls.
    example: CallId,
}

/// A call, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    /// The call.
    pub(super) call: PhaseCall,
    /// [`Fault::CrashBefore`] or [`Fault::CrashAfter`].
    pub(super) fault: Fault,
}

impl Mark {
    /// What it says of conditions, without the digest of all the rest.
    pub(super) fn phase(&self) -> &str {
        self.0.rsplit_once(" ~").map_or(self.0.as_str(), |(phase, _)| phase)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PhaseCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.phase, self.mark)?;
        if self.nth > 1 {
            write!(f, " #{}", self.nth)?;
        }
        Ok(())
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault, self.call)
    }
}

impl PhaseCall {
    /// Whether it goes to the API server.
    pub(super) fn is_to_kubernetes(&self) -> bool {
        self.example.resource().is_some()
    }

    /// Whether it says what a call of its phase has said before of an object's status. It tells how far a
    /// rollout got, then, and how many there are of these depends on how events fall together.
    pub(super) fn is_by_chance(&self) -> bool {
        let subresource = self.example.resource().and_then(|one| one.subresource.as_deref());
        self.nth > 1 && subresource == Some("status")
    }

    /// The calls that are meant, for a rule of a plan whose counts begin with the phase.
    pub(super) fn rule(&self) -> Calls {
        rule(&self.example)
    }
}

impl Mark {
    /// Of a request to the API server, or to another server.
    pub(super) fn of(id: &CallId, body: Option<&[u8]>, names: &Names) -> Self {
        let mut id = id.clone();
        id.nth = 1;
        let body = body.and_then(|body| serde_json::from_slice::<Value>(body).ok());
        if is_event(&id)
            && let Target::Resource(resource) = &mut id.target
        {
            // Its name holds a time.
            resource.name = resource.name.as_ref().map(|_| "…".to_owned());
        }
        let mut mark = names.text(&id.to_string());
        if let Some(said) = body.filter(|_| id.is_write()).map(|body| said(&id, &body, names)) {
            mark = format!("{mark} {said}");
        }
        Self(mark)
    }
}

/// The calls with this identity; where it holds a digest or a time, with any.
pub(super) fn rule(id: &CallId) -> Calls {
    if is_event(id) {
        return Calls::any().verb(id.verb.clone()).resource("events");
    }
    if let Target::Path { host: Some(host), path } = &id.target
        && let Some((path, _)) = path.split_once("sha256:")
    {
        return Calls::any().verb(id.verb.clone()).host(host).path(&format!("{path}sha256:"));
    }
    let mut id = id.clone();
    id.nth = 1;
    Calls::same_as(&id)
}

fn is_event(id: &CallId) -> bool {
    id.resource().is_some_and(|resource| resource.resource == "events")
}

/// What a write says. How far a rollout got (`progress`) is left out, for it depends on how many events
/// of pods fall together.
fn said(id: &CallId, body: &Value, names: &Names) -> String {
    let Some(resource) = id.resource() else { return String::new() };
    if resource.resource == "events" {
        let reason = body["reason"].as_str().unwrap_or_default();
        return names.text(&format!("{reason} {}", body["note"].as_str().unwrap_or_default()));
    }
    if resource.subresource.as_deref() == Some("status") {
        let mut status = names.value(&body["status"]);
        if let Some(status) = status.as_object_mut() {
            status.remove("progress");
        }
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let words = conditions.map(|one| {
            let part = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            format!("{}={}/{}", part("type"), part("status"), part("reason"))
        });
        let words: Vec<_> = words.collect();
        return format!("{} ~{}", words.join(" "), short(&status));
    }
    match id.verb {
        Verb::Create => body["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        Verb::Patch(PatchKind::Apply) if resource.resource == "scaledobjects" => {
            let keys = body["metadata"]["annotations"].as_object();
            let keys = keys.map(|all| all.keys().cloned().collect::<Vec<_>>().join(" "));
            keys.unwrap_or_else(|| "nothing".to_owned())
        }
        Verb::Patch(PatchKind::Apply) => names.text(&body["spec"]["template"]["spec"].to_string()),
        Verb::Update if resource.resource == "leases" => String::new(),
        _ => format!("~{}", short(&names.value(body))),
    }
}

/// Tells values apart in a few letters.
fn short(value: &Value) -> String {
    let [first, second, ..]: [u8; 32] = Sha256::digest(value.to_string()).into();
    format!("{first:02x}{second:02x}")
}

/// Where phases begin among the calls of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Phases(Vec<(&'static str, usize)>);

impl Phases {
    /// A phase begins with the call of this index.
    pub(super) fn begin(&mut self, name: &'static str, index: usize) {
        self.0.push((name, index));
    }

    /// The calls from the beginning of the first phase on.
    pub(super) fn since_the_first<'c>(&self, calls: &'c [Call]) -> &'c [Call] {
        let begin = self.0.first().map_or(0, |(_, begin)| *begin);
        calls.get(begin..).unwrap_or_default()
    }

    /// The calls of all phases that are to be cut, in order.
    pub(super) fn calls(&self, calls: &[Call], names: &Names) -> Vec<PhaseCall> {
        let mut found = Vec::new();
        for (at, (phase, begin)) in self.0.iter().enumerate() {
            let end = self.0.get(at + 1).map_or(calls.len(), |(_, begin)| *begin);
            let mut before: HashMap<Mark, (u32, Option<StatusCode>)> = HashMap::new();
            for call in calls.get(*begin..end).unwrap_or_default() {
                let mark = Mark::of(&call.id, call.body.as_deref(), names);
                let answer = match call.outcome {
                    Outcome::Status(status) => Some(status),
                    _ => None,
                };
                let last = before.get(&mark).copied();
                // Not modified means: as before.
                let is_as_before = answer == Some(StatusCode::NOT_MODIFIED)
                    || last.is_some_and(|(_, before)| before == answer);
                let is_repeated = last.is_some() && is_as_before;
                let nth = last.map_or(1, |(nth, _)| nth.saturating_add(1));
                let answer = match last {
                    Some((_, before)) if is_repeated => before,
                    _ => answer,
                };
                before.insert(mark.clone(), (nth, answer));
                if call.id.is_write() || !is_repeated {
                    let example = call.id.clone();
                    found.push(PhaseCall { phase, mark, nth, example });
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, Request};
    use serde_json::json;

    use super::*;

    impl PhaseCall {
        /// A read of a path.
        pub(in crate::crashes) fn of_path(phase: &'static str, path: &str) -> Self {
            let example = read(path);
            let mark = Mark::of(&example, None, &Names::default());
            Self { phase, mark, nth: 1, example }
        }
    }

    fn read(path: &str) -> CallId {
        CallId::http(&Request::builder().method(Method::GET).uri(path).body(()).unwrap())
    }

    fn call(id: CallId, status: u16, body: Option<&Value>) -> Call {
        Call {
            id,
            process: 1,
            query: Vec::new(),
            body: body.map(|body| body.to_string().into()),
            fault: None,
            outcome: Outcome::Status(StatusCode::from_u16(status).unwrap()),
        }
    }

    fn write_of_status(reason: &str, updated: u32) -> Call {
        let request = Request::put("/apis/belay.dev/v1alpha1/namespaces/ns/releases/web-1/status");
        let condition = json!({ "type": "Healthy", "status": "Unknown", "reason": reason });
        let status = json!({ "conditions": [condition], "progress": { "updated": updated } });
        let body = json!({ "status": status });
        call(CallId::kubernetes(&request.body(()).unwrap(), ""), 200, Some(&body))
    }

    fn shown(phases: &Phases, calls: &[Call]) -> Vec<String> {
        let found = phases.calls(calls, &Names::default());
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_read_that_is_answered_as_before_is_left_out_and_a_phase_counts_anew() {
        let polls =
            [200, 304, 304, 404, 404, 200].map(|status| call(read("/latest"), status, None));
        let mut phases = Phases::default();
        phases.begin("published", 1);
        phases.begin("pushed", 4);
        let expected = [
            // The first of a phase, whatever it is answered, and what is answered anew.
            "[published] GET /latest",
            "[published] GET /latest #3",
            "[pushed] GET /latest",
            "[pushed] GET /latest #2",
        ];
        assert_eq!(shown(&phases, &polls), expected);
        assert_eq!(phases.since_the_first(&polls).len(), 5);
    }

    #[test]
    fn a_write_is_told_by_what_it_says_and_not_by_how_far_a_rollout_got() {
        let calls = [("Rolling", 0), ("Rolling", 1), ("Baking", 1)]
            .map(|(reason, updated)| write_of_status(reason, updated));
        let mut phases = Phases::default();
        phases.begin("published", 0);
        let shown = shown(&phases, &calls);
        let is_of = |at: usize, says: &str, nth: &str| {
            let line: &String = &shown[at];
            line.contains(&format!(" Healthy=Unknown/{says} ~")) && line.ends_with(nth)
        };
        assert!(is_of(0, "Rolling", "") && is_of(1, "Rolling", " #2") && is_of(2, "Baking", ""));
    }

    #[test]
    fn digests_and_times_do_not_tell_calls_apart() {
        let one = read("http://registry/v2/ns/web/manifests/sha256:0a");
        let other = read("http://registry/v2/ns/web/manifests/sha256:1b");
        let names = Names::default();
        assert_eq!(Mark::of(&one, None, &names), Mark::of(&other, None, &names));
        assert!(rule(&one).contains(&other));
        assert!(!rule(&one).contains(&read("http://registry/v2/ns/web/manifests/1.0.0")));
    }
}
