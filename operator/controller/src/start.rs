//! The operator as a program: made of its configuration, with health, metrics and debug pages.

use std::{io::Write, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use belay_adapters::{
    cluster::{self, PauseKeys, ServerClock, WriterSettings},
    forge::{Forge, PollerSettings},
};
use belay_api::reasons::StalledReason;
use belay_engine::settings::Settings;
use tokio::{net::TcpListener, sync::watch};

use crate::{
    admin::{Bounds, serve_admin, serve_health},
    cli::ReleasePauses,
    config::Config,
    metrics::{ForgeSample, Metrics, Sample},
    release_pauses::{self, Task},
    run::{Handle, Options, Parts, operate},
};

/// How long the Lease that marks the instance counts after it was renewed. It decides nothing but
/// when another instance may take targets over, so it is renewed seldom.
const LEASE: Duration = Duration::from_mins(5);
/// Passes at a time. Each waits for one answer of the API server at most.
const AT_ONCE: usize = 16;

/// Runs the operator until `stop`.
///
/// # Errors
/// What could not be set up, or why it had to end.
pub async fn run(config: Config, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    let health = bind("--health-bind", config.health_bind).await?;
    let admin = bind("--admin-bind", config.admin_bind).await?;
    tracing::info!(
        health = %health.local_addr()?, admin = %admin.local_addr()?,
        version = env!("CARGO_PKG_VERSION"), "serving",
    );
    let metrics = Arc::new(Metrics::new());
    let handle = Handle::default();
    let sampled = handle.clone();
    metrics.sample_with(move || sampled.sample());
    let parts = parts(&config, metrics.clone()).await?;
    let (ended, end) = watch::channel(());
    let over = |mut end: watch::Receiver<()>| async move {
        // The sender is dropped once the operator has ended.
        let _ = end.changed().await;
    };
    let inspect = Arc::new(handle.clone());
    let health =
        serve_health(health, inspect.clone(), metrics, Bounds::default(), over(end.clone()));
    let admin = serve_admin(admin, inspect, config.admin_access(), Bounds::default(), over(end));
    let operator = async move {
        let outcome = operate(parts, handle, stop).await;
        drop(ended);
        outcome
    };
    let (outcome, (), ()) = tokio::join!(operator, health, admin);
    outcome
}

/// Ends every pause that an operator has claimed; see [`crate::release_pauses`].
///
/// # Errors
/// What could not be set up, or which pauses are left.
pub(crate) async fn release_pauses(
    arguments: &ReleasePauses,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let settings = Settings {
        prefix: arguments.annotation_prefix.clone(),
        pause_marks: arguments.migrate_pause_mark.clone(),
        ..Settings::default()
    };
    let task = Task {
        namespace: arguments.namespace.clone(),
        writer: WriterSettings {
            prefix: settings.prefix.clone(),
            pause: PauseKeys::of(&settings),
            ..WriterSettings::default()
        },
        stop: arguments.stop.clone(),
        timeout: arguments.timeout.into(),
    };
    let clock = ServerClock::new();
    let client = connect(&clock).await?;
    release_pauses::release_pauses(client, clock, &task, out).await
}

async fn connect(clock: &ServerClock) -> anyhow::Result<kube::Client> {
    let access = kube::Config::infer().await.context(
        "find the API server: neither KUBECONFIG nor a ServiceAccount's token in this pod",
    )?;
    cluster::client(&access, clock).context("set up the client of the API server")
}

async fn bind(option: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.with_context(|| format!("listen on {address}; another address is set with {option}"))
}

async fn parts(config: &Config, metrics: Arc<Metrics>) -> anyhow::Result<Parts> {
    let clock = ServerClock::new();
    let client = connect(&clock).await?;
    let forge = config.forge.client(clock.clock())?;
    let registry = config.registry.client(clock.clock())?;
    let seed = u64::from(std::process::id());
    Ok(Parts {
        client,
        forge: Forge::new(forge),
        poll: PollerSettings {
            interval: Duration::from_secs(config.forge.interval.as_secs()),
            seed,
            ..PollerSettings::default()
        },
        registry,
        settings: config.engine.clone(),
        options: Options {
            only: config.scope.namespace().map(ToOwned::to_owned),
            registry: config.registry.clone(),
            allow: config.allow.clone(),
            // In a pod the host's name is the pod's.
            holder: std::env::var("HOSTNAME").unwrap_or_else(|_| "belay-operator".to_owned()),
            lease: LEASE,
            at_once: AT_ONCE,
            metrics,
        },
        clock,
    })
}

impl Handle {
    /// How things are now, for the metrics.
    fn sample(&self) -> Sample {
        let Some(operator) = self.operator() else { return Sample::default() };
        let mut sample = Sample {
            targets: u64::try_from(operator.stores.keys().len()).unwrap_or(u64::MAX),
            forge: ForgeSample::of(&operator.poller, operator.clock.now()),
            ..Sample::default()
        };
        let now = operator.clock.now();
        for held in operator.stores.claims() {
            let claim = held.claim.as_ref();
            let is_ours = claim.is_some_and(|one| one.instance == operator.settings.instance);
            sample.pauses += u64::from(is_ours);
            let is_over = held.expires.is_some_and(|expires| expires <= now);
            sample.pauses_overdue += u64::from(is_over);
        }
        for reason in operator.stores.stalled() {
            if let Ok(reason) = reason.parse::<StalledReason>() {
                *sample.stalled.entry(reason).or_default() += 1;
            }
        }
        sample
    }
}
