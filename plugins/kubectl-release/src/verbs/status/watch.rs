//! `status NAME -w` and `--until`. Watches only say that something happened; what is shown is read
//! anew, so that nothing is pieced together of halves. A watch that may not be opened, or that ends,
//! becomes a read every other second.

use std::time::Duration;

use futures::{StreamExt as _, stream::BoxStream};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, runtime::watcher};
use tokio::time::Instant;

use super::{
    PARTS, line, options,
    pulse::{Beat, Pulse, Rate, Signal, changes},
    raw_target,
    screen::Screen,
    view::Seen,
    vigil::Vigil,
};
use crate::{
    Error, Exit, Session,
    cli::{
        output::Format,
        status::{StatusArgs, Until},
    },
    error::Class,
    facts::standing::Standing,
    print::object,
    read::{Fact, Parts, Reader, Snapshot, api::kind_of, collect::selector_of},
};

/// At most five frames a second.
const RATE: Rate = Rate { pace: Duration::from_millis(200), poll: 2 };

/// How changes are shown.
enum Show {
    Frames(Screen),
    Lines(line::Lines),
    Json { last: Option<String> },
}

pub(super) async fn run(
    args: &StatusArgs,
    name: &str,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let reader = Reader::new(session.cluster()?);
    let namespace = reader.cluster.namespace.clone();
    let parts = Parts { helm: false, ..PARTS };
    let mut snapshot = reader.snapshot(&namespace, name, parts).await;
    snapshot.required_target()?;
    let mut show = match args.output.for_programs() {
        Some(Format::Json) => Show::Json { last: None },
        Some(_) => return Err(Error::usage("-w knows no other format for programs than json")),
        None if session.out.terminal.stdout => Show::Frames(Screen::default()),
        None => Show::Lines(line::Lines::default()),
    };
    let signals = signals(&reader, &namespace, name, &snapshot);
    let mut pulse = Pulse::new(signals, RATE, args.timeout);
    pulse.poll_if(snapshot.workload().is_none());
    let mut read = Instant::now();
    let mut vigil = Vigil::default();
    loop {
        let instance =
            snapshot.target().and_then(|target| target.status.as_ref()?.instance.clone());
        let news = vigil.look(&reader, instance.into_iter().collect(), session.out.now()).await;
        let seen = Seen::of(&snapshot, session.global.annotation_prefix.as_ref());
        // What the operator says of an image that is gone ends nothing.
        let verdict = verdict(&seen.standing, args.until).filter(|_| seen.behind().is_none());
        if verdict.is_some() && matches!(show, Show::Frames(_)) {
            // The frame that stays has everything in it.
            let whole = reader.snapshot(&namespace, name, PARTS).await;
            if whole.target().is_some() {
                snapshot = whole;
            }
        }
        display(&mut show, &snapshot, &vigil, verdict.is_some(), args, session)?;
        if verdict.is_none() && !matches!(show, Show::Frames(_)) {
            news.into_iter().try_for_each(|line| session.out.note(line))?;
        }
        if let Some(exit) = verdict {
            return Ok(exit);
        }
        match pulse.next().await {
            Beat::Over => return Err(timed_out(args, &snapshot)),
            Beat::Tick => continue,
            Beat::Read => {}
        }
        pulse.keep_pace(read).await;
        read = Instant::now();
        let next = reader.snapshot(&namespace, name, parts).await;
        match &next.target {
            Fact::Known(Some(_)) => {
                pulse.poll_if(next.workload().is_none());
                snapshot = next;
            }
            Fact::Known(None) => {
                return Err(Error::new(Class::NotFound, format!("{namespace}/{name} was deleted")));
            }
            // What was seen last stays until there is an answer again.
            Fact::Unknown(_) => pulse.poll_if(true),
        }
    }
}

fn display(
    show: &mut Show,
    snapshot: &Snapshot,
    vigil: &Vigil,
    is_last: bool,
    args: &StatusArgs,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let seen = Seen::of(snapshot, session.global.annotation_prefix.as_ref());
    match show {
        Show::Frames(screen) => {
            let options = options(args, session);
            let mut lines = seen.lines(&options);
            if !is_last {
                // Below the header, where no small terminal cuts it off.
                lines.splice(1..1, vigil.lines(&options));
            }
            if is_last {
                screen.finish(&lines, session.out)?;
            } else {
                screen.draw(&lines, session.out)?;
            }
        }
        Show::Lines(lines) => {
            let options = options(args, session);
            if let Some(line) = lines.next(&seen, &options) {
                session.out.line(line)?;
                session.out.flush()?;
            }
        }
        Show::Json { last } => {
            let text = object::compact(&raw_target(snapshot));
            if last.as_ref() != Some(&text) {
                session.out.raw(&text)?;
                session.out.flush()?;
                *last = Some(text);
            }
        }
    }
    Ok(())
}

