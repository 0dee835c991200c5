//! Edits the bytes of images and no others (rules 5.1, 5.4 to 5.6).
//!
//! Nothing is serialised: each edit is a few replaced byte ranges. What comes out is to be checked
//! with [`crate::verify`] before it is written anywhere.

mod preserve;
mod scalar;
mod strip;
mod text;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
};

pub use self::scalar::is_writable;
use crate::scan::{Container, Entry, Manifest, Position, Target};

/// What to do with the image of one container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'e> {
    /// Write `image`, the live one.
    Preserve {
        /// The live image.
        image: &'e str,
    },
    /// Take the image out; where that cannot be done cleanly, write `image`.
    Strip {
        /// The live image.
        image: &'e str,
    },
}

impl<'e> Action<'e> {
    /// The live image.
    pub fn image(self) -> &'e str {
        match self {
            Self::Preserve { image } | Self::Strip { image } => image,
        }
    }
}

/// An edit of one container, by its place in [`Manifest::targets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit<'e> {
    /// Index into [`Manifest::targets`].
    pub target: usize,
    /// Index into [`Target::containers`].
    pub container: usize,
    /// What to do.
    pub action: Action<'e>,
}

/// What became of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The live image is written.
    Preserved,
    /// The image is gone.
    Stripped,
    /// The image could not be taken out, so the live one is written; why, as part of a sentence.
    PreservedInstead(&'static str),
    /// There was nothing to change: the live image is there already, or no image at all.
    Unchanged,
}

/// Edited bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spliced<'a> {
    /// Borrowed where nothing changed.
    pub bytes: Cow<'a, [u8]>,
    /// One for each edit, in their order.
    pub outcomes: Vec<Outcome>,
}

/// A container in the words of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject(String);

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Subject {
    pub(crate) fn of(target: &Target, container: &Container) -> Self {
        let namespace = target.namespace.as_deref().map(|namespace| format!("{namespace}/"));
        Self(format!(
            "{} {}{} {}",
            target.kind,
            namespace.unwrap_or_default(),
            target.name.as_deref().unwrap_or("(no name)"),
            container.name.as_deref().unwrap_or("(no name)"),
        ))
    }
}

/// An edit that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The way the manifest is written rules the edit out.
    #[error("edit the image of {subject} at {position}: {what}")]
    Impossible {
        /// The container.
        subject: Subject,
        /// Where the obstacle is, in the whole input.
        position: Position,
        /// The obstacle.
        what: &'static str,
    },
    /// The live image is empty or has characters that no image has.
    #[error("edit the image of {subject}: the live image {image:?} is no image reference")]
    Unwritable {
        /// The container.
        subject: Subject,
        /// The live image.
        image: String,
    },
    /// An edit names a container that is not in the manifest, or that another edit named.
    #[error(
        "edit container {container} of target {target}: there is no such one, or it is named twice"
    )]
    NoSuchContainer {
        /// The target of the edit.
        target: usize,
        /// The container of the edit.
        container: usize,
    },
}

/// Why bytes cannot be edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Obstacle {
    at: usize,
    what: &'static str,
}

/// A replaced range of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    range: Range<usize>,
    text: String,
}

impl Change {
    fn new(range: Range<usize>, text: String) -> Self {
        Self { range, text }
    }
}

/// An anchor of a document, and how many of its aliases are replaced.
type Replaced = BTreeMap<(usize, usize), usize>;

