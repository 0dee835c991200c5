//! What a rollback would do, before anybody is asked whether to do it.

use std::collections::BTreeMap;

use belay_api::{
    AnnotationPrefix, NamedValue as _, Release, Rollback, ShortHash, TargetName,
    names::rollback_name, reasons::Rejection, rollback::InitiatorType,
};
use belay_engine::{
    annotations::is_gitops,
    observed::{Fact as Told, Handicaps, Observed, Surroundings, TargetRecord, WorkloadFacts},
    plan::foresee_rollback,
    settings::Settings,
    version::{Rank, parse_version},
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;

use super::{
    helm::{Forecast, Source},
    live::{Live, owner, short_digest, tag},
};
use crate::read::{Fact, Snapshot, Why};

/// Where a person wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// To the latest that was healthy.
    Latest,
    /// To a Release or a tag.
    Named(String),
    /// The N-th that can be gone to, nearest first, from 1.
    Back(usize),
}

impl To {
    /// Reads `--to`.
    ///
    /// # Errors
    /// `-0`, or `-` with something that is no number.
    pub fn read(text: Option<&str>) -> Result<Self, String> {
        let Some(text) = text else { return Ok(Self::Latest) };
        let Some(number) = text.strip_prefix('-') else { return Ok(Self::Named(text.to_owned())) };
        match number.parse() {
            Ok(count) if count > 0 => Ok(Self::Back(count)),
            _ => {
                Err(format!("--to {text:?}: expected a Release, a tag, or -N for N Releases back"))
            }
        }
    }
}

/// One container's change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The container.
    pub container: String,
    /// The image that runs.
    pub from: String,
    /// The image that will.
    pub to: String,
}

/// What a rollback would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The Release that is left.
    pub from: String,
    /// Its tag.
    pub from_tag: String,
    /// The Release that is gone to.
    pub to: String,
    /// Its tag.
    pub to_tag: String,
    /// What is known of that Release: `last healthy, ran 3d`.
    pub about: String,
    /// Each container's change.
    pub changes: Vec<Change>,
    /// Digests before and after, where they are known.
    pub digest: Option<(String, String)>,
    /// What moves afterwards.
    pub next: String,
    /// Who owns the image, and what follows from it.
    pub ownership: String,
    /// What Helm will do afterwards.
    pub helm: Vec<String>,
    /// The names that the Rollback may have, in the order in which they are tried.
    pub names: Vec<String>,
    /// A Rollback to the same Release that is under way.
    pub joins: Option<String>,
    /// Another Rollback that is under way, and who began it.
    pub waits_for: Option<(String, String)>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPlan {
    /// It runs already: tag or image.
    Unchanged(String),
    /// The operator would reject it.
    Rejected(Rejection, String),
    /// What it depends on is not known, or is not as it must be.
    Unknown(String),
}

/// What the person asks for.
#[derive(Debug, Clone)]
pub struct Wish<'a> {
    /// Where to.
    pub to: &'a To,
    /// Even to an unhealthy or blocked Release.
    pub force: bool,
    /// Stay there.
    pub hold: bool,
}

/// The most names that are tried.
const MAX_NAMES: u16 = 100;

