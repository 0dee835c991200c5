//! Installing `belay` for Helm 3, for Helm 4 and for both on one machine.
//!
//! Proof that `belay` ran, and that it saw Helm's own command line, is the live image in what
//! `helm template -n NAMESPACE` prints: the plugin's environment names no namespace.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use belay_testkit::{Cluster, objects::Workload, tool::Tool};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde::Deserialize;
use tempfile::TempDir;

use belay_suite::helms::{self, Major, OPERATOR, WEB};

/// The image of the chart `hello`, and the one its workload has come to since.
const CHART: &str = "registry.example/hello:1.0.0";
const LIVE: &str = "registry.example/hello:1.4.2";

/// What Helm 3 says of Helm 4's plugin, before everything else.
fn complaint(manifest: &Path) -> String {
    format!(
        "failed to load plugin at \"{}\": error unmarshaling JSON: while decoding JSON: json: \
         unknown field \"apiVersion\"\n",
        manifest.display()
    )
}

/// A person's machine: a home of its own, and `belay` on `PATH` or not.
struct Machine {
    cluster: &'static Cluster,
    home: TempDir,
    path: OsString,
}

impl Machine {
    async fn with_belay() -> Result<Self> {
        let mut machine = Self::without_belay().await?;
        let bin = machine.home.path().join("bin");
        fs::create_dir(&bin)?;
        symlink(helms::belay()?, bin.join("belay"))?;
        let others = std::env::var_os("PATH").unwrap_or_default();
        machine.path =
            std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&others)))?;
        Ok(machine)
    }

    async fn without_belay() -> Result<Self> {
        let cluster = Cluster::shared().await?;
        let home = tempfile::tempdir()?;
        // No belay that this machine happens to have is to be found.
        let path = home.path().join("empty").into();
        Ok(Self { cluster, home, path })
    }

    /// Where both majors keep their plugins unless they are told otherwise.
    fn shared_data(&self) -> PathBuf {
        self.home.path().join(".local/share/helm")
    }

    /// A folder for Helm 4 alone.
    fn own_data(&self) -> PathBuf {
        self.home.path().join(".local/share/helm4")
    }

    fn helm(&self, major: Major, data: &Path) -> Result<Tool> {
        let home = self.home.path();
        Ok(self
            .cluster
            .tool(major.binary())?
            .env("HOME", home)
            .env("HELM_DATA_HOME", data)
            .env("HELM_CONFIG_HOME", home.join(".config/helm"))
            .env("HELM_CACHE_HOME", home.join(".cache/helm"))
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .env("PATH", &self.path))
    }

    /// `helm plugin install` of Helm 4.
    async fn install(&self, source: &Path, data: &Path) -> Result<String> {
        let tool = self.helm(Major::Four, data)?.args(["plugin", "install"]).arg(source);
        Ok(tool.arg("--verify=false").ok().await?)
    }

    /// `helm plugin package` of Helm 4: the archive.
    async fn pack(&self, folder: &Path) -> Result<PathBuf> {
        let dist = self.home.path().join("dist");
        let tool = self.helm(Major::Four, &self.own_data())?.args(["plugin", "package"]);
        tool.arg(folder).arg("--sign=false").arg("-d").arg(&dist).ok().await?;
        let archive = dist.join(format!("belay-{}.tgz", env!("CARGO_PKG_VERSION")));
        ensure!(archive.is_file(), "there is no {}", archive.display());
        Ok(archive)
    }
}

/// The folder that is installed from a clone.
fn plugin() -> PathBuf {
    helms::suite("../../plugins/helm")
}

/// `helm template` of a chart whose workload runs [`LIVE`] in `namespace`.
fn template(tool: Tool, namespace: &str) -> Tool {
    let tool = tool.args(["template", WEB]).arg(helms::suite("charts/hello"));
    tool.args(["-n", namespace, "--post-renderer", "belay"])
}

/// Runs [`template`]: the live image must come out, and nothing on stderr.
async fn renders_the_live_image(tool: Tool, namespace: &str) -> Result<()> {
    let done = template(tool, namespace).run().await?;
    assert_eq!(done.stderr, "");
    shows_the_live_image(&done.ok()?)
}

fn shows_the_live_image(manifest: &str) -> Result<()> {
    ensure!(manifest.contains(LIVE) && !manifest.contains(CHART), "Helm printed {manifest}");
    Ok(())
}

/// A namespace in which the operator has moved the chart's workload to [`LIVE`].
async fn followed(cluster: &Cluster) -> Result<String> {
    let namespace = cluster.namespace("plugin").await?;
    let api: Api<Deployment> = Api::namespaced(cluster.admin()?, &namespace);
    let workload = Workload::deployment(WEB).image("app", LIVE).replicas(0);
    api.patch(WEB, &PatchParams::apply(OPERATOR), &Patch::Apply(workload.json())).await?;
    Ok(namespace)
}

