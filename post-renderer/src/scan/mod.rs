//! Finds the workloads of a stream, and where the images of their containers stand.
//!
//! A document that is no target never fails the run, whatever is in it; a target that cannot be
//! read does (rule 5.7). Nothing is decided here, and what makes an edit hard is only noted: most
//! containers are never edited.

mod extract;
mod layout;
mod precheck;
mod said;
mod tree;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use memchr::memmem::Finder;

pub(crate) use self::layout::{Entry, Layout};
pub use self::layout::{Form, Hindrance};
pub(crate) use self::said::{OwnTag, Said, Scalar};
use crate::{
    MAX_INPUT,
    scan::{
        extract::Extractor,
        precheck::{Precheck, looks_like_target},
        tree::{Broken, Observer},
    },
    shares::in_shares,
    split::{Document, split},
};

/// Helm 4's name of the template that a document came from.
pub const FILENAME_ANNOTATION: &str = "postrenderer.helm.sh/postrender-filename";

/// What makes a document a hook of Helm's, if its own metadata says so (rule 5.6).
pub const HOOK_ANNOTATION: &str = "helm.sh/hook";

/// A stream of documents with its targets.
#[derive(Debug, Clone)]
pub struct Manifest<'a> {
    /// The bytes as they came.
    pub input: &'a [u8],
    /// All documents, in order.
    pub documents: Vec<Document>,
    /// The workloads among them, in order.
    pub targets: Vec<Target>,
    pub(crate) prefix: Cow<'a, str>,
    /// What the parser said of documents with targets, so that [`crate::verify`] need not ask again;
    /// of the first ones only, since it takes more room than the text.
    pub(crate) readings: BTreeMap<usize, Vec<Said<'a>>>,
}

/// How many events each core keeps: those of some ten workloads.
const MOST_EVENTS: usize = 2_000;

/// The kinds of `apps/v1` whose images Belay knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkloadKind {
    /// `Deployment`
    Deployment,
    /// `StatefulSet`
    StatefulSet,
    /// `DaemonSet`
    DaemonSet,
}

impl WorkloadKind {
    /// The `kind` of the object.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
        }
    }

    /// The kind, if `api_version` and `kind` are those of a target. A Deployment of another group
    /// is none.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        (api_version == "apps/v1").then_some(())?;
        [Self::Deployment, Self::StatefulSet, Self::DaemonSet]
            .into_iter()
            .find(|known| known.as_str() == kind)
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A workload in the manifest.
#[derive(Debug, Clone)]
pub struct Target {
    /// Which document it stands in.
    pub document: usize,
    /// Where it starts, as an offset into the input.
    pub at: usize,
    /// Its kind; the group is `apps/v1`.
    pub kind: WorkloadKind,
    /// Its name. Helm 4 passes documents without one.
    pub name: Option<String>,
    /// Its own namespace; charts rarely write one.
    pub namespace: Option<String>,
    /// Whether it is a hook of Helm's by its own metadata; Helm 4 passes hooks.
    pub hook: bool,
    /// The template it came from: the mark of Helm 4's input.
    pub filename: Option<String>,
    /// Belay's annotations, without the prefix: `image`, `repo`, …
    pub annotations: BTreeMap<String, String>,
    /// Its containers, then its init containers.
    pub containers: Vec<Container>,
    /// The indices of `items` that lead to it inside Lists; empty outside.
    pub(crate) items: Vec<usize>,
}

/// The lists of a pod template that hold containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContainerList {
    /// `containers`
    Containers,
    /// `initContainers`
    InitContainers,
}

impl ContainerList {
    /// The key in the pod template.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::InitContainers => "initContainers",
        }
    }
}

/// A container of a target.
#[derive(Debug, Clone)]
pub struct Container {
    /// The list it is in. Names are compared within one list.
    pub list: ContainerList,
    /// Its place in the list; only to find it again, never to match it with a live container.
    pub index: usize,
    /// Its name; without one it matches nothing.
    pub name: Option<String>,
    /// The image that a Go reader sees: that of the last key, or of a merge key. `None`: absent,
    /// empty or null.
    pub image: Option<String>,
    /// Whether `image` is written, be it empty or null, or comes from a merge key. An absent image
    /// is never added (rule 5.6).
    pub has_image: bool,
    /// Where it starts, as an offset into the input.
    pub at: usize,
    pub(crate) layout: Layout,
}

impl Container {
    /// How the image that counts is written; `None` where the container has no such key itself.
    pub fn form(&self) -> Option<Form> {
        self.layout.image().map(|entry| entry.form)
    }

