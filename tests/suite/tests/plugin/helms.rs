//! Both Helms, `belay` where each of them finds it, and a chart whose image others move.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use belay_api::{AnnotationPrefix, ReleaseTarget, crd, target::TargetFields};
use belay_components::Binary;
use belay_ownership::{FieldPath, Ownership};
use belay_testkit::{
    Cluster,
    tool::{Finished, Tool},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The release and its workload.
pub(crate) const WEB: &str = "web";
/// The image that is moved, without its tag.
pub(crate) const IMAGE: &str = "registry.example/web";
/// The operator's field manager.
pub(crate) const OPERATOR: &str = "belay-operator";

/// A major version of Helm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Major {
    /// Helm 3.
    Three,
    /// Helm 4.
    Four,
}

fn suite(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// The program `belay`, as built beside this test.
fn belay() -> Result<PathBuf> {
    let this = std::env::current_exe().context("find this test")?;
    let folder = this.parent().and_then(Path::parent).context("this test lies in no folder")?;
    let belay = folder.join(format!("belay{}", std::env::consts::EXE_SUFFIX));
    let hint = "run the tests with `cargo xtask test`, which builds it";
    ensure!(belay.is_file(), "there is no {}: {hint}", belay.display());
    Ok(belay)
}

struct Installed {
    path: std::ffi::OsString,
    plugins: PathBuf,
}

async fn installed(cluster: &Cluster) -> Result<&'static Installed> {
    static INSTALLED: OnceCell<Installed> = OnceCell::const_new();
    INSTALLED
        .get_or_try_init(|| async {
            let home = cluster.run().folder().join("plugin-helms");
            let (bin, plugins) = (home.join("bin"), home.join("plugins"));
            fs::create_dir_all(&bin).context("create a folder for PATH")?;
            fs::create_dir_all(&plugins).context("create a folder for plugins")?;
            std::os::unix::fs::symlink(belay()?, bin.join("belay")).context("link belay")?;
            std::os::unix::fs::symlink(suite("../../plugins/helm"), plugins.join("belay"))
                .context("link the plugin")?;
            let mut path = vec![bin];
            path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
            Ok(Installed { path: std::env::join_paths(path)?, plugins })
        })
        .await
}

/// The control plane of this process, with Belay's CRDs and without its operator.
pub(crate) async fn cluster() -> Result<&'static Cluster> {
    static APPLIED: OnceCell<()> = OnceCell::const_new();
    let cluster = Cluster::shared().await?;
    APPLIED
        .get_or_try_init(|| async {
            cluster.apply_crds(&crd::all(&AnnotationPrefix::default())).await
        })
        .await?;
    Ok(cluster)
}

/// A namespace in which Helm installs the chart `matrix` as `web`.
pub(crate) struct Scene {
    /// The control plane.
    pub(crate) cluster: &'static Cluster,
    /// The namespace.
    pub(crate) namespace: String,
}

impl Scene {
    /// An empty one.
    pub(crate) async fn new() -> Result<Self> {
        let cluster = cluster().await?;
        Ok(Self { cluster, namespace: cluster.namespace("plugin").await? })
    }

