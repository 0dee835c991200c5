//! Asking a registry for an image, for one target.

use std::sync::Arc;

use belay_adapters::{
    cluster::{ServerClock, keyring},
    registry::{Access, Head, Image, Platform, Registry, Trouble},
};
use belay_engine::observed::{Fact, ImageAnswer};

use crate::{
    config::{Allow, RegistryConfig},
    stores::Workload,
};

/// How images are checked.
pub(crate) struct Images {
    pub(crate) client: kube::Client,
    pub(crate) registry: Registry,
    /// How it is asked.
    pub(crate) config: RegistryConfig,
    /// What tenants may have asked.
    pub(crate) allow: Allow,
}

/// A question, with all that it depends on.
pub(crate) struct Question {
    pub(crate) namespace: String,
    pub(crate) workload: Arc<Workload>,
    pub(crate) image: String,
    /// What was asked for where admission stored what is live.
    pub(crate) asked_before: Vec<String>,
    /// Platforms of the cluster's nodes.
    pub(crate) platforms: Vec<(String, String)>,
}

impl Images {
    /// What the registry says.
    pub(crate) async fn ask(&self, question: &Question, clock: &ServerClock) -> Fact<ImageAnswer> {
        let answer = self.answer(question).await;
        let now = clock.now();
        match answer {
            Ok(answer) => Fact::known(answer, now),
            Err(why) => {
                let why = belay_api::limits::clip(&why, belay_api::limits::ITEM_MESSAGE);
                Fact::Unknown { why, read: now }
            }
        }
    }

    async fn answer(&self, question: &Question) -> Result<ImageAnswer, String> {
        let image = Image::parse(&question.image).map_err(|error| words(&error))?;
        let containers = &question.workload.facts.containers;
        let live = containers.iter().map(|one| &one.live.image).chain(&question.asked_before);
        let live: Vec<Image> = live.filter_map(|one| Image::parse(one).ok()).collect();
        let hosts = live.iter().map(Image::registry);
        if !self.allow.may_ask(image.registry(), image.repository(), hosts) {
            return Ok(ImageAnswer::NotAllowed);
        }
        let asked = self.config.asked(&image);
        // A credential is for the host that it was given for: a mirror needs one of its own.
        let credentials = if self.config.read_pull_secrets {
            let Question { namespace, workload, .. } = question;
            let (secrets, account) = (&workload.pull_secrets, &workload.service_account);
            let keyring = keyring(&self.client, namespace, secrets, account).await;
            keyring.map_err(|error| words(&error))?.lookup(&asked)
        } else {
            Vec::new()
        };
        let checked = self.registry.check(&asked, &credentials).await;
        match checked.head {
            Ok(Head::Found { digest, access, .. }) => {
                let missing = self.missing(question, &asked, &digest, &access).await?;
                Ok(ImageAnswer::Present { digest: Some(digest), missing_platforms: missing })
            }
            Ok(Head::Missing) => Ok(ImageAnswer::Missing),
            Err(Trouble::Denied { .. }) => Ok(ImageAnswer::Denied { secret: checked.secret }),
            Err(Trouble::NotAllowed { .. }) => Ok(ImageAnswer::NotAllowed),
            Err(Trouble::Throttled { until, .. }) => Ok(ImageAnswer::Throttled { until }),
            Err(trouble) => Err(words(&trouble)),
        }
    }

    /// The platforms of nodes that the image is not for.
    async fn missing(
        &self,
        question: &Question,
        image: &Image,
        digest: &str,
        access: &Access,
    ) -> Result<Vec<String>, String> {
        if !self.config.check_platforms || question.platforms.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.registry.platforms(image, digest, access).await;
        let found = found.map_err(|trouble| words(&trouble))?;
        let lacks = |(os, architecture): &&(String, String)| {
            !found.iter().any(|one: &Platform| one.os == *os && one.architecture == *architecture)
        };
        let missing = question.platforms.iter().filter(lacks);
        Ok(missing.map(|(os, architecture)| format!("{os}/{architecture}")).collect())
    }
}

/// What kind of answer it is, for metrics.
pub(crate) fn category(answer: &Fact<ImageAnswer>) -> &'static str {
    match answer.value() {
        Some(ImageAnswer::Present { .. }) => "present",
        Some(ImageAnswer::Missing) => "missing",
        Some(ImageAnswer::Denied { .. }) => "denied",
        Some(ImageAnswer::NotAllowed) => "not-allowed",
        Some(ImageAnswer::Throttled { .. }) => "throttled",
        None => "unknown",
    }
}

/// An error with its causes in one line.
pub(crate) fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
