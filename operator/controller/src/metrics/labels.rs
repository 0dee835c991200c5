//! Labels. Words are `&'static str`: a value that is made up at run time does not compile.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use prometheus_client::encoding::EncodeLabelSet;

/// Namespaces that are told apart. A cluster may make and delete them all day.
const NAMESPACES: usize = 500;
/// What all others are called; no namespace has this name.
const OTHERS: &str = "_other";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OutcomeLabels {
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WriteLabels {
    pub(super) kind: &'static str,
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct VerdictLabels {
    pub(super) verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CategoryLabels {
    pub(super) category: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReasonLabels {
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RollbackLabels {
    pub(super) status: &'static str,
    pub(super) namespace: String,
    pub(super) driver: &'static str,
    pub(super) initiator_type: &'static str,
}

/// The namespaces that have a label value of their own.
#[derive(Debug, Default)]
pub(super) struct Namespaces(Mutex<BTreeSet<String>>);

impl Namespaces {
    pub(super) fn label(&self, namespace: &str) -> String {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(namespace) {
            if known.len() >= NAMESPACES {
                return OTHERS.to_owned();
            }
            known.insert(namespace.to_owned());
        }
        namespace.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_namespaces_are_told_apart() {
        let namespaces = Namespaces::default();
        for number in 0..NAMESPACES {
            let name = format!("n{number}");
            assert_eq!(namespaces.label(&name), name);
        }
        assert_eq!(namespaces.label("one-too-many"), OTHERS);
        assert_eq!(namespaces.label("n0"), "n0");
    }
}
