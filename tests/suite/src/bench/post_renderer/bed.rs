//! What the figures are measured on: an API server with the live objects, and the programs.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use belay_components::Binary;
use belay_testkit::{
    Cluster,
    cluster::{Options, identity::Access},
    wait,
};
use k8s_openapi::api::{apps::v1::Deployment, rbac::v1::ClusterRoleBinding};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::stream::{self, LIVE_TAG};
use crate::{bench::meter::Job, programs::Programs};

/// A folder of inputs and outputs, and the programs.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) programs: Programs,
    folder: tempfile::TempDir,
}

impl Desk {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("make a folder for inputs and outputs")?;
        Ok(Self { programs: Programs::find()?, folder })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file and returns its path.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        let parent = path.parent().context("a file has a folder")?;
        fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    /// Any program, reading the named file, with a home of its own.
    pub(super) fn job(&self, program: &Path, input: &Path) -> Result<Job> {
        let name = program.file_name().context("a program has a name")?;
        let output = self.folder.path().join(name).with_extension("out");
        let home = self.folder.path().join("home");
        Ok(Job::new(&self.programs.path("meter")?, program, input, &output)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("HOME", home))
    }

    /// `belay` under a parent that is no Helm, so that it has to be told where Helm would apply.
    pub(super) fn belay(&self, input: &Path, namespace: &str, kubeconfig: &Path) -> Result<Job> {
        let job = self.job(&self.programs.path("belay")?, input)?;
        let words = ["-n", namespace, "--kube-context", "", "--kubeconfig"];
        Ok(job.args(words).args([kubeconfig]))
    }

    /// The bare program.
    pub(super) fn bare(&self, input: &Path, mode: &str) -> Result<Job> {
        Ok(self.job(&self.programs.path("bare")?, input)?.args([mode]))
    }
}

/// A desk, an API server, and a namespace in it.
#[derive(Debug)]
pub(super) struct Bed {
    pub(super) desk: Desk,
    pub(super) cluster: Cluster,
    pub(super) namespace: String,
    /// With the token of a ServiceAccount that may do everything.
    pub(super) kubeconfig: PathBuf,
}

impl Bed {
    /// Starts an API server. It has no controllers: nobody but the measured programs speaks to it.
    pub(super) fn start() -> Result<Self> {
        let desk = Desk::new()?;
        wait::block_on(async {
            let cluster = Cluster::start(Options::server_alone()).await?;
            let namespace = cluster.namespace("bench").await?;
            let access = all_powerful(&cluster, &namespace).await?;
            let kubeconfig = cluster.write_kubeconfig("bench", &access)?;
            Ok(Self { desk, cluster, namespace, kubeconfig })
        })?
    }

    pub(super) fn tool(&self, binary: Binary) -> Result<PathBuf> {
        Ok(self.cluster.components().binary(binary)?)
    }

    /// Makes the live objects of targets: installed by Helm, then rolled by the operator.
    pub(super) fn targets(&self, indices: &[usize]) -> Result<()> {
        let namespace = &self.namespace;
        self.apply(
            "helm",
            &indices.iter().map(|i| stream::live(*i, namespace)).collect::<String>(),
        )?;
        self.roll(namespace, indices)
    }

    /// Lets the operator take the image of targets that are there.
    pub(super) fn roll(&self, namespace: &str, indices: &[usize]) -> Result<()> {
        let rolled: String = indices.iter().map(|index| stream::rolled(*index)).collect();
        self.apply_in(namespace, "belay-operator", &rolled)
    }

    fn apply(&self, manager: &str, objects: &str) -> Result<()> {
        self.apply_in(&self.namespace, manager, objects)
    }

    fn apply_in(&self, namespace: &str, manager: &str, objects: &str) -> Result<()> {
        let arguments = ["apply", "-f", "-", "--server-side", "--force-conflicts"];
        let tool = self
            .cluster
            .tool(Binary::Kubectl)?
            .args(arguments)
            .args(["-n", namespace, "--field-manager", manager])
            .input(objects);
        wait::block_on(tool.ok())?.with_context(|| format!("apply objects as {manager}"))?;
        Ok(())
    }

