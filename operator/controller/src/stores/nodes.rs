//! The platforms of the cluster's nodes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;

/// Operating system and architecture of each node.
#[derive(Default)]
pub(super) struct Nodes(BTreeMap<String, Option<(String, String)>>);

impl Nodes {
    /// Returns whether the platforms are others now.
    pub(super) fn put(&mut self, node: &Node) -> bool {
        let name = node.metadata.name.clone().unwrap_or_default();
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let platform = info
            .map(|info| (info.operating_system.clone(), info.architecture.clone()))
            .filter(|(os, architecture)| !os.is_empty() && !architecture.is_empty());
        if self.0.get(&name) == Some(&platform) {
            return false;
        }
        let before = self.platforms();
        self.0.insert(name, platform);
        before != self.platforms()
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(super) fn names(&self) -> Vec<(String, String)> {
        self.0.keys().map(|name| (String::new(), name.clone())).collect()
    }

    pub(super) fn platforms(&self) -> Vec<(String, String)> {
        self.0.values().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }
}
