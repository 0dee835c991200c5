//! How runs end: the table of exit codes (specification of the plugin, section C.5).

use anyhow::Result;
use kubectl_release::Exit;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    scene::{Scene, condition},
    status::healthy,
};

#[rstest]
#[case::help("--help", Exit::Done)]
#[case::help_of_a_verb("status --help", Exit::Done)]
#[case::no_verb("", Exit::Usage)]
#[case::no_such_verb("stauts", Exit::Usage)]
#[case::no_such_flag("status --no-such-flag", Exit::Usage)]
#[case::no_such_format("status -o xml", Exit::Usage)]
#[case::timeout_of_nothing("status web --timeout 1s", Exit::Usage)]
#[case::half_an_impersonation("status --as-group a", Exit::Usage)]
#[case::broken_template("status -o jsonpath={", Exit::Usage)]
#[case::no_such_target("status no-such-target", Exit::Error)]
#[case::no_history("history no-such-target", Exit::Error)]
#[case::no_context("status --context no-such", Exit::Error)]
#[case::no_server("status -s https://127.0.0.1:1", Exit::Error)]
#[case::version("version --client", Exit::Done)]
#[tokio::test]
async fn a_command_line_ends_as_documented(
    #[case] words: &str,
    #[case] expected: Exit,
) -> Result<()> {
    let scene = Scene::new("exit").await?;
    let ran = scene.shell()?.run(words).await?;
    assert_eq!(ran.exit, expected, "{ran:?}");
    if expected != Exit::Done {
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{ran:?}");
    }
    Ok(())
}

fn conditions(word: &str) -> Result<Value> {
    let mut all = vec![condition("Ready", "Unknown", word, "because", 60)?];
    match word {
        "Progressing" => all.push(condition("Progressing", "True", "Rolling", "", 60)?),
        "Stalled" => all.push(condition("Stalled", "True", "Broken", "", 60)?),
        "Held" => all.push(condition("Held", "True", "OnHold", "", 60)?),
        _ => {}
    }
    Ok(json!(all))
}

#[rstest]
#[case("Ready", Exit::Done, Exit::Done)]
#[case("Progressing", Exit::Done, Exit::Bad)]
#[case("Held", Exit::Done, Exit::Bad)]
#[case("Unknown", Exit::Done, Exit::Bad)]
#[case("Stalled", Exit::Bad, Exit::Bad)]
#[case("Failed", Exit::Bad, Exit::Bad)]
#[case("RolledBack", Exit::Bad, Exit::Bad)]
#[tokio::test]
async fn a_status_ends_by_where_the_target_stands(
    #[case] word: &str,
    #[case] plain: Exit,
    #[case] strict: Exit,
) -> Result<()> {
    let scene = Scene::new("stands").await?;
    scene.target("web", json!({"conditions": conditions(word)?})).await?;
    let shell = scene.shell()?;
    assert_eq!(shell.run("status web").await?.exit, plain);
    assert_eq!(shell.run("status web --exit-code").await?.exit, strict);
    Ok(())
}

#[rstest]
#[case::ready("Ready", "", Exit::Done)]
#[case::held("Held", "--until held", Exit::Done)]
#[case::never_ready("Held", "--until ready", Exit::Bad)]
#[case::stalled("Stalled", "", Exit::Bad)]
#[case::too_late("Progressing", "--timeout 1s", Exit::Timeout)]
#[tokio::test]
async fn a_watch_ends_by_what_it_waits_for(
    #[case] word: &str,
    #[case] flags: &str,
    #[case] expected: Exit,
) -> Result<()> {
    let scene = Scene::new("until").await?;
    scene.target("web", json!({"conditions": conditions(word)?})).await?;
    let ran = scene.shell()?.run(&format!("status web -w {flags}")).await?;
    assert_eq!(ran.exit, expected, "{ran:?}");
    assert!(ran.stdout.contains(&format!("/web {word}")), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn a_target_that_is_not_followed_yet_says_what_to_do() -> Result<()> {
    let scene = Scene::new("unfollowed").await?;
    scene.deployment("web", "1.9.2", 0).await?;
    let ran = scene.shell()?.run("status web").await?;
    assert_eq!(ran.exit, Exit::Error);
    assert!(ran.stderr.starts_with("Error from server (NotFound): "), "{ran:?}");
    assert!(ran.stderr.contains("\nhint: kubectl annotate deployment web"), "{ran:?}");
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn a_closed_pipe_ends_the_run_quietly() -> Result<()> {
    let scene = Scene::new("pipe").await?;
    healthy(&scene).await?;
    let mut child = scene.shell()?.program(&["status", "web", "-w", "--until", "held"])?.spawn()?;
    drop(child.stdout.take());
    let target = json!({"status": {"conditions": conditions("Held")?}});
    let api: kube::Api<belay_api::ReleaseTarget> =
        kube::Api::namespaced(scene.client.clone(), &scene.namespace);
    let params = kube::api::PatchParams::default();
    api.patch_status("web", &params, &kube::api::Patch::Merge(&target)).await?;
    let output = child.wait_with_output().await?;
    assert_eq!(output.status.code(), Some(i32::from(Exit::ClosedPipe.code())), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Ok(())
}
