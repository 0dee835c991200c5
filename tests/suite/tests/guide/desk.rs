//! What stands in for `gh`, and for the workflow of a repository that pushes the image of a release.
//!
//! The program `gh` of a page hands its words to this desk, which publishes on the scripted GitHub and
//! pushes to the registry: `gh release create v1.1.0 --repo acme/web`, `gh repo create acme/web --private`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use belay_testkit::{
    github::{GitHub, NewRelease},
    registry::Registry,
};
use tokio::runtime::Runtime;

/// GitHub and a registry, for whoever asks.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) github: GitHub,
    pub(crate) registry: Registry,
}

impl Desk {
    /// Serves for as long as the test process lives; returns the port.
    pub(crate) fn open(self: &Arc<Self>) -> Result<u16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("open the desk")?;
        let port = listener.local_addr()?.port();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let desk = Arc::clone(self);
        std::thread::Builder::new().name("desk".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever hangs up is not told.
                let _ = desk.serve(stream, &runtime);
            }
        })?;
        Ok(port)
    }

    fn serve(&self, mut stream: TcpStream, runtime: &Runtime) -> Result<()> {
        let mut line = String::new();
        BufReader::new(stream.try_clone()?).read_line(&mut line)?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match runtime.block_on(self.obey(&words)) {
            Ok(said) => format!("0\n{said}\n"),
            Err(error) => format!("1\nerror: {error:#}\n"),
        };
        stream.write_all(answer.as_bytes())?;
        Ok(())
    }

    async fn obey(&self, words: &[&str]) -> Result<String> {
        let option = |name: &str| {
            let mut rest = words.iter().skip_while(|word| **word != name);
            rest.nth(1).copied()
        };
        match words {
            ["release", "create", tag, ..] => {
                let repo = option("--repo").context("it has no --repo")?;
                let release = NewRelease {
                    prerelease: words.contains(&"--prerelease"),
                    ..NewRelease::new(*tag)
                };
                self.publish(repo, release).await?;
                Ok(format!("https://github.com/{repo}/releases/tag/{tag}"))
            }
            ["repo", "create", repo, "--private"] => {
                self.github.create_private_repository(repo)?;
                Ok(format!("https://github.com/{repo}"))
            }
            _ => bail!("this gh cannot {}", words.join(" ")),
        }
    }

    /// Pushes the image of a release, then publishes it.
    pub(crate) async fn publish(&self, repo: &str, release: NewRelease) -> Result<()> {
        let tag = release.tag.trim_start_matches('v').replace('+', "_");
        self.registry.push(repo, &tag).await?;
        self.github.publish(repo, release)?;
        Ok(())
    }
}

/// Writes the program `gh`.
pub(crate) fn write_gh(file: &Path, port: u16) -> Result<()> {
    let script = format!(
        "#!/usr/bin/env bash\nexec 3<>/dev/tcp/127.0.0.1/{port} || exit 1\necho \"$*\" >&3\n\
         read -r status <&3\ncat <&3\nexit \"$status\"\n"
    );
    fs::write(file, script).context("write gh")?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).context("make gh a program")
}