/// Whether the watch ends, and how.
pub(super) fn verdict(standing: &Standing, until: Option<Until>) -> Option<Exit> {
    let bad = (standing.is_final() && standing.is_bad()).then_some(Exit::Bad);
    let is_held = standing.word == "Held" && standing.progressing.is_none();
    match until {
        None => bad.or_else(|| standing.is_final().then_some(Exit::Done)),
        Some(Until::Ready) if standing.is_ready() => Some(Exit::Done),
        // A hold does not become ready by itself.
        Some(Until::Ready) => bad.or_else(|| is_held.then_some(Exit::Bad)),
        Some(Until::Held) => {
            if is_held {
                Some(Exit::Done)
            } else {
                bad
            }
        }
        Some(Until::RolledOut) => {
            if standing.is_rolled_out() {
                Some(Exit::Done)
            } else {
                bad
            }
        }
    }
}

fn timed_out(args: &StatusArgs, snapshot: &Snapshot) -> Error {
    let limit = args.timeout.unwrap_or_default();
    let standing = Standing::of_snapshot(snapshot);
    let (namespace, name) = (&snapshot.namespace, &snapshot.name);
    Error::new(
        Class::Timeout,
        format!("{namespace}/{name} is still {} after {}s", standing.word, limit.as_secs()),
    )
}

fn signals(
    reader: &Reader,
    namespace: &str,
    name: &str,
    snapshot: &Snapshot,
) -> BoxStream<'static, Signal> {
    let client = || reader.cluster.client.clone();
    let named = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
    let target = reader.api(&kind_of::<belay_api::ReleaseTarget>(), Some(namespace));
    let mut all = vec![changes(target, named(name))];
    if let Some(workload) = snapshot.workload() {
        let types = workload.types.clone().unwrap_or_default();
        let kind = snapshot.resource.clone().filter(|kind| kind.kind == types.kind);
        if let (Some(kind), Some(name)) = (kind, &workload.metadata.name) {
            all.push(changes(reader.api(&kind, Some(namespace)), named(name)));
        }
        if let Ok(selector) = selector_of(workload) {
            let pods: Api<Pod> = Api::namespaced(client(), namespace);
            let config = watcher::Config::default().labels(&selector.to_string());
            all.push(changes(pods, config));
        }
    }
    futures::stream::select_all(all).boxed()
}

impl Standing {
    /// Where the Target of a snapshot stands.
    pub(super) fn of_snapshot(snapshot: &Snapshot) -> Self {
        Self::of(snapshot.target().and_then(|target| target.status.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn standing(word: &str, progressing: Option<&str>) -> Standing {
        let condition = |kind: &str, status: &str, reason: &str| -> Value {
            json!({
                "type": kind, "status": status, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let mut conditions = vec![condition("Ready", "Unknown", word)];
        conditions.extend(progressing.map(|reason| condition("Progressing", "True", reason)));
        Standing::of(Some(&serde_json::from_value(json!({"conditions": conditions})).unwrap()))
    }

    #[rstest]
    #[case("Progressing", Some("Rolling"), None, None)]
    #[case("Ready", None, None, Some(Exit::Done))]
    #[case("Held", None, None, Some(Exit::Done))]
    #[case("Held", Some("Rolling"), None, None)]
    #[case("Stalled", None, None, Some(Exit::Bad))]
    #[case("Failed", None, Some(Until::Ready), Some(Exit::Bad))]
    #[case("Held", None, Some(Until::Ready), Some(Exit::Bad))]
    #[case("Ready", None, Some(Until::Held), None)]
    #[case("Held", None, Some(Until::Held), Some(Exit::Done))]
    #[case("Progressing", Some("Rolling"), Some(Until::RolledOut), None)]
    #[case("Progressing", Some("Baking"), Some(Until::RolledOut), Some(Exit::Done))]
    #[case("Progressing", Some("Baking"), Some(Until::Ready), None)]
    #[case("RolledBack", None, Some(Until::RolledOut), Some(Exit::Bad))]
    #[case("Unknown", None, None, None)]
    fn a_watch_ends_when_nothing_more_happens(
        #[case] word: &str,
        #[case] progressing: Option<&str>,
        #[case] until: Option<Until>,
        #[case] expected: Option<Exit>,
    ) {
        assert_eq!(verdict(&standing(word, progressing), until), expected);
    }
}
