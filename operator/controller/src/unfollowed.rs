//! Rollbacks and pauses of targets that no workload has: they end, once that is certain.

use std::time::Duration;

use belay_adapters::cluster::Place;
use belay_api::Rollback;
use belay_engine::plan::{end_unfollowed, end_unfollowed_claim};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, api::ListParams};

use crate::{images::words, key::Key, operator::Operator, pass::NOTHING, stores::Workload};

/// How soon is looked again after what could not be read, or what the stores do not show yet.
const AGAIN: Duration = Duration::from_secs(15);
/// Deployments of a page.
const PAGE: u32 = 100;

impl Operator {
    /// Ends one Rollback, or drops one pause, of the target that is named like `key`, if there is no
    /// such target.
    pub(crate) async fn end_unfollowed(&self, key: &Key) -> &'static str {
        let id = (key.namespace().to_owned(), key.name().to_owned());
        let now = self.clock.now();
        let rollback = self.stores.unfollowed(&id).into_iter().next();
        let end = |one: &Rollback| end_unfollowed(one, key.namespace(), now);
        let step = rollback.and_then(|one| end(&one)).or_else(|| {
            let claims = self.stores.unfollowed_claims(&id);
            claims.iter().find_map(|claim| end_unfollowed_claim(claim, &self.settings, now))
        });
        let Some(step) = step else { return NOTHING };
        // The stores may lag behind, and a rejection is for good: the API server has the last word.
        match self.is_target(key).await {
            Ok(false) => {}
            Ok(true) => {
                self.bell.ring_in(key, AGAIN);
                return NOTHING;
            }
            Err(error) => {
                let error = words(&error);
                tracing::warn!(target = %key, error, "look for the workload of a target");
                self.bell.ring_in(key, AGAIN);
                return "failed";
            }
        }
        let place = Place { namespace: key.namespace(), target: key.name(), workload: None };
        self.act(key, place, &step).await.as_str()
    }

    /// Whether a Deployment of the namespace is followed under this target now.
    async fn is_target(&self, key: &Key) -> Result<bool, kube::Error> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), key.namespace());
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let list = api.list(&page).await?;
            let prefix = &self.settings.prefix;
            let targets = list.items.iter().filter_map(|one| Workload::of(one, prefix)?.target);
            if targets.into_iter().any(|target| target.as_str() == key.name()) {
                return Ok(true);
            }
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(false),
            }
        }
    }
}
