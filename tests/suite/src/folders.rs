//! Copies of folders, for tests that change them.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

/// Copies a folder of text files, each as `change` makes it.
///
/// # Errors
/// What could not be read or written.
pub fn copy(from: &Path, to: &Path, change: &dyn Fn(String) -> String) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("read {}", from.display()))? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to, change)?;
        } else {
            let text =
                fs::read_to_string(&from).with_context(|| format!("read {}", from.display()))?;
            fs::write(&to, change(text)).with_context(|| format!("write {}", to.display()))?;
        }
    }
    Ok(())
}
