//! One Target in a few lines: what runs, what should, who owns it, and what to do next.

use belay_api::{
    AnnotationPrefix, Duration, Release,
    annotations::TargetAnnotation,
    gates::WaitReason,
    reasons::{ProgressingReason, TargetReadyReason},
    target::TargetStatus,
};
use jiff::{SignedDuration, Timestamp};

use super::tree;
use crate::{
    facts::{
        age, history,
        live::{self, Live, LiveContainer, short_digest},
        pause,
        standing::Standing,
    },
    print::{Line, Paint, Style, width},
    read::{Fact, Snapshot},
};

/// Where the second half of a line begins, if the first half leaves room.
const SECOND: usize = 44;
/// Where a value begins.
const VALUE: usize = 13;

/// How a Target is shown.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time.
    pub now: Timestamp,
    /// Times instead of ages.
    pub absolute_time: bool,
    /// Older revisions too.
    pub all_revisions: bool,
    /// Nothing is shortened.
    pub wide: bool,
    /// What commands must say about the namespace.
    pub namespace: Option<String>,
    /// `--annotation-prefix`.
    pub prefix: Option<AnnotationPrefix>,
    /// For measuring.
    pub style: Style,
}

impl Options {
    /// A time, as an age or in full.
    pub fn age(&self, time: Timestamp) -> String {
        if self.absolute_time { seconds(time) } else { age::between(time, self.now) }
    }

    /// The same within a sentence: `3d ago`.
    pub fn ago(&self, time: Timestamp) -> String {
        if self.absolute_time {
            seconds(time)
        } else {
            format!("{} ago", age::between(time, self.now))
        }
    }

    pub(super) fn line(&self, label: &str, first: Line, second: Line) -> Line {
        // A line without a label goes on with the one above.
        let label = if label.is_empty() { String::new() } else { format!("{label}:") };
        let missing = VALUE.saturating_sub(width(&label)).max(1);
        let mut line = Line::new().dim(label).plain(" ".repeat(missing)).and(first);
        if !second.is_empty() {
            let at = width(&line.bare(self.style));
            line = line.plain(" ".repeat(SECOND.saturating_sub(at).max(3))).and(second);
        }
        line
    }
}

/// RFC 3339 in UTC, whole seconds.
pub fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// What is derived of a snapshot once, for all lines of it.
pub struct Seen<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) standing: Standing,
    pub(super) live: Option<Live>,
    pub(super) status: TargetStatus,
    prefix: AnnotationPrefix,
}

impl<'s> Seen<'s> {
    /// Of a snapshot whose ReleaseTarget is there.
    pub fn of(snapshot: &'s Snapshot, prefix: Option<&AnnotationPrefix>) -> Self {
        let status = snapshot.target().and_then(|target| target.status.clone());
        let prefix = snapshot.prefix(prefix);
        Self {
            standing: Standing::of(status.as_ref()),
            live: snapshot.workload().map(|workload| Live::of(workload, &prefix)),
            status: status.unwrap_or_default(),
            snapshot,
            prefix,
        }
    }

    /// All lines.
    pub fn lines(&self, options: &Options) -> Vec<Line> {
        let mut lines = vec![self.header(options), self.target(options)];
        lines.extend(self.images(options));
        lines.extend(self.pause(options));
        lines.extend(self.source(options));
        lines.extend(self.helm(options));
        lines.extend(self.advice(options));
        lines.extend(self.notes(options));
        let tree = tree::lines(self, options);
        if tree.is_empty() {
            lines.extend(self.last_change(options));
        } else {
            lines.push(Line::new());
            lines.extend(tree);
        }
        lines
    }

    pub(super) fn followed(&self) -> Vec<&LiveContainer> {
        let live = self.live.as_ref();
        live.map(|live| live.followed(&self.status.containers, &self.prefix)).unwrap_or_default()
    }

    fn releases(&self) -> Vec<&Release> {
        let all = self.snapshot.releases.value().map(Vec::as_slice).unwrap_or_default();
        all.iter().map(|release| &release.value).collect()
    }

