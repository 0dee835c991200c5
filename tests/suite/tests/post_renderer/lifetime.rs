//! How a run ends from outside, where its report is kept, and what it does when it cannot write.

use std::{
    fs::{self, File},
    io::{Read as _, pipe},
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, Result};
use belay_testkit::{Cluster, standing::is_running, wait};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use kube::{Api, api::ListParams};
use rstest::rstest;
use rustix::process::Signal;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
};

use crate::{
    fake_server::{Answer, FakeServer, live},
    runs::{self, Belay, CHART_IMAGE, LIVE, WEB_MANIFEST, report, send},
};
use belay_suite::helms::{self, Major, WEB};

/// A server that takes requests and never answers.
pub(crate) async fn silent() -> Result<FakeServer> {
    FakeServer::answering(Answer::Stall(Vec::new())).await
}

/// A server with the workload, moved by an operator.
async fn operated() -> Result<FakeServer> {
    FakeServer::answering(Answer::json("200 OK", &live("shop", WEB, LIVE))).await
}

pub(crate) async fn is_asked(server: &FakeServer) -> Result<()> {
    wait::until("the server to be asked", wait::SOON, || async {
        let heads = server.heads();
        if heads.is_empty() { Err("no request") } else { Ok(()) }
    })
    .await?;
    Ok(())
}

async fn is_gone(id: u32) -> Result<()> {
    wait::until("belay to be gone", wait::SOON, || async {
        if is_running(id) { Err("it runs") } else { Ok(()) }
    })
    .await?;
    Ok(())
}

#[rstest]
#[case(Signal::TERM, "SIGTERM")]
#[case(Signal::INT, "SIGINT")]
#[tokio::test]
async fn a_signal_ends_a_run_that_waits_for_input(
    #[case] signal: Signal,
    #[case] name: &str,
) -> Result<()> {
    let belay = Belay::at("http://127.0.0.1:1", "shop")?.args(["--timeout", "1h"]);
    let running = belay.input_stays_open().start()?;
    running.watches().await?;
    send(running.id()?, signal)?;
    running.end().await?.refused(&[&format!("ended by {name}"), "nothing was written"]);
    Ok(())
}

#[rstest]
#[case(Signal::TERM, "SIGTERM")]
#[case(Signal::INT, "SIGINT")]
#[tokio::test]
async fn a_signal_ends_a_run_that_waits_for_the_server(
    #[case] signal: Signal,
    #[case] name: &str,
) -> Result<()> {
    let server = silent().await?;
    let running = Belay::at(&server.url(), "shop")?.args(["--timeout", "1h"]).start()?;
    is_asked(&server).await?;
    send(running.id()?, signal)?;
    let ended = running.end().await?;
    ended.refused(&[&format!("ended by {name}"), "nothing was written"]);
    assert!(ended.report().contains(&server.url()), "{}", ended.report());
    Ok(())
}

#[rstest]
#[tokio::test]
async fn a_run_whose_parent_is_killed_ends_without_output(
    #[values(true, false)] reading: bool,
) -> Result<()> {
    let server = silent().await?;
    let state = tempfile::tempdir()?;
    // A command in the background has no standard input of its own in a script.
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "exec 3<&0; \"$@\" <&3 & echo $!; wait", "sh"])
        .arg(helms::belay()?)
        .args(["--kube-apiserver", &server.url(), "--namespace", "shop", "--timeout", "1h"])
        .env("XDG_STATE_HOME", state.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("start a shell")?;
    let mut input = shell.stdin.take().context("no standard input")?;
    let mut output = BufReader::new(shell.stdout.take().context("no standard output")?);
    let mut line = String::new();
    output.read_line(&mut line).await?;
    let belay = line.trim().parse()?;
    runs::watches(belay).await?;
    if !reading {
        tokio::io::AsyncWriteExt::write_all(&mut input, WEB_MANIFEST.as_bytes()).await?;
        drop(input);
        is_asked(&server).await?;
    }
    // With `reading`, the input stays open to the end of the test.
    shell.start_kill()?;
    is_gone(belay).await?;
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).await?;
    assert_eq!(rest.escape_ascii().to_string(), "");
    let report = report(&helms::report_below(state.path()));
    assert!(report.contains("the process that started it is gone"), "{report}");
    Ok(())
}

/// A `helm upgrade` that waits for a `belay` that waits for a server.
struct Waiting {
    namespace: String,
    cluster: &'static Cluster,
    upgrade:
        tokio::task::JoinHandle<Result<belay_testkit::tool::Finished, belay_testkit::TestbedError>>,
    state: tempfile::TempDir,
    before: (Option<String>, usize),
    helm: u32,
    belay: u32,
}

