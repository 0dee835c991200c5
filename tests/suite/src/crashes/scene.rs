//! One run: a namespace with its own GitHub, an operator whose every call passes a plan, and who
//! starts it again when it crashes.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use belay_adapters::cluster::{self, ServerClock};
use belay_engine::settings::Settings;
use belay_operator::config::Allow;
use belay_testkit::{
    cluster::config,
    fault::{Call, FaultPlan, Outcome, Relay, Target},
    keda::Keda,
    objects::{ScaledObject, Workload},
    wait,
};
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::client::{Body, ConfigExt as _};
use tokio::sync::{OnceCell, watch};
use tower::Layer as _;

use super::{
    calls::{Cut, Phases},
    plain::Names,
    scenarios::Scenario,
    timeline::{Objects, Timeline},
    wire::{Trap, Trapped},
};
use crate::{
    keda,
    operator::{Bed, Running, Wiring, World, describe},
};

/// How GitHub is called in traces.
const GITHUB: &str = "github";
/// How the registry is called in traces.
const REGISTRY: &str = "registry";
/// How the namespace is called in traces.
const NAMESPACE: &str = "ns";

/// How long nothing may be written before a run counts as over. Longer than what an operator waits
/// for by itself: an interval of GitHub's, a wake-up at the next whole second.
const QUIET: Duration = Duration::from_millis(1500);
/// The same between two phases, where what is late is only written in the next phase.
const PAUSE: Duration = Duration::from_millis(500);
/// Longer than a run: renewals of the Lease come with time and would be calls by chance.
const LEASE: Duration = Duration::from_mins(10);
/// Bodies that are kept, as far as names and writes are told by them.
const BODY: usize = 64 << 10;
/// How often objects that are not the expected ones are looked at again.
const LOOK: Duration = Duration::from_millis(250);
const CONTAINER: &str = "app";

/// A run.
pub(super) struct Scene {
    /// Its namespace, GitHub and objects.
    pub(super) bed: Bed,
    /// What becomes of its calls.
    pub(super) plan: FaultPlan,
    /// What the operator decides by.
    settings: Settings,
    github: Relay,
    registry: Relay,
    config: kube::Config,
    timeline: &'static Timeline,
    names: Names,
    admission: Option<fn(&str) -> String>,
    trap: Trap,
    phases: Mutex<Phases>,
    /// Images that others than the operator wrote.
    foreign: Mutex<BTreeSet<String>>,
    started: watch::Sender<bool>,
}

impl Scene {
    /// A run in a namespace of its own, with one cut or none.
    ///
    /// # Errors
    /// What could not be had.
    pub(super) async fn open(
        scenario: &Scenario,
        settings: &Settings,
        cut: Option<Cut>,
    ) -> Result<Self> {
        let timeline = Timeline::shared().await?;
        let bed = Bed::in_world(World::with_keda().await?, scenario.name).await?;
        timeline.open(&bed.namespace);
        let plan = FaultPlan::new();
        plan.keep_bodies(BODY);
        let upstream = bed.github.base_url().trim_start_matches("http://").trim_end_matches('/');
        let github = Relay::start(&plan, upstream).await?;
        let registry = Relay::start(&plan, bed.world.registry.host()).await?;
        plan.alias(upstream, GITHUB);
        plan.alias(bed.world.registry.host(), REGISTRY);
        plan.alias(&bed.namespace, NAMESPACE);
        let names = Names(vec![
            (registry.host().to_owned(), REGISTRY),
            (github.host().to_owned(), GITHUB),
            (upstream.to_owned(), GITHUB),
            (bed.namespace.clone(), NAMESPACE),
        ]);
        let config = config(&bed.world.operator)?;
        let trap = Trap::new(&plan, names.clone(), cut);
        Ok(Self {
            bed,
            plan,
            settings: settings.clone(),
            github,
            registry,
            config,
            timeline,
            names,
            admission: scenario.admission,
            trap,
            phases: Mutex::default(),
            foreign: Mutex::default(),
            started: watch::Sender::new(false),
        })
    }