    /// What Belay holds still meanwhile.
    fn pause(&self, options: &Options) -> Option<Line> {
        let claim = self.status.pause.as_ref()?;
        let (end, is_over) = pause::end(claim, options.now);
        let paint = if is_over { Paint::Bad } else { Paint::Plain };
        let end = match (is_over, options.absolute_time) {
            (false, true) => format!("ends by itself at {}", seconds(claim.expires.0)),
            _ => end,
        };
        Some(options.line("Pause", Line::from(pause::held(claim)), Line::new().with(paint, end)))
    }

    fn header(&self, options: &Options) -> Line {
        let standing = &self.standing;
        let icon = standing.icon();
        let word = Line::new().with(icon.paint(), format!("{} {}", standing.word, icon.as_str()));
        let detail = self.detail(options);
        let first = Line::from(format!("{}/{}", self.snapshot.namespace, self.snapshot.name));
        let second = if detail.is_empty() { word } else { word.plain(format!("  {detail}")) };
        options.line("Release", first, second)
    }

    fn detail(&self, options: &Options) -> String {
        let standing = &self.standing;
        let since = standing.since.map(|since| options.age(since));
        let since = |words: &str| match &since {
            Some(since) if options.absolute_time => format!("{words}(since {since})"),
            Some(since) => format!("{words}({since})"),
            None => words.trim_end().to_owned(),
        };
        match standing.reason {
            Some(TargetReadyReason::Ready) => match standing.since {
                Some(time) => format!("(since {})", options.age(time)),
                None => String::new(),
            },
            Some(TargetReadyReason::Progressing) => self.course(options),
            Some(TargetReadyReason::Stalled) => {
                let word = standing.stalled.as_ref().map(|cause| cause.word.as_str());
                since(&format!("{}  ", word.unwrap_or_default()))
            }
            Some(TargetReadyReason::Held) => {
                let at = match self.status.hold.as_deref() {
                    None | Some("true") => String::new(),
                    Some(tag) => format!("at {tag}  "),
                };
                let course = if standing.progressing.is_some() {
                    format!(", {}", self.course(options))
                } else {
                    String::new()
                };
                format!("{}{course}", since(&at))
            }
            Some(
                TargetReadyReason::Failed
                | TargetReadyReason::RolledBack
                | TargetReadyReason::Unknown,
            )
            | None => since(""),
        }
    }

    /// What a move does: `2 of 4 updated, 41s of 10m`.
    pub(super) fn course(&self, options: &Options) -> String {
        let updated = self.live.as_ref().map(|live| {
            let replicas = live.replicas;
            let updated = if replicas.is_observed { replicas.updated } else { 0 };
            format!("{updated} of {} updated", replicas.wanted)
        });
        let cause = self.standing.progressing.as_ref();
        let word = cause.map(|cause| cause.word.clone());
        let first = match cause.and_then(|cause| cause.reason) {
            Some(ProgressingReason::Rolling) => updated.or(word),
            Some(
                ProgressingReason::Idle
                | ProgressingReason::FirstSight
                | ProgressingReason::Pausing
                | ProgressingReason::CouldNotFreeze
                | ProgressingReason::TargetPaused
                | ProgressingReason::Resuming
                | ProgressingReason::Baking
                | ProgressingReason::Restoring
                | ProgressingReason::ImageReverted,
            )
            | None => word,
            Some(
                ProgressingReason::ImagePullFailed
                | ProgressingReason::Unschedulable
                | ProgressingReason::QuotaExceeded
                | ProgressingReason::AdmissionDenied
                | ProgressingReason::RollingBack,
            ) => {
                let parts: Vec<String> = word.into_iter().chain(updated).collect();
                Some(parts.join(", "))
            }
        };
        let parts: Vec<String> = first.into_iter().chain(self.waiting(options)).collect();
        parts.join(", ")
    }

    fn waiting(&self, options: &Options) -> Option<String> {
        let waiting = self.status.waiting.as_ref()?;
        let until = waiting.until.as_ref()?.0;
        if options.absolute_time {
            return Some(format!("{} until {}", waiting.reason, seconds(until)));
        }
        if let Some(WaitReason::Deadline) = waiting.reason.known() {
            let deadline = self.deadline();
            let begun = until.saturating_sub(deadline).unwrap_or(until);
            let gone = age::human(options.now.duration_since(begun).max(SignedDuration::ZERO));
            return Some(format!("{gone} of {}", age::human(deadline)));
        }
        let left = until.duration_since(options.now).max(SignedDuration::ZERO);
        Some(format!("{} left", age::human(left)))
    }