/// Plans a rollback.
///
/// # Errors
/// Why there is none.
pub fn plan(
    snapshot: &Snapshot,
    live: &Live,
    prefix: &AnnotationPrefix,
    wish: &Wish<'_>,
    now: Timestamp,
) -> Result<Plan, NoPlan> {
    let unknown = |why: &Why| NoPlan::Unknown(why.words().to_owned());
    let releases = snapshot.releases.get().map_err(unknown)?;
    let releases: Vec<&Release> = releases.iter().map(|one| &one.value).collect();
    // Who may not list them meets them by name.
    let rollbacks = snapshot.rollbacks.value().map(Vec::as_slice).unwrap_or_default();
    let rollbacks: Vec<&Rollback> = rollbacks.iter().map(|one| &one.value).collect();
    let settings = settings(live, prefix);
    let observed = observe(snapshot, prefix, now).map_err(NoPlan::Unknown)?;
    let ask = |named: Option<&str>| {
        foresee_rollback(&observed, &settings, now, named, wish.force).map_err(NoPlan::Unknown)
    };
    let foreseen = match wish.to {
        To::Latest => ask(None)?,
        To::Named(text) => {
            let found = releases.iter().find(|one| name(one) == text);
            let found = found.or_else(|| releases.iter().find(|one| is_called(one, text)));
            ask(Some(found.map_or(text.as_str(), |one| name(one))))?
        }
        To::Back(count) => {
            let all = ask(None)?;
            match all.ways.get(count - 1) {
                Some(way) => ask(Some(way.clone().as_str()))?,
                None if all.ways.is_empty() => all,
                None => {
                    return Err(NoPlan::Rejected(
                        Rejection::NoReleaseToGoTo,
                        format!("only {} can be gone to", all.ways.len()),
                    ));
                }
            }
        }
    };
    let find = |wanted: &str| releases.iter().copied().find(|one| name(one) == wanted);
    let from = foreseen.from.as_deref().and_then(find);
    let to = match foreseen.to {
        Ok(to) => to,
        Err(Rejection::AlreadyActive) => {
            let runs = from.map_or_else(String::new, image_tag);
            return Err(NoPlan::Unchanged(runs));
        }
        Err(why) => return Err(NoPlan::Rejected(why, why.describe().to_owned())),
    };
    let missing = || NoPlan::Unknown("the Releases changed meanwhile".to_owned());
    let (from, to) = (from.ok_or_else(missing)?, find(&to).ok_or_else(missing)?);
    let names = names(&snapshot.name, from, to, &rollbacks).map_err(NoPlan::Unknown)?;
    let pending: Vec<&Rollback> = rollbacks.iter().copied().filter(|one| is_pending(one)).collect();
    let joins = pending.iter().find(|one| goes_to(one, name(to)));
    let is_users = |one: &&&Rollback| one.spec.initiated_by.type_ == InitiatorType::User;
    let waits_for = pending.iter().find(is_users).filter(|_| joins.is_none());
    Ok(Plan {
        from: name(from).to_owned(),
        from_tag: image_tag(from),
        to: name(to).to_owned(),
        to_tag: image_tag(to),
        about: about(to, now),
        changes: changes(snapshot, live, prefix, to),
        digest: digest(from)
            .zip(digest(to))
            .map(|(from, to)| (short_digest(&from), short_digest(&to))),
        next: next(live, prefix, from, to, wish.hold),
        ownership: ownership(snapshot, live, prefix),
        helm: helm(snapshot, live, prefix, to),
        names,
        joins: joins.map(|one| one.metadata.name.clone().unwrap_or_default()),
        waits_for: waits_for.map(|one| {
            (one.metadata.name.clone().unwrap_or_default(), one.spec.initiated_by.principal.clone())
        }),
    })
}

fn settings(live: &Live, prefix: &AnnotationPrefix) -> Settings {
    Settings {
        prefix: prefix.clone(),
        field_manager: live.operator.clone(),
        // Whether the operator supports these is its own affair: here they are no problem.
        scaled_objects: true,
        image_check_skip: true,
        ..Settings::default()
    }
}

/// The facts of the operator's own rules, from what was read.
fn observe(
    snapshot: &Snapshot,
    prefix: &AnnotationPrefix,
    now: Timestamp,
) -> Result<Observed, String> {
    let workload = match &snapshot.workload {
        Fact::Known(Some(workload)) => workload,
        Fact::Known(None) => return Err("the workload is gone".to_owned()),
        Fact::Unknown(why) => return Err(why.words().to_owned()),
    };
    let deployment: Deployment = workload
        .clone()
        .try_parse()
        .map_err(|error| format!("the workload cannot be read as a Deployment: {error}"))?;
    let key = prefix.key(belay_api::annotations::OwnAnnotation::Release);
    let facts = WorkloadFacts::of(&deployment, &key);
    let record = snapshot.target().map(|target| TargetRecord {
        uid: target.metadata.uid.clone().unwrap_or_default(),
        status: target.status.clone().unwrap_or_default(),
    });
    let values = |why: &Why| why.words().to_owned();
    let releases = snapshot.releases.get().map_err(values)?;
    let unasked = || "it was not asked for".to_owned();
    Ok(Observed {
        namespace: snapshot.namespace.clone(),
        workload: Told::known(Some(facts), now),
        target: Told::known(record, now),
        releases: Told::known(releases.iter().map(|one| one.value.clone()).collect(), now),
        rollbacks: Told::known(Vec::new(), now),
        forge: Told::Unknown { why: unasked(), read: now },
        images: BTreeMap::new(),
        pods: Told::Unknown { why: unasked(), read: now },
        scaler: None,
        claims: Vec::new(),
        pause_refused: None,
        surroundings: Told::known(Surroundings::default(), now),
        refused: None,
        handicaps: Handicaps::default(),
    })
}

