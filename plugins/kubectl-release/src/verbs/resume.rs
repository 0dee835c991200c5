//! `resume`: follows new releases again, after a hold, a block, or a change by a person.

use std::pin::pin;

use belay_api::{
    Release,
    annotations::{OwnAnnotation, TargetAnnotation},
    gates::Gate,
    reasons::StalledReason,
    target::CandidateStatus,
};
use belay_engine::block::Block;
use futures::TryStreamExt as _;
use kube::{
    Api,
    runtime::{WatchStreamExt as _, watcher},
};

use super::{
    adopt::{adoption, row},
    change::{OPERATOR_PATIENCE, Target, agreed, say},
};
use crate::{
    Error, Exit, Session,
    cli::{change::DryRun, hold::ResumeArgs},
    error::Class,
    facts::standing::Standing,
    print::{Line, Paint},
    read::Parts,
};

/// Runs it.
///
/// # Errors
/// The target cannot be read, nobody was asked, or the API server refuses the annotations.
pub async fn run(args: &ResumeArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let parts = Parts { releases: true, ..Parts::default() };
    let target = Target::read(&args.name, None, parts, session).await?;
    let status = target.snapshot.target().and_then(|one| one.status.as_ref());
    let standing = Standing::of(status);
    let stalled = standing.stalled.as_ref().and_then(|cause| cause.reason);
    let taken = match stalled {
        Some(StalledReason::ChangedByPerson) => adoption(&target)?,
        _ => None,
    };
    let is_held = target.annotation(TargetAnnotation::Hold).is_some();
    if !is_held && args.allow.is_none() && taken.is_none() {
        session.out.note(format!("unchanged: {} is not held", args.name))?;
        if let Some(cause) = &standing.stalled {
            session.out.note(format!("note: it is Stalled ({}): {}", cause.word, cause.message))?;
            session.out.note(format!("hint: kubectl release why {}", target.said()))?;
        }
        return say(&target.workload, "unchanged", &args.change, session);
    }
    let mut lines = vec![Line::from((Paint::Bold, target.heading("Resume").as_str())), Line::new()];
    if let Some(held) = target.annotation(TargetAnnotation::Hold) {
        lines.push(row("hold", format!("{held} is removed")));
    }
    if let Some(taken) = &taken {
        let words = format!("{} from {} (container {})", taken.image, taken.said, taken.container);
        lines.push(row("takes over", words));
    }
    if let Some(tag) = &args.allow {
        lines.push(row("allows", format!("{tag} once more")));
    }
    lines.push(row("next", next(&target, args.allow.as_deref())));
    lines.push(Line::new());
    let asks = taken.is_some() && !args.yes;
    let refusal = "refusing to take the image over without confirmation; pass --yes";
    if !agreed(lines, asks, refusal, &args.change, session)? {
        return Ok(Exit::Done);
    }
    if let Some(tag) = &args.allow {
        forget_use(&target, tag, args.change.dry_run, session).await?;
    }
    let adopt = taken.as_ref().map(super::adopt::Adoption::value);
    let mut changes = vec![(TargetAnnotation::Hold, None)];
    if let Some(tag) = &args.allow {
        changes.push((TargetAnnotation::Allow, Some(tag.as_str())));
    }
    if let Some(adopt) = &adopt {
        changes.push((TargetAnnotation::Adopt, Some(adopt.as_str())));
    }
    let object = target.annotate(&changes, args.change.dry_run).await?;
    let exit = say(&object, "resumed", &args.change, session)?;
    session.out.note(format!("hint: kubectl release status {} -w", target.said()))?;
    Ok(exit)
}

/// What moves once nothing holds the target.
fn next(target: &Target, allow: Option<&str>) -> String {
    let status = target.snapshot.target().and_then(|one| one.status.as_ref());
    let candidates = status.map(|status| status.candidates.as_slice()).unwrap_or_default();
    let runs = status.and_then(|status| status.current.as_ref()?.tag.clone());
    let is_allowed = |tag: &str| {
        allow.is_some_and(|allow| {
            allow == tag || allow.trim_start_matches('v') == tag.trim_start_matches('v')
        })
    };
    let free = candidates.iter().find(|one| {
        let gate = one.gate.as_ref().and_then(belay_api::Open::known);
        match &one.gate {
            None => true,
            Some(_) => match gate {
                Some(Gate::Hold) => true,
                Some(Gate::Blocked | Gate::FailedElsewhere) => is_allowed(&one.tag),
                _ => false,
            },
        }
    });
    let is_passed = |one: &&CandidateStatus| {
        let gate = one.gate.as_ref().and_then(belay_api::Open::known);
        matches!(gate, Some(Gate::Lower | Gate::Outranked))
    };
    match (free, candidates.iter().find(|one| !is_passed(one))) {
        (Some(free), _) => format!("{} will be applied", free.tag),
        (None, Some(best)) => {
            let gate = best.gate.as_ref().map_or("", belay_api::Open::as_str);
            let message = best.message.clone().unwrap_or_default();
            let message = if message.is_empty() { message } else { format!(": {message}") };
            format!("{} waits: {gate}{message}", best.tag)
        }
        (None, None) => match runs {
            Some(runs) => format!("nothing newer than {runs} is known"),
            None => "no newer release is known".to_owned(),
        },
    }
}

/// Where an activation has used `allow` up, the operator must see it gone before the same value
/// counts again.
async fn forget_use(
    target: &Target,
    tag: &str,
    dry_run: DryRun,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let key = target.prefix.key(OwnAnnotation::Blocked);
    let uses = |release: &Release| {
        let text = release.metadata.annotations.as_ref().and_then(|all| all.get(&key));
        text.and_then(|text| Block::parse(text).ok()?.allowed).is_some_and(|used| used.value == tag)
    };
    let releases = target.snapshot.releases.value().map(Vec::as_slice).unwrap_or_default();
    let used: Vec<String> = releases
        .iter()
        .filter(|one| uses(&one.value))
        .filter_map(|one| one.value.metadata.name.clone())
        .collect();
    if used.is_empty() || dry_run != DryRun::None {
        return Ok(());
    }
    session.out.note(format!(
        "{tag} was allowed and used up before; asking the operator to forget that"
    ))?;
    target.annotate(&[(TargetAnnotation::Allow, None)], dry_run).await?;
    let api: Api<Release> =
        Api::namespaced(target.reader.cluster.client.clone(), &target.snapshot.namespace);
    let forgotten = async {
        for name in &used {
            let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
            let mut changes = pin!(watcher(api.clone(), config).applied_objects());
            while let Some(release) = changes.try_next().await? {
                if !uses(&release) {
                    break;
                }
            }
        }
        Ok::<_, watcher::Error>(())
    };
    match tokio::time::timeout(OPERATOR_PATIENCE, forgotten).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::other(format!("watch the blocked Releases: {error}"))),
        Err(_) => Err(Error::new(
            Class::Timeout,
            format!("the operator has not let go of the used `allow: {tag}` within 30s"),
        )
        .hint("kubectl release doctor")
        .hint(format!("then again: kubectl release resume {} --allow {tag}", target.said()))),
    }
}