    /// The longest time without progress, as the operator reads it.
    fn deadline(&self) -> SignedDuration {
        let live = self.live.as_ref();
        let annotated = live
            .and_then(|live| live.annotation(&self.prefix, TargetAnnotation::Deadline))
            .and_then(|text| text.parse::<Duration>().ok())
            .and_then(|duration| i64::try_from(duration.as_secs()).ok());
        let own = live.and_then(|live| live.progress_deadline);
        SignedDuration::from_secs(annotated.or(own).unwrap_or(600))
    }

    fn target(&self, options: &Options) -> Line {
        let told = self.status.workload.as_ref();
        let name =
            told.map(|told| crate::print::object::name(&told.api_version, &told.kind, &told.name));
        match (&self.live, &self.snapshot.workload) {
            (Some(live), _) => {
                let replicas = live.replicas;
                let mut numbers = format!("{}/{} available", replicas.available, replicas.wanted);
                if let Some(revision) = &live.revision {
                    numbers.push_str(", revision ");
                    numbers.push_str(revision);
                }
                options.line("Target", live.resource.clone().into(), numbers.into())
            }
            (None, Fact::Unknown(why)) => {
                let first = name.unwrap_or_default();
                options.line("Target", first.into(), unknown(why.words()))
            }
            (None, Fact::Known(_)) => {
                let first = name.unwrap_or_default();
                options.line("Target", first.into(), Line::from((Paint::Bad, "does not exist")))
            }
        }
    }

    fn images(&self, options: &Options) -> Vec<Line> {
        let Some(live) = &self.live else { return self.told_image(options).into_iter().collect() };
        let followed = self.followed();
        if followed.is_empty() {
            let text = "no container is named to follow";
            return vec![options.line("Image", Line::new().with(Paint::Warn, text), Line::new())];
        }
        let mut lines = Vec::new();
        for (index, container) in followed.into_iter().enumerate() {
            let label = if index == 0 { "Image" } else { "" };
            let first = self.image(container, options);
            lines.push(options.line(label, first, owners(live, container)));
        }
        lines
    }

    /// What the ReleaseTarget says of the image, where the workload itself cannot be read.
    fn told_image(&self, options: &Options) -> Option<Line> {
        if matches!(self.snapshot.workload, Fact::Known(_)) {
            return None;
        }
        let current = self.status.current.as_ref()?;
        let image = current.image.clone()?;
        let digest = current.digest.as_deref().filter(|_| !image.contains('@'));
        let digest = digest.map(|digest| format!(" @{}", short_digest(digest)));
        let first = format!("{image}{}", digest.unwrap_or_default());
        let second = Line::new().plain("owner: ").with(Paint::Warn, "unknown");
        Some(options.line("Image", first.into(), second))
    }