    /// What stands in the way of an edit, where something does.
    pub fn hindrance(&self) -> Option<&Hindrance> {
        self.layout.hindrance.as_ref()
    }
}

/// A line and a column, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Position {
    /// The position of a byte of `input`.
    pub fn of(input: &[u8], at: usize) -> Self {
        let before = &input[..at.min(input.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        let is_start = |byte: &&u8| **byte & 0b1100_0000 != 0b1000_0000;
        Self {
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: before[line_start..].iter().filter(is_start).count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// What is wrong with a document, in the words of the parser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Syntax(String);

/// A manifest that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The input is larger than [`MAX_INPUT`].
    #[error("read a manifest of {0} bytes: more than {MAX_INPUT} are refused")]
    TooLarge(usize),
    /// A document that is, or looks like, a target cannot be read.
    #[error("read the workload in document {document} of the manifest, at {position}")]
    Unreadable {
        /// The document, counted from 1.
        document: usize,
        /// Where, in the whole input.
        position: Position,
        /// What is wrong there.
        #[source]
        cause: Syntax,
    },
}

/// Splits `input` and finds its targets. `prefix` is that of Belay's annotations, without a slash.
///
/// # Errors
/// The input is too large, or a target cannot be read.
pub fn read<'a>(
    input: &'a [u8],
    prefix: impl Into<Cow<'a, str>>,
) -> Result<Manifest<'a>, ScanError> {
    if input.len() > MAX_INPUT {
        return Err(ScanError::TooLarge(input.len()));
    }
    let documents = split(input);
    let precheck = Precheck::new();
    let prefix = prefix.into();
    let wanted: Vec<usize> = (0..documents.len())
        .filter(|&index| precheck.can_hold_target(documents[index].body(input)))
        .collect();
    let shares = in_shares(&wanted, |share| {
        let (mut found, mut room) = (Vec::new(), MOST_EVENTS);
        for &index in share {
            // Charts have a node for each 16 bytes or so.
            let nodes = documents[index].body(input).len() / 16;
            let mut events = Vec::with_capacity(nodes.min(room));
            let mut take = |said: Said<'a>| {
                if events.len() <= room {
                    events.push(said);
                }
            };
            let targets = read_document(input, &documents[index], index, &prefix, &mut take)?;
            if !targets.is_empty() {
                let reading = (events.len() <= room).then_some(events);
                room -= reading.as_ref().map_or(0, Vec::len);
                found.push((index, targets, reading));
            }
        }
        Ok(found)
    })?;
    let (mut targets, mut readings) = (Vec::new(), BTreeMap::new());
    for (index, mut found, reading) in shares.into_iter().flatten() {
        readings.extend(reading.map(|reading| (index, reading)));
        targets.append(&mut found);
    }
    Ok(Manifest { input, documents, targets, prefix, readings })
}

/// Finds the targets of one document; `index` is only for errors and for [`Target::document`].
pub(crate) fn read_document<'a>(
    input: &'a [u8],
    document: &Document,
    index: usize,
    prefix: &str,
    observer: Observer<'_, 'a>,
) -> Result<Vec<Target>, ScanError> {
    let body = document.body(input);
    let unreadable = |broken: Broken| ScanError::Unreadable {
        document: index + 1,
        position: Position::of(input, broken.at),
        cause: Syntax(broken.what),
    };
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) if looks_like_target(body) => {
            let at = document.body + error.valid_up_to();
            return Err(unreadable(Broken { at, what: "not UTF-8".to_owned() }));
        }
        Err(_) => return Ok(Vec::new()),
    };
    let (tree, result) = tree::build(text, document.body, observer);
    let extractor = Extractor::new(&tree, index, prefix);
    if let Err(broken) = result {
        let ours = extractor.is_target_so_far().unwrap_or_else(|| looks_like_target(body));
        return if ours { Err(unreadable(broken)) } else { Ok(Vec::new()) };
    }
    let targets = extractor.targets().map_err(unreadable)?;
    if !targets.is_empty()
        && let Some(at) = odd_line_break(body)
    {
        let what = "U+0085, U+2028 or U+2029, which some YAML readers take for the end of a line";
        return Err(unreadable(Broken { at: document.body + at, what: what.to_owned() }));
    }
    Ok(targets)
}

/// Readers of the libyaml family break lines at these, others do not: what such a document means
/// depends on who reads it.
fn odd_line_break(body: &[u8]) -> Option<usize> {
    if body.is_ascii() {
        return None;
    }
    ["\u{85}", "\u{2028}", "\u{2029}"].iter().find_map(|odd| Finder::new(odd).find(body))
}

#[cfg(test)]
mod tests;
