//! Formats for programs: what the real kubectl prints of the same objects.

use anyhow::{Result, ensure};
use belay_components::Binary;
use belay_testkit::tool::Finished;
use kubectl_release::Exit;
use serde_json::{Value, json};

use crate::{
    list::three,
    run::{Ran, Shell},
    scene::{Scene, condition},
};

/// Of one ReleaseTarget.
const OF_ONE: &[&str] = &[
    "{.metadata.name}",
    "{.kind}{\"\\n\"}",
    "{ .kind }",
    "kind",
    ".kind",
    "{.status.current}",
    "{.status}",
    "{.status.conditions}",
    "{@}",
    "{$}",
    "{.}",
    "{.status.conditions[*].type}",
    "{.status.conditions[0].type}",
    "{.status.conditions[-1].type}",
    "{.status.conditions[-2:].type}",
    "{.status.conditions[0:2].type}",
    "{.status.conditions[:1].type}",
    "{.status.conditions[1:].type}",
    "{.status.conditions[::2].type}",
    "{.status.conditions[0,1].type}",
    "{.status.conditions[0, 1]['type','status']}",
    "{.status.conditions[]}",
    "{.status.conditions[1:1].type}",
    "{.status.conditions[99].type}",
    "{.status.conditions[-99].type}",
    "{.status.conditions[0:99].type}",
    "{.status.conditions[x].type}",
    "{.status.conditions[\"type\"]}",
    "{.status.current[0]}",
    "{.status.conditions[?(@.type==\"Ready\")].status}",
    "{.status.conditions[?(@.type=='Ready')].status}",
    "{.status.conditions[?(@.type == \"Ready\")].status}",
    "{.status.conditions[?(@.type!=\"Ready\")].type}",
    "{.status.conditions[?(@.message)].type}",
    "{.status.conditions[?(@.nothing)].type}",
    "{.status.conditions[?(@.observedGeneration>0)].type}",
    "{.status.conditions[?(@.type>\"R\")].type}",
    "{.status.conditions[?(@.type==1)].type}",
    "{.status.conditions[?(@.type=Ready)].type}",
    "{.status.conditions[?(@.message==\"a) \\\"b\\\"\")].type}",
    "{.status.conditions[?(@.status==@.status)].type}",
    "{.status.containers[?(@==\"app\")]}",
    "{.metadata.generation}",
    "{.metadata.annotations.example\\.com/note}",
    "{.metadata.annotations['example\\.com/note']}",
    "{.metadata.annotations['example.com/note']}",
    "{.metadata.annotations}",
    "{..tag}",
    "{.status..tag}",
    "{..conditions[0].type}",
    "{.nothing.at.all}",
    "{.nothing[0]}",
    "{.metadata['name']} of {.metadata['namespace']}{'\\n'}",
    "{range .status.conditions[*]}{.type}={.status}{\"\\t\"}{end}",
    "{range .status.conditions}[{.type}]{end}",
    "{range .status.conditions[*]}{.type} ",
    "{range .nothing[*]}{.a}{end}none",
    "{range .status.conditions[*]}{range @}{.type}{end}{\"\\n\"}{end}end",
    "a {\"{\"} b {'}'}",
    "{\"\\u00e9\\\"\"}",
    "{.kind \"x\"}",
    "{1}{-2}{1.5}{true}",
    "{end}",
    "{kind}",
    "{.a",
    "{?}",
    "{\"\\q\"}",
    "{....a}",
    "{}",
    "",
];

/// Of a list of them.
const OF_ALL: &[&str] = &[
    "{.items[*].metadata.name}",
    "{.items[-1:].metadata.name}",
    "{.items[?(@.metadata.name==\"web\")].status.current.tag}",
    "{.items[?(@.status.active)].metadata.name}",
    "{range .items[*]}{.metadata.name}{\"\\t\"}{.status.current.tag}{\"\\t\"}{.status.active}{\"\\n\"}{end}",
    "{range .items[*]}{.metadata.name}:{range .status.conditions[*]} {.type}{end}{\"\\n\"}{end}",
    "{.items[*]['metadata.name', 'status.current.tag']}",
    "{.items[*].status.conditions[?(@.type==\"Stalled\")].reason}",
    "{.kind}/{.apiVersion}",
    "{..reason}",
    "{.items[3].metadata.name}",
];