    /// Fails if a target does not run what the operator rolled: then the figure measured a fight.
    pub(super) fn require_rolled(&self, namespace: &str, index: usize) -> Result<()> {
        let name = stream::name(index);
        let live = wait::block_on(async {
            let api: Api<Deployment> = Api::namespaced(self.cluster.admin()?, namespace);
            api.get(&name).await.with_context(|| format!("read Deployment {namespace}/{name}"))
        })??;
        let containers =
            live.spec.and_then(|spec| spec.template.spec).unwrap_or_default().containers;
        let image = containers
            .into_iter()
            .find(|container| container.name == "app")
            .and_then(|container| container.image)
            .unwrap_or_default();
        let expected = format!("{}:{LIVE_TAG}", stream::repository(index));
        ensure!(image == expected, "Deployment {namespace}/{name} runs {image}, not {expected}");
        Ok(())
    }

    /// `belay` in this bed's namespace.
    pub(super) fn belay(&self, input: &Path) -> Result<Job> {
        self.desk.belay(input, &self.namespace, &self.kubeconfig)
    }

    /// The bare program in a mode that makes requests.
    pub(super) fn bare(&self, input: &Path, mode: &str) -> Result<Job> {
        Ok(self.desk.bare(input, mode)?.args([&self.kubeconfig]))
    }

    /// The request for a target's live object.
    pub(super) fn path(&self, index: usize) -> String {
        let name = stream::name(index);
        format!("/apis/apps/v1/namespaces/{}/deployments/{name}", self.namespace)
    }
}

async fn all_powerful(cluster: &Cluster, namespace: &str) -> Result<Access> {
    let access = cluster.service_account(namespace, "bench").await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": "bench" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
        },
        "subjects": [{ "kind": "ServiceAccount", "name": "bench", "namespace": namespace }],
    });
    Api::<ClusterRoleBinding>::all(cluster.admin()?)
        .patch("bench", &PatchParams::apply("belay-testbed"), &Patch::Apply(binding))
        .await
        .context("let the ServiceAccount of the bench do everything")?;
    Ok(access)
}

/// An address that nobody may connect to.
#[derive(Debug)]
pub(super) struct Forbidden {
    listener: TcpListener,
}

impl Forbidden {
    pub(super) fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("listen on a free port")?;
        listener.set_nonblocking(true).context("listen without waiting")?;
        Ok(Self { listener })
    }

    /// A kubeconfig that leads here.
    pub(super) fn kubeconfig(&self) -> Result<String> {
        let address = self.listener.local_addr().context("ask for the port")?;
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "nobody",
            "clusters": [{ "name": "nobody", "cluster": { "server": format!("https://{address}") } }],
            "users": [{ "name": "nobody", "user": { "token": "none" } }],
            "contexts": [{ "name": "nobody", "context": { "cluster": "nobody", "user": "nobody" } }],
        });
        Ok(kubeconfig.to_string())
    }

    /// Fails if somebody connected since the last look.
    pub(super) fn require_untouched(&self) -> Result<()> {
        match self.listener.accept() {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error).context("look for connections"),
            Ok(_) => bail!("there was a connection, and there must be none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_program_that_is_not_built_is_named_with_the_command_that_builds_it() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs { folder: folder.path().to_owned() };
        let error = programs.path("belay").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no belay in ") && error.contains("`cargo xtask bench`")
        );
        fs::write(folder.path().join("belay"), "").unwrap();
        assert_eq!(programs.path("belay").unwrap(), folder.path().join("belay"));
    }

    #[test]
    fn a_connection_is_an_error_once() {
        let forbidden = Forbidden::listen().unwrap();
        forbidden.require_untouched().unwrap();
        let address = forbidden.listener.local_addr().unwrap();
        assert!(forbidden.kubeconfig().unwrap().contains(&address.to_string()));
        let stream = TcpStream::connect(address).unwrap();
        forbidden.require_untouched().unwrap_err();
        drop(stream);
        forbidden.require_untouched().unwrap();
    }
}