impl Waiting {
    async fn start(major: Major, server: &FakeServer) -> Result<Self> {
        let cluster = Cluster::shared().await?;
        let namespace = cluster.namespace("killed").await?;
        let folder = tempfile::tempdir()?;
        let state = tempfile::tempdir()?;
        let chart = helms::suite("charts/matrix");
        let helm = || helms::helm(cluster, major, state.path());
        helm().await?.args(["install", WEB, "-n", &namespace]).arg(&chart).ok().await?;
        let before = (version(cluster, &namespace).await?, records(cluster, &namespace).await?);
        // Another cluster for belay alone, in the same process that Helm started.
        let config = folder.path().join("kubeconfig");
        let elsewhere = runs::kubeconfig(&server.url(), &[("elsewhere", None)]);
        fs::write(&config, elsewhere.to_string())?;
        let ids = folder.path().join("ids");
        let lines = format!(
            "echo \"$PPID $$\" > {ids}.new; mv {ids}.new {ids}\n\
             KUBECONFIG={config} exec belay \"$@\"",
            ids = ids.display(),
            config = config.display(),
        );
        let script = runs::script(folder.path(), &lines)?;
        let tool =
            helm().await?.args(["upgrade", WEB, "-n", &namespace, "--set", "image.tag=9.9.9"]);
        let tool = tool.arg(chart).arg("--post-renderer-args=--timeout=1h").arg("--post-renderer");
        let tool = match major {
            Major::Three => tool.arg(script),
            Major::Four => {
                let plugin = folder.path().join("plugins/slow");
                fs::create_dir_all(&plugin)?;
                let manifest = json!({
                    "apiVersion": "v1", "type": "postrenderer/v1", "name": "slow",
                    "version": "0.1.0", "runtime": "subprocess", "config": {},
                    "runtimeConfig": { "platformCommand": [{ "command": script }] },
                });
                fs::write(plugin.join("plugin.yaml"), manifest.to_string())?;
                tool.arg("slow").env("HELM_PLUGINS", folder.path().join("plugins"))
            }
        };
        let upgrade = tokio::spawn(tool.run());
        is_asked(server).await?;
        let ids = fs::read_to_string(&ids).context("read the process ids")?;
        let (helm, belay) = ids.trim().split_once(' ').context("no two process ids")?;
        let (helm, belay) = (helm.parse()?, belay.parse()?);
        Ok(Self { namespace, cluster, upgrade, state, before, helm, belay })
    }

    /// Asserts that nothing has changed in the cluster, and returns the report and Helm's words.
    async fn end(self) -> Result<(String, String)> {
        is_gone(self.belay).await?;
        let ended = self.upgrade.await??;
        assert!(!ended.status.success(), "{}", ended.stdout);
        let after = (
            version(self.cluster, &self.namespace).await?,
            records(self.cluster, &self.namespace).await?,
        );
        assert_eq!(
            after, self.before,
            "the Deployment's version, and how many revisions there are"
        );
        Ok((report(&helms::report_below(self.state.path())), ended.stderr))
    }
}

/// The resourceVersion of the workload.
async fn version(cluster: &Cluster, namespace: &str) -> Result<Option<String>> {
    let api: Api<Deployment> = Api::namespaced(cluster.admin()?, namespace);
    wait::until("the controller to have seen web", wait::SOON, || async {
        let web = api.get(WEB).await.map_err(|error| error.to_string())?;
        let seen = web.status.as_ref().and_then(|status| status.observed_generation);
        if seen == web.metadata.generation {
            Ok(web.metadata.resource_version)
        } else {
            Err(format!("{seen:?}"))
        }
    })
    .await
    .map_err(Into::into)
}

/// How many revisions Helm has recorded.
async fn records(cluster: &Cluster, namespace: &str) -> Result<usize> {
    let api: Api<Secret> = Api::namespaced(cluster.admin()?, namespace);
    Ok(api.list(&ListParams::default().labels("owner=helm")).await?.items.len())
}

#[rstest]
#[tokio::test]
async fn a_helm_that_is_killed_takes_belay_with_it_and_changes_nothing(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let server = silent().await?;
    let waiting = Waiting::start(major, &server).await?;
    send(waiting.helm, Signal::KILL)?;
    let (report, _) = waiting.end().await?;
    assert!(report.contains("the process that started it is gone"), "{report}");
    Ok(())
}

