//! An operator that runs in the process of a test.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use belay_adapters::{
    cluster::{self, ServerClock},
    forge::{
        Client as ForgeClient, Credential, Forge, PollerSettings, Settings as ForgeSettings,
        http_client,
    },
    registry::{HostPolicy, Registry, Settings as RegistrySettings},
};
use belay_engine::settings::{Settings, Windows};
use belay_operator::{
    admin::Inspect as _,
    config::{Allow, RegistryConfig},
    metrics::Metrics,
    run::{Handle, Options, Parts, operate},
};
use belay_testkit::wait;
use tokio::sync::oneshot;

use super::Bed;

/// How an operator is wired, where it is not as usual.
pub struct Wiring {
    /// What decisions depend on.
    pub settings: Settings,
    /// How often GitHub is asked.
    pub interval: Duration,
    /// How long the Lease that marks the instance counts; it is renewed every third of that.
    pub lease: Duration,
    /// The client of the API server; by default one with all rights, under the chart's policies.
    pub client: Option<kube::Client>,
    /// The time of the API server that this client tells.
    pub clock: ServerClock,
    /// Where GitHub is; by default the bed's.
    pub github: Option<String>,
    /// Registries that may be asked beside the bed's, `http://HOST:PORT`.
    pub registries: Vec<String>,
    /// What tenants may have asked.
    pub allow: Allow,
    /// The one namespace; by default the bed's, `Some(None)` for all.
    pub only: Option<Option<String>>,
    /// How long GitHub has for one answer.
    pub github_patience: Duration,
    /// How long a registry has for all answers about one image.
    pub registry_patience: Duration,
    /// How many workloads are looked at at a time.
    pub at_once: usize,
    /// Where counts go.
    pub metrics: Arc<Metrics>,
}

impl Default for Wiring {
    fn default() -> Self {
        let seconds = belay_api::Duration::from_secs;
        Self {
            settings: Settings {
                windows: Windows {
                    fast_failure: seconds(1),
                    reassert: seconds(1),
                    attempt: seconds(1),
                    image: seconds(1),
                    ..Windows::default()
                },
                ..Settings::default()
            },
            interval: Duration::from_millis(500),
            lease: Duration::from_secs(30),
            client: None,
            clock: ServerClock::new(),
            github: None,
            registries: Vec::new(),
            allow: Allow::default(),
            only: None,
            github_patience: Duration::from_secs(30),
            registry_patience: Duration::from_secs(30),
            at_once: 8,
            metrics: Arc::new(Metrics::new()),
        }
    }
}

/// An operator. Dropping it ends it as a crash does.
pub struct Running {
    task: Option<tokio::task::JoinHandle<Result<()>>>,
    stop: Option<oneshot::Sender<()>>,
    /// Whether it is ready, and what it knows.
    pub handle: Handle,
}

impl Running {
    /// Starts one for a bed.
    ///
    /// # Errors
    /// What could not be set up.
    pub fn start(bed: &Bed, wiring: Wiring) -> Result<Self> {
        let parts = parts(bed, wiring)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let handle = Handle::default();
        let running = operate(parts, handle.clone(), async {
            // An operator whose `Running` is gone is aborted anyway.
            let _ = stopped.await;
        });
        Ok(Self { task: Some(tokio::spawn(running)), stop: Some(stop), handle })
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn ready(&self) -> Result<()> {
        wait::until("the operator to be ready", wait::SOON, || async { self.handle.ready() })
            .await?;
        Ok(())
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// What it ended with.
    pub async fn stop(mut self) -> Result<()> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        match self.task.take() {
            Some(task) => task.await?,
            None => Ok(()),
        }
    }

    /// Ends it at once, and waits until nothing of it is left.
    pub async fn kill(mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

fn parts(bed: &Bed, wiring: Wiring) -> Result<Parts> {
    let Wiring {
        mut settings,
        interval,
        lease,
        client,
        clock,
        github,
        registries,
        allow,
        only,
        github_patience,
        registry_patience,
        at_once,
        metrics,
    } = wiring;
    if settings.instance == Settings::default().instance {
        settings.instance = format!("{}/belay-operator", bed.namespace);
    }
    let client = if let Some(client) = client {
        client
    } else {
        let config = belay_testkit::cluster::config(&bed.world.operator)?;
        cluster::client(&config, &clock)?
    };
    let base = github.unwrap_or_else(|| bed.github.base_url().to_owned());
    let token = Credential::TokenFile(bed.token.path().to_owned());
    let forge = ForgeClient::new(ForgeSettings {
        within: github_patience,
        ..ForgeSettings::new(base.parse()?, token, http_client([])?)
    })?;
    let own = format!("http://{}", bed.world.registry.host());
    let hosts = std::iter::once(own).chain(registries).map(|host| host.parse());
    let hosts = HostPolicy::new(hosts.collect::<Result<Vec<_>, _>>()?);
    Ok(Parts {
        client,
        clock,
        forge: Forge::new(forge),
        poll: PollerSettings { interval, ..PollerSettings::default() },
        registry: Registry::new(RegistrySettings {
            within: registry_patience,
            ..RegistrySettings::new(hosts.clone())
        })?,
        settings,
        options: Options {
            only: only.unwrap_or_else(|| Some(bed.namespace.clone())),
            registry: RegistryConfig {
                ca_file: None,
                mirrors: std::collections::BTreeMap::new(),
                read_pull_secrets: true,
                check_platforms: true,
                hosts,
            },
            allow,
            holder: "belay-operator-test".to_owned(),
            lease,
            at_once,
            metrics,
        },
    })
}
