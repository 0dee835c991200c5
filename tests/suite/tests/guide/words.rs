//! Pages that promise to name all of something do.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use belay_components::{Component, Components};
use rstest::rstest;

use super::session::top;

/// The words in the first column of the table below a heading of a page, of rows that say this.
fn column<'p>(page: &'p str, heading: &str, saying: &str) -> Result<Vec<&'p str>> {
    let (_, rest) = page.split_once(heading).with_context(|| format!("no {heading}"))?;
    let section = rest.split("\n#").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.contains(saying));
    let cells = rows.filter_map(|line| line.strip_prefix("| `"));
    Ok(cells.filter_map(|cell| cell.split_once('`')).map(|(word, _)| word).collect())
}

#[rstest]
#[case::stalled("\n### `Stalled`\n", "", "\n## A target is Stalled\n", "InvalidConfig")]
#[case::gates("\n### Gates: ", "", "\n## A release is not taken: gates\n", "Draft")]
#[case::summary(
    "\n## ReleaseTarget (`rt`)\n\n### `Ready`\n",
    "",
    "\n## The word of a target\n",
    "Ready"
)]
#[case::progressing("\n### `Progressing`\n", "", "\n## It takes long\n", "Idle")]
#[case::failed("\n### `Healthy`\n", "| False: ", "\n## A release has failed\n", "InvalidImageName")]
#[case::refused("\n### Rejections: ", "", "\n## A Rollback is refused\n", "NoReleaseToGoTo")]
#[case::notes("\n### Notes\n", "", "\n## A note stands on a target\n", "ChangedByAdmission")]
fn troubleshooting_names_each_word_in_the_order_of_the_reference(
    #[case] reference: &str,
    #[case] saying: &str,
    #[case] heading: &str,
    #[case] first: &str,
) -> Result<()> {
    let all = fs::read_to_string(top("docs/reference/conditions.md"))?;
    let page = fs::read_to_string(top("docs/guide/troubleshooting.md"))?;
    let words = column(&all, reference, saying)?;
    ensure!(words.first() == Some(&first), "{words:?}");
    // An analysis judges nothing yet: the operator runs none.
    let words: Vec<_> = words.into_iter().filter(|word| *word != "AnalysisFailed").collect();
    assert_eq!(column(&page, heading, "")?, words);
    Ok(())
}

#[test]
fn what_is_supported_is_what_tests_run_against() -> Result<()> {
    let page = fs::read_to_string(top("docs/support.md"))?;
    let row = |of: &str| {
        let row = page.lines().find(|line| line.starts_with(&format!("| {of} |")));
        row.with_context(|| format!("no row {of}"))
    };
    let components = Components::from_env()?;
    for (of, component) in [
        ("Kubernetes", Component::Kubernetes),
        ("Helm 3", Component::Helm3),
        ("Helm 4", Component::Helm4),
        ("KEDA", Component::Keda),
    ] {
        let version = components.version(component)?;
        let version = version.trim_start_matches('v');
        ensure!(row(of)?.ends_with(&format!("| {version} |")), "{}, not {version}", row(of)?);
    }
    for (of, file, before, after) in [
        ("Kubernetes", "charts/belay/Chart.yaml", "kubeVersion: \">=", ".0-0\""),
        ("Rust, to build", "rust-toolchain.toml", "channel = \"", ".0\""),
    ] {
        let text = fs::read_to_string(top(file))?;
        let (_, rest) = text.split_once(before).with_context(|| format!("{file}: {before}"))?;
        let (least, _) = rest.split_once(after).with_context(|| format!("{file}: {after}"))?;
        ensure!(row(of)?.starts_with(&format!("| {of} | {least}")), "{}, not {least}", row(of)?);
    }
    Ok(())
}

#[test]
fn every_annotation_that_a_page_names_exists() -> Result<()> {
    let reference = fs::read_to_string(top("docs/reference/annotations.md"))?;
    let mut pages = vec![top("README.md"), top("docs/support.md"), top("docs/security.md")];
    for folder in ["docs/guide", "docs/examples"] {
        for entry in fs::read_dir(top(folder))? {
            pages.push(entry?.path());
        }
    }
    for page in pages {
        let text = fs::read_to_string(&page)?;
        for (at, _) in text.match_indices("belay.dev/") {
            let name = text[at..].split(|c: char| !c.is_alphanumeric() && !"./-".contains(c));
            let name =
                name.into_iter().next().unwrap_or_default().trim_end_matches(['.', '/', '-']);
            let is_known = reference.contains(&format!("`{name}`"));
            let is_object = text[..at].ends_with(['.', '/', '"']);
            let is_api = name.starts_with("belay.dev/v1");
            ensure!(is_known || is_object || is_api, "{} names {name}", page.display());
        }
    }
    Ok(())
}