    /// Plays `play`, while an operator runs as soon as it is started, and again after each crash.
    ///
    /// # Errors
    /// What `play` says, or why there is no operator.
    pub(super) async fn run<T, E>(
        &self,
        play: impl Future<Output = Result<T, E>>,
        failed: impl FnOnce(anyhow::Error) -> E,
    ) -> Result<T, E> {
        tokio::select! {
            outcome = play => outcome,
            error = self.supervise() => Err(failed(error)),
        }
    }

    async fn supervise(&self) -> anyhow::Error {
        // The sender is ours.
        let _ = self.started.subscribe().wait_for(|started| *started).await;
        loop {
            let running = match self.operator() {
                Ok(running) => running,
                Err(error) => return error.context("start the operator"),
            };
            self.plan.crashed().await;
            running.kill().await;
            self.plan.restart();
        }
    }

    /// An operator as a new process of the plan.
    fn operator(&self) -> Result<Running> {
        let clock = ServerClock::new();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = self.config.rustls_https_connector_with_connector(tcp)?;
        let hyper: HyperClient<_, Body> =
            HyperClient::builder(TokioExecutor::new()).build(connector);
        let inner = self.plan.kubernetes().layer(hyper);
        let service = Trapped { trap: self.trap.clone(), inner };
        // Images whose host is rewritten are of a registry that no workload runs.
        let allow = match self.admission {
            Some(_) => Allow::new(false, Vec::new(), vec![self.registry.host().parse()?]),
            None => Allow::default(),
        };
        let client = cluster::over(&self.config, &clock, service)?;
        Running::start(
            &self.bed,
            Wiring {
                settings: self.settings.clone(),
                lease: LEASE,
                client: Some(client),
                clock,
                github: Some(self.github.url()),
                registries: vec![self.registry.url()],
                allow,
                ..Wiring::default()
            },
        )
    }

    /// From now on there is an operator.
    pub(super) fn start(&self) {
        self.started.send_replace(true);
    }

    /// Begins a phase: what follows is called by this name. Calls of phases are what is cut; those
    /// before the first one are not.
    pub(super) fn phase(&self, name: &'static str) {
        let mut phases = lock(&self.phases);
        phases.begin(name, self.plan.look(<[_]>::len));
        self.trap.phase(name);
    }

    /// The phases so far.
    pub(super) fn phases(&self) -> Phases {
        lock(&self.phases).clone()
    }

    /// Whether the cut was made.
    pub(super) fn was_cut(&self) -> bool {
        self.plan.look(|calls| calls.iter().any(|call| call.fault.is_some()))
    }

    /// An image of the run's repository, by way of its relay.
    pub(super) fn image(&self, tag: &str) -> String {
        format!("{}/{}/web:{tag}", self.registry.host(), self.bed.namespace)
    }

    /// The Deployment `web` that runs `tag` and follows the repository.
    pub(super) fn web(&self, tag: &str) -> Workload {
        Workload::deployment("web")
            .replicas(1)
            .image(CONTAINER, &self.image(tag))
            .annotation("belay.dev/repo", "acme/web")
            .annotation("belay.dev/bake", "1s")
            .annotation("belay.dev/deadline", "60s")
    }

    /// Installs a workload as Helm does.
    ///
    /// # Errors
    /// What the API server says.
    pub(super) async fn install(&self, workload: &Workload) -> Result<()> {
        let containers = workload.json().pointer("/spec/template/spec/containers/0/image");
        self.allow(containers.and_then(serde_json::Value::as_str).unwrap_or_default());
        self.bed.create(workload, "helm").await.map(drop)
    }

    /// Has the workload scaled by KEDA, and waits until its HPA is there and has been seen.
    ///
    /// # Errors
    /// What was there instead.
    pub(super) async fn scale(&self) -> Result<()> {
        // One for all runs, which ends with the process.
        static KEDA: OnceCell<Keda> = OnceCell::const_new();
        KEDA.get_or_try_init(|| Keda::start(self.bed.world.cluster)).await?;
        keda::settle(&self.bed.client, &self.bed.namespace, &ScaledObject::of("web")).await
    }

    /// Sets the image as a person does.
    ///
    /// # Errors
    /// What the API server says.
    pub(super) async fn set_image(&self, image: &str) -> Result<()> {
        self.allow(image);
        self.bed.set_image("web", image, "kubectl-edit").await
    }

