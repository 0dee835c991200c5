//! The variables that Helm takes as defaults of its flags, and those it sets for a plugin.

use std::path::PathBuf;

use super::{Secret, parse_bool};

/// Where Helm keeps its records of releases, from `HELM_DRIVER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// Secrets in the release's namespace, the default.
    Secrets,
    /// ConfigMaps in the release's namespace.
    ConfigMaps,
    /// Files that are read into memory.
    Memory,
    /// A database.
    Sql,
    /// A name at which Helm fails.
    Unknown,
}

impl Driver {
    fn named(name: &str) -> Self {
        match name {
            "" | "secret" | "secrets" => Self::Secrets,
            "configmap" | "configmaps" => Self::ConfigMaps,
            "memory" => Self::Memory,
            "sql" => Self::Sql,
            _ => Self::Unknown,
        }
    }
}

/// What Helm's variables say; the same in both majors. Helm takes an empty one for unset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// `HELM_NAMESPACE`.
    pub namespace: Option<String>,
    /// `HELM_KUBECONTEXT`.
    pub kube_context: Option<String>,
    /// `HELM_KUBEAPISERVER`.
    pub kube_apiserver: Option<String>,
    /// `HELM_KUBECAFILE`, from the folder that Helm runs in, which is ours.
    pub kube_ca_file: Option<PathBuf>,
    /// `HELM_KUBEASUSER`.
    pub kube_as_user: Option<String>,
    /// `HELM_KUBEASGROUPS`, parted at commas; blanks within stay, as in Helm.
    pub kube_as_groups: Vec<String>,
    /// `HELM_KUBETOKEN`.
    pub kube_token: Option<Secret>,
    /// `HELM_KUBETLS_SERVER_NAME`.
    pub kube_tls_server_name: Option<String>,
    /// `HELM_KUBEINSECURE_SKIP_TLS_VERIFY`; what is no boolean counts as `false`.
    pub kube_insecure_skip_tls_verify: bool,
    /// `HELM_DRIVER`.
    pub driver: Driver,
    /// `HELM_PLUGIN_NAME`. Helm 4 sets it for a post-renderer; under Helm 3 it is there when a
    /// plugin ran that Helm.
    pub plugin_name: Option<String>,
    /// `HELM_PLUGIN_DIR`, as [`Environment::plugin_name`].
    pub plugin_dir: Option<PathBuf>,
}

/// Reads the variables, each through `variable`.
pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Environment {
    let said = |name| variable(name).filter(|value| !value.is_empty());
    let groups = variable("HELM_KUBEASGROUPS").unwrap_or_default();
    let groups = groups.trim_matches([',', ' ']);
    Environment {
        namespace: said("HELM_NAMESPACE"),
        kube_context: said("HELM_KUBECONTEXT"),
        kube_apiserver: said("HELM_KUBEAPISERVER"),
        kube_ca_file: said("HELM_KUBECAFILE").map(PathBuf::from),
        kube_as_user: said("HELM_KUBEASUSER"),
        kube_as_groups: match groups {
            "" => Vec::new(),
            groups => groups.split(',').map(str::to_owned).collect(),
        },
        kube_token: said("HELM_KUBETOKEN").map(Secret::from),
        kube_tls_server_name: said("HELM_KUBETLS_SERVER_NAME"),
        kube_insecure_skip_tls_verify: said("HELM_KUBEINSECURE_SKIP_TLS_VERIFY")
            .is_some_and(|value| parse_bool(&value) == Some(true)),
        driver: Driver::named(&variable("HELM_DRIVER").unwrap_or_default()),
        plugin_name: said("HELM_PLUGIN_NAME"),
        plugin_dir: said("HELM_PLUGIN_DIR").map(PathBuf::from),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read_from(variables: &[(&str, &str)]) -> Environment {
        read(&|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_variable_ends_in_its_own_field() {
        let expected = Environment {
            namespace: Some("shop".into()),
            kube_context: Some("prod".into()),
            kube_apiserver: Some("https://prod:6443".into()),
            kube_ca_file: Some("certs/ca.pem".into()),
            kube_as_user: Some("deployer".into()),
            kube_as_groups: vec!["ops".into(), "dev".into()],
            kube_token: Some("hunter2".to_owned().into()),
            kube_tls_server_name: Some("kube.example.com".into()),
            kube_insecure_skip_tls_verify: true,
            driver: Driver::ConfigMaps,
            plugin_name: Some("belay".into()),
            plugin_dir: Some("/plugins/belay".into()),
        };
        let environment = read_from(&[
            ("HELM_NAMESPACE", "shop"),
            ("HELM_KUBECONTEXT", "prod"),
            ("HELM_KUBEAPISERVER", "https://prod:6443"),
            ("HELM_KUBECAFILE", "certs/ca.pem"),
            ("HELM_KUBEASUSER", "deployer"),
            ("HELM_KUBEASGROUPS", "ops,dev"),
            ("HELM_KUBETOKEN", "hunter2"),
            ("HELM_KUBETLS_SERVER_NAME", "kube.example.com"),
            ("HELM_KUBEINSECURE_SKIP_TLS_VERIFY", "true"),
            ("HELM_DRIVER", "configmap"),
            ("HELM_PLUGIN_NAME", "belay"),
            ("HELM_PLUGIN_DIR", "/plugins/belay"),
        ]);
        assert_eq!(environment, expected);
        assert!(!format!("{environment:?}").contains("hunter2"));
    }

    #[test]
    fn an_empty_variable_says_as_little_as_none() {
        let empty = read(&|_| Some(String::new()));
        assert_eq!(empty, read(&|_| None));
        assert_eq!(empty.driver, Driver::Secrets);
    }

    #[rstest]
    #[case("a", &["a"])]
    #[case("a,b", &["a", "b"])]
    #[case(", a,, b ,", &["a", "", " b"])]
    #[case(" , ", &[])]
    fn groups_are_parted_at_commas_as_in_helm(#[case] variable: &str, #[case] groups: &[&str]) {
        assert_eq!(read_from(&[("HELM_KUBEASGROUPS", variable)]).kube_as_groups, groups);
    }

    #[rstest]
    #[case("1", true)]
    #[case("T", true)]
    #[case("True", true)]
    #[case("tRUE", false)]
    #[case("yes", false)]
    #[case("0", false)]
    fn what_is_no_boolean_is_false(#[case] variable: &str, #[case] expected: bool) {
        let environment = read_from(&[("HELM_KUBEINSECURE_SKIP_TLS_VERIFY", variable)]);
        assert_eq!(environment.kube_insecure_skip_tls_verify, expected);
    }

    #[rstest]
    #[case("secret", Driver::Secrets)]
    #[case("secrets", Driver::Secrets)]
    #[case("configmaps", Driver::ConfigMaps)]
    #[case("memory", Driver::Memory)]
    #[case("sql", Driver::Sql)]
    #[case("Secret", Driver::Unknown)]
    fn drivers_have_helms_names(#[case] variable: &str, #[case] driver: Driver) {
        assert_eq!(read_from(&[("HELM_DRIVER", variable)]).driver, driver);
    }
}
