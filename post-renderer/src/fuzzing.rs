//! The fuzz target of this crate: bytes in, a panic if an invariant is broken.

use crate::{
    decide::reference,
    scan::{self, Form, Manifest},
    splice::{self, Action, Edit, Outcome},
    split,
    verify::{self, VerifyError},
};

/// More edits would only make an input slow.
const MOST_EDITS: usize = 32;

/// Drives the crate with a manifest.
///
/// # Panics
/// When an invariant is broken: joining the documents does not give the input, bytes change
/// without a decision, an edit that was checked loses a document or misses its image, or an edit of
/// an ordinary image breaks what both parsers could read.
pub fn fuzz(data: &[u8]) {
    check_split(data);
    let text = String::from_utf8_lossy(data);
    let _ = (reference::repository(&text), reference::tag(&text), splice::is_writable(&text));
    let Ok(manifest) = scan::read(data, "belay.dev") else { return };
    check_untouched(&manifest);
    let places = manifest.targets.iter().enumerate().flat_map(|(target, found)| {
        (0..found.containers.len()).map(move |container| (target, container))
    });
    let places: Vec<(usize, usize)> = places.take(MOST_EDITS).collect();
    for image in ["ghcr.io/acme/web:1.4.2", "1.10", "it's \"odd\", {#}: *x"] {
        for action in [Action::Preserve { image }, Action::Strip { image }] {
            let edits: Vec<Edit<'_>> = places
                .iter()
                .map(|&(target, container)| Edit { target, container, action })
                .collect();
            check_edits(&manifest, &edits);
            for edit in edits {
                check_edits(&manifest, &[edit]);
            }
        }
    }
}

fn check_split(data: &[u8]) {
    let documents = split::split(data);
    let mut end = 0;
    for (index, document) in documents.iter().enumerate() {
        assert_eq!(document.range.start, end, "a gap before document {index}");
        assert!(document.range.end > end, "document {index} is empty");
        assert!(document.range.contains(&document.body) || document.body == document.range.end);
        assert!(index == 0 || data[document.range.clone()].starts_with(b"---"));
        end = document.range.end;
    }
    assert_eq!(end, data.len(), "bytes after the last document");
}

fn check_untouched(manifest: &Manifest<'_>) {
    let spliced = splice::apply(manifest, &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(spliced.bytes, manifest.input, "bytes change without a decision");
    verify::check(manifest, &[], &spliced).unwrap_or_else(|error| panic!("{error}"));
}

fn check_edits(manifest: &Manifest<'_>, edits: &[Edit<'_>]) {
    let Ok(spliced) = splice::apply(manifest, edits) else { return };
    match verify::check(manifest, edits, &spliced) {
        Ok(()) => check_verified(manifest, edits, &spliced),
        // What only one of the two parsers reads, or what they read differently, may fail; but
        // where a document was read, its ordinary images can be edited.
        Err(VerifyError::Unreadable { when: "before", .. }) => {}
        Err(error) => assert!(
            !edits.iter().all(|edit| is_ordinary(manifest, *edit)),
            "{error:?}\n{}",
            String::from_utf8_lossy(&spliced.bytes)
        ),
    }
}

/// A scalar on one line with ordinary characters only, in a document that has no others either.
fn is_ordinary(manifest: &Manifest<'_>, edit: Edit<'_>) -> bool {
    let target = &manifest.targets[edit.target];
    let document = &manifest.documents[target.document];
    // Where an anchor or a tag ends is a matter on which parsers differ.
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n') && !b"&*!%@`".contains(byte);
    matches!(edit.action, Action::Preserve { .. })
        && document.body(manifest.input).iter().all(printable)
        && matches!(
            target.containers[edit.container].form(),
            Some(Form::Plain | Form::SingleQuoted | Form::DoubleQuoted)
        )
}

fn check_verified(manifest: &Manifest<'_>, edits: &[Edit<'_>], spliced: &splice::Spliced<'_>) {
    let again = scan::read(&spliced.bytes, "belay.dev");
    let again = again.unwrap_or_else(|error| panic!("the output cannot be read: {error}"));
    assert_eq!(
        split::count(&manifest.documents),
        split::count(&again.documents),
        "a document is lost"
    );
    for (edit, outcome) in edits.iter().zip(&spliced.outcomes) {
        let image = &again.targets[edit.target].containers[edit.container].image;
        match outcome {
            Outcome::Stripped => assert_eq!(*image, None),
            Outcome::Preserved | Outcome::PreservedInstead(_) => {
                assert_eq!(image.as_deref(), Some(edit.action.image()));
            }
            Outcome::Unchanged => {
                assert_eq!(*image, manifest.targets[edit.target].containers[edit.container].image);
            }
        }
    }
}
