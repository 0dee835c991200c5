//! Builds the real servers and tools that tests run against, once per machine.
//!
//! Each folder beside this crate's `src` pins one Go module by version and checksum. The binaries
//! land in `$BELAY_CACHE` (default `$XDG_CACHE_HOME/belay`, else `~/.cache/belay`), in one folder
//! per SHA-256 of `go.mod`, `go.sum`, toolchain and flags, so that an unchanged pin is never built
//! twice and a changed one never reuses a stale binary.
//!
//! * `BELAY_COMPONENTS=DIR` takes ready binaries from `DIR` and builds nothing.
//! * `KUBEBUILDER_ASSETS=DIR` does so for `etcd`, `kube-apiserver` and `kubectl`.
//!
//! Nothing here looks for a server or a tool on `PATH`, but for `go` and `npm` themselves.

mod build;
mod cache;
mod error;
mod npm;
mod pin;
mod recipe;

pub use crate::{
    cache::Cache,
    error::ComponentError,
    recipe::{Binary, Component, GO_TOOLCHAIN},
};

use std::{
    env,
    path::{Path, PathBuf},
};

/// Where binaries come from on this machine.
///
/// Cheap to make; binaries are looked up, and built where missing, only when asked for.
#[derive(Debug, Clone)]
pub struct Components {
    pins: PathBuf,
    cache: Cache,
    ready: Option<PathBuf>,
    kubebuilder: Option<PathBuf>,
    go: PathBuf,
    npm: PathBuf,
}

impl Components {
    /// Reads `BELAY_CACHE`, `BELAY_COMPONENTS` and `KUBEBUILDER_ASSETS`.
    ///
    /// # Errors
    /// [`ComponentError::NoCacheFolder`] when neither `BELAY_CACHE`, `XDG_CACHE_HOME` nor `HOME` is set.
    pub fn from_env() -> Result<Self, ComponentError> {
        let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Ok(Self {
            pins: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
            cache: Cache::from_env()?,
            ready: folder("BELAY_COMPONENTS"),
            kubebuilder: folder("KUBEBUILDER_ASSETS"),
            go: PathBuf::from("go"),
            npm: PathBuf::from("npm"),
        })
    }

    /// Ready binaries from one folder, whatever the environment says.
    ///
    /// # Errors
    /// As [`Components::from_env`].
    pub fn ready_in(folder: impl Into<PathBuf>) -> Result<Self, ComponentError> {
        Ok(Self { ready: Some(folder.into()), ..Self::from_env()? })
    }

    /// The folder everything is kept in.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The path of one binary, built first where it is missing.
    ///
    /// # Errors
    /// Every [`ComponentError`] says which binary, why, and what to do.
    pub fn binary(&self, binary: Binary) -> Result<PathBuf, ComponentError> {
        if let Some(path) = self.given(binary)? {
            return Ok(path);
        }
        Ok(self.built(binary.component())?.join("bin").join(binary.file_name()))
    }

    /// Builds every component of `wanted` that is neither given nor built yet, one after another,
    /// with one line on stderr for each binary.
    ///
    /// # Errors
    /// The first component that could not be had.
    pub fn ensure(&self, wanted: &[Component]) -> Result<(), ComponentError> {
        for component in wanted {
            for binary in component.binaries() {
                self.binary(*binary)?;
            }
        }
        if Component::ALL.iter().all(|component| wanted.contains(component)) {
            // Nothing is left to build: 8 GiB that would serve no one until a pin changes.
            self.cache.forget_go_build();
        }
        Ok(())
    }

    /// The version that a component's pin names, for example `v1.37.2`.
    ///
    /// # Errors
    /// [`ComponentError::Pin`] when the pin file does not name the module.
    pub fn version(&self, component: Component) -> Result<String, ComponentError> {
        Ok(pin::Pin::read(&self.pins, component)?.version)
    }

    /// The CRD files that KEDA's own module ships, sorted by name.
    ///
    /// With `BELAY_COMPONENTS` they are expected in `DIR/keda-crds`.
    ///
    /// # Errors
    /// As [`Components::binary`], or when the folder holds none.
    pub fn keda_crds(&self) -> Result<Vec<PathBuf>, ComponentError> {
        let folder = match &self.ready {
            Some(ready) => ready.join("keda-crds"),
            None => self.built(Component::Keda)?.join("crds"),
        };
        let mut files = cache::files_with_extension(&folder, "yaml")?;
        files.sort();
        if files.is_empty() {
            return Err(ComponentError::NotGiven { what: "the CRDs of KEDA".into(), folder });
        }
        Ok(files)
    }

