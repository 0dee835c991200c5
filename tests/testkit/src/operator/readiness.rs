//! Reports the operator's pod Ready exactly while its process answers the readiness probe.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};

use crate::{
    TestbedError,
    cluster::{chain, identity::Access},
    fate::Fate,
    kubelet::{Kubelet, Pace},
};

/// Between two probes while the last one failed: a test waits for the first that succeeds.
const EAGER: Duration = Duration::from_millis(100);

/// Between two probes while they succeed; a kubelet asks less often. An end that the test brings about
/// is told at once: [`Readiness::look_at`].
const CALM: Duration = Duration::from_secs(1);

/// The kubelet of one release's pods, and the thread that tells it what to report.
#[derive(Debug)]
pub(super) struct Readiness {
    /// Where the process listens; `None` while there is none.
    url: watch::Sender<Option<String>>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Readiness {
    /// Starts without a process: the pods are not ready.
    pub(super) fn start(
        access: &Access,
        namespace: &str,
        selector: &str,
    ) -> Result<Self, TestbedError> {
        let kubelet = Kubelet::of_pods(access, Some(namespace), selector, Pace::WhenTold)?;
        let (url, urls) = watch::channel(None);
        let (stop, stopped) = watch::channel(false);
        let failed = |source| TestbedError::Start {
            name: format!("the readiness probe of {namespace}"),
            program: "a thread".into(),
            source,
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let namespace = namespace.to_owned();
        let thread = std::thread::Builder::new()
            .name(format!("readiness-{namespace}"))
            .spawn(move || runtime.block_on(serve(&kubelet, &namespace, urls, stopped)))
            .map_err(failed)?;
        Ok(Self { url, stop, thread: Some(thread) })
    }

    /// From now on this address is asked.
    pub(super) fn look_at(&self, url: Option<String>) {
        self.url.send_replace(url);
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed by its own thread.
            let _ = thread.join();
        }
    }
}

/// Asks once; the error says what came instead of 200.
pub(super) async fn probe(http: &reqwest::Client, url: &str) -> Result<(), String> {
    let answer = http.get(url).send().await.map_err(|error| chain(&error))?;
    match answer.status().as_u16() {
        200 => Ok(()),
        status => {
            let text = answer.text().await.unwrap_or_default();
            Err(format!("{url} answers {status}: {}", text.trim()))
        }
    }
}

async fn serve(
    kubelet: &Kubelet,
    namespace: &str,
    mut urls: watch::Receiver<Option<String>>,
    mut stopped: watch::Receiver<bool>,
) {
    let http = reqwest::Client::builder().timeout(CALM).build().unwrap_or_default();
    let mut eager = interval(EAGER);
    let mut calm = interval(CALM);
    eager.set_missed_tick_behavior(MissedTickBehavior::Delay);
    calm.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let url = urls.borrow_and_update().clone();
        let ready = match &url {
            Some(url) => probe(&http, url).await.is_ok(),
            None => false,
        };
        // What was asked may have been stopped meanwhile.
        let still = ready && *urls.borrow() == url;
        let fate = if still { Fate::Ready } else { Fate::NeverReady };
        for pod in kubelet.pods(namespace) {
            kubelet.become_(&pod, fate);
        }
        let pause = async { if ready { calm.tick().await } else { eager.tick().await } };
        tokio::select! {
            _ = stopped.changed() => return,
            _ = urls.changed() => {}
            _ = pause => {}
        }
    }
}
