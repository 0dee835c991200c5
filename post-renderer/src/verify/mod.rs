//! Checks edited bytes before anybody writes them (rules 5.8 and 5.9).
//!
//! The edited documents are read again by two parsers that share no code, and compared with the
//! input: exactly the intended images may differ. The first parser's reading is compared with its
//! reading of the input, and that of the second with the first one's; where the two tell the same
//! thing in different words, as with aliases, tags and some numbers, with its own reading of the
//! input. All other documents must be the same bytes, and as many as before.

mod agreement;
mod events;
mod fingerprint;
mod values;

use std::{collections::BTreeMap, str};

use crate::{
    scan::{self, Manifest, Said, ScanError, Target},
    shares::in_shares,
    splice::{Edit, Outcome, Spliced, Subject},
    split::{self, Document},
    verify::{
        agreement::agree,
        events::Recorder,
        fingerprint::{Fingerprint, Paths, Seen},
    },
};

/// Output that must not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// Bytes differ where nothing was to be changed.
    #[error("compare the output with the input: bytes differ outside of the edits")]
    OtherBytes,
    /// A document was lost or made.
    #[error("count the documents of the output: {output} with content, {input} in the input")]
    Count {
        /// Documents with content in the input.
        input: usize,
        /// Documents with content in the output.
        output: usize,
    },
    /// An edited document cannot be read.
    #[error("read document {document} of the manifest again after its edit")]
    Scan {
        /// The document, counted from 1.
        document: usize,
        /// Why not.
        #[source]
        cause: ScanError,
    },
    /// An edited document, or the one it was made from, cannot be read by one of the two parsers.
    #[error("read document {document} of the manifest with the {reader} reader, {when} its edit")]
    Unreadable {
        /// The document, counted from 1.
        document: usize,
        /// `first` or `second`.
        reader: &'static str,
        /// `before` or `after`.
        when: &'static str,
        /// Why not.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The image of a container is not the intended one.
    #[error("read the image of {subject} again: it is not what it was meant to be ({reader})")]
    Image {
        /// The container.
        subject: Subject,
        /// Which reader says so.
        reader: &'static str,
    },
    /// Something else in an edited document differs.
    #[error("compare document {document} of the manifest: more than images differs ({reader})")]
    More {
        /// The document, counted from 1.
        document: usize,
        /// Which reader says so.
        reader: &'static str,
    },
}

/// The bytes of a document before and after its edits.
struct Pair<'b> {
    document: usize,
    before: &'b [u8],
    after: &'b [u8],
}

/// Checks what [`crate::splice::apply`] made of `edits`.
///
/// # Errors
/// The bytes are not what was intended, or cannot be checked: they must not be written.
pub fn check(
    manifest: &Manifest<'_>,
    edits: &[Edit<'_>],
    spliced: &Spliced<'_>,
) -> Result<(), VerifyError> {
    let output = spliced.bytes.as_ref();
    let mut edited: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    if spliced.outcomes.len() != edits.len() {
        return Err(VerifyError::OtherBytes);
    }
    for (index, (edit, outcome)) in edits.iter().zip(&spliced.outcomes).enumerate() {
        let target = manifest.targets.get(edit.target).ok_or(VerifyError::OtherBytes)?;
        if edit.container >= target.containers.len() {
            return Err(VerifyError::OtherBytes);
        }
        if *outcome != Outcome::Unchanged {
            edited.entry(target.document).or_default().push(index);
        }
    }
    if edited.is_empty() {
        return if output == manifest.input { Ok(()) } else { Err(VerifyError::OtherBytes) };
    }
    let after = split::split(output);
    check_documents(manifest, &after, output, &edited)?;
    let work = Work {
        manifest,
        edits,
        spliced,
        after: &after,
        expected: expected_images(edits, &spliced.outcomes),
    };
    let edited: Vec<(usize, Vec<usize>)> = edited.into_iter().collect();
    in_shares(&edited, |share| work.check(share)).map(drop)
}

/// What is the same for all edited documents.
struct Work<'w> {
    manifest: &'w Manifest<'w>,
    edits: &'w [Edit<'w>],
    spliced: &'w Spliced<'w>,
    after: &'w [Document],
    expected: Expected<'w>,
}

