//! The operator as one: what all passes share.

use std::sync::{Arc, Mutex};

use belay_adapters::{
    cluster::{Events, PauseKeys, Scalers, ServerClock, Sightings, Writer},
    forge::Poller,
};
use belay_engine::settings::Settings;

use crate::{
    config::Allow, images::Images, memory::Memory, metrics::Metrics, observe::Namespaces,
    queue::Bell, stores::Stores,
};

/// What all passes share.
pub(crate) struct Operator {
    pub(crate) settings: Settings,
    pub(crate) client: kube::Client,
    pub(crate) clock: ServerClock,
    pub(crate) stores: Arc<Stores>,
    pub(crate) memory: Memory,
    pub(crate) bell: Bell,
    pub(crate) poller: Arc<Poller>,
    pub(crate) images: Images,
    pub(crate) writer: Writer,
    pub(crate) scalers: Scalers,
    pub(crate) pause: PauseKeys,
    pub(crate) events: Events,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) allow: Allow,
    pub(crate) namespaces: Namespaces,
    pub(crate) sightings: Sightings,
    /// Held from the facts to the decision, so that two targets never take the same place among the
    /// rollouts that may be under way.
    pub(crate) deciding: Mutex<()>,
    /// Work beside passes that ends with the operator: questions to registries, and looks at
    /// ScaledObjects.
    pub(crate) beside: Mutex<tokio::task::JoinSet<()>>,
}
