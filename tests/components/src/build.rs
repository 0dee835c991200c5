//! Running Go: download, verify, build, and put the result in its place in one rename.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Instant,
};

use serde_json::Value;

use crate::{
    Cache, Component, ComponentError,
    cache::{create_dir, digest, files_with_extension},
    pin::{Pin, required_version},
    recipe::{BUILD_FLAGS, GO_TOOLCHAIN, Recipe},
};

/// Returns the folder of a component's binaries, having built them where it was missing.
pub(crate) fn ensure(
    go: &Path,
    pins: &Path,
    cache: &Cache,
    component: Component,
) -> Result<PathBuf, ComponentError> {
    let pin = Pin::read(pins, component)?;
    let place = cache.entry(component.name(), &key(component, &pin));
    if place.is_dir() {
        return Ok(place);
    }
    let _lock = cache.lock()?;
    if place.is_dir() {
        return Ok(place);
    }
    cache.require_room()?;
    let scratch = Scratch::beside(&place)?;
    Build { go, cache, component, pin: &pin }.into_folder(&scratch.0)?;
    fs::rename(&scratch.0, &place).map_err(ComponentError::cache("move into place", &place))?;
    Ok(place)
}

/// The cache key: all that decides the bytes of the binaries.
fn key(component: Component, pin: &Pin) -> String {
    // client-go's version is decided by the module's own go.mod, which the checksum in go.sum covers.
    let stamps = component.stamps(&pin.version, None);
    let recipe = format!("{stamps:?} {:?} {:?}", component.recipe(), component.binaries());
    let flags = BUILD_FLAGS.join(" ");
    let parts = [pin.go_mod.as_str(), &pin.go_sum, GO_TOOLCHAIN, &flags, &recipe];
    digest(parts.map(str::as_bytes))
}

/// A folder that is filled and then renamed; removed when that does not come to pass.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(place: &Path) -> Result<Self, ComponentError> {
        let mut name = place.as_os_str().to_owned();
        name.push(".partial");
        let folder = PathBuf::from(name);
        // A killed build leaves one behind; the lock is ours now.
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ComponentError::cache("remove", &folder)(error));
            }
            _ => {}
        }
        create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove.
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Build<'a> {
    go: &'a Path,
    cache: &'a Cache,
    component: Component,
    pin: &'a Pin,
}

impl Build<'_> {
    fn into_folder(self, folder: &Path) -> Result<(), ComponentError> {
        let module = self.download()?;
        let work_dir = match self.component.recipe() {
            Recipe::InModule => &module,
            Recipe::InPin => &self.pin.folder,
        };
        let client_go = fs::read_to_string(module.join("go.mod"))
            .ok()
            .and_then(|go_mod| required_version(&go_mod, "k8s.io/client-go"));
        let link = self
            .component
            .stamps(&self.pin.version, client_go.as_deref())
            .iter()
            .fold("-s -w".to_owned(), |flags, (name, value)| format!("{flags} -X {name}={value}"));
        let bin = folder.join("bin");
        create_dir(&bin)?;
        for binary in self.component.binaries() {
            let (name, version) = (binary.file_name(), &self.pin.version);
            eprintln!("components: building {name} {version} …");
            let start = Instant::now();
            let mut command = self.go(work_dir);
            command
                .arg("build")
                .args(BUILD_FLAGS)
                .arg(format!("-ldflags={link}"))
                .arg("-o")
                .arg(bin.join(name))
                .arg(binary.package());
            let output = self.run(command, name)?;
            if !output.status.success() {
                return Err(self.failed(name, &output));
            }
            eprintln!("components: built {name} {version} in {} s", start.elapsed().as_secs());
        }
        if let Some(crds) = self.component.crds() {
            let target = folder.join("crds");
            create_dir(&target)?;
            for file in files_with_extension(&module.join(crds), "yaml")? {
                let Some(name) = file.file_name() else {
                    continue;
                };
                // Read and written, not copied: files of the module cache are read-only.
                let text = fs::read(&file).map_err(ComponentError::cache("read", &file))?;
                let copy = target.join(name);
                fs::write(&copy, text).map_err(ComponentError::cache("write", &copy))?;
            }
        }
        Ok(())
    }

    /// Downloads the module and compares its checksum with the pinned one.
    fn download(&self) -> Result<PathBuf, ComponentError> {
        let module = format!("{}@{}", self.component.module(), self.pin.version);
        let mut command = self.go(&self.pin.folder);
        command.args(["mod", "download", "-json", &module]);
        let output = self.run(command, &module)?;
        let failed = |why: String| ComponentError::Download { module: module.clone(), why };
        let stderr = String::from_utf8_lossy(&output.stderr);
        let answer: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| failed(tail(&format!("{}\n{stderr}", output.status))))?;
        if let Some(error) = answer["Error"].as_str() {
            return Err(failed(error.to_owned()));
        }
        let found = answer["Sum"].as_str().unwrap_or_default();
        if found != self.pin.checksum {
            return Err(failed(format!("checksum {found}, pinned {}", self.pin.checksum)));
        }
        answer["Dir"]
            .as_str()
            .map(PathBuf::from)
            .ok_or_else(|| failed("go did not say where it is".to_owned()))
    }

    fn go(&self, work_dir: &Path) -> Command {
        let mut command = Command::new(self.go);
        command
            .current_dir(work_dir)
            .env("GOTOOLCHAIN", GO_TOOLCHAIN)
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "")
            .env("GOWORK", "off")
            .env("GOOS", "")
            .env("GOARCH", "")
            .env("GOCACHE", self.cache.go_build())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, mut command: Command, wanted: &str) -> Result<Output, ComponentError> {
        command.output().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ComponentError::ToolMissing {
                tool: "go",
                wanted: wanted.to_owned(),
                from: "https://go.dev/dl, 1.21 or newer",
            },
            _ => ComponentError::Start {
                tool: self.go.to_owned(),
                wanted: wanted.to_owned(),
                source,
            },
        })
    }

    fn failed(&self, name: &str, output: &Output) -> ComponentError {
        let text = String::from_utf8_lossy(&output.stderr);
        if text.contains("no space left on device") {
            return ComponentError::CacheFull {
                folder: self.cache.root().to_owned(),
                why: format!("while building {name}"),
            };
        }
        ComponentError::Build {
            wanted: name.to_owned(),
            status: output.status.to_string(),
            tail: tail(&text),
        }
    }
}