    /// The kubeconfig of a ServiceAccount that has these rights in the namespace, and no others.
    pub(crate) async fn reader(&self, rules: &Value) -> Result<PathBuf> {
        let access = self.cluster.service_account(&self.namespace, "reader").await?;
        let role = json!({ "metadata": { "name": "reader" }, "rules": rules });
        let binding = json!({
            "metadata": { "name": "reader" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
            "subjects": [
                { "kind": "ServiceAccount", "name": "reader", "namespace": self.namespace }],
        });
        let params = PostParams::default();
        let roles: Api<Role> = Api::namespaced(self.cluster.admin()?, &self.namespace);
        roles.create(&params, &serde_json::from_value(role)?).await?;
        let bindings: Api<RoleBinding> = Api::namespaced(self.cluster.admin()?, &self.namespace);
        bindings.create(&params, &serde_json::from_value(binding)?).await?;
        Ok(self.cluster.write_kubeconfig(&format!("reader-{}", self.namespace), &access)?)
    }

    async fn tool(&self, major: Major) -> Result<Tool> {
        let installed = installed(self.cluster).await?;
        let binary = match major {
            Major::Three => Binary::Helm3,
            Major::Four => Binary::Helm4,
        };
        let state = self.cluster.run().folder().join(&self.namespace).join("state");
        let tool = self.cluster.tool(binary)?.env("PATH", &installed.path);
        let tool = tool.env("XDG_STATE_HOME", state);
        Ok(match major {
            Major::Three => tool,
            Major::Four => tool.env("HELM_PLUGINS", &installed.plugins),
        })
    }

    /// Runs `helm VERB web CHART WORDS`.
    pub(crate) async fn helm(&self, major: Major, verb: &str, words: &str) -> Result<Finished> {
        let tool = self.tool(major).await?.args([verb, WEB]).arg(suite("charts/matrix"));
        let tool = tool.args(words.split_whitespace()).args(["-n", &self.namespace]);
        Ok(tool.args(["--timeout", "60s"]).run().await?)
    }

    pub(crate) fn deployments(&self) -> Result<Api<Deployment>> {
        Ok(Api::namespaced(self.cluster.admin()?, &self.namespace))
    }

    /// Moves the image as the operator does, with its annotation.
    pub(crate) async fn roll(&self, tag: &str) -> Result<()> {
        let body = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": WEB, "annotations": { "belay.dev/release": "web-1234567" } },
            "spec": { "template": { "spec": { "containers": [
                { "name": "app", "image": format!("{IMAGE}:{tag}") }] } } },
        });
        let params = PatchParams::apply(OPERATOR).force();
        self.deployments()?.patch(WEB, &params, &Patch::Apply(body)).await?;
        Ok(())
    }

    /// Moves the image as a person does.
    pub(crate) async fn edit(&self, tag: &str) -> Result<()> {
        let body = json!({ "spec": { "template": { "spec": { "containers": [
            { "name": "app", "image": format!("{IMAGE}:{tag}") }] } } } });
        let params = PatchParams {
            field_manager: Some("kubectl-edit".to_owned()),
            ..PatchParams::default()
        };
        self.deployments()?.patch(WEB, &params, &Patch::Strategic(body)).await?;
        Ok(())
    }

    /// The ReleaseTarget that the operator would keep.
    pub(crate) async fn target(&self) -> Result<()> {
        let live = self.deployments()?.get(WEB).await?;
        let api: Api<ReleaseTarget> = Api::namespaced(self.cluster.admin()?, &self.namespace);
        let new = ReleaseTarget::new(WEB, TargetFields {});
        api.create(&PostParams::default(), &new).await?;
        let status = json!({ "status": {
            "containers": ["app"],
            "workload": { "apiVersion": "apps/v1", "kind": "Deployment", "name": WEB,
                          "uid": live.uid() },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "Ready", "message": "",
                             "lastTransitionTime": "2026-01-01T00:00:00Z" }],
        } });
        api.patch_status(WEB, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    /// The live image, and who owns it, each with how it writes: `helm/A`.
    pub(crate) async fn live(&self) -> Result<(String, Vec<String>)> {
        let live = self.deployments()?.get(WEB).await?;
        let ownership = Ownership::decode(live.managed_fields());
        let answer = ownership.at(&FieldPath::image("containers", "app"));
        let owners = answer.owners.iter().map(|owner| {
            let operation = &owner.entry.operation().as_str()[..1];
            format!("{}/{operation}", owner.entry.manager())
        });
        let value: Value = serde_json::to_value(&live)?;
        let containers = value.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        let app = containers.into_iter().flatten().find(|one| one["name"] == "app");
        let image = app.and_then(|one| one["image"].as_str()).context("no container app")?;
        Ok((image.to_owned(), owners.collect()))
    }
}
