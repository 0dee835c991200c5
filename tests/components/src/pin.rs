//! Reading a pin: the module's version and its checksum.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Component, ComponentError};

/// One pin folder.
#[derive(Debug, Clone)]
pub(crate) struct Pin {
    pub(crate) folder: PathBuf,
    pub(crate) version: String,
    pub(crate) checksum: String,
    pub(crate) go_mod: String,
    pub(crate) go_sum: String,
}

impl Pin {
    pub(crate) fn read(pins: &Path, component: Component) -> Result<Self, ComponentError> {
        let folder = pins.join(component.name());
        let read = |name: &str| {
            let file = folder.join(name);
            fs::read_to_string(&file)
                .map_err(|error| ComponentError::Pin { file, why: error.to_string() })
        };
        let (go_mod, go_sum) = (read("go.mod")?, read("go.sum")?);
        let module = component.module();
        let version = required_version(&go_mod, module).ok_or_else(|| ComponentError::Pin {
            file: folder.join("go.mod"),
            why: format!("does not require {module}"),
        })?;
        let checksum = checksum(&go_sum, module, &version).ok_or_else(|| ComponentError::Pin {
            file: folder.join("go.sum"),
            why: format!("has no checksum of {module} {version}"),
        })?;
        Ok(Self { folder, version, checksum, go_mod, go_sum })
    }
}

/// The version of `module` in the require lines of a `go.mod`.
pub(crate) fn required_version(go_mod: &str, module: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let mut first = words.next()?;
        if first == "require" {
            first = words.next()?;
        }
        (first == module)
            .then(|| words.next())
            .flatten()
            .filter(|version| version.starts_with('v'))
            .map(str::to_owned)
    })
}

/// The checksum of the module's zip (not of its `go.mod`) in a `go.sum`.
fn checksum(go_sum: &str, module: &str, version: &str) -> Option<String> {
    go_sum.lines().find_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [name, found, sum] if name == module && found == version => Some(sum.to_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_of_this_tree_names_its_module_and_its_checksum() {
        for component in Component::ALL {
            let pin = Pin::read(crate::pins(), component).unwrap();
            assert!(pin.checksum.starts_with("h1:"), "{component:?}: {}", pin.checksum);
        }
    }

    #[test]
    fn require_lines_are_read_alone_and_in_blocks() {
        assert_eq!(required_version("require a.b/c v1.2.3\n", "a.b/c"), Some("v1.2.3".into()));
        let block =
            "require (\n\ta.b/c/d v9.9.9\n\ta.b/c v1.2.3 // indirect\n)\nreplace a.b/c => x v2\n";
        assert_eq!(required_version(block, "a.b/c"), Some("v1.2.3".into()));
        assert_eq!(required_version("tool a.b/c\nreplace a.b/c => ../c\n", "a.b/c"), None);
    }

    #[test]
    fn a_pin_without_checksum_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("kwok");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("go.mod"), "module pin\nrequire sigs.k8s.io/kwok v0.8.0\n").unwrap();
        fs::write(folder.join("go.sum"), "sigs.k8s.io/kwok v0.8.0/go.mod h1:x=\n").unwrap();
        let refused = Pin::read(dir.path(), Component::Kwok).unwrap_err().to_string();
        assert!(refused.contains("has no checksum of sigs.k8s.io/kwok v0.8.0"), "{refused}");
    }
}
