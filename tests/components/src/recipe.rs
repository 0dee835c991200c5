//! What is built, from which package, with which version stamp.
//!
//! Two recipes cover all modules. A module that is a complete main module in Go's module cache is
//! built *there*, so that its own `replace` lines and its own `go.sum` (inside the hash-checked zip)
//! hold. etcd's server and Kubernetes replace sibling modules by folders that their zips do not
//! carry; they are built from the pin folder, whose `go.mod` lists every dependency.

/// The one Go toolchain for all components; another one would invalidate every cached package.
pub const GO_TOOLCHAIN: &str = "go1.27.3";

/// The one set of flags, without the version stamps.
pub(crate) const BUILD_FLAGS: [&str; 2] = ["-trimpath", "-buildvcs=false"];

/// A pinned module: one folder beside this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Component {
    /// etcd's server.
    Etcd,
    /// kube-apiserver, kube-controller-manager, kube-scheduler and kubectl.
    Kubernetes,
    /// Nodes and pods by script.
    Kwok,
    /// Helm 3.
    Helm3,
    /// Helm 4.
    Helm4,
    /// The small registry of go-containerregistry.
    Registry,
    /// The KEDA operator, unmodified.
    Keda,
    /// yq, which the post-renderer is measured beside.
    Yq,
    /// krew, which installs the plugin, and the validator of its manifests.
    Krew,
}

/// A binary of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `etcd`
    Etcd,
    /// `kube-apiserver`
    KubeApiserver,
    /// `kube-controller-manager`
    KubeControllerManager,
    /// `kube-scheduler`
    KubeScheduler,
    /// `kubectl`
    Kubectl,
    /// `kwok`
    Kwok,
    /// Helm 3, named `helm3`
    Helm3,
    /// Helm 4, named `helm4`
    Helm4,
    /// The registry, named `registry`
    Registry,
    /// The KEDA operator, named `keda-operator`
    KedaOperator,
    /// `yq`
    Yq,
    /// `krew`
    Krew,
    /// `validate-krew-manifest`
    ValidateKrewManifest,
}

/// Where the build runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recipe {
    InModule,
    InPin,
}

impl Component {
    /// In the order they are built: what most tests need comes first.
    pub const ALL: [Self; 9] = [
        Self::Etcd,
        Self::Registry,
        Self::Kubernetes,
        Self::Kwok,
        Self::Helm3,
        Self::Helm4,
        Self::Keda,
        Self::Yq,
        Self::Krew,
    ];

    /// The folder's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Kubernetes => "kubernetes",
            Self::Kwok => "kwok",
            Self::Helm3 => "helm3",
            Self::Helm4 => "helm4",
            Self::Registry => "registry",
            Self::Keda => "keda",
            Self::Yq => "yq",
            Self::Krew => "krew",
        }
    }

    /// The Go module that the pin names.
    pub fn module(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::Kubernetes => "k8s.io/kubernetes",
            Self::Kwok => "sigs.k8s.io/kwok",
            Self::Helm3 => "helm.sh/helm/v3",
            Self::Helm4 => "helm.sh/helm/v4",
            Self::Registry => "github.com/google/go-containerregistry",
            Self::Keda => "github.com/kedacore/keda/v2",
            Self::Yq => "github.com/mikefarah/yq/v4",
            Self::Krew => "sigs.k8s.io/krew",
        }
    }

    /// Its binaries, in build order.
    pub fn binaries(self) -> &'static [Binary] {
        match self {
            Self::Etcd => &[Binary::Etcd],
            Self::Kubernetes => &[
                Binary::KubeApiserver,
                Binary::KubeControllerManager,
                Binary::Kubectl,
                Binary::KubeScheduler,
            ],
            Self::Kwok => &[Binary::Kwok],
            Self::Helm3 => &[Binary::Helm3],
            Self::Helm4 => &[Binary::Helm4],
            Self::Registry => &[Binary::Registry],
            Self::Keda => &[Binary::KedaOperator],
            Self::Yq => &[Binary::Yq],
            Self::Krew => &[Binary::Krew, Binary::ValidateKrewManifest],
        }
    }

    pub(crate) fn recipe(self) -> Recipe {
        match self {
            Self::Etcd | Self::Kubernetes => Recipe::InPin,
            Self::Kwok
            | Self::Helm3
            | Self::Helm4
            | Self::Registry
            | Self::Keda
            | Self::Yq
            | Self::Krew => Recipe::InModule,
        }
    }

    /// Folder of CRDs inside the module, for those that bring some.
    pub(crate) fn crds(self) -> Option<&'static str> {
        (self == Self::Keda).then_some("config/crd/bases")
    }

    /// The variables that carry versions, without which a server built from its module says
    /// `v0.0.0-master` and Helm believes in Kubernetes 1.20.
    ///
    /// `version` is the pinned one; `client_go` that of the module's own `k8s.io/client-go`, which
    /// decides Helm's default Kubernetes version in its own release builds too.
    pub(crate) fn stamps(self, version: &str, client_go: Option<&str>) -> Vec<(String, String)> {
        let own = |variable: &str, value: &str| (variable.to_owned(), value.to_owned());
        match self {
            Self::Kubernetes => {
                let (major, minor) = major_minor(version);
                let variable = |name| format!("k8s.io/component-base/version.{name}");
                vec![
                    (variable("gitVersion"), version.to_owned()),
                    (variable("gitMajor"), major),
                    (variable("gitMinor"), minor),
                    // The module zip does not carry the commit.
                    (variable("gitCommit"), "unknown".to_owned()),
                    (variable("gitTreeState"), "archive".to_owned()),
                ]
            }
            Self::Helm3 => {
                let mut stamps = vec![own("helm.sh/helm/v3/internal/version.version", version)];
                if let Some(client_go) = client_go {
                    let (_, minor) = major_minor(client_go);
                    for package in ["pkg/chartutil", "pkg/lint/rules"] {
                        let variable = |name| format!("helm.sh/helm/v3/{package}.{name}");
                        stamps.push((variable("k8sVersionMajor"), "1".to_owned()));
                        stamps.push((variable("k8sVersionMinor"), minor.clone()));
                    }
                }
                stamps
            }
            // Helm 4 derives the Kubernetes version from its build information.
            Self::Helm4 => vec![own("helm.sh/helm/v4/internal/version.version", version)],
            Self::Keda => vec![own("github.com/kedacore/keda/v2/version.Version", version)],
            Self::Krew => vec![own("sigs.k8s.io/krew/internal/version.gitTag", version)],
            // Constants in their sources: nothing to stamp.
            Self::Etcd | Self::Kwok | Self::Registry | Self::Yq => Vec::new(),
        }
    }
}

