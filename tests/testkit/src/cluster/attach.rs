//! A control plane that somebody else runs, as a kubeconfig file leads to it.

use std::{fs, path::Path, sync::Arc};

use belay_components::Components;
use kube::config::{Cluster as ClusterEntry, Kubeconfig};

use super::{
    Cluster,
    identity::{Access, Credential, from_base64},
    install_tls_provider,
    pki::Authority,
    program_name,
};
use crate::{TestbedError, process::Run};

/// Where the current context of a kubeconfig file leads.
#[derive(Debug, Clone)]
pub struct Place {
    /// The name of the context.
    pub context: String,
    /// How to speak to its API server, with everything of the file that counts.
    pub access: Access,
}

impl Place {
    /// Reads a kubeconfig file, and the files of its authority.
    ///
    /// # Errors
    /// [`TestbedError::Client`]: what the file lacks, or says and is not supported here.
    pub fn read(path: &Path) -> Result<Self, TestbedError> {
        Self::parse(path).map_err(|source| TestbedError::Client {
            identity: format!("kubeconfig {}", path.display()),
            source,
        })
    }

    fn parse(path: &Path) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut file = Kubeconfig::read_from(path)?;
        let name = file.current_context.take().ok_or("it has no current context")?;
        let mut contexts = file.contexts.into_iter();
        let context = contexts.find(|one| one.name == name).and_then(|one| one.context);
        let context = context.ok_or_else(|| format!("its context {name} is not there"))?;
        let mut clusters = file.clusters.into_iter();
        let cluster = clusters.find(|one| one.name == context.cluster).and_then(|one| one.cluster);
        let cluster = cluster.ok_or_else(|| format!("it has no cluster {}", context.cluster))?;
        let user = context.user.unwrap_or_default();
        let mut users = file.auth_infos.into_iter();
        let found = users.find(|one| one.name == user).and_then(|one| one.auth_info);
        let found = found.ok_or_else(|| format!("it has no user {user:?}"))?;
        let access = Access {
            authority: authority(&cluster)?,
            server: cluster.server.ok_or_else(|| format!("{} has no server", context.cluster))?,
            credential: Credential::Entry(serde_json::to_value(found)?),
            act_as: None,
            namespace: context.namespace.unwrap_or_else(|| "default".to_owned()),
        };
        Ok(Self { context: name, access })
    }
}

/// The authority as PEM; empty where the one of the system counts.
fn authority(cluster: &ClusterEntry) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let unknown = [
        ("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify == Some(true)),
        ("tls-server-name", cluster.tls_server_name.is_some()),
        ("proxy-url", cluster.proxy_url.is_some()),
    ];
    if let Some((key, _)) = unknown.iter().find(|(_, is_set)| *is_set) {
        return Err(format!("its cluster sets {key}, which is not supported here").into());
    }
    match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => Ok(String::from_utf8(from_base64(data)?)?),
        (None, Some(file)) => Ok(fs::read_to_string(file)?),
        (None, None) => Ok(String::new()),
    }
}

impl Cluster {
    /// Joins a control plane that runs already: dropping this ends what was started beside it, and
    /// changes nothing there. [`Cluster::authority`] is another one than that of the API server, so
    /// [`Cluster::user`] makes nobody whom it knows.
    ///
    /// # Errors
    /// When no run can be started. Nothing is asked of the API server.
    pub fn attach(place: &Place, components: Components) -> Result<Self, TestbedError> {
        install_tls_provider();
        let run = Arc::new(Run::start(components.cache(), &program_name())?);
        let cluster = Self {
            processes: std::sync::Mutex::default(),
            access: place.access.clone(),
            authority: Authority::new()?,
            components,
            controllers: true,
            run,
        };
        cluster.write_kubeconfig("admin", &cluster.access)?;
        Ok(cluster)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn file() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "two",
            "clusters": [
                { "name": "a", "cluster": { "server": "https://a.example" } },
                { "name": "b", "cluster": {
                    "server": "https://b.example", "certificate-authority": "ca.crt",
                }},
            ],
            "users": [{ "name": "u", "user": { "exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "command": "login",
                "args": ["--now"], "interactiveMode": "Never",
            }}}],
            "contexts": [
                { "name": "one", "context": { "cluster": "a", "user": "u" } },
                { "name": "two", "context": { "cluster": "b", "user": "u", "namespace": "n" } },
            ],
        })
    }

    fn read(file: &Value) -> Result<Place, TestbedError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.crt"), "the authority").unwrap();
        let path = folder.path().join("config");
        fs::write(&path, file.to_string()).unwrap();
        Place::read(&path)
    }

    #[test]
    fn the_current_context_is_read_with_its_login_and_its_authority() {
        let place = read(&file()).unwrap();
        assert_eq!(place.context, "two");
        let written = place.access.kubeconfig();
        assert_eq!(written["users"][0]["user"]["exec"]["command"], "login");
        let cluster = &written["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://b.example");
        assert_eq!(cluster["certificate-authority-data"], "dGhlIGF1dGhvcml0eQ==");
        assert_eq!(written["contexts"][0]["context"]["namespace"], "n");
    }

    #[test]
    fn without_an_authority_that_of_the_system_counts() {
        let mut file = file();
        file["current-context"] = json!("one");
        let written = read(&file).unwrap().access.kubeconfig();
        let cluster = json!({ "server": "https://a.example" });
        assert_eq!(written["clusters"][0]["cluster"], cluster);
    }

    #[rstest]
    #[case::no_context("/current-context", json!(null), "no current context")]
    #[case::other_context("/current-context", json!("three"), "context three is not there")]
    #[case::no_cluster("/clusters/1/name", json!("c"), "no cluster b")]
    #[case::no_user("/users/0/name", json!("v"), "no user \"u\"")]
    #[case::proxy("/clusters/1/cluster/proxy-url", json!("http://p"), "sets proxy-url")]
    #[case::insecure("/clusters/1/cluster/insecure-skip-tls-verify", json!(true), "insecure-skip")]
    fn what_it_lacks_is_told(#[case] at: &str, #[case] value: Value, #[case] says: &str) {
        let mut file = file();
        let (parent, key) = at.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[key] = value;
        let error = read(&file).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(says), "{source}");
    }
}
