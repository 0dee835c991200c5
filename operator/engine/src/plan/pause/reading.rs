//! What a reading of a ScaledObject and of its HPA proves.
//!
//! KEDA's condition `Paused` proves little: it comes before the HPA is gone, stays from an earlier
//! pause, and flips after one. What counts is the HPA, since it is what scales.

use belay_api::annotations::PauseMode;
use jiff::{SignedDuration, Timestamp};

use crate::{
    observed::{HpaFacts, PauseKey, PauseKind, ScalerFacts},
    time,
};

/// What Go reads as false; whatever it cannot read, KEDA takes for true.
const FALSE: [&str; 6] = ["0", "f", "F", "false", "False", "FALSE"];
/// A pass of the HPA controller that was under way may still scale in, where the server does not tell
/// whether it has seen the change.
const GRACE: SignedDuration = SignedDuration::from_secs(2);
/// What an HPA does that says nothing.
const DEFAULT_POLICY: &str = "Max";
const DISABLED: &str = "Disabled";

impl PauseKey {
    /// Whether KEDA is paused by it.
    fn pauses(&self) -> bool {
        self.kind == PauseKind::Replicas || !FALSE.contains(&self.value.as_str())
    }

    /// Whether it keeps KEDA from scaling in.
    fn holds(&self) -> bool {
        self.kind != PauseKind::ScaleOut && self.pauses()
    }
}

impl ScalerFacts {
    /// The pause of somebody else that holds scale-in, whether or not ours is there too.
    pub(super) fn foreign_pause(&self) -> Option<&PauseKey> {
        self.pauses.iter().find(|key| key.holds() && !key.is_ours)
    }

    /// A pause that our manager wrote, with others or alone.
    pub(super) fn our_pause(&self, mode: PauseMode) -> Option<&PauseKey> {
        let kind = PauseKind::of(mode)?;
        self.pauses.iter().find(|key| key.kind == kind && key.is_ours && key.holds())
    }

    /// Whether our manager wrote any pause.
    pub(super) fn has_our_pause(&self) -> bool {
        self.pauses.iter().any(|key| key.is_ours)
    }

    /// The annotation of this mode with which somebody else says that nothing is to be paused.
    pub(super) fn refusal(&self, mode: PauseMode) -> Option<&PauseKey> {
        let kind = PauseKind::of(mode)?;
        self.pauses.iter().find(|key| key.kind == kind && !key.is_ours && !key.holds())
    }

    /// Whether scale-in is held by our pause, which was claimed at `since`, or what is missing for
    /// that. `read` is when this was read.
    pub(super) fn is_frozen(
        &self,
        mode: PauseMode,
        since: Timestamp,
        read: Timestamp,
    ) -> Result<(), &'static str> {
        if self.our_pause(mode).is_none() {
            return Err("the pause is not on it");
        }
        match (mode, &self.hpa) {
            (PauseMode::ScaleIn, None) => Err("KEDA has made no HPA for it"),
            (PauseMode::ScaleIn, Some(hpa)) if hpa.policy() != DISABLED => {
                Err("KEDA has not disabled scale-in of its HPA")
            }
            (PauseMode::ScaleIn, Some(hpa)) => match hpa.is_observed() {
                Some(true) => Ok(()),
                None if read >= time::plus(since, GRACE) => Ok(()),
                Some(false) | None => {
                    Err("the HPA controller has not seen that scale-in is disabled")
                }
            },
            (PauseMode::Full, _) if !self.is_paused => Err("KEDA does not report it as paused"),
            (PauseMode::Full, Some(_)) => Err("KEDA has not removed its HPA"),
            (PauseMode::Full, None) | (PauseMode::None, _) => Ok(()),
        }
    }

    /// Whether autoscaling goes on as the ScaledObject's own spec asks, by a reading that was made
    /// after our pause was dropped.
    pub(super) fn is_resumed(&self, since: Timestamp, read: Timestamp) -> bool {
        let Some(hpa) = &self.hpa else { return false };
        let asked = self.scale_down.as_deref().unwrap_or(DEFAULT_POLICY);
        let is_observed = hpa.is_observed().unwrap_or_else(|| read >= time::plus(since, GRACE));
        !self.has_our_pause() && hpa.policy() == asked && is_observed
    }
}

impl HpaFacts {
    fn policy(&self) -> &str {
        self.scale_down.as_deref().unwrap_or(DEFAULT_POLICY)
    }

    /// Whether the HPA controller has seen the present spec; `None` where the server does not say.
    fn is_observed(&self) -> Option<bool> {
        let generation = self.generation?;
        Some(self.observed_generation.is_some_and(|observed| observed >= generation))
    }
}
