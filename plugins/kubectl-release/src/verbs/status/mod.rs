//! `status`: one Target in a few lines, or a list of them.

mod advice;
mod follow;
mod helm;
mod line;
mod list;
mod pulse;
mod screen;
mod tree;
mod view;
mod vigil;
mod watch;

pub use self::view::{Options, Seen, seconds};

use std::collections::BTreeSet;

use self::list::StatusSelector;
use crate::{
    Error, Exit, Session,
    cli::status::StatusArgs,
    facts::version::of_operator,
    print::object,
    read::{
        Parts, Reader, Snapshot, Why,
        fleet::{Depth, Fleet, Member},
        snapshot::installed,
    },
};

/// What is read for one Target.
pub const PARTS: Parts = Parts {
    releases: true,
    rollbacks: false,
    replica_sets: true,
    pods: true,
    helm: true,
    operator: false,
};

/// Runs it.
///
/// # Errors
/// The ReleaseTarget cannot be read or is not there, or the output cannot be written.
pub async fn run(args: &StatusArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let follows = args.watch || args.until.is_some();
    if args.timeout.is_some() && !follows {
        return Err(Error::usage("--timeout ends a watch: it needs --watch or --until"));
    }
    match &args.name {
        Some(name) if follows => Box::pin(watch::run(args, name, session)).await,
        Some(name) => Box::pin(one(args, name, session)).await,
        None if follows => Box::pin(follow::run(args, session)).await,
        None => Box::pin(all(args, session)).await,
    }
}

/// How a Target is shown under these arguments.
pub fn options(args: &StatusArgs, session: &Session<'_>) -> Options {
    Options {
        now: session.out.now(),
        absolute_time: session.global.style.absolute_time,
        all_revisions: args.all_revisions || args.output.is_wide(),
        wide: args.output.is_wide(),
        namespace: session.global.cluster.namespace.clone().filter(|name| !name.is_empty()),
        prefix: session.global.annotation_prefix.clone(),
        style: session.out.style,
    }
}

async fn one(args: &StatusArgs, name: &str, session: &mut Session<'_>) -> Result<Exit, Error> {
    let cluster = session.cluster()?;
    let namespace = cluster.namespace.clone();
    let parts = if args.output.for_programs().is_some() {
        Parts::default()
    } else {
        Parts { operator: true, ..PARTS }
    };
    let snapshot = Reader::new(cluster).snapshot(&namespace, name, parts).await;
    snapshot.required_target()?;
    let seen = Seen::of(&snapshot, session.global.annotation_prefix.as_ref());
    if let Some(format) = args.output.for_programs() {
        let raw = raw_target(&snapshot);
        object::print(
            &raw,
            &[object::name("belay.dev/v1alpha1", "ReleaseTarget", name)],
            format,
            session.out,
        )?;
    } else {
        for line in seen.lines(&options(args, session)) {
            session.out.line(line)?;
        }
    }
    for why in &snapshot.unread {
        session.out.note(format!("note: not understood and left out: {why}"))?;
    }
    warn_of_skew(&snapshot, session)?;
    let is_bad = seen.standing.is_bad() || (args.exit_code && !seen.standing.is_ready());
    Ok(if is_bad { Exit::Bad } else { Exit::Done })
}

async fn all(args: &StatusArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let selector = args.status_selector.as_deref().map(StatusSelector::parse).transpose()?;
    let cluster = session.cluster()?;
    let namespace = cluster.namespace.clone();
    let scope = (!args.all_namespaces).then_some(namespace.as_str());
    let depth = if args.output.for_programs().is_some() { Depth::Target } else { Depth::Workload };
    let prefix = session.global.annotation_prefix.clone();
    let labels = args.selector.as_deref();
    let reader = Reader::new(cluster);
    let mut fleet = reader.fleet(scope, labels, depth, prefix.as_ref()).await.map_err(installed)?;
    if let Some(selector) = &selector {
        fleet.members.retain(|member| selector.shows(&list::standing(&member.target.value).word));
    }
    if let Some(format) = args.output.for_programs() {
        object::print(&fleet.raw(), &fleet.names(), format, session.out)?;
    } else if fleet.members.is_empty() {
        session.out.note(nothing(scope))?;
    } else {
        let options = options(args, session);
        list::table(&fleet, args.all_namespaces, &options).print(session.out, !args.no_headers)?;
    }
    notes(&fleet, session)?;
    let is_bad = |member: &Member| !list::standing(&member.target.value).is_ready();
    let is_bad = args.exit_code && fleet.members.iter().any(is_bad);
    Ok(if is_bad { Exit::Bad } else { Exit::Done })
}

/// What a list without rows says.
fn nothing(namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => format!("No releases found in {namespace} namespace."),
        None => "No releases found.".to_owned(),
    }
}

/// What could not be read, each cause once.
fn notes(fleet: &Fleet, session: &mut Session<'_>) -> Result<(), Error> {
    let whys = fleet.members.iter().filter_map(|member| member.live.why());
    let whys: BTreeSet<&str> = whys.filter(|why| why.is_worth_telling()).map(Why::words).collect();
    for why in whys {
        session.out.note(format!("note: READY and OWNER are unknown (?): {why}"))?;
    }
    for why in &fleet.unread {
        session.out.note(format!("note: not understood and left out: {why}"))?;
    }
    Ok(())
}

/// Says if the plugin does not fit the operator that follows the target.
fn warn_of_skew(snapshot: &Snapshot, session: &mut Session<'_>) -> Result<(), Error> {
    let instance = snapshot.target().and_then(|target| target.status.as_ref()?.instance.clone());
    let Some(instance) = instance else { return Ok(()) };
    let place = instance.split_once('/').map(|(namespace, _)| namespace);
    let operators = snapshot.operator.value().map(Vec::as_slice).unwrap_or_default();
    let own = operators.iter().find(|one| one.metadata.namespace.as_deref() == place);
    let version = own.and_then(of_operator);
    super::version::warn(version.as_deref(), session)
}

/// The ReleaseTarget as it was read.
pub fn raw_target(snapshot: &Snapshot) -> serde_json::Value {
    let target = snapshot.target.value().and_then(Option::as_ref);
    let mut raw = target.map(|target| target.raw.clone()).unwrap_or_default();
    object::without_managed_fields(&mut raw);
    raw
}
