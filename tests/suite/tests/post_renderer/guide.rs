//! The commands of `docs/guide/post-renderer.md`, run in their order with each Helm, by the executor of
//! the guide. Here, and not with the other pages, because no operator may take part.
//!
//! All blocks of one Helm share a shell, a home, and a namespace, which stands where the page says
//! `shop`.

#[path = "../guide/page.rs"]
mod page;
#[path = "../guide/session.rs"]
mod session;
#[path = "../guide/shown.rs"]
mod shown;

use std::fs;

use anyhow::{Result, ensure};
use belay_components::Binary;
use belay_testkit::Cluster;
use rstest::rstest;

use belay_suite::helms::{Major, belay};

use self::{
    page::Page,
    session::{Session, top},
};

#[rstest]
#[case::helm_3(Major::Three)]
#[case::helm_4(Major::Four)]
#[tokio::test]
async fn the_commands_of_the_guide_do_what_it_shows(#[case] major: Major) -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("shop").await?;
    let text = fs::read_to_string(top("docs/guide/post-renderer.md"))?;
    let page = Page::read(&text.replace("shop", &namespace), major)?;
    ensure!(page.for_each_helm && page.not_run.is_empty(), "the page is not what is tested here");
    let folder = tempfile::tempdir()?;
    let component = |binary| cluster.components().binary(binary);
    let session = Session {
        folder: folder.path().to_owned(),
        work: top(""),
        programs: vec![
            ("belay", belay()?),
            ("helm", component(major.binary())?),
            ("helm3", component(Binary::Helm3)?),
            ("kubectl", component(Binary::Kubectl)?),
        ],
        variables: Vec::new(),
        kubeconfig: cluster.admin_kubeconfig(),
    };
    session.run(&page).await
}
