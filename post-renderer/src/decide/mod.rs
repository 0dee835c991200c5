//! The decision table (section 3 of the specification), as a pure function.
//!
//! Preserve never fails for being used in the wrong place, Strip does: without evidence that Helm
//! applies on the server side, and that a manager other than Helm owns the image, nothing is
//! stripped.

mod question;
pub mod reference;
mod report;

pub(crate) use self::report::one_line;
pub use self::{
    question::{
        Apply, Followed, Force, Live, LiveContainer, LiveObject, Mode, Operation, Owner, Question,
        Role, Settings,
    },
    report::{Decision, Verdict},
};
use crate::{
    decide::reference::{is_above, repository, tag},
    splice::is_writable,
};

/// Decides about one container.
pub fn decide(question: &Question<'_>, settings: &Settings) -> Verdict {
    let conclude = |decision: Decision, reason: &str| {
        Verdict::new(question, decision, reason, None, Vec::new())
    };
    match question.role {
        Role::Hook => return conclude(Decision::PASS, "a hook of Helm's"),
        Role::Other => return conclude(Decision::PASS, "no workload whose images Belay knows"),
        Role::Workload => {}
    }
    if settings.offline {
        return conclude(Decision::PASS, "--offline");
    }
    let object = match &question.live {
        Live::Unknown { why } => {
            let why = format!("the live object could not be read: {why}");
            return conclude(Decision::Fail { why: why.clone() }, &why);
        }
        Live::NotFound => return conclude(Decision::PASS, "not found: first install"),
        Live::Unnamed => return warn(question, Vec::new(), "the manifest gives no name"),
        Live::Found(object) => object,
    };
    let mut warnings = Vec::new();
    if let Some(why) = another_release(object, settings) {
        if !settings.take_ownership {
            return conclude(Decision::Fail { why: why.clone() }, &why);
        }
        warnings.push(format!("{why}; --take-ownership takes it"));
    }
    let Some(container) = &object.container else {
        return warn(question, warnings, "the live object has no container of this name");
    };
    with_container(question, settings, object, container, warnings)
}

/// Helm itself would refuse to touch the object, or take it over by `--take-ownership`.
fn another_release(object: &LiveObject, settings: &Settings) -> Option<String> {
    let differs = |live: &Option<String>, ours: &Option<String>| {
        live.is_some() && ours.is_some() && live != ours
    };
    if !differs(&object.release_name, &settings.release)
        && !differs(&object.release_namespace, &settings.release_namespace)
    {
        return None;
    }
    let told = |name: &Option<String>, namespace: &Option<String>| {
        let name = name.as_deref().unwrap_or("(unknown)");
        namespace.as_ref().map_or(name.to_owned(), |namespace| format!("{namespace}/{name}"))
    };
    Some(format!(
        "the live object belongs to the release {}, not to {}",
        told(&object.release_name, &object.release_namespace),
        told(&settings.release, &settings.release_namespace),
    ))
}

fn warn(question: &Question<'_>, mut warnings: Vec<String>, why: &str) -> Verdict {
    warnings.push(why.to_owned());
    Verdict::new(question, Decision::Pass { warning: Some(warnings.join("; ")) }, why, None, vec![])
}

/// Who owns the image, as far as the table asks.
struct Ownership<'o> {
    /// The owner to name: a listed one, else any that is not Helm.
    other: Option<&'o Owner>,
    listed: bool,
}

impl<'o> Ownership<'o> {
    fn of(container: &'o LiveContainer, settings: &Settings) -> Self {
        let others = || container.owners.iter().filter(|owner| owner.manager != settings.helm);
        let listed = others().find(|owner| settings.owners.contains(&owner.manager));
        Self { other: listed.or_else(|| others().next()), listed: listed.is_some() }
    }
}

/// What a row of the table says, before `--mode`.
enum Row {
    /// Belay, or another operator that is listed, has the image.
    Keep {
        /// A manager other than Helm owns it, so that it may be stripped.
        owned: bool,
    },
    Pass {
        reason: &'static str,
        warning: Option<&'static str>,
    },
}

fn with_container(
    question: &Question<'_>,
    settings: &Settings,
    object: &LiveObject,
    container: &LiveContainer,
    warnings: Vec<String>,
) -> Verdict {
    let ownership = Ownership::of(container, settings);
    let followed = object.followed == Followed::Yes;
    let server_side = settings.apply == Apply::ServerSide;
    let mut notes = Vec::new();
    if followed && let Some(chart) = question.chart_image {
        match repository_change(question, settings, object, container, chart) {
            Some(Ok(warning)) => return warn(question, warnings, &warning),
            Some(Err(why)) => {
                let decision = Decision::Fail { why: why.clone() };
                return Verdict::new(question, decision, &why, Some(container), notes);
            }
            None => notes.extend(overridden(chart, &container.image)),
        }
    }
    let row = match object.followed {
        Followed::Yes => Row::Keep { owned: ownership.other.is_some() },
        Followed::Once if ownership.listed && settings.apply == Apply::ClientSide => {
            Row::Pass { reason: "Belay follows it no longer", warning: None }
        }
        Followed::Once if ownership.listed => Row::Pass {
            reason: "Belay follows it no longer",
            warning: Some(
                "its operator still owns the image, so Helm conflicts until `kubectl release \
                 leave`",
            ),
        },
        _ if ownership.listed => Row::Keep { owned: true },
        _ if ownership.other.is_some() => Row::Pass {
            reason: "owned by a manager that is not listed",
            warning: Some(if server_side {
                "Helm will conflict with it, and should"
            } else {
                "Helm may take the image from it"
            }),
        },
        _ => Row::Pass { reason: "owned by nobody but Helm", warning: None },
    };
    let decision = match forced(settings, &row, &ownership, followed, container) {
        Some(decision) => decision,
        None => match row {
            Row::Keep { owned } if owned && server_side && settings.force == Force::No => {
                Decision::Strip { image: container.image.clone() }
            }
            Row::Keep { .. } => Decision::Preserve { image: container.image.clone() },
            Row::Pass { warning, .. } => Decision::Pass { warning: warning.map(str::to_owned) },
        },
    };
    finish(question, settings, container, &ownership, decision, &row, warnings, notes)
}

