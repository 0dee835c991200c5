//! The manifest and the archive of the plugin, judged by krew's own validator, installed by krew
//! itself, and found by kubectl.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_suite::dist::{MANIFEST, Platform, archive, manifest, sha256};
use belay_testkit::Cluster;
use flate2::Compression;
use rstest::rstest;

use crate::{run::program, scene::Scene};

const TAG: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// A folder with the archive of one program and a manifest in which every platform has its digest.
struct Released {
    folder: tempfile::TempDir,
    platform: Platform,
}

impl Released {
    fn new(platform: Platform, program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let bytes = archive(platform, program, Compression::none())?;
        fs::write(folder.path().join(platform.archive(TAG)), &bytes)?;
        let text = manifest(TAG, |_| Some(sha256(&bytes)))?;
        fs::write(folder.path().join(MANIFEST), text)?;
        Ok(Self { folder, platform })
    }

    fn manifest(&self) -> PathBuf {
        self.folder.path().join(MANIFEST)
    }

    /// What `metadata.name` and `spec.version` make of krew's folder.
    fn store(&self) -> PathBuf {
        self.root().join("store/release").join(TAG)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("krew")
    }

    /// The folders of commands as krew asks for them; its own goes first.
    fn path(&self) -> Result<std::ffi::OsString> {
        Ok(std::env::join_paths([self.root().join("bin"), "/usr/bin".into(), "/bin".into()])?)
    }

    /// Lets krew install it into a folder of its own. Nothing is downloaded.
    async fn install(&self, cluster: &Cluster) -> Result<String> {
        let ran = cluster
            .tool(Binary::Krew)?
            .env("KREW_ROOT", self.root())
            .env("KREW_OS", self.platform.os)
            .env("KREW_ARCH", self.platform.arch)
            .env("KREW_NO_UPGRADE_CHECK", "1")
            .env("PATH", self.path()?)
            .arg("install")
            .arg(format!("--manifest={}", self.manifest().display()))
            .arg(format!(
                "--archive={}",
                self.folder.path().join(self.platform.archive(TAG)).display()
            ))
            .run()
            .await?;
        ensure!(ran.status.success(), "{ran:?}");
        Ok(ran.stderr)
    }
}

/// In place of a program where it is not started.
fn stand_in() -> Result<tempfile::NamedTempFile> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(&file, "#!/bin/sh\n")?;
    Ok(file)
}

/// A manifest with other digests.
fn digests(text: &str, change: impl Fn(&str) -> String) -> String {
    let line = |line: &str| match line.split_once("sha256: ") {
        Some((before, digest)) => format!("{before}sha256: {}\n", change(digest)),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[rstest]
#[case::as_it_is(|text: &str| text.to_owned(), None)]
#[case::upper_case(|text: &str| digests(text, str::to_uppercase), Some("`sha256` value"))]
#[case::another_name(|text: &str| text.replace("name: release", "name: other"), Some("should be named"))]
#[case::two_for_a_platform(|text: &str| text.replace("arm64", "amd64"), Some("overlapping"))]
#[tokio::test]
async fn the_manifest_passes_krews_validator_which_sees_faults(
    #[case] change: fn(&str) -> String,
    #[case] refused: Option<&str>,
) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let released = Released::new(Platform::here()?, stand_in()?.path())?;
    let text = fs::read_to_string(released.manifest())?;
    fs::write(released.manifest(), change(&text))?;
    let ran = cluster
        .tool(Binary::ValidateKrewManifest)?
        .arg("-manifest")
        .arg(released.manifest())
        .arg("-skip-install")
        .run()
        .await?;
    let expected = ran.status.success() == refused.is_none();
    ensure!(expected && refused.is_none_or(|why| ran.stderr.contains(why)), "{ran:?}");
    Ok(())
}

#[rstest]
#[tokio::test]
async fn krew_installs_program_and_licence_on_every_platform(
    #[values(0, 1, 2, 3, 4)] number: usize,
) -> Result<()> {
    let released = Released::new(Platform::ALL[number], stand_in()?.path())?;
    released.install(Cluster::shared().await?).await?;
    let mut files: Vec<_> = fs::read_dir(released.store())?
        .map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default()))
        .collect::<Result<_>>()?;
    files.sort();
    assert_eq!(files, ["LICENSE", released.platform.program()]);
    Ok(())
}

#[tokio::test]
async fn an_archive_of_another_digest_is_not_installed() -> Result<()> {
    let released = Released::new(Platform::here()?, stand_in()?.path())?;
    let text = fs::read_to_string(released.manifest())?;
    fs::write(released.manifest(), digests(&text, |digest| "f".repeat(digest.len())))?;
    let refused = released.install(Cluster::shared().await?).await.unwrap_err().to_string();
    ensure!(refused.contains("checksum does not match"), "{refused}");
    Ok(())
}

/// The commands in what krew prints after the installation.
fn caveats(said: &str) -> Vec<String> {
    let lines = said.lines().map(|line| line.trim_start_matches([' ', '|']).trim());
    lines
        .filter(|line| line.starts_with("kubectl release completion") || line.starts_with("chmod"))
        .map(ToOwned::to_owned)
        .collect()
}

#[tokio::test]
async fn kubectl_runs_and_completes_what_krew_installed() -> Result<()> {
    let scene = Scene::new("krew").await?;
    let released = Released::new(Platform::here()?, &program()?)?;
    let said = released.install(scene.cluster).await?;
    let kubeconfig = scene.shell()?.kubeconfig;
    let kubectl = |words: &[&str]| -> Result<_> {
        let tool = scene.cluster.tool_as(Binary::Kubectl, &kubeconfig)?;
        Ok(tool.env("PATH", released.path()?).args(words))
    };
    let help = kubectl(&["release", "--help"])?.ok().await?;
    ensure!(help.contains("Usage: kubectl release "), "{help}");
    let listed = kubectl(&["plugin", "list", "--name-only"])?.ok().await?;
    ensure!(listed.lines().any(|line| line == "kubectl-release"), "{listed}");

    let commands = caveats(&said);
    ensure!(commands.len() == 2, "krew said: {said}");
    let real = scene.cluster.components().binary(Binary::Kubectl)?;
    let folder = real.parent().context("kubectl lies in no folder")?;
    let path = std::env::join_paths(
        [folder.to_owned()].into_iter().chain(std::env::split_paths(&released.path()?)),
    )?;
    let shell = tokio::process::Command::new("/bin/sh")
        .args(["-euc", &commands.join("\n")])
        .env_clear()
        .env("PATH", path)
        .env("KREW_ROOT", released.root())
        .output()
        .await?;
    ensure!(shell.status.success(), "{shell:?}");
    let offered = kubectl(&["__complete", "release", "stat"])?.ok().await?;
    ensure!(offered.starts_with("status\t") && offered.ends_with(":4\n"), "{offered}");
    Ok(())
}