/// The name of a Release.
pub fn name(release: &Release) -> &str {
    release.metadata.name.as_deref().unwrap_or_default()
}

/// The release tag that a Release stands for.
pub fn release_tag(release: &Release) -> &str {
    release.config().revisions.first().map(|one| one.id.as_str()).unwrap_or_default()
}

/// The tag of a Release's image; that of the release where it has none.
pub fn image_tag(release: &Release) -> String {
    let images = release.status.as_ref().map(|status| status.images.as_slice());
    match images.unwrap_or_default().first() {
        Some(image) => tag(image.stored.as_deref().unwrap_or(&image.asked)),
        None => release_tag(release).to_owned(),
    }
}

fn is_called(release: &Release, text: &str) -> bool {
    release_tag(release) == text || image_tag(release) == text
}

fn digest(release: &Release) -> Option<String> {
    release.status.as_ref()?.images.first()?.digest.clone()
}

/// Whether a Rollback has not ended.
pub fn is_pending(rollback: &Rollback) -> bool {
    !rollback.status.as_ref().is_some_and(belay_api::rollback::RollbackStatus::is_terminal)
}

fn goes_to(rollback: &Rollback, release: &str) -> bool {
    let resolved = rollback.status.as_ref().and_then(|status| status.to_release_ref.as_ref());
    let to = resolved.map_or(rollback.spec.to_release_ref.name.as_str(), |to| to.name.as_str());
    to == release
}

/// The names from the first that no ended Rollback has.
fn names(
    target: &str,
    from: &Release,
    to: &Release,
    rollbacks: &[&Rollback],
) -> Result<Vec<String>, String> {
    let target: TargetName = target.parse().map_err(|error| format!("{error}"))?;
    let hash = |release: &Release| {
        ShortHash::of_release(&target, name(release)).map_err(|error| error.to_string())
    };
    let (from, to) = (hash(from)?, hash(to)?);
    let is_taken = |wanted: &String| {
        rollbacks.iter().any(|one| one.metadata.name.as_ref() == Some(wanted) && !is_pending(one))
    };
    let again = std::iter::once(None).chain((2..MAX_NAMES).map(Some));
    let all = again.map(|again| rollback_name(&target, &from, &to, again));
    Ok(all.skip_while(is_taken).collect())
}

fn about(to: &Release, now: Timestamp) -> String {
    let activations = to.status.as_ref().map(|status| status.activations.as_slice());
    let last = activations.unwrap_or_default().last();
    let Some(last) = last else { return "it never ran".to_owned() };
    let verdict = match last.verdict.as_ref().map(|verdict| (verdict.known(), verdict.as_str())) {
        Some((Some(belay_api::gates::Verdict::Healthy), _)) => "last healthy".to_owned(),
        Some((_, word)) => format!("last {}", word.to_ascii_lowercase()),
        None => "never judged".to_owned(),
    };
    let end = last.end_time.as_ref().map_or(now, |time| time.0);
    format!("{verdict}, ran {}", super::age::between(last.start_time.0, end))
}

fn changes(
    snapshot: &Snapshot,
    live: &Live,
    prefix: &AnnotationPrefix,
    to: &Release,
) -> Vec<Change> {
    let images = to.status.as_ref().map(|status| status.images.clone()).unwrap_or_default();
    let change = |container: &&super::live::LiveContainer| {
        let name = container.name.to_string();
        let image = images.iter().find(|one| one.container == name).or(images.first())?;
        Some(Change { container: name, from: container.image.clone(), to: image.asked.clone() })
    };
    followed(snapshot, live, prefix).iter().filter_map(change).collect()
}