impl Work<'_> {
    /// Checks documents, each with the edits in it.
    fn check(&self, edited: &[(usize, Vec<usize>)]) -> Result<(), VerifyError> {
        edited.iter().try_for_each(|(document, indices)| self.check_document(*document, indices))
    }

    fn check_document(&self, document: usize, indices: &[usize]) -> Result<(), VerifyError> {
        let Self { manifest, edits, spliced, expected, .. } = self;
        let after = &self.after[document];
        let pair = Pair {
            document,
            before: manifest.documents[document].body(manifest.input),
            after: after.body(spliced.bytes.as_ref()),
        };
        let mut paths = Paths::new();
        for &index in indices {
            let edit = edits[index];
            let target = &manifest.targets[edit.target];
            paths.add(target, &target.containers[edit.container], index);
        }
        let scanned = check_scan(manifest, expected, spliced, after, &pair, &paths)?;
        let before = match manifest.readings.get(&document) {
            Some(nodes) => pair.replay(nodes, &paths),
            None => pair.read(Reader::First, pair.before, &paths, "before")?,
        };
        self.compare(Reader::First, document, indices, &before, &scanned)?;
        let after = pair.read(Reader::Second, pair.after, &paths, "after");
        if let Ok(after) = &after
            && indices.iter().all(|&index| after.images(index) == scanned.images(index))
            && agree(&scanned, after)
        {
            return Ok(());
        }
        let before = pair.read(Reader::Second, pair.before, &paths, "before")?;
        self.compare(Reader::Second, document, indices, &before, &after?)
    }

    /// Compares what one reader sees before and after the edits.
    fn compare(
        &self,
        reader: Reader,
        document: usize,
        indices: &[usize],
        before: &Fingerprint,
        after: &Fingerprint,
    ) -> Result<(), VerifyError> {
        let Self { manifest, edits, spliced, .. } = self;
        for &index in indices {
            check_images(manifest, edits[index], spliced.outcomes[index], reader, || {
                (before.images(index), after.images(index))
            })?;
        }
        if before.is_like(after) {
            return Ok(());
        }
        Err(VerifyError::More { document: document + 1, reader: reader.name() })
    }
}

fn check_documents(
    manifest: &Manifest<'_>,
    after: &[Document],
    output: &[u8],
    edited: &BTreeMap<usize, Vec<usize>>,
) -> Result<(), VerifyError> {
    let counts = (split::count(&manifest.documents), split::count(after));
    if counts.0 != counts.1 || manifest.documents.len() != after.len() {
        return Err(VerifyError::Count { input: counts.0, output: counts.1 });
    }
    for (index, (old, new)) in manifest.documents.iter().zip(after).enumerate() {
        let same = manifest.input[old.range.clone()] == output[new.range.clone()];
        if !same && !edited.contains_key(&index) || old.has_content != new.has_content {
            return Err(VerifyError::OtherBytes);
        }
    }
    Ok(())
}

/// The images that edited containers must have, by target and container.
type Expected<'e> = BTreeMap<(usize, usize), Option<&'e str>>;

fn expected_images<'e>(edits: &[Edit<'e>], outcomes: &[Outcome]) -> Expected<'e> {
    let image = |(edit, outcome): (&Edit<'e>, &Outcome)| {
        let image = match outcome {
            Outcome::Stripped => None,
            Outcome::Preserved | Outcome::PreservedInstead(_) => Some(edit.action.image()),
            Outcome::Unchanged => return None,
        };
        Some(((edit.target, edit.container), image))
    };
    edits.iter().zip(outcomes).filter_map(image).collect()
}