async fn kubectl(scene: &Scene, shell: &Shell, words: &[&str]) -> Result<Finished> {
    let tool = scene.cluster.tool_as(Binary::Kubectl, &shell.kubeconfig)?;
    Ok(tool.args(["get", "releasetargets"]).args(words).run().await?)
}

/// Whether both print the same and end alike; kubectl knows one code for what went wrong.
fn are_alike(format: &str, ours: &Ran, kubectl: &Finished) -> bool {
    if ours.exit != Exit::Done || !kubectl.status.success() {
        // What kubectl has printed before it failed is for nobody.
        return ours.exit != Exit::Done && !kubectl.status.success();
    }
    // Two libraries quote the same text in two ways.
    let yaml = |text: &str| serde_yaml::from_str::<Value>(text).ok();
    let is_yaml = format == "-oyaml" && yaml(&ours.stdout).is_some();
    ours.stdout == kubectl.stdout || is_yaml && yaml(&ours.stdout) == yaml(&kubectl.stdout)
}

#[tokio::test]
async fn documents_and_templates_print_what_kubectl_prints() -> Result<()> {
    let scene = Scene::new("formats").await?;
    three(&scene).await?;
    let odd = "a) \"b\" <c> & é\nsecond: line\t'x' #";
    let note = json!({
        "metadata": {"annotations": {"example.com/note": odd, "empty": "", "number": "012", "no": "no"}},
    });
    let status = json!({"status": {"conditions": [
        condition("Ready", "True", "Ready", odd, 60)?,
        condition("Stalled", "False", "Idle", "a) \"b\"", 60)?,
        condition("Progressing", "False", "Idle", "", 60)?,
    ]}});
    scene.patch_target("web", note, status).await?;
    let shell = scene.shell()?;
    let templates = |all: &'static [&'static str], name: &'static str| {
        all.iter().map(move |template| (name, format!("-ojsonpath={template}")))
    };
    let documents = ["json", "yaml", "name"].map(|format| format!("-o{format}"));
    let documents =
        ["web", ""].into_iter().flat_map(|name| documents.clone().map(|one| (name, one)));
    let all = documents.chain(templates(OF_ONE, "web")).chain(templates(OF_ALL, ""));
    let mut differences = Vec::new();
    for (name, format) in all {
        let words: Vec<&str> =
            [name, &format].into_iter().filter(|word| !word.is_empty()).collect();
        let theirs = kubectl(&scene, &shell, &words).await?;
        let ours = shell.run_words(&[&["status"], words.as_slice()].concat()).await?;
        if !are_alike(&format, &ours, &theirs) {
            differences.push(format!("{words:?}\n  ours: {ours:?}\n  kubectl: {theirs:?}"));
        }
    }
    ensure!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    Ok(())
}

#[tokio::test]
async fn a_history_is_a_list_of_the_objects_that_kubectl_gets() -> Result<()> {
    let scene = Scene::new("history-formats").await?;
    crate::status::moved(&scene).await?;
    scene.target("web", json!({})).await?;
    let shell = scene.shell()?;
    let ours: Value = shell.run("history web -o json").await?.json()?;
    let tool = scene.cluster.tool_as(Binary::Kubectl, &shell.kubeconfig)?;
    let theirs = tool.args(["get", "releases.belay.dev", "-o", "json"]).run().await?;
    let mut theirs: Value = serde_json::from_str(&theirs.stdout)?;
    // The newest first, which kubectl sorts by name.
    let by_name = |list: &Value| {
        let mut items = list["items"].as_array().cloned().unwrap_or_default();
        items.sort_by_key(|item| item["metadata"]["name"].to_string());
        items
    };
    let items = by_name(&ours);
    ensure!(items.len() == 2 && items == by_name(&theirs), "{ours:#}\n{theirs:#}");
    theirs["items"] = ours["items"].clone();
    assert_eq!(ours, theirs);
    Ok(())
}