/// The last lines of what a tool printed.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("go: downloading")).collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go_that(ends: &str) -> PathBuf {
        crate::pins().join("testdata").join(format!("go-that-{ends}"))
    }

    fn build(go: &Path, cache: &Path) -> Result<PathBuf, ComponentError> {
        ensure(go, crate::pins(), &Cache::at(cache), Component::Registry)
    }

    #[test]
    fn a_missing_go_gives_one_sentence_with_two_ways_out() {
        let dir = tempfile::tempdir().unwrap();
        let refused = build(&dir.path().join("no-go"), dir.path()).unwrap_err().to_string();
        assert_eq!(refused.lines().count(), 1, "{refused}");
        assert!(
            refused.contains("install go") && refused.contains("BELAY_COMPONENTS"),
            "{refused}"
        );
    }

    #[test]
    fn a_disk_that_fills_up_during_the_build_is_told_apart_from_a_broken_build() {
        let dir = tempfile::tempdir().unwrap();
        let go = go_that("fills-the-disk");
        let error = build(&go, &dir.path().join("cache")).unwrap_err();
        assert!(matches!(error, ComponentError::CacheFull { .. }), "{error}");
        let go = go_that("fails");
        let error = build(&go, &dir.path().join("cache")).unwrap_err().to_string();
        assert!(
            error.contains("build of registry failed") && error.contains("syntax error"),
            "{error}"
        );
    }

    #[test]
    fn a_failed_build_leaves_nothing_that_looks_complete() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        build(&go_that("fails"), &cache).unwrap_err();
        let left = fs::read_dir(cache.join("components/registry")).unwrap().count();
        assert_eq!(left, 0);
    }

    #[test]
    fn what_is_built_is_not_built_again() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        let built = build(&go_that("works"), &cache).unwrap();
        assert_eq!(build(&dir.path().join("no-go"), &cache).unwrap(), built);
    }

    #[test]
    fn another_checksum_than_the_pinned_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        let refused = build(&go_that("wrong-checksum"), &cache).unwrap_err().to_string();
        assert!(refused.contains("checksum h1:other=, pinned h1:"), "{refused}");
    }

    #[test]
    fn the_key_changes_with_every_part() {
        let pin = Pin::read(crate::pins(), Component::Kwok).unwrap();
        let first = key(Component::Kwok, &pin);
        let mut other = pin.clone();
        other.go_sum.push('\n');
        assert_ne!(first, key(Component::Kwok, &other));
        assert_ne!(first, key(Component::Registry, &pin));
    }
}
