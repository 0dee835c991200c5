//! `hold`: stops forward moves of a target.

use belay_api::annotations::TargetAnnotation;

use super::change::{Target, say};
use crate::{Error, Exit, Session, cli::hold::HoldArgs, read::Parts};

/// What `hold` without a tag writes.
const HERE: &str = "true";

/// Runs it.
///
/// # Errors
/// The target cannot be read, or the API server refuses the annotation.
pub async fn run(args: &HoldArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let value = args.tag.as_deref().unwrap_or(HERE);
    if value.trim().is_empty() || value.chars().any(char::is_control) {
        return Err(Error::usage("the tag to hold is empty, or has control characters"));
    }
    let target = Target::read(&args.name, None, Parts::default(), session).await?;
    let said = target.said();
    if target.annotation(TargetAnnotation::Hold) == Some(value) {
        let words = if value == HERE { "held".to_owned() } else { format!("held at {value}") };
        session.out.note(format!("unchanged: {} is {words}", args.name))?;
        return say(&target.workload, "unchanged", &args.change, session);
    }
    let object =
        target.annotate(&[(TargetAnnotation::Hold, Some(value))], args.change.dry_run).await?;
    let exit = say(&object, "held", &args.change, session)?;
    if value != HERE && !runs(&target, value) {
        let runs = target.snapshot.target().and_then(|one| one.status.as_ref()?.current.clone());
        let runs = runs.and_then(|current| current.tag.or(current.image)).unwrap_or_default();
        session
            .out
            .note(format!("note: {} runs {runs}; a hold moves nothing by itself", args.name))?;
        session.out.note(format!("hint: kubectl release rollback {said} --to {value}"))?;
    } else {
        session.out.note(format!("hint: kubectl release resume {said}"))?;
    }
    Ok(exit)
}

/// Whether a tag, of the release or of the image, is the one that runs.
fn runs(target: &Target, tag: &str) -> bool {
    let status = target.snapshot.target().and_then(|one| one.status.as_ref());
    let current = status.and_then(|status| status.current.as_ref());
    let running = current.and_then(|current| current.tag.as_deref());
    let is_same = |running: &str| {
        running.strip_prefix('v').unwrap_or(running) == tag.strip_prefix('v').unwrap_or(tag)
    };
    running.is_some_and(is_same)
}
