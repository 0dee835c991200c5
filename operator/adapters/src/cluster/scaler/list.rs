//! All claims of a cluster, or of a namespace, read at once.

use belay_engine::observed::ClaimFacts;
use kube::{
    Resource as _,
    api::{ListParams, ObjectList, Request},
};

use super::{PauseKeys, ScaledObject, Scalers};
use crate::cluster::WriteError;

/// ScaledObjects of a page.
const PAGE: u32 = 100;

/// A ScaledObject with a pause that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its namespace.
    pub namespace: String,
    /// The claim.
    pub claim: ClaimFacts,
    /// Whether our manager owns any of it.
    pub is_owned: bool,
    /// Annotations that are left of a claim of which our manager owns nothing any more.
    pub left_over: Vec<String>,
}

impl Scalers {
    /// All ScaledObjects with a pause that was claimed, or that an earlier operator left, or what is
    /// left of one. None in a cluster without KEDA.
    ///
    /// # Errors
    /// [`WriteError`]: they could not be listed.
    pub async fn claimed(&self, namespace: Option<&str>) -> Result<Vec<Found>, WriteError> {
        let path = Request::new(ScaledObject::url_path(&(), namespace));
        let mut params = ListParams::default().limit(PAGE);
        let mut found = Vec::new();
        loop {
            let request = path.list(&params);
            let page = self.sender.send::<ObjectList<ScaledObject>>("list ScaledObjects", request);
            let page = match page.await {
                Ok(page) => page,
                // There is no object in its path: nothing is served under it.
                Err(error) if error.status().is_some_and(|status| status.code == 404) => {
                    return Ok(Vec::new());
                }
                Err(error) => return Err(error),
            };
            found.extend(page.items.iter().filter_map(|one| self.keys.found(one)));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }
}

impl PauseKeys {
    fn found(&self, object: &ScaledObject) -> Option<Found> {
        let metadata = &object.metadata;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let is_owned = self.owns_any(metadata);
        if let Some(claim) = self.claim(metadata) {
            return Some(Found { namespace, claim, is_owned, left_over: Vec::new() });
        }
        let left_over = self.left_over(metadata);
        let claim = self.facts(metadata)?;
        (!left_over.is_empty()).then_some(Found { namespace, claim, is_owned: false, left_over })
    }
}
