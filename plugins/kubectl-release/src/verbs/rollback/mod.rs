//! `rollback`: a plan with every consequence, a confirmation, and a Rollback for the operator.

mod create;
mod follow;
mod who;

use belay_api::{NamedValue as _, ReleaseTarget, annotations::TargetAnnotation};
use kube::api::ListParams;
use serde_json::Value;

use self::create::Begun;
use super::{
    adopt::row,
    change::{Target, agreed, suffix},
};
use crate::{
    Error, Exit, Session,
    cli::{change::DryRun, rollback::RollbackArgs},
    facts::{
        plan::{NoPlan, Plan, To, Wish, plan},
        words::Explain as _,
    },
    print::{Line, Paint, object},
    read::{Parts, Reader, api::kind_of},
};

const REFUSAL: &str = "refusing to roll back without confirmation; pass --yes";

/// Runs it.
///
/// # Errors
/// A target cannot be read or rolled back, nobody was asked, or the API server refuses.
pub async fn run(args: &RollbackArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let to = To::read(args.to.as_deref()).map_err(Error::usage)?;
    let names = names(args, session).await?;
    let [name] = names.as_slice() else {
        return Box::pin(several(args, &to, &names, session)).await;
    };
    Box::pin(one(args, &to, name, session)).await
}

/// The targets; more than one only with `--yes`.
async fn names(args: &RollbackArgs, session: &mut Session<'_>) -> Result<Vec<String>, Error> {
    let picks = usize::from(!args.names.is_empty())
        + usize::from(args.all)
        + usize::from(args.selector.is_some());
    match picks {
        0 => {
            return Err(Error::usage("name a target")
                .hint("kubectl release status lists them; --all or -l with --yes for several"));
        }
        1 => {}
        _ => return Err(Error::usage("names, --all and -l exclude each other")),
    }
    if args.names.len() > 1 && !args.yes {
        return Err(Error::usage("several targets are rolled back only with --yes"));
    }
    if !args.names.is_empty() {
        return Ok(args.names.clone());
    }
    let cluster = session.cluster()?;
    let reader = Reader::new(cluster.clone());
    let params = match &args.selector {
        Some(labels) => ListParams::default().labels(labels),
        None => ListParams::default(),
    };
    let namespace = Some(cluster.namespace.as_str());
    let all = reader.list(&kind_of::<ReleaseTarget>(), namespace, &params).await?;
    Ok(all.iter().map(kube::ResourceExt::name_any).collect())
}

/// Several targets, one after the other; what fails does not keep the others.
async fn several(
    args: &RollbackArgs,
    to: &To,
    names: &[String],
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    if names.is_empty() {
        session.out.note("No targets found.")?;
    }
    let mut exit = Exit::Done;
    for name in names {
        match Box::pin(one(args, to, name, session)).await {
            Ok(Exit::Done) => {}
            Ok(bad) => exit = bad,
            Err(error) => {
                exit = error.exit();
                for line in error.lines(session.global.verbosity > 0) {
                    session.out.note(line)?;
                }
            }
        }
    }
    Ok(exit)
}

async fn one(
    args: &RollbackArgs,
    to: &To,
    name: &str,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let parts = Parts { releases: true, rollbacks: true, helm: true, ..Parts::default() };
    let target = Target::read(name, None, parts, session).await?;
    let wish = Wish { to, force: args.force, hold: args.hold };
    let now = session.out.now();
    let plan = match plan(&target.snapshot, &target.live, &target.prefix, &wish, now) {
        Ok(plan) => plan,
        Err(NoPlan::Unchanged(tag)) => {
            let line = format!("unchanged: {name} already runs {tag}");
            match args.change.output.for_programs() {
                None => session.out.line(line)?,
                Some(_) => session.out.note(line)?,
            }
            if args.hold {
                hold(&target, &tag, args, session).await?;
            }
            return Ok(Exit::Done);
        }
        Err(why) => return Err(refused(&target, why)),
    };
    if !agreed(lines(&target, &plan), !args.yes, REFUSAL, &args.change, session)? {
        return Ok(Exit::Done);
    }
    let begun = create::create(&target, &plan, args, session).await?;
    say(&begun, args, session)?;
    if args.hold {
        hold(&target, &plan.to_tag, args, session).await.map_err(|error| {
            error.hint(format!(
                "the Rollback was created; hold it with: kubectl release hold {} {}",
                target.said(),
                plan.to_tag
            ))
        })?;
    }
    if args.change.dry_run != DryRun::None {
        return Ok(Exit::Done);
    }
    if let Some(within) = args.wait {
        follow::follow(&target, &begun.name, within, session).await
    } else {
        session.out.note(format!("hint: kubectl release status {} -w", target.said()))?;
        Ok(Exit::Done)
    }
}

