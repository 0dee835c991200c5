//! `status` without a name: mock-up B.4.

use anyhow::Result;
use kubectl_release::Exit;
use serde_json::json;

use crate::{
    scene::{Scene, condition, image},
    status::healthy,
};

/// A healthy `web`, a `cart` under way, an `api` that is stalled.
pub(crate) async fn three(scene: &Scene) -> Result<()> {
    healthy(scene).await?;
    scene.deployment("cart", "0.4.0", 0).await?;
    scene
        .target(
            "cart",
            json!({
                "containers": ["app"],
                "current": {"image": image("0.4.0"), "tag": "0.4.0"},
                "wanted": {"image": image("0.5.1"), "tag": "0.5.1"},
                "conditions": [
                    condition("Ready", "Unknown", "Progressing", "", 41)?,
                    condition("Progressing", "True", "Rolling", "", 41)?,
                ],
            }),
        )
        .await?;
    scene.deployment("api", "7.2.0", 0).await?;
    scene.apply_image("api", "7.1.0", "argocd-controller").await?;
    scene
        .target(
            "api",
            json!({
                "containers": ["app"],
                "current": {"image": image("7.1.0"), "tag": "7.1.0"},
                "wanted": {"image": image("7.2.0"), "tag": "7.2.0"},
                "conditions": [
                    condition("Ready", "False", "Stalled", "", 360)?,
                    condition("Stalled", "True", "ManagedByGitOps", "argocd owns it", 360)?,
                ],
            }),
        )
        .await
}

#[tokio::test]
async fn a_list_is_one_row_for_each_target() -> Result<()> {
    let scene = Scene::new("list").await?;
    three(&scene).await?;
    let shell = scene.shell()?;
    let plain = shell.run("status").await?.answer()?;
    // Nothing in it differs from run to run: the columns count too.
    insta::assert_snapshot!(plain);
    let wide = shell.run("status -o wide").await?.answer()?;
    insta::assert_snapshot!("wide", wide);
    let all = shell.run("status -A").await?;
    let rows = all.stdout.lines().filter(|line| line.starts_with(&scene.namespace)).count();
    assert_eq!((rows, all.exit), (3, Exit::Done), "{all:?}");
    assert!(all.stdout.starts_with("NAMESPACE  "), "{all:?}");
    Ok(())
}

#[tokio::test]
async fn a_list_is_narrowed_and_judged_on_demand() -> Result<()> {
    let scene = Scene::new("narrow").await?;
    three(&scene).await?;
    let shell = scene.shell()?;
    let names = |words: &str| {
        let (shell, words) = (shell.clone(), words.to_owned());
        async move { anyhow::Ok(shell.run(&words).await?.stdout) }
    };
    let stalled = "status --status-selector status=Stalled -o name";
    assert_eq!(names(stalled).await?, "releasetarget.belay.dev/api\n");
    let others = "status --status-selector status!=stalled,Progressing --no-headers";
    let row = names(others).await?;
    assert!(row.starts_with("web ") && row.lines().count() == 1, "{row:?}");
    assert_eq!(shell.run("status").await?.exit, Exit::Done);
    assert_eq!(shell.run("status --exit-code").await?.exit, Exit::Bad);
    let none = shell.run("status -l no=such").await?;
    let said = format!("No releases found in {} namespace.\n", scene.namespace);
    assert_eq!((none.exit, none.stdout.as_str(), none.stderr), (Exit::Done, "", said));
    Ok(())
}
