//! What the operator's own configuration says, for all targets.

use belay_api::{AnnotationPrefix, Duration};
use serde::{Deserialize, Serialize};

/// The operator's configuration, as far as decisions depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The prefix of annotations.
    pub prefix: AnnotationPrefix,
    /// The operator's Lease, `NAMESPACE/NAME`: who it is.
    pub instance: String,
    /// The field manager that writes images.
    pub field_manager: String,
    /// The field manager of an older operator whose images are replaced (`migrateFrom`).
    pub migrate_from: Option<String>,
    /// The field manager that writes pauses.
    #[serde(default = "pause_field_manager")]
    pub pause_field_manager: String,
    /// Whole keys of annotations by which an earlier operator marked its own pauses on ScaledObjects
    /// (`migrateFrom.pauseMarks`).
    #[serde(default)]
    pub pause_marks: Vec<String>,
    /// Whether ScaledObjects can be paused.
    pub scaled_objects: bool,
    /// Whether targets may set `image-check: skip`.
    pub image_check_skip: bool,
    /// For how long after becoming healthy a Release that Helm takes back counts as rolled back.
    pub revert_window: Duration,
    /// How many rollouts may be under way at once.
    pub max_concurrent_rollouts: u32,
    /// How long things wait; shorter in tests.
    pub windows: Windows,
    /// Whether a Release must exist before its image is applied. Only tests set it to false, to see
    /// that they find what goes wrong then.
    #[serde(default = "always")]
    pub intent_first: bool,
}

fn pause_field_manager() -> String {
    belay_api::names::PAUSE_FIELD_MANAGER.to_owned()
}

fn always() -> bool {
    true
}

/// How long things wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Windows {
    /// How long a cause that is certain to stay must have stood before it ends a rollout.
    pub fast_failure: Duration,
    /// The first wait before an image that was put back is applied again; doubles each time.
    pub reassert: Duration,
    /// The first wait between two attempts of a Rollback; doubles up to 2 minutes.
    pub attempt: Duration,
    /// The first wait for an image that the registry does not have; grows up to 5 minutes.
    pub image: Duration,
    /// How long a temporary block lasts.
    pub temporary_block: Duration,
    /// For how long an answer of the registry may be used.
    pub image_answer: Duration,
    /// How long a proof that a pause took hold, or that autoscaling resumed, is waited for.
    #[serde(default = "pause_proof")]
    pub pause_proof: Duration,
}

fn pause_proof() -> Duration {
    Duration::from_secs(30)
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            fast_failure: Duration::from_secs(30),
            reassert: Duration::from_secs(60),
            attempt: Duration::from_secs(15),
            image: Duration::from_secs(15),
            temporary_block: Duration::from_secs(3600),
            image_answer: Duration::from_secs(300),
            pause_proof: pause_proof(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: AnnotationPrefix::default(),
            instance: "belay/belay-operator".to_owned(),
            field_manager: belay_api::names::IMAGE_FIELD_MANAGER.to_owned(),
            migrate_from: None,
            pause_field_manager: pause_field_manager(),
            pause_marks: Vec::new(),
            scaled_objects: false,
            image_check_skip: false,
            revert_window: Duration::from_secs(3600),
            max_concurrent_rollouts: 10,
            windows: Windows::default(),
            intent_first: true,
        }
    }
}
