//! Every input on file, run through its target: what once broke something stays repaired.

use belay_suite::fuzz::{Files, TARGETS};

#[test]
fn the_corpus_and_all_crashes_of_every_target_are_survived() {
    for (name, run) in TARGETS {
        let files = Files::committed(name);
        for input in files.corpus().unwrap().into_iter().chain(files.crashes().unwrap()) {
            let outcome = std::panic::catch_unwind(|| run(&input.bytes));
            assert!(outcome.is_ok(), "{name} panicked on {}", input.file.display());
        }
    }
}

/// A corpus of inputs that are all refused at the door would fuzz nothing.
#[test]
fn most_of_the_ownership_corpus_is_decoded_and_asked() {
    let corpus = Files::committed("ownership").corpus().unwrap();
    let is_good = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok()?;
        let (query, rest) = text.split_once('\n')?;
        let entries = rest.split_once("\n---\n").map_or(rest, |(entries, _)| entries);
        let ownership = belay_ownership::Ownership::from_json(entries.as_bytes()).ok()?;
        let lookup = ownership.lookup(&query.parse().ok()?, None);
        Some(!lookup.answers.is_empty() && ownership.entries().len() > 0)
    };
    let good = corpus.iter().filter(|input| is_good(&input.bytes) == Some(true)).count();
    assert!(good * 3 >= corpus.len() * 2, "only {good} of {}", corpus.len());
}
