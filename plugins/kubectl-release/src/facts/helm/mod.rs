//! Helm: what its release Secrets say, and what its next upgrade will do to an image.

pub mod chart;
pub mod forecast;
pub mod predict;
pub mod record;

pub use self::{
    chart::ChartImage,
    forecast::{Forecast, Source},
    predict::{Major, Outcome, Question, Renderer, predict},
    record::{ApplyMethod, Record},
};

/// The field manager of both majors of Helm.
pub const MANAGER: &str = "helm";

/// The annotation of Helm that names the release an object is part of.
pub const RELEASE_NAME: &str = "meta.helm.sh/release-name";

/// The annotation of Helm that names the namespace of that release.
pub const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";
