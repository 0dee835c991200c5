//! Both Helms with `belay` where each of them finds it, and the people and programs beside Helm.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_testkit::{Cluster, cluster::identity::Access, tool::Tool};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{Api, api::PostParams};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::programs::beside_test;

/// The name of the release and of its workload in every test.
pub const WEB: &str = "web";

/// The field manager of Belay's operator.
pub const OPERATOR: &str = "belay-operator";

/// A major version of Helm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Major {
    /// Helm 3.
    #[serde(rename = "3")]
    Three,
    /// Helm 4.
    #[serde(rename = "4")]
    Four,
}

impl Major {
    /// Its binary.
    pub fn binary(self) -> Binary {
        match self {
            Self::Three => Binary::Helm3,
            Self::Four => Binary::Helm4,
        }
    }
}

/// The program `belay`.
///
/// # Errors
/// It was not built.
pub fn belay() -> Result<PathBuf> {
    beside_test("belay")
}

/// A folder of this repository's test suite.
pub fn suite(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// Where each Helm looks for its post-renderer.
struct Installed {
    /// `PATH` with `belay` in front, for Helm 3.
    path: std::ffi::OsString,
    /// A folder of plugins for Helm 4 alone: Helm 3 complains about every plugin of Helm 4.
    plugins: PathBuf,
}

/// Puts `belay` where both Helms find it, once for all tests.
async fn installed(cluster: &Cluster) -> Result<&'static Installed> {
    static INSTALLED: OnceCell<Installed> = OnceCell::const_new();
    INSTALLED
        .get_or_try_init(|| async {
            let home = cluster.run().folder().join("belay");
            let (bin, plugins) = (home.join("bin"), home.join("plugins"));
            fs::create_dir_all(&bin).context("create a folder for PATH")?;
            std::os::unix::fs::symlink(belay()?, bin.join("belay")).context("link belay")?;
            fs::create_dir_all(&plugins).context("create a folder for plugins")?;
            let plugin = plugins.join("belay");
            std::os::unix::fs::symlink(suite("../../plugins/helm"), &plugin)
                .context("link the plugin")?;
            let manifest = plugin.join("plugin.yaml");
            ensure!(manifest.is_file(), "there is no {}", manifest.display());
            let mut path = vec![bin];
            path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
            Ok(Installed { path: std::env::join_paths(path)?, plugins })
        })
        .await
}

/// A command of one Helm, which knows the post-renderer `belay`. Its reports go below `state`.
///
/// # Errors
/// The Helm or `belay` was not built.
pub async fn helm(cluster: &Cluster, major: Major, state: &Path) -> Result<Tool> {
    let installed = installed(cluster).await?;
    let tool = cluster.tool(major.binary())?.env("XDG_STATE_HOME", state);
    let tool = tool.env("PATH", &installed.path);
    Ok(match major {
        Major::Three => tool,
        Major::Four => tool.env("HELM_PLUGINS", &installed.plugins),
    })
}

/// A ServiceAccount that has these rights in its namespace, and no others.
///
/// # Errors
/// What the API server says.
pub async fn account(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    rules: &Value,
) -> Result<Access> {
    let access = cluster.service_account(namespace, name).await?;
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }],
    });
    let (client, params) = (cluster.admin()?, PostParams::default());
    let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
    roles.create(&params, &serde_json::from_value(role)?).await?;
    let bindings: Api<RoleBinding> = Api::namespaced(client, namespace);
    bindings.create(&params, &serde_json::from_value(binding)?).await?;
    Ok(Access { namespace: namespace.to_owned(), ..access })
}

/// The report that `belay` leaves below `$XDG_STATE_HOME`.
pub fn report_below(state: &Path) -> PathBuf {
    state.join("belay/last-run.log")
}
