//! The pages of `docs/guide`, each by itself or after the one that it builds on.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result};
use belay_suite::helms::Major;
use belay_testkit::{Cluster, cluster::Options, keda::Keda};
use rstest::rstest;

use super::{bed::Bed, page::Page, session::top};

/// Pages that begin where Belay is not installed, in this order.
const FROM_NOTHING: [&str; 5] = ["install", "keda", "private", "migrate", "uninstall"];

/// Pages that begin where it is.
const INSTALLED: [&str; 5] = ["annotate", "helm", "hold", "rollback", "troubleshooting"];

/// Its commands are run by the tests of the post-renderer, where no operator takes part.
const ELSEWHERE: &str = "post-renderer";

/// Commands that no page runs, with the page and the reason.
const NOT_RUN: &str = include_str!("not-run.txt");

#[rstest]
#[case("annotate")]
#[case("helm")]
#[case("hold")]
#[case("rollback")]
#[case("troubleshooting")]
#[tokio::test]
async fn the_commands_of_a_page_do_what_it_shows(#[case] page: &str) -> Result<()> {
    Bed::installed().await?.play(page).await
}

#[tokio::test]
async fn from_the_installation_to_its_end() -> Result<()> {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start(Options::default()).await?));
    let bed = Bed::empty(cluster).await?;
    // One page is about it; the others find the operator beside it.
    let _keda = Keda::start(cluster).await?;
    for page in FROM_NOTHING {
        bed.play(page).await?;
    }
    Ok(())
}

fn names() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(top("docs/guide")).context("read the folder of the guide")? {
        let name = entry?.file_name().into_string().ok().context("a name that is no text")?;
        names.insert(name.strip_suffix(".md").context("a file that is no page")?.to_owned());
    }
    Ok(names)
}

#[test]
fn every_page_is_run() -> Result<()> {
    let run = FROM_NOTHING.iter().chain(&INSTALLED).chain([&ELSEWHERE]);
    assert_eq!(names()?, run.map(|&name| name.to_owned()).collect());
    Ok(())
}

#[test]
fn the_commands_that_are_not_run_are_these() -> Result<()> {
    let mut found = Vec::new();
    for name in names()? {
        let text = fs::read_to_string(top(&format!("docs/guide/{name}.md")))?;
        let page = Page::read(&text, Major::Four)?;
        found.extend(page.not_run.iter().map(|command| format!("{name}: {command}")));
    }
    println!("not run:\n{}", found.join("\n"));
    assert_eq!(found, NOT_RUN.lines().collect::<Vec<_>>());
    Ok(())
}
