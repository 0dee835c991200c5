//! What a release of the plugin consists of: an archive for each platform, and the manifest by which
//! krew installs it.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use data_encoding::HEXLOWER;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

/// The manifest's file; krew wants it to be named after the plugin.
pub const MANIFEST: &str = "release.yaml";

/// Go's words for a platform, which krew selects by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Platform {
    /// The operating system.
    pub os: &'static str,
    /// The architecture.
    pub arch: &'static str,
}

impl Platform {
    /// Those that are released.
    pub const ALL: [Self; 5] = [
        Self { os: "linux", arch: "amd64" },
        Self { os: "linux", arch: "arm64" },
        Self { os: "darwin", arch: "amd64" },
        Self { os: "darwin", arch: "arm64" },
        Self { os: "windows", arch: "amd64" },
    ];

    /// That of the program that runs here.
    ///
    /// # Errors
    /// It is none that is released.
    pub fn here() -> Result<Self> {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        let os_of_go = if os == "macos" { "darwin" } else { os };
        let arch_of_go = match arch {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|one| (one.os, one.arch) == (os_of_go, arch_of_go))
            .with_context(|| format!("nothing is released for {os} on {arch}"))
    }

    /// The program's file name.
    pub fn program(self) -> &'static str {
        if self.os == "windows" { "kubectl-release.exe" } else { "kubectl-release" }
    }

    /// The archive's file name in the release of a tag.
    pub fn archive(self, tag: &str) -> String {
        format!("kubectl-release-{tag}-{}-{}.tar.gz", self.os, self.arch)
    }
}

/// The archive of a program: it and the licence at the root, as krew and its index ask for. The same
/// files give the same bytes.
///
/// # Errors
/// A file cannot be read.
pub fn archive(platform: Platform, program: &Path, level: Compression) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), level));
    for (name, file, mode) in
        [(platform.program(), program, 0o755), ("LICENSE", &root().join("LICENSE"), 0o644)]
    {
        let content = fs::read(file).with_context(|| format!("read {}", file.display()))?;
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(content.len().try_into()?);
        // No clock gets into the digest.
        header.set_mtime(0);
        archive
            .append_data(&mut header, name, content.as_slice())
            .with_context(|| format!("pack {}", file.display()))?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// The digest as krew wants it: in lower case.
pub fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// The manifest of a tag, filled in as krew-release-bot does. `digest` is asked for each archive by
/// its file name; platforms without one are left out.
///
/// # Errors
/// The template has something that is not understood here, or no platform is left.
pub fn manifest(tag: &str, digest: impl Fn(&str) -> Option<String>) -> Result<String> {
    const PLATFORM: &str = "\n  - selector:";
    let file = root().join("plugins/krew").join(MANIFEST);
    let template = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let template = template.replace("{{ .TagName }}", tag);
    let mut parts = template.trim_end().split(PLATFORM);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let head = text.len();
    for part in parts {
        let (before, rest) =
            part.split_once("{{addURIAndSha \"").context("a platform has no archive")?;
        let (address, after) =
            rest.split_once("\" .TagName }}").context("an address has no end")?;
        let name = address.rsplit('/').next().unwrap_or_default();
        if let Some(digest) = digest(name) {
            // The indentation is the bot's own.
            write!(text, "{PLATFORM}{before}uri: {address}\n    sha256: {digest}{after}")?;
        }
    }
    ensure!(text.len() > head, "there is an archive for none of the platforms of {tag}");
    ensure!(!text.contains("{{"), "{} has a template of another kind", file.display());
    Ok(text + "\n")
}

/// Packs a program for this machine's platform, and writes the manifest of the archives of this tag
/// that lie in the folder. Returns the paths of both.
///
/// # Errors
/// A file cannot be read or written.
pub fn write(folder: &Path, tag: &str, program: &Path) -> Result<[PathBuf; 2]> {
    let platform = Platform::here()?;
    let place = folder.join(platform.archive(tag));
    let bytes = archive(platform, program, Compression::best())?;
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    fs::write(&place, bytes).with_context(|| format!("write {}", place.display()))?;
    let digest = |name: &str| Some(sha256(&fs::read(folder.join(name)).ok()?));
    let file = folder.join(MANIFEST);
    fs::write(&file, manifest(tag, digest)?)
        .with_context(|| format!("write {}", file.display()))?;
    Ok([place, file])
}

/// The top of the work tree.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "v9.9.9";

    #[test]
    fn the_manifest_names_the_archives_that_are_there() {
        let all = manifest(TAG, |_| Some("d".repeat(64))).unwrap();
        for platform in Platform::ALL {
            assert!(all.contains(&format!("/{TAG}/{}\n", platform.archive(TAG))), "{all}");
        }
        let wanted = Platform::ALL[0].archive(TAG);
        let one = manifest(TAG, |name| (name == wanted).then(|| "d".repeat(64))).unwrap();
        assert_eq!(one.matches("uri: ").count(), 1, "{one}");
        manifest(TAG, |_| None).unwrap_err();
    }

    #[test]
    fn an_archive_is_the_same_every_time_and_its_digest_that_of_the_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("any");
        fs::write(&program, "a program").unwrap();
        let [first, file] = write(folder.path(), TAG, &program).unwrap();
        let bytes = fs::read(&first).unwrap();
        let again = archive(Platform::here().unwrap(), &program, Compression::best()).unwrap();
        assert_eq!(bytes, again);
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(&format!("    sha256: {}\n", sha256(&bytes))), "{text}");
    }
}
