//! Missing rights, a missing installation, a server that says nothing, and who asks as whom.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use belay_suite::helms::account;
use belay_testkit::{
    Cluster,
    cluster::{
        Options,
        identity::{Access, Credential},
    },
};
use kubectl_release::Exit;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{run::Shell, scene::Scene, shown::shown, status::healthy};

/// Somebody who may read these resources in the scene's namespace, and nothing else.
async fn reader(scene: &Scene, rules: Value) -> Result<Shell> {
    let access = account(scene.cluster, &scene.namespace, "reader", &rules).await?;
    Shell::of(scene.cluster, &format!("reader-{}", scene.namespace), &access)
}

#[tokio::test]
async fn what_may_not_be_read_is_a_line_and_never_a_failure() -> Result<()> {
    let scene = Scene::new("forbidden").await?;
    healthy(&scene).await?;
    let targets = json!([{
        "apiGroups": ["belay.dev"], "resources": ["releasetargets"], "verbs": ["get", "list"],
    }]);
    let shell = reader(&scene, targets).await?;
    let ran = shell.run("status web").await?;
    assert_eq!(ran.exit, Exit::Done, "{ran:?}");
    insta::assert_snapshot!(shown(&ran.stdout, &scene.namespace));
    let list = shell.run("status").await?;
    assert_eq!(list.exit, Exit::Done, "{list:?}");
    assert!(list.stderr.starts_with("note: READY and OWNER are unknown (?): "), "{list:?}");
    let history = shell.run("history web").await?;
    assert_eq!(history.exit, Exit::Error, "{history:?}");
    // A watch that may not be opened is a read every other second.
    let watch = shell.run("status web -w").await?;
    assert_eq!(watch.exit, Exit::Done, "{watch:?}");
    Ok(())
}

#[tokio::test]
async fn a_target_that_may_not_be_read_is_refused_as_kubectl_does() -> Result<()> {
    let scene = Scene::new("denied").await?;
    healthy(&scene).await?;
    let shell = reader(&scene, json!([])).await?;
    for words in ["status web", "status", "status web -w"] {
        let ran = shell.run(words).await?;
        assert_eq!(ran.exit, Exit::Error, "{ran:?}");
        assert!(ran.stderr.starts_with("Error from server (Forbidden): "), "{ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn without_the_crds_belay_is_not_installed() -> Result<()> {
    let cluster = Cluster::start(Options::server_alone()).await?;
    let namespace = cluster.namespace("bare").await?;
    let shell = Shell::admin(&cluster, &namespace)?;
    for words in ["status", "status web", "status -A", "history web", "status web -w"] {
        let ran = shell.run(words).await?;
        assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Error, ""), "{words}: {ran:?}");
        let first = "error: Belay is not installed in this cluster\n";
        assert!(ran.stderr.starts_with(first), "{words}: {ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_after_the_request_timeout() -> Result<()> {
    let scene = Scene::new("hangs").await?;
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let server = format!("http://{}", silent.local_addr()?);
    for words in ["status", "status web", "history web"] {
        let words = format!("{words} -s {server} --request-timeout 1s");
        let run = scene.shell()?;
        let ran = tokio::time::timeout(Duration::from_secs(30), run.run(&words)).await;
        let ran = ran.context("it hangs too")??;
        assert_eq!(ran.exit, Exit::Error, "{ran:?}");
        assert!(ran.stderr.contains("no answer from http://127.0.0.1"), "{ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn one_asks_as_whom_the_flags_say() -> Result<()> {
    let scene = Scene::new("impersonates").await?;
    let ran = scene.shell()?.run("status web --as alice --as-uid 7 --as-group dev").await?;
    assert!(ran.stderr.contains("User \"alice\" cannot get resource"), "{ran:?}");
    Ok(())
}

/// The kubeconfig of an access, with changes.
pub(crate) fn kubeconfig(
    folder: &Path,
    name: &str,
    access: &Access,
    change: impl FnOnce(&mut Value),
) -> Result<PathBuf> {
    let mut config = access.kubeconfig();
    change(&mut config);
    let path = folder.join(name);
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}

#[tokio::test]
async fn files_of_a_list_are_merged_and_a_credential_plugin_is_run() -> Result<()> {
    let scene = Scene::new("merged").await?;
    let access = scene.cluster.service_account(&scene.namespace, "plugged").await?;
    let Credential::Token(token) = &access.credential else { bail!("no token") };
    let folder = tempfile::tempdir()?;
    let credential = folder.path().join("credential.json");
    let answer = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    });
    std::fs::write(&credential, answer.to_string())?;
    let contexts = kubeconfig(folder.path(), "contexts", &access, |config| {
        config["clusters"] = json!([]);
        config["users"] = json!([]);
    })?;
    let users = kubeconfig(folder.path(), "users", &access, |config| {
        config["contexts"] = json!([]);
        config["users"][0]["user"] = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "cat",
            "args": [credential],
            "interactiveMode": "Never",
        }});
    })?;
    let list = std::env::join_paths([&contexts, &users])?;
    let shell = scene.shell()?;
    let mut program = shell.program(&["status", "web"])?;
    let output = program.env("KUBECONFIG", list).env("PATH", "/usr/bin:/bin").output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    let user = format!("system:serviceaccount:{}:plugged", scene.namespace);
    assert!(said.contains(&user) && output.status.code() == Some(1), "{output:?}");
    assert!(!said.contains(token.as_str()));
    Ok(())
}