#[rstest]
#[tokio::test]
async fn an_interrupt_at_the_terminal_ends_both_and_changes_nothing(
    #[values(Major::Three, Major::Four)] major: Major,
) -> Result<()> {
    let server = silent().await?;
    let waiting = Waiting::start(major, &server).await?;
    send(waiting.helm, Signal::INT)?;
    send(waiting.belay, Signal::INT)?;
    let (report, words) = waiting.end().await?;
    assert!(report.contains("ended by SIGINT"), "{report}");
    assert!(words.contains("error while running post render"), "{words}");
    Ok(())
}

#[tokio::test]
async fn an_output_that_nobody_reads_is_an_error() -> Result<()> {
    let (reader, writer) = pipe()?;
    drop(reader);
    let server = operated().await?;
    let ended = Belay::at(&server.url(), "shop")?.stdout(writer).run().await?;
    ended.refused(&["write the manifests to standard output", "Broken pipe"]);
    Ok(())
}

#[tokio::test]
async fn an_output_whose_reader_leaves_half_way_is_an_error() -> Result<()> {
    let (mut reader, writer) = pipe()?;
    let comments = "# a line that fills a pipe\n".repeat(100_000);
    let running =
        Belay::new()?.input(format!("{comments}{comments}kind: A\n")).stdout(writer).start()?;
    let first = tokio::task::spawn_blocking(move || {
        let mut first = [0; 100];
        reader.read_exact(&mut first).map(|()| first)
    });
    assert!(first.await??.starts_with(b"# a line"));
    running.end().await?.refused(&["write the manifests to standard output", "Broken pipe"]);
    Ok(())
}

#[tokio::test]
async fn an_output_that_nobody_takes_ends_with_the_deadline() -> Result<()> {
    let (reader, writer) = pipe()?;
    let comments = "# a line that fills a pipe\n".repeat(100_000);
    let belay = Belay::new()?.args(["--timeout", "1s"]).input(format!("{comments}kind: A\n"));
    let ended = belay.stdout(writer).run().await?;
    ended.refused(&["not done within 1s", "standard output is not read"]);
    drop(reader);
    Ok(())
}

#[tokio::test]
async fn an_output_that_is_full_is_an_error() -> Result<()> {
    let server = operated().await?;
    let full = File::options().write(true).open("/dev/full")?;
    let ended = Belay::at(&server.url(), "shop")?.stdout(full).run().await?;
    ended.refused(&["write the manifests to standard output", "No space left on device"]);
    Ok(())
}

#[rstest]
#[case::explained(&["--explain"])]
#[case::help(&["--help"])]
#[tokio::test]
async fn whatever_else_is_printed_there_must_be_room_for_it(
    #[case] arguments: &[&str],
) -> Result<()> {
    let server = operated().await?;
    let full = File::options().write(true).open("/dev/full")?;
    let ended = Belay::at(&server.url(), "shop")?.args(arguments).stdout(full).run().await?;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    Ok(())
}

/// A place where no report can be kept.
#[derive(Debug, Clone, Copy)]
enum NoPlace {
    Folder,
    BelowAFile,
    FullDevice,
    PipeWithoutReader,
    StandardOutput,
}

impl NoPlace {
    fn path(self, folder: &Path) -> Result<PathBuf> {
        Ok(match self {
            Self::Folder => folder.to_owned(),
            Self::BelowAFile => {
                fs::write(folder.join("file"), "")?;
                folder.join("file/last-run.log")
            }
            Self::FullDevice => "/dev/full".into(),
            Self::PipeWithoutReader => {
                let path = folder.join("fifo");
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)?;
                path
            }
            Self::StandardOutput => "/dev/stdout".into(),
        })
    }
}

#[rstest]
#[tokio::test]
async fn a_report_that_cannot_be_kept_fails_no_run_and_disturbs_no_output(
    #[values(
        NoPlace::Folder,
        NoPlace::BelowAFile,
        NoPlace::FullDevice,
        NoPlace::PipeWithoutReader,
        NoPlace::StandardOutput
    )]
    place: NoPlace,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = place.path(folder.path())?;
    let server = operated().await?;
    let run =
        |url: &str| Ok::<_, anyhow::Error>(Belay::at(url, "shop")?.arg("--log-file").arg(&path));
    let ended = run(&server.url())?.run().await?;
    assert_eq!(ended.passed(), WEB_MANIFEST.replace(CHART_IMAGE, LIVE).as_bytes());
    let ended = run("http://127.0.0.1:1")?.run().await?;
    assert_eq!((ended.code, &*ended.stdout), (Some(1), &b""[..]), "{}", ended.stderr);
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(
        last.contains("cannot be reached") && last.ends_with("; no report could be kept"),
        "{last}"
    );
    Ok(())
}