impl Binary {
    /// Every binary.
    pub fn all() -> impl Iterator<Item = Self> {
        Component::ALL.into_iter().flat_map(|component| component.binaries().iter().copied())
    }

    /// Its file name.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::Helm3 => "helm3",
            Self::Helm4 => "helm4",
            Self::Registry => "registry",
            Self::KedaOperator => "keda-operator",
            Self::Yq => "yq",
            Self::Krew => "krew",
            Self::ValidateKrewManifest => "validate-krew-manifest",
        }
    }

    /// The component it belongs to.
    pub fn component(self) -> Component {
        match self {
            Self::Etcd => Component::Etcd,
            Self::KubeApiserver
            | Self::KubeControllerManager
            | Self::KubeScheduler
            | Self::Kubectl => Component::Kubernetes,
            Self::Kwok => Component::Kwok,
            Self::Helm3 => Component::Helm3,
            Self::Helm4 => Component::Helm4,
            Self::Registry => Component::Registry,
            Self::KedaOperator => Component::Keda,
            Self::Yq => Component::Yq,
            Self::Krew | Self::ValidateKrewManifest => Component::Krew,
        }
    }

    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::KubeScheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kwok => "./cmd/kwok",
            Self::Helm3 | Self::Helm4 => "./cmd/helm",
            Self::Registry => "./cmd/registry",
            Self::KedaOperator => "./cmd/operator",
            Self::Yq => ".",
            Self::Krew => "./cmd/krew",
            Self::ValidateKrewManifest => "./cmd/validate-krew-manifest",
        }
    }

    /// Whether the ecosystem's `KUBEBUILDER_ASSETS` convention covers it.
    pub(crate) fn in_kubebuilder_assets(self) -> bool {
        matches!(self, Self::Etcd | Self::KubeApiserver | Self::Kubectl)
    }
}

/// `v1.37.2` → (`1`, `37`). What has another shape yields empty parts, which a version test shows.
fn major_minor(version: &str) -> (String, String) {
    let mut parts = version.trim_start_matches('v').split('.').map(str::to_owned);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_binary_is_listed_by_its_component_once() {
        let all: Vec<_> = Binary::all().collect();
        assert_eq!(all.len(), all.iter().collect::<HashSet<_>>().len());
        for binary in all {
            assert!(binary.component().binaries().contains(&binary), "{binary:?}");
        }
    }

    #[test]
    fn stamps_carry_the_pinned_version() {
        let stamps = Component::Kubernetes.stamps("v1.37.2", None);
        let find = |end: &str| {
            stamps.iter().find(|(name, _)| name.ends_with(end)).map(|(_, value)| value.as_str())
        };
        assert_eq!(find("gitVersion"), Some("v1.37.2"));
        assert_eq!(find("gitMajor"), Some("1"));
        assert_eq!(find("gitMinor"), Some("37"));
        let helm = Component::Helm3.stamps("v3.22.0", Some("v0.37.0"));
        assert!(
            helm.contains(&("helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor".into(), "37".into()))
        );
    }
}
