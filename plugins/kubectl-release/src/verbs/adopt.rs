//! `adopt`: lets the operator take the image over, once, from the manager that holds it now.

use belay_api::annotations::TargetAnnotation;
use belay_engine::annotations::is_gitops;

use super::change::{Target, agreed, say};
use crate::{
    Error, Exit, Session,
    cli::adopt::AdoptArgs,
    facts::{
        helm::{Forecast, Source},
        live::owner,
        plan::followed,
    },
    print::{Line, Paint},
    read::Parts,
};

/// The name that the annotation gives to nobody.
const NOBODY: &str = "unknown";

/// Runs it.
///
/// # Errors
/// The target cannot be read, nobody was asked, or the API server refuses the annotation.
pub async fn run(args: &AdoptArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let parts = Parts { helm: true, ..Parts::default() };
    let target = Target::read(&args.name, None, parts, session).await?;
    let Some(adoption) = adoption(&target)? else {
        let operator = &target.live.operator;
        session.out.note(format!("unchanged: {operator} owns the image of {} alone", args.name))?;
        return say(&target.workload, "unchanged", &args.change, session);
    };
    let refusal = "refusing to adopt without confirmation; pass --yes";
    if !agreed(plan(&target, &adoption), !args.yes, refusal, &args.change, session)? {
        return Ok(Exit::Done);
    }
    let object = target
        .annotate(
            &[(TargetAnnotation::Adopt, Some(adoption.value().as_str()))],
            args.change.dry_run,
        )
        .await?;
    let exit = say(&object, "adopted", &args.change, session)?;
    session.out.note(format!("hint: kubectl release status {} -w", target.said()))?;
    Ok(exit)
}

/// From whom, and which value.
pub(super) struct Adoption {
    /// The manager.
    pub(super) manager: String,
    /// The manager, with how it writes.
    pub(super) said: String,
    /// The live image.
    pub(super) image: String,
    /// The container.
    pub(super) container: String,
}

impl Adoption {
    /// What the annotation says.
    pub(super) fn value(&self) -> String {
        format!("{}={}", self.manager, self.image)
    }
}

/// What there is to be adopted; `None` if the operator has it already.
pub(super) fn adoption(target: &Target) -> Result<Option<Adoption>, Error> {
    let containers = followed(&target.snapshot, &target.live, &target.prefix);
    if containers.is_empty() {
        return Err(Error::other(format!("{} has no followed container", target.snapshot.name))
            .hint(format!("kubectl release why {}", target.said())));
    }
    let operator = target.live.operator.as_str();
    for container in &containers {
        let other = container.owners.iter().find(|one| one.manager() != operator);
        let (manager, said) = match other {
            Some(other) if is_gitops(other.manager()) => {
                return Err(Error::other(format!(
                    "{} owns the image of {}, and puts its own back",
                    owner(other),
                    container.name
                ))
                .cause("Belay does not fight a GitOps controller")
                .hint("let the GitOps controller ignore the image"));
            }
            Some(other) => (other.manager().to_owned(), owner(other)),
            None if container.owners.is_empty() => (NOBODY.to_owned(), "nobody".to_owned()),
            None => continue,
        };
        return Ok(Some(Adoption {
            manager,
            said,
            image: container.image.clone(),
            container: container.name.to_string(),
        }));
    }
    Ok(None)
}

fn plan(target: &Target, adoption: &Adoption) -> Vec<Line> {
    let mut lines = vec![
        Line::from((Paint::Bold, target.heading("Adopt").as_str())),
        Line::new(),
        row("container", format!("{}  {}", adoption.container, adoption.image)),
        row("held by", adoption.said.clone()),
        row(
            "once",
            "Belay's next move takes the image from it; counts only while it holds this value",
        ),
    ];
    let source = Source::of(&target.live, &target.snapshot.helm);
    let owners = [belay_ownership::Identity::applier(&target.live.operator)];
    for container in followed(&target.snapshot, &target.live, &target.prefix) {
        let image = &container.image;
        let after =
            Forecast::after(&source, &target.live, container, image, &owners, &target.prefix);
        for line in after.map(|forecast| forecast.lines()).unwrap_or_default() {
            lines.push(row("helm, then", line));
        }
    }
    lines.push(Line::new());
    lines
}

/// A line of a plan.
pub(super) fn row(name: &str, text: impl Into<String>) -> Line {
    Line::new().dim(format!("  {name:<14}")).plain(text)
}
