//! KEDA's side of a target as it was observed: the ScaledObject, the HPA that KEDA made of it, and
//! claims of a pause.

use belay_api::annotations::PauseMode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::pause::Claim;

/// What a fresh read of a ScaledObject and of its HPA found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scaler {
    /// The cluster serves no ScaledObjects.
    NoKeda,
    /// There is no ScaledObject of this name.
    Missing,
    /// It is there.
    Found(Box<ScalerFacts>),
}

/// A ScaledObject and its HPA. The HPA was read after the ScaledObject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalerFacts {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion, the precondition of a write.
    pub resource_version: String,
    /// Whether it is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// Kind of what it scales; `Deployment` where it does not say.
    pub scales_kind: String,
    /// Name of what it scales; empty where it does not say.
    pub scales_name: String,
    /// KEDA's pause annotations that it has, whoever wrote them.
    #[serde(default)]
    pub pauses: Vec<PauseKey>,
    /// The claim that it carries, ours or another operator's.
    #[serde(default)]
    pub claim: Option<ClaimFacts>,
    /// Its condition `Paused` is True.
    #[serde(default)]
    pub is_paused: bool,
    /// The scale-down policy that its own spec asks for.
    #[serde(default)]
    pub scale_down: Option<String>,
    /// The HPA that its status names; absent if it names none, or if there is none of that name.
    #[serde(default)]
    pub hpa: Option<HpaFacts>,
}

/// One of KEDA's pause annotations on a ScaledObject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseKey {
    /// Which one.
    pub kind: PauseKind,
    /// Its value.
    pub value: String,
    /// Whether our manager for pauses owns it.
    #[serde(default)]
    pub is_ours: bool,
    /// Whether somebody else owns it, alone or with us, or nobody does.
    #[serde(default)]
    pub is_others: bool,
}

/// Which pause annotation of KEDA's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseKind {
    /// `autoscaling.keda.sh/paused`.
    Paused,
    /// `autoscaling.keda.sh/paused-scale-in`.
    ScaleIn,
    /// `autoscaling.keda.sh/paused-scale-out`.
    ScaleOut,
    /// `autoscaling.keda.sh/paused-replicas`.
    Replicas,
}

impl PauseKind {
    /// The annotation's key.
    pub fn key(self) -> &'static str {
        match self {
            Self::Paused => "autoscaling.keda.sh/paused",
            Self::ScaleIn => "autoscaling.keda.sh/paused-scale-in",
            Self::ScaleOut => "autoscaling.keda.sh/paused-scale-out",
            Self::Replicas => "autoscaling.keda.sh/paused-replicas",
        }
    }

    /// The annotation by which a mode pauses; none for [`PauseMode::None`].
    pub fn of(mode: PauseMode) -> Option<Self> {
        match mode {
            PauseMode::ScaleIn => Some(Self::ScaleIn),
            PauseMode::Full => Some(Self::Paused),
            PauseMode::None => None,
        }
    }
}

/// An HPA.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HpaFacts {
    /// `spec.behavior.scaleDown.selectPolicy`.
    #[serde(default)]
    pub scale_down: Option<String>,
    /// `metadata.generation`; servers before 1.37 give none.
    #[serde(default)]
    pub generation: Option<i64>,
    /// `status.observedGeneration`.
    #[serde(default)]
    pub observed_generation: Option<i64>,
}

/// A claim as it stands on a ScaledObject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimFacts {
    /// The ScaledObject.
    pub scaled_object: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
    /// What the annotation `pause-owner` says; absent if it cannot be read as a claim.
    #[serde(default)]
    pub claim: Option<Claim>,
    /// What the annotation `pause-expires` says; absent if that is missing or no time.
    #[serde(default)]
    pub expires: Option<Timestamp>,
    /// Which pause of KEDA's our manager owns there; absent if somebody took it away.
    #[serde(default)]
    pub mode: Option<PauseMode>,
    /// Annotations there by which an earlier operator marked a pause of its own
    /// (`migrateFrom.pauseMarks`).
    #[serde(default)]
    pub marks: Vec<String>,
}