#[tokio::test]
async fn helm_4_installs_the_folder_of_a_clone() -> Result<()> {
    let machine = Machine::with_belay().await?;
    let data = machine.shared_data();
    let said = machine.helm(Major::Four, &data)?.args(["plugin", "install"]).arg(plugin());
    assert_eq!(
        said.ok().await?,
        "Installing plugin from local directory (development mode)\nInstalled plugin: belay\n"
    );
    let list = machine.helm(Major::Four, &data)?.args(["plugin", "list"]).ok().await?;
    let row: Vec<_> = list.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(row[..4], ["belay", env!("CARGO_PKG_VERSION"), "postrenderer/v1", "v1"]);
    let namespace = followed(machine.cluster).await?;
    renders_the_live_image(machine.helm(Major::Four, &data)?, &namespace).await
}

#[tokio::test]
async fn helm_4_installs_an_archive_that_it_packed_itself() -> Result<()> {
    let machine = Machine::with_belay().await?;
    let (archive, data) = (machine.pack(&plugin()).await?, machine.shared_data());
    let refused = machine.helm(Major::Four, &data)?.args(["plugin", "install"]).arg(&archive);
    let refused = refused.run().await?;
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        refused.stderr,
        "Error: plugin verification failed: no provenance file (.prov) found\n"
    );
    let said = machine.install(&archive, &data).await?;
    assert_eq!(said, "WARNING: Skipping plugin signature verification\nInstalled plugin: belay\n");
    let namespace = followed(machine.cluster).await?;
    renders_the_live_image(machine.helm(Major::Four, &data)?, &namespace).await
}

#[tokio::test]
async fn an_archive_may_carry_the_binary_for_a_machine_without_belay_on_path() -> Result<()> {
    let machine = Machine::without_belay().await?;
    let folder = machine.home.path().join("with binary");
    fs::create_dir_all(folder.join("bin"))?;
    fs::copy(helms::belay()?, folder.join("bin/belay"))?;
    let manifest = fs::read_to_string(plugin().join("plugin.yaml"))?;
    let carried = manifest.replace("command: ", "command: ${HELM_PLUGIN_DIR}/bin/");
    fs::write(folder.join("plugin.yaml"), carried)?;
    let archive = machine.pack(&folder).await?;
    // The folder that Helm expands the variable to has a blank in its name.
    let data = machine.home.path().join("own data");
    machine.install(&archive, &data).await?;
    let namespace = followed(machine.cluster).await?;
    renders_the_live_image(machine.helm(Major::Four, &data)?, &namespace).await
}

#[tokio::test]
async fn both_majors_work_side_by_side_when_helm_4_has_a_folder_of_its_own() -> Result<()> {
    let machine = Machine::with_belay().await?;
    machine.install(&plugin(), &machine.own_data()).await?;
    let namespace = followed(machine.cluster).await?;
    renders_the_live_image(machine.helm(Major::Four, &machine.own_data())?, &namespace).await?;
    renders_the_live_image(machine.helm(Major::Three, &machine.shared_data())?, &namespace).await?;
    let list = machine.helm(Major::Three, &machine.shared_data())?.args(["plugin", "list"]);
    let list = list.run().await?;
    assert_eq!((list.status.code(), list.stderr.as_str()), (Some(0), ""));
    Ok(())
}

#[tokio::test]
async fn a_link_in_helm_plugins_works_where_plugin_install_ignores_that_variable() -> Result<()> {
    let machine = Machine::with_belay().await?;
    let own = machine.home.path().join("plugins-of-helm-4");
    fs::create_dir(&own)?;
    let data = machine.shared_data();
    let helm4 =
        || Ok::<_, anyhow::Error>(machine.helm(Major::Four, &data)?.env("HELM_PLUGINS", &own));
    helm4()?.args(["plugin", "install"]).arg(plugin()).ok().await?;
    let found: Vec<_> = fs::read_dir(&own)?.collect();
    assert!(found.is_empty(), "installed where HELM_PLUGINS says: {found:?}");
    ensure!(data.join("plugins/helm/plugin.yaml").is_file(), "not installed in the data folder");
    let namespace = followed(machine.cluster).await?;
    let missing = template(helm4()?, &namespace).run().await?;
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!(
        missing.stderr,
        "Error: invalid argument \"belay\" for \"--post-renderer\" flag: plugin: {Name:belay \
         Type:postrenderer/v1} not found\n"
    );
    symlink(plugin().canonicalize()?, own.join("belay"))?;
    renders_the_live_image(helm4()?, &namespace).await
}