/// The containers that Belay moves.
pub fn followed<'l>(
    snapshot: &Snapshot,
    live: &'l Live,
    prefix: &AnnotationPrefix,
) -> Vec<&'l super::live::LiveContainer> {
    let told = snapshot.target().and_then(|target| target.status.as_ref());
    let names = told.map(|status| status.containers.clone()).unwrap_or_default();
    live.followed(&names, prefix)
}

fn next(
    live: &Live,
    prefix: &AnnotationPrefix,
    from: &Release,
    to: &Release,
    hold: bool,
) -> String {
    let (from_tag, to_tag) = (release_tag(from), release_tag(to));
    if hold {
        let held = image_tag(to);
        return format!("held at {held}: nothing moves until `kubectl release resume`");
    }
    if let Some(held) = live.annotation(prefix, belay_api::annotations::TargetAnnotation::Hold) {
        return format!("held ({held}): nothing moves until `kubectl release resume`");
    }
    let pattern = belay_engine::version::TagPattern::default();
    let reading = live.annotation(prefix, belay_api::annotations::TargetAnnotation::TagPattern);
    let pattern = reading.and_then(|text| text.parse().ok()).unwrap_or(pattern);
    let rank = |tag: &str| Rank {
        version: pattern.version_of(tag).and_then(parse_version),
        published: None,
    };
    if rank(to_tag).is_below(&rank(from_tag)) {
        format!(
            "releases above {to_tag} up to {from_tag} are blocked; the next one above {from_tag} \
             will be applied; --hold to stay"
        )
    } else {
        "nothing is blocked; the next newer release will be applied; --hold to stay".to_owned()
    }
}

fn ownership(snapshot: &Snapshot, live: &Live, prefix: &AnnotationPrefix) -> String {
    if !live.has_owners {
        return "the workload does not say who wrote its fields: the operator may conflict with \
                before-first-apply"
            .to_owned();
    }
    let mut others: Vec<_> = Vec::new();
    let mut is_ours = true;
    for container in followed(snapshot, live, prefix) {
        is_ours &= container.is_owned_by(&live.operator);
        for one in &container.owners {
            if one.manager() != live.operator && !others.contains(one) {
                others.push(one.clone());
            }
        }
    }
    let names: Vec<String> = others.iter().map(owner).collect();
    let operator = &live.operator;
    match (others.is_empty(), is_ours) {
        (true, true) => format!("image owned by {operator} (Apply): no conflict expected"),
        (true, false) => "nobody owns the image: no conflict expected".to_owned(),
        _ if others.iter().any(|one| is_gitops(one.manager())) => {
            format!("image owned by {}: a GitOps controller puts its own back", names.join(", "))
        }
        (false, true) => {
            format!("image owned by {operator} (Apply) and {}: taken over whole", names.join(", "))
        }
        (false, false) => format!("image owned by {}: taken over from it", names.join(", ")),
    }
}

fn helm(snapshot: &Snapshot, live: &Live, prefix: &AnnotationPrefix, to: &Release) -> Vec<String> {
    let source = Source::of(live, &snapshot.helm);
    let owners = [belay_ownership::Identity::applier(&live.operator)];
    let changes = changes(snapshot, live, prefix, to);
    let mut lines: Vec<String> = Vec::new();
    for container in followed(snapshot, live, prefix) {
        let name = container.name.to_string();
        let Some(change) = changes.iter().find(|one| one.container == name) else { continue };
        let after = Forecast::after(&source, live, container, &change.to, &owners, prefix);
        for line in after.map(|forecast| forecast.lines()).unwrap_or_default() {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    if lines.is_empty() {
        lines.push("Helm did not install this workload".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(None, To::Latest)]
    #[case(Some("1.9.1"), To::Named("1.9.1".to_owned()))]
    #[case(Some("web-4f1c0a9"), To::Named("web-4f1c0a9".to_owned()))]
    #[case(Some("-1"), To::Back(1))]
    #[case(Some("-2"), To::Back(2))]
    fn a_place_to_go_to_is_read(#[case] text: Option<&str>, #[case] expected: To) {
        assert_eq!(To::read(text), Ok(expected));
    }

    #[rstest]
    fn what_is_no_place_is_refused(#[values("-0", "-", "--2", "-x")] text: &str) {
        To::read(Some(text)).unwrap_err();
    }
}