/// `--mode preserve` and `--mode strip`, where an owner owns the field.
fn forced(
    settings: &Settings,
    row: &Row,
    ownership: &Ownership<'_>,
    followed: bool,
    container: &LiveContainer,
) -> Option<Decision> {
    let owned = ownership.listed || followed && ownership.other.is_some();
    debug_assert!(owned || !matches!(row, Row::Keep { owned: true }), "an owner of a kept image");
    let image = || container.image.clone();
    let refused = |why: &str| Decision::Fail { why: why.to_owned() };
    match (settings.mode, settings.apply) {
        (Mode::Auto, _) => None,
        _ if !owned => None,
        (Mode::Preserve, _) => Some(Decision::Preserve { image: image() }),
        (Mode::Strip, Apply::ServerSide) if settings.force == Force::No => {
            Some(Decision::Strip { image: image() })
        }
        (Mode::Strip, Apply::ClientSide | Apply::ServerSide) => Some(refused(
            "--mode strip is refused: Helm applies on the client side or by replacement, which \
             deletes a stripped image (422 Required value)",
        )),
        (Mode::Strip, Apply::Unknown) => Some(refused(
            "--mode strip is refused: nothing tells how Helm applies; add --server-side true if \
             it applies on the server side",
        )),
    }
}

/// What cannot be done whatever the table says, then the sentence.
#[expect(clippy::too_many_arguments, reason = "the parts of one verdict, used once")]
fn finish(
    question: &Question<'_>,
    settings: &Settings,
    container: &LiveContainer,
    ownership: &Ownership<'_>,
    decision: Decision,
    row: &Row,
    mut warnings: Vec<String>,
    mut notes: Vec<String>,
) -> Verdict {
    let edits = matches!(decision, Decision::Preserve { .. } | Decision::Strip { .. });
    if edits && container.image.is_empty() {
        return warn(question, warnings, "the live container has no image");
    }
    if edits && !is_writable(&container.image) {
        let why = "the live image has characters that no image reference has".to_owned();
        let decision = Decision::Fail { why: why.clone() };
        return Verdict::new(question, decision, &why, None, Vec::new());
    }
    if edits && !question.has_image {
        let absent = "the chart sets no image, and an absent one is never added";
        // Under server-side apply that is what Strip would make of it.
        return if matches!(decision, Decision::Strip { .. }) && warnings.is_empty() {
            Verdict::new(question, Decision::PASS, "the chart sets no image", None, Vec::new())
        } else {
            warn(question, warnings, absent)
        };
    }
    if edits && settings.force != Force::No && settings.apply == Apply::ServerSide {
        warnings.push("Helm refuses to replace by force under server-side apply".to_owned());
    }
    if !edits {
        notes.clear();
    }
    let (owner, passed) = match row {
        Row::Pass { reason, .. } => (ownership.other, *reason),
        Row::Keep { .. } => (ownership.other, ""),
    };
    let reason = match (&decision, owner) {
        (Decision::Fail { why }, _) => why.clone(),
        (Decision::Pass { .. }, Some(owner)) => format!("{passed}: {owner}"),
        (Decision::Pass { .. }, None) => passed.to_owned(),
        (_, Some(owner)) => owner.to_string(),
        (_, None) => "followed by Belay".to_owned(),
    };
    let decision = match decision {
        Decision::Pass { warning } => {
            warnings.extend(warning);
            Decision::Pass { warning: (!warnings.is_empty()).then(|| warnings.join("; ")) }
        }
        other => {
            notes.splice(0..0, warnings);
            other
        }
    };
    Verdict::new(question, decision, &reason, Some(container), notes)
}

/// A chart that names another repository than both the live image and the annotations:
/// `Ok(warning)` where that is accepted, `Err(why)` where not.
fn repository_change(
    question: &Question<'_>,
    settings: &Settings,
    object: &LiveObject,
    container: &LiveContainer,
    chart: &str,
) -> Option<Result<String, String>> {
    let wanted = repository(chart.trim());
    let live = repository(&container.image);
    let annotations = [question.chart_annotation, object.image_annotation.as_deref()];
    let known = annotations.into_iter().flatten().any(|image| repository(image) == wanted);
    if container.image.is_empty() || wanted == live || known {
        return None;
    }
    let change = format!("the chart moves the image from {live} to {wanted}");
    Some(if settings.accept_repository {
        Ok(format!("{change}, accepted this once by --accept-repository"))
    } else {
        Err(format!("{change}; run once with --accept-repository if that is meant"))
    })
}

/// The line that says that the chart's version is overridden.
fn overridden(chart: &str, live: &str) -> Option<String> {
    let chart = chart.trim();
    let (wanted, running) = (tag(chart)?, tag(live)?);
    (repository(chart) == repository(live) && is_above(wanted, running))
        .then(|| format!("the chart's version {wanted} is overridden by the live {running}"))
}

#[cfg(test)]
mod tests;
