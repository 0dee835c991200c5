//! A list of Targets, one row each.

use belay_api::ReleaseTarget;
use belay_ownership::Identity;
use kube::ResourceExt as _;

use super::view::Options;
use crate::{
    Error,
    facts::{
        live::{Live, LiveContainer, short},
        standing::Standing,
    },
    print::{Column, Line, Paint, Table},
    read::{
        Fact,
        fleet::{Fleet, Member, prefix_of},
    },
};

const COLUMNS: [Column; 13] = [
    Column { name: "NAMESPACE", wide: false },
    Column { name: "NAME", wide: false },
    Column { name: "STATUS", wide: false },
    Column { name: "IMAGE", wide: false },
    Column { name: "WANTED", wide: false },
    Column { name: "READY", wide: false },
    Column { name: "OWNER", wide: false },
    Column { name: "SINCE", wide: false },
    Column { name: "TARGET", wide: true },
    Column { name: "CONTAINER", wide: true },
    Column { name: "DIGEST", wide: true },
    Column { name: "HELM-RELEASE", wide: true },
    Column { name: "MESSAGE", wide: true },
];

/// Stands for what could not be read; standard error says why.
const UNKNOWN: &str = "?";

/// `--status-selector`: which statuses are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusSelector {
    words: Vec<String>,
    is_excluding: bool,
}

impl StatusSelector {
    /// Reads `status=A,B` or `status!=A`.
    ///
    /// # Errors
    /// It is neither.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::usage(format!(
                "--status-selector {text:?}: expected status=WORD or status!=WORD"
            ))
        };
        let (is_excluding, words) = match text.split_once("!=") {
            Some(("status", words)) => (true, words),
            Some(_) => return Err(wrong()),
            None => match text.split_once('=') {
                Some(("status", words)) => (false, words.trim_start_matches('=')),
                _ => return Err(wrong()),
            },
        };
        let words: Vec<String> =
            words.split(',').map(|word| word.trim().to_ascii_lowercase()).collect();
        if words.iter().any(String::is_empty) {
            return Err(wrong());
        }
        Ok(Self { words, is_excluding })
    }

    /// Whether a status is shown.
    pub(super) fn shows(&self, word: &str) -> bool {
        self.words.contains(&word.to_ascii_lowercase()) != self.is_excluding
    }
}

/// Where a Target stands.
pub(super) fn standing(target: &ReleaseTarget) -> Standing {
    Standing::of(target.status.as_ref())
}

/// The table of a list; `with_namespace` for `-A`.
pub(super) fn table(fleet: &Fleet, with_namespace: bool, options: &Options) -> Table {
    let skip = usize::from(!with_namespace);
    let columns = COLUMNS.get(skip..).unwrap_or_default();
    let mut table = Table::new(columns, options.wide);
    for member in &fleet.members {
        table.row(row(member, options).into_iter().skip(skip));
    }
    table
}

/// All cells of a Target.
pub(super) fn row(member: &Member, options: &Options) -> Vec<Line> {
    let target = &member.target.value;
    let status = target.status.clone().unwrap_or_default();
    let standing = standing(target);
    let prefix = prefix_of(target, options.prefix.as_ref());
    let live = member.live.value().and_then(Option::as_ref);
    let container =
        live.and_then(|live| live.followed(&status.containers, &prefix).into_iter().next());
    let running = container.map(|container| container.image.clone());
    let current = status.current.clone().unwrap_or_default();
    let running = running.or(current.image).unwrap_or_default();
    let wanted = status.wanted.clone().unwrap_or_default();
    let is_read = matches!(member.live, Fact::Known(_));
    let or_unknown = |cell: Option<Line>| match cell {
        Some(cell) => cell,
        None if is_read => Line::new(),
        None => Line::from((Paint::Warn, UNKNOWN)),
    };
    vec![
        target.namespace().unwrap_or_default().into(),
        target.name_any().into(),
        Line::new().with(standing.icon().paint(), standing.word.clone()),
        short(&running).to_owned().into(),
        wanted.tag.unwrap_or_default().into(),
        or_unknown(live.map(ready)),
        or_unknown(live.zip(container).map(|(live, container)| owner(live, container))),
        standing.since.map(|since| options.age(since)).unwrap_or_default().into(),
        live.map(|live| live.resource.clone())
            .or_else(|| {
                let told = status.workload.as_ref()?;
                Some(crate::print::object::name(&told.api_version, &told.kind, &told.name))
            })
            .unwrap_or_default()
            .into(),
        status.containers.join(",").into(),
        current.digest.unwrap_or_default().into(),
        or_unknown(live.map(|live| {
            let release = live.annotations.get(crate::facts::helm::RELEASE_NAME);
            release.cloned().unwrap_or_default().into()
        })),
        message(&standing).into(),
    ]
}

fn ready(live: &Live) -> Line {
    let replicas = live.replicas;
    let text = format!("{}/{}", replicas.available, replicas.wanted);
    let paint = if replicas.available >= replicas.wanted { Paint::Plain } else { Paint::Warn };
    Line::new().with(paint, text)
}

/// The owner that the reader must know of: whoever is not the operator.
fn owner(live: &Live, container: &LiveContainer) -> Line {
    let others = container.owners.iter().find(|owner| owner.manager() != live.operator);
    let shown = match (container.is_owned_by(&live.operator), others) {
        (true, _) => Some(live.operator.as_str()),
        (false, other) => other.map(Identity::manager),
    };
    match shown {
        Some(name) => Line::new().with(Paint::manager(name), name),
        None if live.has_owners => Line::from((Paint::Warn, "nobody")),
        None => Line::from((Paint::Warn, UNKNOWN)),
    }
}

fn message(standing: &Standing) -> String {
    let stalled = standing.stalled.as_ref().map(|cause| (&cause.word, &cause.message));
    let progressing = standing.progressing.as_ref().map(|cause| (&cause.word, &cause.message));
    match stalled.or(progressing) {
        Some((word, message)) if message.is_empty() => word.clone(),
        Some((word, message)) => format!("{word}: {message}"),
        None => standing.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("status=Stalled", "Stalled", true)]
    #[case("status=stalled,Failed", "Failed", true)]
    #[case("status==Stalled", "Ready", false)]
    #[case("status!=Ready", "Ready", false)]
    #[case("status!=Ready", "Stalled", true)]
    fn statuses_are_selected(#[case] selector: &str, #[case] word: &str, #[case] shown: bool) {
        assert_eq!(StatusSelector::parse(selector).unwrap().shows(word), shown);
    }

    #[rstest]
    fn others_are_refused(#[values("Stalled", "phase=x", "status=", "status=a,,b")] text: &str) {
        StatusSelector::parse(text).unwrap_err();
    }
}