    /// `app  ghcr.io/acme/web:1.9.2 @sha256:4f1c…a9`, or from what to what.
    fn image(&self, container: &LiveContainer, options: &Options) -> Line {
        let name = format!("{}  ", container.name);
        let running = container.tag();
        let wanted = self.status.wanted.as_ref().and_then(|wanted| wanted.tag.clone());
        let is_moving = self.standing.progressing.is_some();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != running) {
            return Line::from(if is_moving {
                format!("{name}{running} → {wanted}")
            } else {
                format!("{name}wanted {wanted}, live {running}")
            });
        }
        if is_moving && let Some(before) = self.tag_before(container) {
            return Line::from(format!("{name}{before} → {running}"));
        }
        let digest = self.status.current.as_ref().and_then(|current| current.digest.clone());
        let digest = digest.filter(|_| !container.image.contains('@')).map(|digest| {
            format!(" @{}", if options.wide { digest } else { short_digest(&digest) })
        });
        let image = match container.image.split_once('@') {
            Some((image, digest)) if !options.wide => {
                format!("{image} @{}", short_digest(digest))
            }
            _ => container.image.clone(),
        };
        Line::from(format!("{name}{image}{}", digest.unwrap_or_default()))
    }

    /// From what to what the first container moves, for logs: `1.9.2 -> 2.0.0`.
    pub(super) fn change(&self) -> Option<String> {
        self.standing.progressing.as_ref()?;
        let container = self.first_followed()?;
        let running = container.tag();
        let wanted = self.status.wanted.as_ref().and_then(|wanted| wanted.tag.clone());
        match wanted.filter(|wanted| *wanted != running) {
            Some(wanted) => Some(format!("{running} -> {wanted}")),
            None => Some(format!("{} -> {running}", self.tag_before(container)?)),
        }
    }

    /// The tag that the first container runs.
    pub(super) fn running(&self) -> Option<String> {
        self.first_followed().map(LiveContainer::tag)
    }

    fn active(&self) -> Option<&Release> {
        let name = self.status.active.as_deref()?;
        self.releases().into_iter().find(|one| one.metadata.name.as_deref() == Some(name))
    }

    /// What failed before the Release that is active now.
    pub(super) fn fallen(&self) -> Option<String> {
        history::fallen(&self.releases(), self.active()?)
    }

    /// The tag that the container had before what is wanted now.
    fn tag_before(&self, container: &LiveContainer) -> Option<String> {
        let before = history::before(&self.releases(), self.active()?)?;
        let name = container.name.to_string();
        let images = &before.status.as_ref()?.images;
        let image = images.iter().find(|image| image.container == name)?;
        Some(live::tag(image.stored.as_deref().unwrap_or(&image.asked)))
            .filter(|before| *before != container.tag())
    }

    fn source(&self, options: &Options) -> Option<Line> {
        if self.standing.is_bad() || self.standing.progressing.is_some() {
            return None;
        }
        let live = self.live.as_ref()?;
        let repo = live.annotation(&self.prefix, TargetAnnotation::Repo);
        let text = match (repo, live.annotation(&self.prefix, TargetAnnotation::Range)) {
            (Some(repo), Some(range)) => format!("GitHub {repo}, range {range}"),
            (Some(repo), None) => format!("GitHub {repo}, latest release"),
            (None, _) => format!("none: the annotation {}/repo is gone", self.prefix),
        };
        Some(options.line("Source", text.into(), Line::new()))
    }

    fn helm(&self, options: &Options) -> Option<Line> {
        if self.standing.is_bad() || self.standing.progressing.is_some() {
            return None;
        }
        super::helm::line(self, options)
    }

    pub(super) fn first_followed(&self) -> Option<&LiveContainer> {
        self.followed().into_iter().next()
    }

    pub(super) fn prefix(&self) -> &AnnotationPrefix {
        &self.prefix
    }

    fn last_change(&self, options: &Options) -> Vec<Line> {
        let Some(active) = self.active() else { return Vec::new() };
        let Some(last) = history::last(active) else { return Vec::new() };
        let name = active.metadata.name.clone().unwrap_or_default();
        let entry = history::Entry::of(active, [].into_iter());
        let before = history::before(&self.releases(), active)
            .map(|before| history::Entry::of(before, [].into_iter()).tag);
        let change = match before.filter(|before| *before != entry.tag) {
            Some(before) => format!("{before} → {}", entry.tag),
            None => format!("{} found running", entry.tag),
        };
        let took = entry.took.map(|took| format!("   took {}", age::human(took)));
        let text = format!(
            "{change}   {}{}   by release {name}",
            options.ago(last.start_time.0),
            took.unwrap_or_default()
        );
        vec![Line::new(), options.line("Last change", text.into(), Line::new())]
    }
}

fn owners(live: &Live, container: &LiveContainer) -> Line {
    if !live.has_owners {
        return Line::new().plain("owner: ").and(unknown("the object has no managedFields"));
    }
    let mut line = Line::new().plain("owner: ");
    if container.owners.is_empty() {
        line = line.with(Paint::Warn, "nobody");
    }
    for (index, owner) in container.owners.iter().enumerate() {
        if index > 0 {
            line = line.plain(", ");
        }
        line = line.with(Paint::manager(owner.manager()), live::owner(owner));
    }
    if container.owners.is_empty() || container.is_owned_by(&live.operator) {
        return line;
    }
    line.plain(format!(", not {}", live.operator))
}

pub(super) fn unknown(why: &str) -> Line {
    Line::new().with(Paint::Warn, format!("unknown: {why}"))
}
