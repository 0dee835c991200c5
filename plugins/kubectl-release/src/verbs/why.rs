//! `why`: the chain of decisions about a target, and its first broken link.

use belay_api::annotations::TargetAnnotation;
use serde_json::{Value, json};

use super::owners::REPORT_VERSION;
use crate::{
    Error, Exit, Session,
    cli::why::WhyArgs,
    facts::{
        chain::{Chain, Ground, chain},
        history,
        live::Live,
        plan::followed,
        pods::PodLine,
    },
    print::{Icon, Line, Paint, object},
    read::{Parts, Reader, Snapshot},
};

/// Runs it.
///
/// # Errors
/// The target cannot be read.
pub async fn run(args: &WhyArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let cluster = session.cluster()?;
    let reader = Reader::new(cluster.clone());
    let parts = Parts { releases: true, pods: true, ..Parts::default() };
    let snapshot = reader.snapshot(&cluster.namespace, &args.name, parts).await;
    snapshot.required_target()?;
    let chain = of(&snapshot, session);
    match args.output.for_programs() {
        Some(format) => {
            let name = object::name("belay.dev/v1alpha1", "ReleaseTarget", &args.name);
            object::print(&report(&snapshot, &chain), &[name], format, session.out)?;
        }
        None => print(&snapshot, &chain, session)?,
    }
    Ok(Exit::Done)
}

fn of(snapshot: &Snapshot, session: &Session<'_>) -> Chain {
    let prefix = snapshot.prefix(session.global.annotation_prefix.as_ref());
    let live = snapshot.workload().map(|workload| Live::of(workload, &prefix));
    let status = snapshot.target().and_then(|target| target.status.clone()).unwrap_or_default();
    let containers =
        live.as_ref().map(|live| followed(snapshot, live, &prefix)).unwrap_or_default();
    let releases = snapshot.releases.value().map(Vec::as_slice).unwrap_or_default();
    let is_active = |name: &Option<String>| name.is_some() && *name == status.active;
    let active = releases.iter().find(|one| is_active(&one.value.metadata.name));
    let source = source(live.as_ref(), &prefix);
    let pods = snapshot.pods.value().map(Vec::as_slice).unwrap_or_default();
    let trouble = pods.iter().map(PodLine::of).find(PodLine::is_trouble);
    let trouble = trouble.map(|pod| pod.sentence());
    let all: Vec<_> = releases.iter().map(|one| &one.value).collect();
    let fallen = active.and_then(|active| history::fallen(&all, &active.value));
    let ground = Ground {
        namespace: &snapshot.namespace,
        name: &snapshot.name,
        status: &status,
        live: live.as_ref(),
        followed: &containers,
        active: active.map(|one| &one.value),
        source: &source,
        trouble: trouble.as_deref(),
        fallen: fallen.as_deref(),
        now: session.out.now(),
    };
    let namespace = session.global.cluster.namespace.as_deref().filter(|name| !name.is_empty());
    let mut chain = chain(&ground, namespace);
    // Whoever reads this has run it.
    chain.next.retain(|command| !command.starts_with("kubectl release why "));
    chain
}

/// `GitHub acme/web, range ^1.9`.
fn source(live: Option<&Live>, prefix: &belay_api::AnnotationPrefix) -> String {
    let Some(live) = live else { return "the workload could not be read".to_owned() };
    let told = |annotation| live.annotation(prefix, annotation);
    let mut text = match told(TargetAnnotation::Repo) {
        Some(repo) => format!("GitHub {repo}"),
        None => "not followed any more".to_owned(),
    };
    if let Some(range) = told(TargetAnnotation::Range) {
        text = format!("{text}, range {range}");
    }
    text
}

fn print(snapshot: &Snapshot, chain: &Chain, session: &mut Session<'_>) -> Result<(), Error> {
    let out = &mut *session.out;
    out.line(Line::from((Paint::Bold, chain.title.as_str())).plain(" Chain:"))?;
    for link in &chain.links {
        let sign = Line::new().plain(" ").icon(link.icon, "");
        let text = Line::new().plain(format!(" {:<8} ", link.step.name()));
        let paint = match link.icon {
            Icon::None => Paint::Dim,
            _ => Paint::Plain,
        };
        out.line(sign.and(text).with(paint, link.text.clone()))?;
    }
    if let Some(cause) = &chain.cause {
        out.line(format!("Cause:  {cause}"))?;
    }
    let mut label = "Next:   ";
    for next in &chain.next {
        out.line(format!("{label}{next}"))?;
        label = "        ";
    }
    for (what, why) in [
        ("the workload", snapshot.workload.why()),
        ("its Releases", snapshot.releases.why()),
        ("its pods", snapshot.pods.why()),
    ] {
        if let Some(why) = why {
            out.note(format!("note: {what} could not be read: {}", why.words()))?;
        }
    }
    Ok(())
}

fn report(snapshot: &Snapshot, chain: &Chain) -> Value {
    let links = chain.links.iter().map(|link| {
        let state = match link.icon {
            Icon::Good => "good",
            Icon::Bad => "broken",
            Icon::Busy => "busy",
            Icon::Idle => "held",
            Icon::Warn => "unknown",
            Icon::None => "not-reached",
        };
        json!({ "name": link.step.name(), "state": state, "text": link.text })
    });
    json!({
        "apiVersion": REPORT_VERSION,
        "kind": "Why",
        "namespace": snapshot.namespace,
        "name": snapshot.name,
        "title": chain.title,
        "links": links.collect::<Vec<_>>(),
        "cause": chain.cause,
        "next": chain.next,
    })
}
