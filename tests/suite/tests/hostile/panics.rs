//! Whether anything but a test has panicked in this process.

use std::{
    panic,
    sync::{Mutex, Once, PoisonError},
};

use anyhow::{Result, ensure};

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Takes note of panics from now on. A pass of the operator that panics is caught by it.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let file = info.location().map(panic::Location::file).unwrap_or_default();
            if is_of_no_test(file) {
                SEEN.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
            }
            before(info);
        }));
    });
}

/// Nothing has.
pub(crate) fn none() -> Result<()> {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(seen.is_empty(), "{}", seen.join("\n"));
    Ok(())
}

fn is_of_no_test(file: &str) -> bool {
    !file.starts_with("tests/") && !file.contains("/tests/suite/")
}

#[test]
fn a_panic_of_the_operator_is_told_from_one_of_a_test() {
    assert!(is_of_no_test("operator/engine/src/plan/mod.rs"));
    assert!(is_of_no_test("/rustc/0/library/core/src/slice/index.rs"));
    assert!(!is_of_no_test(file!()));
}
