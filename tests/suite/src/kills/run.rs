//! One run.

use std::{fmt, ops::Range, sync::Arc, time::Duration, time::Instant};

use anyhow::{Context as _, Result, ensure};
use belay_testkit::{
    github::Rights,
    keda::Keda,
    operator::{HostedOperator, Installation},
    wait,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use serde_json::json;
use tokio::{sync::watch, task::JoinSet};

use super::{
    eyes::{Eyes, held},
    targets::Target,
};
use crate::{
    operator::{Bed, World, describe},
    random::SplitMix64,
};

/// How long after the last start a pause may be left.
const AFTER_THE_LAST_START: Duration = Duration::from_mins(1);
/// Namespaces and workloads are made so many at once.
const AT_ONCE: usize = 8;

/// How much, how often, and from which random numbers.
#[derive(Debug, Clone)]
pub struct Soak {
    /// How many targets roll side by side.
    pub targets: usize,
    /// How many releases each of them gets.
    pub releases: usize,
    /// How long the operator lives before it is killed, in milliseconds.
    pub life: Range<usize>,
    /// Brings a run back, as far as times allow.
    pub seed: u64,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// Releases that were published.
    pub releases: usize,
    /// Those of them that could not be pulled, each of which was rolled back once.
    pub bad: usize,
    /// How often the operator was killed.
    pub kills: usize,
    /// How long it took.
    pub took: Duration,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { releases, bad, kills, took } = self;
        let seconds = took.as_secs();
        write!(f, "{releases} releases, {bad} of them bad, {kills} kills, {seconds} s")
    }
}

impl Soak {
    /// Plays it.
    ///
    /// # Errors
    /// What was lost, doubled, left or wrong; or what the test bed could not do.
    pub async fn run(&self) -> Result<Outcome> {
        let begin = Instant::now();
        let bed = Arc::new(Bed::in_world(World::with_keda().await?, "kills").await?);
        let _keda = Keda::of_namespace(bed.world.cluster, &bed.namespace).await?;
        let eyes = Eyes::open(&bed.client, &bed.namespace);
        let names: Vec<String> = (0..self.targets).map(|number| format!("app-{number}")).collect();
        for name in &names {
            bed.github.create_repository(&Target::repo(name))?;
        }
        stream::iter(&names)
            .map(|name| {
                let (bed, eyes, name) = (&*bed, &eyes, name.clone());
                async move { Target { bed, eyes, name }.create().await }
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        let operator = self.install(&bed, &names).await?;
        let mut random = SplitMix64::new(self.seed);
        let (ended, is_over) = watch::channel(false);
        let mut rolling = JoinSet::new();
        for name in names {
            let (bed, eyes) = (Arc::clone(&bed), eyes.clone());
            let (releases, random) = (self.releases, SplitMix64::new(random.next_u64()));
            rolling.spawn(async move {
                Target { bed: &bed, eyes: &eyes, name }.roll(releases, random).await
            });
        }
        let all = async {
            let mut bad = 0;
            while let Some(one) = rolling.join_next().await {
                bad += one??;
            }
            ended.send_replace(true);
            anyhow::Ok(bad)
        };
        let outcome = tokio::try_join!(all, self.kill(&operator, is_over, random));
        let (bad, kills) = match outcome {
            Ok(both) => both,
            Err(error) => anyhow::bail!("seed {}: {error:#}\n{}", self.seed, describe(&bed).await),
        };
        // Once more, in whatever it is doing now; what is left then is left for good.
        operator.kill();
        operator.start().await?;
        wait::until("no pause to be held", AFTER_THE_LAST_START, || async {
            match held(&bed.client, &bed.namespace).await {
                Ok(held) if held.is_empty() => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
        .with_context(|| format!("seed {}", self.seed))?;
        let rollbacks = eyes.lock().rollbacks.len();
        ensure!(rollbacks == bad, "seed {}: {rollbacks} Rollbacks, {bad} failures", self.seed);
        operator.ready().await?;
        operator.stop().await?;
        let releases = self.targets * self.releases;
        Ok(Outcome { releases, bad, kills: kills + 1, took: begin.elapsed() })
    }

    async fn install<'c>(&self, bed: &'c Bed, names: &[String]) -> Result<HostedOperator<'c>> {
        let repos: Vec<String> = names.iter().map(|name| Target::repo(name)).collect();
        let rights = Rights::read(repos.iter().map(String::as_str));
        let token = bed.github.create_token("kills", &rights)?;
        let secret = Secret {
            metadata: ObjectMeta { name: Some("github".to_owned()), ..ObjectMeta::default() },
            string_data: Some([("token".to_owned(), token)].into()),
            ..Secret::default()
        };
        let secrets: Api<Secret> = Api::namespaced(bed.client.clone(), &bed.namespace);
        secrets.create(&PostParams::default(), &secret).await?;
        let values = json!({
            "crds": { "install": false }, "scope": "namespace", "pollInterval": "1s",
            "github": {
                "url": bed.github.base_url(),
                "tokenSecret": { "name": "github", "key": "token" },
            },
            "allowHosts": [format!("http://{}", bed.world.registry.host())],
            "maxConcurrentRollouts": self.targets,
        });
        let installation = Installation::new(values);
        let operator =
            HostedOperator::install(bed.world.cluster, &bed.namespace, installation).await?;
        Ok(operator)
    }

    /// Kills it and starts it again, until all is over; returns how often.
    async fn kill(
        &self,
        operator: &HostedOperator<'_>,
        mut is_over: watch::Receiver<bool>,
        mut random: SplitMix64,
    ) -> Result<usize> {
        let mut kills = 0;
        loop {
            let more = random.below(self.life.len());
            let life = u64::try_from(self.life.start + more).context("a time")?;
            let over = is_over.wait_for(|is_over| *is_over);
            if tokio::time::timeout(Duration::from_millis(life), over).await.is_ok() {
                return Ok(kills);
            }
            if let Some(status) = operator.ended()? {
                anyhow::bail!("the operator ended by itself ({status})\n{}", operator.logs()?);
            }
            operator.kill();
            operator.start().await?;
            kills += 1;
        }
    }
}
