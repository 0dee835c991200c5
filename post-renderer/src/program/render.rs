//! From the bytes that came in to those that go out.

use std::{borrow::Cow, mem};

use crate::{
    cluster,
    decide::{self, Apply, Decision, Force, Live, Question, Role, Settings, Verdict},
    helm::{Command, DryRun, Invocation, Parent},
    program::{
        Setting,
        ask::{Answers, ask},
    },
    report::{Line, Report, outcome_note},
    scan::{self, Container, Manifest, Target},
    splice::{self, Action, Edit},
    split, verify,
};

/// The one line that stands for no document where Helm 4 wants output (rule 5.9).
const NO_DOCUMENT: &[u8] = b"# belay: the chart renders no document\n";

/// Renders; every refusal is an error, in words.
pub(super) fn render<'i>(
    setting: &Setting,
    input: &'i [u8],
    report: &mut Report,
) -> Result<Cow<'i, [u8]>, String> {
    let manifest = scan::read(input, setting.cli.annotation_prefix.as_str().to_owned())
        .map_err(|error| cluster::chain(&error))?;
    report.input.documents = split::count(&manifest.documents);
    report.input.workloads = manifest.targets.len();
    if input.trim_ascii().is_empty() && setting.environment.plugin_name.is_some() {
        // Legal only because no document came in: a comment alone deletes the whole release.
        return Ok(Cow::Borrowed(NO_DOCUMENT));
    }
    if setting.cli.offline {
        refuse_offline(&setting.parent)?;
    }
    let verdicts = verdicts(setting, &manifest, report)?;
    if let Some(failures) = failures(&verdicts) {
        return Err(failures);
    }
    let edits: Vec<Edit<'_>> =
        verdicts.iter().filter_map(|(at, verdict)| edit(*at, verdict)).collect();
    let spliced = splice::apply(&manifest, &edits).map_err(|error| cluster::chain(&error))?;
    verify::check(&manifest, &edits, &spliced).map_err(|error| cluster::chain(&error))?;
    let edited = verdicts.iter().filter(|(at, verdict)| edit(*at, verdict).is_some());
    let notes = edited.zip(&spliced.outcomes);
    report
        .notes
        .extend(notes.filter_map(|((_, verdict), outcome)| outcome_note(verdict, *outcome)));
    // What is borrowed is the input itself.
    if let Cow::Owned(output) = &spliced.bytes {
        counted(&manifest, output)?;
    }
    // The process ends soon; to take it to pieces first takes time.
    mem::forget(manifest);
    Ok(spliced.bytes)
}

/// The lines of all containers that end the run; one cause is told once, however many it meets.
fn failures(verdicts: &[(At, Verdict)]) -> Option<String> {
    let mut lines: Vec<(&str, &str, usize)> = Vec::new();
    for (_, verdict) in verdicts {
        let Decision::Fail { why } = &verdict.decision else { continue };
        match lines.iter_mut().find(|(known, ..)| known == why) {
            Some((_, _, more)) => *more += 1,
            None => lines.push((why, &verdict.sentence, 0)),
        }
    }
    let told = lines.iter().map(|(_, sentence, more)| match more {
        0 => (*sentence).to_owned(),
        1 => format!("{sentence} and 1 more container"),
        more => format!("{sentence} and {more} more containers"),
    });
    let told = told.collect::<Vec<_>>().join("; ");
    (!told.is_empty()).then_some(told)
}

/// Output without a document where the input had one deletes the release (rule 5.9). `verify` has
/// looked already; nothing else in this program is as dangerous, so it is counted once more.
fn counted(manifest: &Manifest<'_>, output: &[u8]) -> Result<(), String> {
    let (before, after) = (split::count(&manifest.documents), split::count(&split::split(output)));
    if before == after && before > 0 {
        return Ok(());
    }
    Err(format!("count the documents before writing them: {after}, where {before} came in"))
}

/// The place of a container in the manifest.
pub(super) type At = (usize, usize);

fn edit(at: At, verdict: &Verdict) -> Option<Edit<'_>> {
    let (target, container) = at;
    let action = match &verdict.decision {
        Decision::Preserve { image } => Action::Preserve { image },
        Decision::Strip { image } => Action::Strip { image },
        Decision::Pass { .. } | Decision::Fail { .. } => return None,
    };
    Some(Edit { target, container, action })
}