    /// An image that others than the operator write.
    fn allow(&self, image: &str) {
        let image = self.admission.map_or_else(|| image.to_owned(), |rule| rule(image));
        lock(&self.foreign).insert(image);
    }

    /// All of them.
    pub(super) fn foreign(&self) -> BTreeSet<String> {
        lock(&self.foreign).clone()
    }

    /// What differs from run to run, with the names it has in traces.
    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// What happened.
    pub(super) fn timeline(&self) -> &'static Timeline {
        self.timeline
    }

    /// Waits until `look` finds what it wants among the objects; what it says else is in the error.
    ///
    /// # Errors
    /// What was there instead.
    pub(super) async fn until(
        &self,
        what: &str,
        mut look: impl FnMut(&Objects) -> Result<(), String>,
    ) -> Result<()> {
        let namespace = &self.bed.namespace;
        let found = wait::until(what, wait::SOON, || {
            std::future::ready(self.timeline.look(namespace, &mut look))
        });
        match found.await {
            Ok(()) => Ok(()),
            Err(error) => bail!("{error}\n{}", describe(&self.bed).await),
        }
    }

    /// Waits until what was begun has been written down, before the next phase begins.
    ///
    /// # Errors
    /// What is there instead.
    pub(super) async fn pause(&self) -> Result<()> {
        self.rest_for(PAUSE, Duration::ZERO, || std::future::ready(Ok(()))).await
    }

    /// Waits until the operator that runs now has read GitHub and written nothing for a while, and
    /// `look` holds; or until `look` does not hold after `patience` more without a write.
    ///
    /// # Errors
    /// What was there instead.
    pub(super) async fn rest_on<F>(&self, patience: Duration, look: impl FnMut() -> F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        self.rest_for(QUIET, patience, look).await
    }

    async fn rest_for<F>(
        &self,
        span: Duration,
        patience: Duration,
        mut look: impl FnMut() -> F,
    ) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let begin = Instant::now();
        let mut watch = Quiet::default();
        let mut looked = None::<(Instant, String)>;
        loop {
            let quiet = wait::until("the operator to come to rest", wait::SOON, || {
                let quiet = watch.look(&self.plan);
                let is_early = looked.as_ref().is_some_and(|(at, _)| at.elapsed() < LOOK);
                std::future::ready(match quiet {
                    Some(quiet) if quiet >= span && !is_early => Ok(quiet),
                    _ => Err("it is at work"),
                })
            });
            let quiet = match quiet.await {
                Ok(quiet) => quiet,
                Err(error) => bail!("{error}; {:?}", looked.map(|(_, why)| why)),
            };
            match look().await {
                Ok(()) => return Ok(()),
                Err(error) if quiet >= span + patience || begin.elapsed() >= wait::SOON => {
                    return Err(error);
                }
                Err(error) => looked = Some((Instant::now(), format!("{error:#}"))),
            }
        }
    }
}

/// Since when nothing was written.
#[derive(Default)]
struct Quiet {
    /// The process and the writes of all processes, when that was noticed.
    since: Option<(u64, usize, Instant)>,
}

impl Quiet {
    fn look(&mut self, plan: &FaultPlan) -> Option<Duration> {
        let is_over = plan.has_crashed();
        let now = plan.look(|calls| {
            let process = calls.last().map_or(0, |call| call.process);
            let mut own = calls.iter().filter(|call| call.process == process);
            let has_read = own
                .clone()
                .any(|call| is_to_github(call) && matches!(call.outcome, Outcome::Status(_)));
            let is_writing =
                own.any(|call| call.id.is_write() && call.outcome == Outcome::InFlight);
            let writes = calls.iter().filter(|call| call.id.is_write()).count();
            (has_read && !is_writing && !is_over).then_some((process, writes))
        });
        match (now, self.since) {
            (Some((process, writes)), Some((before, written, since)))
                if process == before && writes == written =>
            {
                Some(since.elapsed())
            }
            (now, _) => {
                self.since = now.map(|(process, writes)| (process, writes, Instant::now()));
                now.map(|_| Duration::ZERO)
            }
        }
    }
}

fn is_to_github(call: &Call) -> bool {
    matches!(&call.id.target, Target::Path { host: Some(host), .. } if host == GITHUB)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