/// Scans an edited document again: the same containers, and the images that a Go reader sees.
/// What the first reader makes of it falls out on the way.
fn check_scan(
    manifest: &Manifest<'_>,
    expected: &Expected<'_>,
    spliced: &Spliced<'_>,
    after: &Document,
    pair: &Pair<'_>,
    paths: &Paths,
) -> Result<Fingerprint, VerifyError> {
    let number = pair.document + 1;
    let mut recorder = Recorder::new(pair.after, paths);
    let scanned = scan::read_document(
        spliced.bytes.as_ref(),
        after,
        pair.document,
        &manifest.prefix,
        &mut |said| recorder.take(&said),
    )
    .map_err(|cause| VerifyError::Scan { document: number, cause })?;
    let more = || VerifyError::More { document: number, reader: "scan" };
    // Targets are in the order of their documents.
    let first = manifest.targets.partition_point(|target| target.document < pair.document);
    let old = manifest.targets[first..].iter().take_while(|old| old.document == pair.document);
    let mut new = scanned.iter();
    for (index, target) in (first..).zip(old) {
        let again = new.next().filter(|again| same_target(target, again)).ok_or_else(more)?;
        for (place, (old, new)) in target.containers.iter().zip(&again.containers).enumerate() {
            let expected = expected.get(&(index, place)).copied().unwrap_or(old.image.as_deref());
            if (old.list, &old.name) != (new.list, &new.name) {
                return Err(more());
            }
            if new.image.as_deref() != expected {
                let subject = Subject::of(target, old);
                return Err(VerifyError::Image { subject, reader: "scan" });
            }
        }
    }
    if new.next().is_some() { Err(more()) } else { Ok(recorder.finish()) }
}

fn same_target(old: &Target, new: &Target) -> bool {
    (old.kind, &old.name, &old.namespace, &old.items, old.hook, old.containers.len())
        == (new.kind, &new.name, &new.namespace, &new.items, new.hook, new.containers.len())
        && old.annotations == new.annotations
}

#[derive(Debug, Clone, Copy)]
enum Reader {
    First,
    Second,
}

impl Reader {
    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }
}

impl Pair<'_> {
    /// What the first reader makes of the document before its edits, from what the scan kept.
    fn replay(&self, nodes: &[Said<'_>], paths: &Paths) -> Fingerprint {
        let mut recorder = Recorder::new(self.before, paths);
        for said in nodes {
            recorder.take(said);
        }
        recorder.finish()
    }

    fn read(
        &self,
        reader: Reader,
        body: &[u8],
        paths: &Paths,
        when: &'static str,
    ) -> Result<Fingerprint, VerifyError> {
        let read = || -> Result<Fingerprint, Box<dyn std::error::Error + Send + Sync>> {
            let text = str::from_utf8(body)?;
            Ok(match reader {
                Reader::First => events::read(text, paths)?,
                Reader::Second => values::read(text, paths)?,
            })
        };
        read().map_err(|cause| VerifyError::Unreadable {
            document: self.document + 1,
            reader: reader.name(),
            when,
            cause,
        })
    }
}

fn check_images<'f>(
    manifest: &Manifest<'_>,
    edit: Edit<'_>,
    outcome: Outcome,
    reader: Reader,
    images: impl FnOnce() -> (&'f [Vec<Seen>], &'f [Vec<Seen>]),
) -> Result<(), VerifyError> {
    let (before, after) = images();
    let mut expected = before.to_vec();
    if let Some(last) = expected.last_mut() {
        if outcome == Outcome::Stripped {
            last.clear();
        } else {
            last.pop();
            last.push(Seen::Text(edit.action.image().to_owned()));
        }
    }
    if before.is_empty() || expected != after {
        let target = &manifest.targets[edit.target];
        let subject = Subject::of(target, &target.containers[edit.container]);
        return Err(VerifyError::Image { subject, reader: reader.name() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