#[tokio::test]
async fn in_the_shared_folder_helm_4s_plugin_costs_helm_3_its_plugins_and_not_belay() -> Result<()>
{
    let machine = Machine::with_belay().await?;
    let data = machine.shared_data();
    let greeting = data.join("plugins/greeting");
    fs::create_dir_all(&greeting)?;
    let own = "name: greeting\nversion: 0.1.0\nusage: greets\ncommand: echo hello\n";
    fs::write(greeting.join("plugin.yaml"), own)?;
    let helm3 = || machine.helm(Major::Three, &data);
    assert_eq!(helm3()?.arg("greeting").ok().await?, "hello\n");
    machine.install(&plugin(), &data).await?;
    let complaint = complaint(&data.join("plugins/helm/plugin.yaml"));
    let noise = format!("failed to load plugins: {complaint}");

    let namespace = followed(machine.cluster).await?;
    let rendered = template(helm3()?, &namespace).run().await?;
    assert_eq!(rendered.stderr, noise);
    shows_the_live_image(&rendered.ok()?)?;
    let elsewhere = machine.cluster.namespace("plugin-first").await?;
    let upgrade = helm3()?.args(["upgrade", "--install", WEB]).arg(helms::suite("charts/hello"));
    let upgrade = upgrade.args(["-n", &elsewhere, "--no-hooks", "--post-renderer", "belay"]);
    for works in [upgrade, helm3()?.args(["list", "-n", &elsewhere]), helm3()?.arg("version")] {
        let done = works.run().await?;
        assert_eq!(done.stderr, noise);
        done.ok()?;
    }

    let list = helm3()?.args(["plugin", "list"]).run().await?;
    assert_eq!(list.status.code(), Some(1));
    assert_eq!(list.stderr, format!("{noise}Error: {complaint}"));
    let gone = helm3()?.arg("greeting").run().await?;
    assert_eq!(gone.status.code(), Some(1));
    let unknown = "Error: unknown command \"greeting\" for \"helm\"\n";
    ensure!(gone.stderr.starts_with(&format!("{noise}{unknown}")), "{}", gone.stderr);

    // The way out where the plugin has to stay there.
    renders_the_live_image(helm3()?.env("HELM_NO_PLUGINS", "1"), &namespace).await?;
    let gone = helm3()?.env("HELM_NO_PLUGINS", "1").arg("greeting").run().await?;
    ensure!(gone.stderr.starts_with(unknown), "{}", gone.stderr);
    let helm4 = machine.helm(Major::Four, &data)?.env("HELM_NO_PLUGINS", "1");
    renders_the_live_image(helm4, &namespace).await
}

#[tokio::test]
async fn without_belay_on_path_both_majors_say_so() -> Result<()> {
    let machine = Machine::without_belay().await?;
    machine.install(&plugin(), &machine.own_data()).await?;
    let not_found = "exec: \"belay\": executable file not found in $PATH\n";
    for (major, data, words) in [
        (
            Major::Three,
            machine.shared_data(),
            "Error: invalid argument \"belay\" for \"--post-renderer\" flag: unable to find binary \
             at belay: ",
        ),
        (
            Major::Four,
            machine.own_data(),
            "Error: error while running post render on files: failed to invoke post-renderer \
             plugin \"belay\": ",
        ),
    ] {
        let done = template(machine.helm(major, &data)?, "default").run().await?;
        assert_eq!(done.status.code(), Some(1), "{major:?}");
        let expected = format!("{words}{not_found}");
        ensure!(done.stderr.starts_with(&expected), "{major:?} says {}", done.stderr);
    }
    Ok(())
}

/// `plugin.yaml`, as far as it may go: whatever else stands in it fails this test.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Manifest {
    api_version: String,
    r#type: String,
    name: String,
    version: String,
    #[serde(rename = "sourceURL")]
    source_url: String,
    runtime: String,
    config: Nothing,
    runtime_config: RuntimeConfig,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// No hooks: nothing runs when the plugin is installed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RuntimeConfig {
    platform_command: Vec<Row>,
}

/// No `arch`, so that a row fits all of them, and no `args`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    os: String,
    command: String,
}

#[test]
fn the_manifest_starts_belay_itself_on_linux_macos_and_windows() -> Result<()> {
    let text = fs::read_to_string(plugin().join("plugin.yaml"))?;
    let manifest: Manifest = serde_yaml::from_str(&text).context("read plugin.yaml")?;
    assert_eq!(manifest.api_version, "v1");
    assert_eq!(manifest.r#type, "postrenderer/v1");
    assert_eq!(manifest.runtime, "subprocess");
    // Helm 3 finds a program of this name on PATH: one command line for both majors.
    assert_eq!(manifest.name, "belay");
    assert_eq!(manifest.source_url, env!("CARGO_PKG_REPOSITORY"));
    let Nothing {} = manifest.config;
    let row = |os: &str, command: &str| Row { os: os.to_owned(), command: command.to_owned() };
    assert_eq!(
        manifest.runtime_config.platform_command,
        [row("linux", "belay"), row("darwin", "belay"), row("windows", "belay.exe")],
        "a shell or a wrapper would hide Helm's command line from belay"
    );
    Ok(())
}

#[test]
fn the_manifest_has_the_version_of_the_workspace() -> Result<()> {
    let text = fs::read_to_string(plugin().join("plugin.yaml"))?;
    let manifest: Manifest = serde_yaml::from_str(&text).context("read plugin.yaml")?;
    assert_eq!(manifest.version, env!("CARGO_PKG_VERSION"), "in plugins/helm/plugin.yaml");
    Ok(())
}