    /// GitHub's published OpenAPI description, from the npm package pinned in `github-openapi`.
    ///
    /// # Errors
    /// When npm is missing, the lock file does not fit, or the cache cannot be written.
    pub fn github_description(&self) -> Result<PathBuf, ComponentError> {
        let file = Path::new("@octokit/openapi/generated/api.github.com.json");
        npm::file(&self.npm, &self.pins.join("github-openapi"), &self.cache, file)
    }

    fn given(&self, binary: Binary) -> Result<Option<PathBuf>, ComponentError> {
        let folders = [
            self.ready.as_deref(),
            self.kubebuilder.as_deref().filter(|_| binary.in_kubebuilder_assets()),
        ];
        let Some(folder) = folders.into_iter().flatten().next() else {
            return Ok(None);
        };
        let path = folder.join(binary.file_name());
        if path.is_file() {
            Ok(Some(path))
        } else if self.ready.is_none() && binary == Binary::Kubectl {
            // setup-envtest ships kubectl, other distributions of the assets need not.
            Ok(None)
        } else {
            Err(ComponentError::NotGiven {
                what: binary.file_name().into(),
                folder: folder.to_owned(),
            })
        }
    }

    fn built(&self, component: Component) -> Result<PathBuf, ComponentError> {
        build::ensure(&self.go, &self.pins, &self.cache, component)
    }
}

/// Where the pin folders are in this source tree.
pub fn pins() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn components(ready: Option<&Path>, kubebuilder: Option<&Path>) -> Components {
        Components {
            pins: pins().to_owned(),
            cache: Cache::at("/nonexistent"),
            ready: ready.map(Path::to_owned),
            kubebuilder: kubebuilder.map(Path::to_owned),
            // Whatever would have to be built fails with this name in its error.
            go: PathBuf::from("no-such-go"),
            npm: PathBuf::from("no-such-npm"),
        }
    }

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    #[test]
    fn ready_binaries_are_taken_and_nothing_is_built() {
        let folder = folder_with(&["etcd", "helm3"]);
        let own = components(Some(folder.path()), None);
        assert_eq!(own.binary(Binary::Etcd).unwrap(), folder.path().join("etcd"));
        assert_eq!(own.binary(Binary::Helm3).unwrap(), folder.path().join("helm3"));
        let missing = own.binary(Binary::Kwok).unwrap_err();
        assert!(matches!(missing, ComponentError::NotGiven { .. }), "{missing}");
    }

    #[test]
    fn kubebuilders_assets_cover_etcd_the_api_server_and_kubectl_if_it_is_there() {
        let assets = folder_with(&["etcd", "kube-apiserver"]);
        let own = components(None, Some(assets.path()));
        for binary in [Binary::Etcd, Binary::KubeApiserver] {
            assert_eq!(own.binary(binary).unwrap(), assets.path().join(binary.file_name()));
        }
        // These would be built, which cannot come to pass here.
        for binary in [Binary::Kubectl, Binary::KubeControllerManager, Binary::Helm4] {
            let error = own.binary(binary).unwrap_err();
            assert!(!matches!(error, ComponentError::NotGiven { .. }), "{binary:?}: {error}");
        }
    }

    #[test]
    fn assets_that_lack_the_api_server_are_an_error_and_not_a_build() {
        let assets = folder_with(&["etcd"]);
        let error =
            components(None, Some(assets.path())).binary(Binary::KubeApiserver).unwrap_err();
        assert!(matches!(error, ComponentError::NotGiven { .. }), "{error}");
    }

    #[test]
    fn a_folder_of_ready_binaries_goes_before_kubebuilders_assets() {
        let (ready, assets) = (folder_with(&["etcd"]), folder_with(&["etcd"]));
        let own = components(Some(ready.path()), Some(assets.path()));
        assert_eq!(own.binary(Binary::Etcd).unwrap(), ready.path().join("etcd"));
    }

    #[test]
    fn the_crds_of_keda_are_sorted_and_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let own = components(Some(folder.path()), None);
        own.keda_crds().unwrap_err();
        let crds = folder.path().join("keda-crds");
        fs::create_dir(&crds).unwrap();
        assert!(matches!(own.keda_crds(), Err(ComponentError::NotGiven { .. })));
        for name in ["b.yaml", "a.yaml", "README.md"] {
            fs::write(crds.join(name), "").unwrap();
        }
        assert_eq!(own.keda_crds().unwrap(), [crds.join("a.yaml"), crds.join("b.yaml")]);
    }
}