/// Why the operator would reject it.
fn refused(target: &Target, why: NoPlan) -> Error {
    let name = &target.snapshot.name;
    match why {
        NoPlan::Unchanged(tag) => Error::other(format!("{name} already runs {tag}")),
        NoPlan::Unknown(why) => Error::other(format!("roll back {name}: {why}")),
        NoPlan::Rejected(rejection, words) => {
            let own = rejection.words();
            let error = Error::other(format!("roll back {name}: {}", own.why));
            let error = if words == rejection.describe() { error } else { error.cause(words) };
            own.commands(&target.said(), None).into_iter().fold(error, Error::hint)
        }
    }
}

/// The plan, as it is shown before the question.
fn lines(target: &Target, plan: &Plan) -> Vec<Line> {
    let mut lines =
        vec![Line::from((Paint::Bold, target.heading("Roll back").as_str())), Line::new()];
    for (index, change) in plan.changes.iter().enumerate() {
        let about = match index {
            0 => format!("  ({} → {}, {})", plan.from, plan.to, plan.about),
            _ => String::new(),
        };
        let from = crate::facts::live::tag(&change.from);
        let to = crate::facts::live::tag(&change.to);
        let line = Line::new().dim(format!("  {:<14}", format!("container {}", change.container)));
        let line = line.with(Paint::Warn, format!("  {from}")).plain("  →  ");
        lines.push(line.with(Paint::Good, to).plain(about));
    }
    if let Some((from, to)) = &plan.digest {
        lines.push(row("digest", format!("  {from}  →  {to}")));
    }
    lines.push(row("only image", "  chart values and configuration stay as they are"));
    lines.push(row("next", format!("  {}", plan.next)));
    lines.push(row("ownership", format!("  {}", plan.ownership)));
    for line in &plan.helm {
        lines.push(row("helm", format!("  {line}")));
    }
    if let Some((name, principal)) = &plan.waits_for {
        lines.push(row("waits for", format!("  {name}, which {principal} began")));
    }
    lines.push(Line::new());
    lines
}

fn say(begun: &Begun, args: &RollbackArgs, session: &mut Session<'_>) -> Result<(), Error> {
    let named = object::name("belay.dev/v1alpha1", "Rollback", &begun.name);
    if let Some(by) = &begun.joined {
        session.out.note(format!("{named} is under way already: {by} began it; joining"))?;
    }
    if let Some(format) = args.change.output.for_programs() {
        let mut value = begun.object.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
        object::print(&value, &[named], format, session.out)?;
    } else {
        let verb = if begun.joined.is_some() { "joined" } else { "created" };
        session.out.line(format!("{named} {verb}{}", suffix(args.change.dry_run)))?;
    }
    Ok(())
}

async fn hold(
    target: &Target,
    tag: &str,
    args: &RollbackArgs,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    target.annotate(&[(TargetAnnotation::Hold, Some(tag))], args.change.dry_run).await?;
    let line = format!("{} held at {tag}{}", target.live.resource, suffix(args.change.dry_run));
    match args.change.output.for_programs() {
        None => session.out.line(line)?,
        Some(_) => session.out.note(line)?,
    }
    Ok(())
}
