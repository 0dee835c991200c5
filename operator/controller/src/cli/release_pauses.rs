//! `belay-operator release-pauses`

use belay_api::{AnnotationPrefix, Duration};
use clap::Args;

use super::{LogArguments, values};

/// `release-pauses`
#[derive(Debug, Args)]
pub struct ReleasePauses {
    /// The one namespace whose ScaledObjects are looked at; all without it
    #[arg(long, value_name = "NS", value_parser = values::namespace)]
    pub namespace: Option<String>,

    /// The prefix of Belay's annotations
    #[arg(long, value_name = "PREFIX", default_value_t, env = "BELAY_ANNOTATION_PREFIX")]
    pub annotation_prefix: AnnotationPrefix,

    /// The whole key of an annotation by which an older operator marked its own pauses; repeatable
    #[arg(
        long,
        value_name = "KEY",
        value_parser = values::annotation_key,
        value_delimiter = ',',
        env = "BELAY_MIGRATE_PAUSE_MARK"
    )]
    pub migrate_pause_mark: Vec<String>,

    /// Scale this Deployment of an operator to none first, and wait until it has given back the Lease
    /// of the same name: an operator that runs claims again what its rollouts need
    #[arg(long, value_name = "NS/NAME", value_parser = values::namespaced_name)]
    pub stop: Option<(String, String)>,

    /// For how long is tried
    #[arg(long, value_name = "D", default_value = "60s", value_parser = values::duration)]
    pub timeout: Duration,

    /// How it logs.
    #[command(flatten)]
    pub log: LogArguments,
}
