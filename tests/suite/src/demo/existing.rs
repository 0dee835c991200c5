//! A cluster that is there already: what the demo looks at before it begins, asks, and removes at
//! the end.
//!
//! It begins only where it can tell its own objects from those of others: its namespaces must not
//! exist, and nothing may be there that follows releases, for the operator of the demo would follow
//! it on its scripted GitHub.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    io::{BufRead as _, IsTerminal as _, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use belay_components::{Binary, Components};
use belay_testkit::{Cluster, cluster::attach::Place, keda, operator::LABEL, wait};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    stage::{HOME, SHOP},
    tell,
};

/// The annotation by which a workload follows a repository.
const FOLLOWS: &str = "belay.dev/repo";

/// The groups of Belay's CRDs and of KEDA's.
const BELAY: &str = ".belay.dev";
const KEDA: &str = ".keda.sh";

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// There is nobody to ask.
    Nobody,
}

/// A cluster of somebody else.
pub(super) struct Existing {
    pub(super) cluster: &'static Cluster,
    namespaces: Api<Namespace>,
    crds: Api<CustomResourceDefinition>,
    title: String,
    /// All CRDs that were there before.
    known: BTreeSet<String>,
}

impl Existing {
    /// Looks at it, and changes nothing.
    ///
    /// # Errors
    /// Why the demo cannot be played there.
    pub(super) async fn look(file: &Path) -> Result<Self> {
        let place = Place::read(file)?;
        let title =
            format!("context {} of {}, {}", place.context, file.display(), place.access.server);
        // It lives as long as the program, whose end ends what was started beside it.
        let cluster: &'static Cluster =
            Box::leak(Box::new(Cluster::attach(&place, Components::from_env()?)?));
        let client = cluster.admin()?;
        let crds = Api::all(client.clone());
        let known = names(&crds, "CRDs").await.with_context(|| format!("look at {title}"))?;
        let existing = Self { cluster, namespaces: Api::all(client.clone()), crds, title, known };
        let namespaces = names(&existing.namespaces, "namespaces").await?;
        let taken = existing.own().into_iter().find(|name| namespaces.contains(*name));
        if let Some(name) = taken {
            anyhow::bail!(
                "namespace {name} exists already, and the demo overwrites nothing: delete it if it is left \
                 of a demo that was killed, or take another cluster"
            );
        }
        let deployments: Api<Deployment> = Api::all(client);
        let all = deployments.list(&ListParams::default()).await.context("list Deployments")?;
        for one in &all {
            let follows = one.annotations().contains_key(FOLLOWS);
            let is_belay = one.labels().get(LABEL.0).is_some_and(|it| it == LABEL.1);
            ensure!(
                !follows && !is_belay,
                "Deployment {}/{} {}: take a cluster without Belay",
                one.namespace().unwrap_or_default(),
                one.name_any(),
                if is_belay {
                    "is Belay itself, and would follow what the demo publishes"
                } else {
                    "follows releases, and would follow those of the demo's scripted GitHub"
                }
            );
        }
        Ok(existing)
    }

    /// Whether somebody else brought KEDA, who then also runs it.
    pub(super) fn has_keda(&self) -> bool {
        self.has(KEDA)
    }

    fn has(&self, group: &str) -> bool {
        self.known.iter().any(|name| name.ends_with(group))
    }

    /// The namespaces that the demo makes.
    fn own(&self) -> Vec<&'static str> {
        let mut all = vec![SHOP, HOME];
        all.extend((!self.has_keda()).then_some(keda::NAMESPACE));
        all
    }

    /// What the chart is told in such a cluster.
    pub(super) fn adjust(&self, values: &mut Value) {
        values["crds"] = json!({ "install": !self.has(BELAY) });
        // The program runs on this machine: no node is to try its image.
        values["nodeSelector"] = json!({ "belay.dev/demo": "runs-beside-the-cluster" });
    }

    /// Says what will be made where, and asks whether it may.
    ///
    /// # Errors
    /// When the answer cannot be read.
    pub(super) fn ask(&self, yes: bool) -> Result<Answer> {
        tell::title("An existing cluster");
        tell::say(&format!("The demo plays on {}.", self.title));
        let mut crds = Vec::new();
        crds.extend((!self.has(BELAY)).then_some("Belay"));
        crds.extend((!self.has_keda()).then_some("KEDA"));
        let crds = if crds.is_empty() {
            "no CRDs: those of Belay and KEDA are there".to_owned()
        } else {
            format!("the CRDs of {}", crds.join(" and of "))
        };
        tell::say(&format!(
            "It makes the namespaces {}, the cluster roles and admission policies of charts/belay, and {crds}; at \
             the end it removes all of these. {} a registry, the operator and the scripted GitHub run on this machine.",
            self.own().join(", "),
            if self.has_keda() { "KEDA is there already;" } else { "KEDA," },
        ));
        if yes {
            return Ok(Answer::Yes);
        }
        if !std::io::stdin().is_terminal() {
            return Ok(Answer::Nobody);
        }
        print!("go on? [y/N] ");
        std::io::stdout().flush().context("ask on standard output")?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("read the answer")?;
        let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        Ok(if is_yes { Answer::Yes } else { Answer::No })
    }

    /// Removes what the demo made. The operators must still run: KEDA holds its ScaledObject until it
    /// has taken leave of it.
    ///
    /// # Errors
    /// What is left.
    pub(super) async fn clean(&self) -> Result<()> {
        tell::title("Taking it down");
        remove(&self.namespaces, &[SHOP]).await?;
        // The hooks would run the program in a pod, and no claim is left that they could drop.
        let uninstall = ["uninstall", "belay", "--no-hooks", "--ignore-not-found"];
        let helm = self.cluster.tool(Binary::Helm4)?.args(uninstall);
        let _ = helm.args(["--namespace", HOME]).ok().await.context("uninstall charts/belay")?;
        remove(&self.namespaces, &self.own()).await?;
        let now = names(&self.crds, "CRDs").await?;
        let made = now.difference(&self.known).map(String::as_str);
        let made: Vec<&str> =
            made.filter(|name| name.ends_with(BELAY) || name.ends_with(KEDA)).collect();
        remove(&self.crds, &made).await?;
        tell::fact("nothing of the demo is left in the cluster");
        Ok(())
    }
}

/// Deletes objects that are there, and waits until they are gone.
async fn remove<K>(api: &Api<K>, all: &[&str]) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    for name in all {
        match api.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            done => drop(done.with_context(|| format!("delete {name}"))?),
        }
    }
    for name in all {
        wait::until(&format!("{name} to be gone"), 2 * wait::SOON, || async {
            match api.get_metadata_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err("it is still there".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await?;
    }
    Ok(())
}

/// The names of all objects of a kind.
async fn names<K>(api: &Api<K>, kind: &str) -> Result<BTreeSet<String>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let all = api.list_metadata(&ListParams::default()).await;
    let all = all.with_context(|| format!("list {kind}"))?;
    Ok(all.items.into_iter().filter_map(|one| one.metadata.name).collect())
}
