//! npm packages that tests read, such as GitHub's published OpenAPI description.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    Cache, ComponentError,
    build::tail,
    cache::{create_dir, digest},
};

/// `npm ci` of the locked package in `pin`, once per machine; returns the path of one file of it.
///
/// Nothing else is kept: the package that GitHub's description is in takes 385 MB.
pub(crate) fn file(
    npm: &Path,
    pin: &Path,
    cache: &Cache,
    wanted: &Path,
) -> Result<PathBuf, ComponentError> {
    let name = pin.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut files = Vec::new();
    for file in ["package.json", "package-lock.json"] {
        let path = pin.join(file);
        let text = fs::read(&path)
            .map_err(|error| ComponentError::Pin { file: path, why: error.to_string() })?;
        files.push((file, text));
    }
    let path = wanted.as_os_str().as_encoded_bytes();
    let key = digest(files.iter().map(|(_, text)| text.as_slice()).chain([path]));
    let place = cache.entry(&name, &key);
    if place.is_file() {
        return Ok(place);
    }
    let _lock = cache.lock()?;
    if place.is_file() {
        return Ok(place);
    }
    let scratch = place.with_extension("partial");
    create_dir(&scratch)?;
    for (file, text) in files {
        let path = scratch.join(file);
        fs::write(&path, text).map_err(ComponentError::cache("write", &path))?;
    }
    eprintln!("components: installing {name} …");
    let output = Command::new(npm)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&scratch)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ComponentError::ToolMissing {
                tool: "npm",
                wanted: name.clone(),
                from: "https://nodejs.org, 20 or newer",
            },
            _ => ComponentError::Start { tool: npm.to_owned(), wanted: name.clone(), source },
        })?;
    if !output.status.success() {
        let _ = fs::remove_dir_all(&scratch);
        return Err(ComponentError::Build {
            wanted: name,
            status: output.status.to_string(),
            tail: tail(&String::from_utf8_lossy(&output.stderr)),
        });
    }
    let found = scratch.join("node_modules").join(wanted);
    let moved = fs::rename(&found, &place).map_err(ComponentError::cache("keep", &found));
    // What is left only takes room; the next install removes it.
    let _ = fs::remove_dir_all(&scratch);
    moved?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_npm_gives_one_sentence() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["package.json", "package-lock.json"] {
            fs::write(dir.path().join(file), "{}").unwrap();
        }
        let cache = Cache::at(dir.path().join("cache"));
        let npm = dir.path().join("no-npm");
        let error = file(&npm, dir.path(), &cache, Path::new("x.json")).unwrap_err();
        let refused = error.to_string();
        assert!(
            refused.starts_with("npm is not on PATH") && refused.contains("nodejs.org"),
            "{refused}"
        );
    }
}