/// Applies `edits` to the manifest. Without any, or where none changes anything, the bytes are
/// those of the input.
///
/// # Errors
/// An edit is impossible; nothing is edited then.
pub fn apply<'a>(manifest: &Manifest<'a>, edits: &[Edit<'_>]) -> Result<Spliced<'a>, SpliceError> {
    let replaced = replaced_aliases(manifest, edits)?;
    let mut changes = Vec::new();
    let mut outcomes = Vec::with_capacity(edits.len());
    for edit in edits {
        let (target, container) = find(manifest, *edit)?;
        let image = edit.action.image();
        if !is_writable(image) {
            let subject = Subject::of(target, container);
            return Err(SpliceError::Unwritable { subject, image: image.to_owned() });
        }
        let (outcome, mut own) = change(manifest.input, target, container, edit.action, &replaced)
            .map_err(|obstacle| SpliceError::Impossible {
                subject: Subject::of(target, container),
                position: Position::of(manifest.input, obstacle.at),
                what: obstacle.what,
            })?;
        outcomes.push(outcome);
        changes.append(&mut own);
    }
    let bytes = if changes.is_empty() {
        Cow::Borrowed(manifest.input)
    } else {
        Cow::Owned(replace(manifest.input, changes))
    };
    Ok(Spliced { bytes, outcomes })
}

fn find<'m>(
    manifest: &'m Manifest<'_>,
    edit: Edit<'_>,
) -> Result<(&'m Target, &'m Container), SpliceError> {
    let target = manifest.targets.get(edit.target);
    target
        .and_then(|target| Some((target, target.containers.get(edit.container)?)))
        .ok_or(SpliceError::NoSuchContainer { target: edit.target, container: edit.container })
}

/// Counts the aliases that the edits replace: an anchor that only these read may be edited.
fn replaced_aliases(manifest: &Manifest<'_>, edits: &[Edit<'_>]) -> Result<Replaced, SpliceError> {
    let mut seen = BTreeSet::new();
    let mut replaced = Replaced::new();
    for edit in edits {
        let (target, container) = find(manifest, *edit)?;
        if !seen.insert((edit.target, edit.container)) {
            let (target, container) = (edit.target, edit.container);
            return Err(SpliceError::NoSuchContainer { target, container });
        }
        let layout = &container.layout;
        let stripped = matches!(edit.action, Action::Strip { .. }) && layout.merge.is_none();
        let unchanged = !stripped && container.image.as_deref() == Some(edit.action.image());
        for (place, &index) in layout.images.iter().enumerate() {
            let entry = &layout.entries[index];
            let goes = stripped || place + 1 == layout.images.len() && !unchanged;
            if entry.is_alias && goes {
                *replaced.entry((target.document, entry.anchor)).or_default() += 1;
            }
        }
    }
    Ok(replaced)
}

fn change(
    input: &[u8],
    target: &Target,
    container: &Container,
    action: Action<'_>,
    replaced: &Replaced,
) -> Result<(Outcome, Vec<Change>), Obstacle> {
    if !container.has_image {
        return Ok((Outcome::Unchanged, Vec::new()));
    }
    let survivors = |entry: &Entry| {
        let gone = replaced.get(&(target.document, entry.anchor)).copied().unwrap_or_default();
        entry.uses.saturating_sub(gone)
    };
    let layout = &container.layout;
    let instead = match action {
        Action::Preserve { .. } => None,
        Action::Strip { .. } => match strip::strip(input, layout, container.at, survivors) {
            Ok(changes) => return Ok((Outcome::Stripped, changes)),
            Err(obstacle) => Some(obstacle.what),
        },
    };
    Ok(match (preserve::preserve(input, layout, action.image(), survivors)?, instead) {
        (Some(changes), Some(what)) => (Outcome::PreservedInstead(what), changes),
        (Some(changes), None) => (Outcome::Preserved, changes),
        (None, _) => (Outcome::Unchanged, Vec::new()),
    })
}

fn replace(input: &[u8], mut changes: Vec<Change>) -> Vec<u8> {
    changes.sort_by_key(|change| (change.range.start, change.range.end));
    let added: usize = changes.iter().map(|change| change.text.len()).sum();
    let mut output = Vec::with_capacity(input.len() + added);
    let mut done = 0;
    for change in changes {
        // Two changes that overlap would be a mistake of this module; `verify` finds it.
        let start = change.range.start.max(done);
        output.extend_from_slice(&input[done..start]);
        output.extend_from_slice(change.text.as_bytes());
        done = change.range.end.max(done);
    }
    output.extend_from_slice(&input[done..]);
    output
}
