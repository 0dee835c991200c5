//! The clusters that the pages are run on: one where Belay is installed, one where it is not yet.
//!
//! A page says what a reader types. What stands behind it here: `ghcr.io` is a registry of this host
//! (the operator's `registry.mirrors`), GitHub is scripted, and `charts/belay` is a copy whose defaults
//! lead to both. A page has the namespace `shop` and the owner `acme` for itself, by other names, and
//! finds the release v1.0.0 of `acme/web` published.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_suite::{
    folders::copy,
    helms::{Major, belay},
    programs::beside_test,
};
use belay_testkit::{
    Cluster,
    github::{GitHub, LimitSettings, NewRelease, Rights},
    operator::ChartNode,
    registry::Registry,
};
use tokio::sync::OnceCell;

use super::{
    desk::{Desk, write_gh},
    page::Page,
    session::{Session, top},
};

/// The namespace of the operator on all pages.
const HOME: &str = "belay-system";

/// A cluster with what its pages need around it.
pub(crate) struct Bed {
    pub(crate) cluster: &'static Cluster,
    desk: Arc<Desk>,
    port: u16,
    token: String,
    node: ChartNode,
}

impl Bed {
    /// A cluster without Belay, but with all that it asks.
    pub(crate) async fn empty(cluster: &'static Cluster) -> Result<Self> {
        let github = GitHub::start().await?;
        github.set_limits(LimitSettings::off())?;
        let none: [&str; 0] = [];
        let token = github.create_token("guide", &Rights::read(none).everywhere())?;
        let desk = Arc::new(Desk { github, registry: Registry::start(cluster).await? });
        let port = desk.open()?;
        Ok(Self { cluster, desk, port, token, node: ChartNode::start(cluster)? })
    }

    /// The one in which Belay follows the workloads of all namespaces.
    pub(crate) async fn installed() -> Result<&'static Self> {
        static BED: OnceCell<Bed> = OnceCell::const_new();
        BED.get_or_try_init(|| async {
            let bed = Self::empty(Cluster::shared().await?).await?;
            let kubectl =
                |words: &[&str]| anyhow::Ok(bed.cluster.tool(Binary::Kubectl)?.args(words));
            kubectl(&["create", "namespace", HOME])?.ok().await?;
            let token = format!("--from-literal=token={}", bed.token);
            let secret = ["-n", HOME, "create", "secret", "generic", "github-token", &token];
            kubectl(&secret)?.ok().await?;
            let work = bed.cluster.run().folder().join("installed");
            bed.furnish(&work, "acme")?;
            let helm = bed.cluster.tool(Binary::Helm4)?.current_dir(&work);
            let helm = helm.args(["install", "belay", "charts/belay", "-n", HOME, "--wait"]);
            let installed = helm.args(["--set", "github.tokenSecret.name=github-token"]).ok().await;
            installed.with_context(|| bed.node.trouble())?;
            Ok(bed)
        })
        .await
    }

    /// Runs a page: with Helm 4, or with each Helm where one of its blocks belongs to one.
    pub(crate) async fn play(&self, name: &str) -> Result<()> {
        let text = fs::read_to_string(top(&format!("docs/guide/{name}.md")))
            .with_context(|| format!("read the page {name}"))?;
        let told = |error: anyhow::Error| {
            anyhow::anyhow!("docs/guide/{name}.md: {error:#}\n{}", self.node.trouble())
        };
        if Page::read(&text, Major::Four)?.for_each_helm {
            let three = self.play_with(name, &text, Major::Three, "-3");
            let four = self.play_with(name, &text, Major::Four, "-4");
            return tokio::try_join!(three, four).map(drop).map_err(told);
        }
        self.play_with(name, &text, Major::Four, "").await.map_err(told)
    }

    async fn play_with(&self, name: &str, text: &str, major: Major, more: &str) -> Result<()> {
        let owner = format!("acme-{name}{more}");
        let text = text.replace("acme", &owner).replace("shop", &format!("shop-{name}{more}"));
        let page = Page::read(&text, major)?;
        let folder = self.cluster.run().folder().join(format!("page-{name}{more}"));
        let work = folder.join("work");
        self.furnish(&work, &owner)?;
        let gh = folder.join("gh");
        write_gh(&gh, self.port)?;
        let repo = format!("{owner}/web");
        self.desk.github.create_repository(&repo)?;
        self.desk.publish(&repo, NewRelease::new("v1.0.0")).await?;
        let component = |binary| self.cluster.components().binary(binary);
        let session = Session {
            programs: vec![
                ("belay", belay()?),
                ("belay-operator", beside_test("belay-operator")?),
                ("gh", gh),
                ("helm", component(major.binary())?),
                ("helm3", component(Binary::Helm3)?),
                ("kubectl", component(Binary::Kubectl)?),
                ("kubectl-release", beside_test("kubectl-release")?),
            ],
            variables: vec![("GITHUB_TOKEN", self.token.clone())],
            kubeconfig: self.cluster.admin_kubeconfig(),
            work,
            folder,
        };
        session.run(&page).await
    }

    /// What a clone of this repository has that pages name, with the defaults of this bed.
    fn furnish(&self, work: &Path, owner: &str) -> Result<()> {
        fs::create_dir_all(work.join("docs"))?;
        for folder in ["plugins", "tests"] {
            std::os::unix::fs::symlink(top(folder), work.join(folder))?;
        }
        copy(&top("charts"), &work.join("charts"), &|text| text)?;
        let own = |text: String| text.replace("acme", owner);
        copy(&top("docs/examples"), &work.join("docs/examples"), &own)?;
        // The chart of the post-renderer's page, with an image that exists and a short bake.
        copy(&top("tests/suite/charts/guide"), &work.join("chart"), &|text| {
            let text = text.replace("registry.example/web", "ghcr.io/acme/web");
            let repo = "    belay.dev/repo: acme/web\n";
            own(text.replace(repo, &format!("{repo}    belay.dev/bake: 2s\n")))
        })?;
        let values = work.join("charts/belay/values.yaml");
        let registry = self.desk.registry.host();
        let github = self.desk.github.base_url();
        let mut text = fs::read_to_string(&values)?;
        for (old, new) in [
            ("url: https://api.github.com", format!("url: {github}")),
            ("mirrors: {}", format!("mirrors: {{ghcr.io: {registry:?}}}")),
            ("allowHosts: []", format!("allowHosts: [\"http://{registry}\"]")),
            ("pollInterval: 60s", "pollInterval: 1s".to_owned()),
        ] {
            ensure!(text.matches(old).count() == 1, "the chart's values have not one {old:?}");
            text = text.replace(old, &new);
        }
        fs::write(values, text).context("write the chart's values")
    }
}