fn refuse_offline(parent: &Parent) -> Result<(), String> {
    match parent {
        Parent::Helm(helm)
            if matches!(helm.command, Command::Upgrade | Command::Install)
                && helm.dry_run != Some(DryRun::Client) =>
        {
            Err("--offline is refused: this Helm is about to write to a cluster, and would put the \
                 chart's image back; leave --offline out, or add --dry-run=client to Helm"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// One verdict for each container of each workload.
fn verdicts(
    setting: &Setting,
    manifest: &Manifest<'_>,
    report: &mut Report,
) -> Result<Vec<(At, Verdict)>, String> {
    let mut settings = settings(setting);
    let wanted = |target: &Target| !target.hook && !target.containers.is_empty();
    let named: Vec<&Target> =
        manifest.targets.iter().filter(|t| wanted(t) && t.name.is_some()).collect();
    let mut live = Answers::default();
    if !setting.cli.offline && !named.is_empty() {
        live = ask(setting, manifest, &named, &mut settings, report)?;
    }
    let verdicts = each(manifest, &live, &settings);
    for ((target, container), verdict) in &verdicts {
        let target = &manifest.targets[*target];
        report.decisions.push(line(target, &target.containers[*container], &live, verdict));
        report
            .notes
            .extend(verdict.notes.iter().map(|note| format!("{}: {note}", subject(target, &live))));
    }
    if let Some(helm) = setting.parent.helm() {
        report.notes.extend(helm.strays.iter().map(|flag| {
            format!(
                "Helm takes --{flag} out of another argument of its command line; write that \
                 argument with `=`, as in --post-renderer-args=-n"
            )
        }));
        report.notes.extend(first_upgrade_note(helm, &settings, &verdicts));
    }
    mem::forget(live);
    Ok(verdicts)
}

fn settings(setting: &Setting) -> Settings {
    let cli = &setting.cli;
    let helm = setting.parent.helm();
    Settings {
        mode: cli.mode.into(),
        apply: Apply::Unknown,
        force: if helm.is_some_and(|helm| helm.force_replace) { Force::Yes } else { Force::No },
        owners: cli.owner.clone(),
        helm: "helm".to_owned(),
        release: None,
        release_namespace: None,
        accept_repository: cli.accept_repository,
        take_ownership: helm.is_some_and(|helm| helm.take_ownership),
        offline: cli.offline,
    }
}

/// The verdict for each container, with its place.
pub(super) fn each(
    manifest: &Manifest<'_>,
    answers: &Answers,
    settings: &Settings,
) -> Vec<(At, Verdict)> {
    let mut verdicts = Vec::new();
    for (index, target) in manifest.targets.iter().enumerate() {
        for (place, container) in target.containers.iter().enumerate() {
            let live = if target.hook || settings.offline {
                Live::NotFound
            } else {
                answers.live(target, container)
            };
            let question = Question {
                kind: target.kind.as_str(),
                namespace: answers.namespace_of(target),
                name: target.name.as_deref().unwrap_or("(no name)"),
                container: container.name.as_deref().unwrap_or("(no name)"),
                role: if target.hook { Role::Hook } else { Role::Workload },
                chart_image: container.image.as_deref(),
                has_image: container.has_image,
                chart_annotation: target.annotations.get("image").map(String::as_str),
                live,
            };
            verdicts.push(((index, place), decide::decide(&question, settings)));
        }
    }
    verdicts
}

fn subject(target: &Target, answers: &Answers) -> String {
    let name = target.name.as_deref().unwrap_or("(no name)");
    format!("{} {}/{name}", target.kind, answers.namespace_of(target))
}

fn line(target: &Target, container: &Container, answers: &Answers, verdict: &Verdict) -> Line {
    Line {
        decision: (&verdict.decision).into(),
        kind: target.kind.to_string(),
        namespace: answers.namespace_of(target).to_owned(),
        name: target.name.clone().unwrap_or_default(),
        container: container.name.clone().unwrap_or_default(),
        list: container.list.as_str(),
        chart_image: container.image.clone(),
        live_image: match &verdict.decision {
            Decision::Preserve { image } | Decision::Strip { image } => Some(image.clone()),
            Decision::Pass { .. } | Decision::Fail { .. } => None,
        },
        sentence: verdict.sentence.clone(),
    }
}

/// Helm's automatic rollback does not call a post-renderer: the revision it falls back to may still
/// have the chart's image (the lab report, rows R6, R9 and R11).
fn first_upgrade_note(
    helm: &Invocation,
    settings: &Settings,
    verdicts: &[(At, Verdict)],
) -> Option<String> {
    let edits = verdicts.iter().any(|(at, verdict)| edit(*at, verdict).is_some());
    (helm.rollback_on_failure && edits && settings.apply == Apply::ServerSide).then(|| {
        "Helm rolls back on failure, without belay: if the revision before this one was made \
         without belay, that rollback conflicts too; make the first upgrade with belay without \
         --rollback-on-failure"
            .to_owned()
    })
}