#[rstest]
#[case::said(&["--log-file", "said/run.log"], &[], "said/run.log")]
#[case::said_by_variable(&[], &[("BELAY_LOG_FILE", "said.log")], "said.log")]
#[case::state_folder(&[], &[("XDG_STATE_HOME", "{home}/other")], "other/belay/last-run.log")]
#[case::home(&[], &[("XDG_STATE_HOME", "")], ".local/state/belay/last-run.log")]
#[case::relative(&[], &[("XDG_STATE_HOME", "state")], ".local/state/belay/last-run.log")]
#[tokio::test]
async fn the_report_is_kept_where_the_user_says_else_with_the_state(
    #[case] arguments: &[&str],
    #[case] variables: &[(&str, &str)],
    #[case] place: &str,
) -> Result<()> {
    let server = operated().await?;
    let mut belay = Belay::at(&server.url(), "shop")?.args(arguments);
    let home = belay.home().to_owned();
    for (name, value) in variables {
        belay = belay.env(name, value.replace("{home}", &home.display().to_string()));
    }
    let ended = belay.run().await?;
    ended.passed();
    let told = report(&ended.home().join(place));
    assert!(told.contains("preserve Deployment shop/web app"), "{told}");
    Ok(())
}

#[tokio::test]
async fn without_any_home_a_run_works_and_keeps_no_report() -> Result<()> {
    let server = operated().await?;
    let belay = Belay::at(&server.url(), "shop")?.env("HOME", "").env("XDG_STATE_HOME", "");
    let ended = belay.run().await?;
    ended.passed();
    assert_eq!(fs::read_dir(ended.home())?.count(), 0);
    Ok(())
}

#[tokio::test]
async fn a_report_replaces_the_one_before() -> Result<()> {
    let state = tempfile::tempdir()?;
    let server = operated().await?;
    let run = |url: &str| {
        Ok::<_, anyhow::Error>(Belay::at(url, "shop")?.env("XDG_STATE_HOME", state.path()))
    };
    let path = helms::report_below(state.path());
    run("http://127.0.0.1:1")?.run().await?.refused(&["cannot be reached"]);
    assert!(report(&path).contains("error: "));
    run(&server.url())?.run().await?.passed();
    let told = report(&path);
    assert!(!told.contains("error: ") && told.contains("preserve Deployment"), "{told}");
    Ok(())
}

#[tokio::test]
async fn runs_at_once_leave_one_whole_report_and_nothing_else() -> Result<()> {
    let state = tempfile::tempdir()?;
    let server = operated().await?;
    let mut running = Vec::new();
    for number in 0..12 {
        // Each reports about another container of the manifest: longer and shorter ones.
        let input = WEB_MANIFEST.replace("name: app", &format!("name: {}", "x".repeat(number + 1)));
        let belay =
            Belay::at(&server.url(), "shop")?.env("XDG_STATE_HOME", state.path()).input(input);
        running.push(belay.start()?);
    }
    let mut reports = Vec::new();
    for run in running {
        let ended = run.end().await?;
        ended.passed();
        reports.push(ended.stderr);
    }
    let path = helms::report_below(state.path());
    let last = report(&path);
    assert!(reports.contains(&last), "{last}");
    let folder = path.parent().context("the report lies in no folder")?;
    assert_eq!(fs::read_dir(folder)?.count(), 1);
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_ended_reports_in_json_where_that_is_asked_for() -> Result<()> {
    let server = silent().await?;
    let state = tempfile::tempdir()?;
    let belay = Belay::at(&server.url(), "shop")?.args(["--report", "json", "--timeout", "1s"]);
    let ended = belay.env("XDG_STATE_HOME", state.path()).run().await?;
    assert_eq!((ended.code, &*ended.stdout), (Some(1), &b""[..]));
    let kept: serde_json::Value =
        serde_json::from_str(&report(&helms::report_below(state.path())))?;
    assert_eq!(kept["succeeded"], false);
    assert_eq!(kept["server"]["value"], server.url());
    let told: serde_json::Value = serde_json::from_str(&ended.stderr)?;
    let error = kept["error"].as_str().context("no error")?;
    assert!(error.contains("not done within 1s"), "{error}");
    let path = helms::report_below(state.path());
    assert_eq!(told["error"], format!("{error}; report: {}", path.display()));
    Ok(())
}
