//! A ScaledObject as far as pauses go: its annotations, and who owns them.

use std::{borrow::Cow, collections::BTreeMap};

use belay_api::{
    NamedValue as _,
    annotations::{OwnAnnotation, PauseMode},
};
use belay_engine::{
    observed::{ClaimFacts, PauseKey, PauseKind},
    pause::Claim,
    settings::Settings,
};
use belay_ownership::{FieldPath, Identity, Ownership};
use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry};
use kube::{Resource, api::ObjectMeta};
use serde::{Deserialize, Serialize};

/// All kinds of KEDA's pauses.
pub(crate) const KINDS: [PauseKind; 4] =
    [PauseKind::Paused, PauseKind::ScaleIn, PauseKind::ScaleOut, PauseKind::Replicas];

/// Whether a pause of this kind keeps pods from being scaled away.
pub(crate) fn holds_scale_in(kind: PauseKind) -> bool {
    match kind {
        PauseKind::Paused | PauseKind::ScaleIn | PauseKind::Replicas => true,
        PauseKind::ScaleOut => false,
    }
}

/// A ScaledObject, of which only the metadata is read: of a thousand of them nothing else stays in
/// memory, not even for a moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScaledObject {
    /// Its metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

impl Resource for ScaledObject {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "ScaledObject".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "keda.sh".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "scaledobjects".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// How pauses of this operator are told from those of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseKeys {
    /// The whole key of the annotation `pause-owner`.
    pub owner: String,
    /// The whole key of the annotation `pause-expires`.
    pub expires: String,
    /// The field manager that writes pauses.
    pub manager: String,
    /// Whole keys by which an earlier operator marked its own pauses.
    pub marks: Vec<String>,
}

impl PauseKeys {
    /// As the operator's configuration has them.
    pub fn of(settings: &Settings) -> Self {
        Self {
            owner: settings.prefix.key(OwnAnnotation::PauseOwner),
            expires: settings.prefix.key(OwnAnnotation::PauseExpires),
            manager: settings.pause_field_manager.clone(),
            marks: settings.pause_marks.clone(),
        }
    }

    /// Whether an annotation of this key has to do with pauses.
    pub fn is_of_pauses(&self, key: &str) -> bool {
        let keda = KINDS.iter().any(|kind| kind.key() == key);
        keda || key == self.owner || key == self.expires || self.marks.iter().any(|it| it == key)
    }

    /// The pause that is claimed on a ScaledObject, or that an earlier operator left there.
    ///
    /// What our manager owns nothing of is no claim, whatever its annotations say: somebody who
    /// applies what he once read writes them too, and he alone can take them away.
    pub fn claim(&self, metadata: &ObjectMeta) -> Option<ClaimFacts> {
        let owned = self.owned(metadata);
        let facts = self.facts(metadata)?;
        (!owned.is_empty() || !facts.marks.is_empty()).then_some(facts)
    }

    /// What stands there, whoever owns it.
    pub(super) fn facts(&self, metadata: &ObjectMeta) -> Option<ClaimFacts> {
        let annotations = metadata.annotations.as_ref()?;
        let marks: Vec<String> =
            self.marks.iter().filter(|mark| annotations.contains_key(*mark)).cloned().collect();
        let owned = self.owned(metadata);
        let is_ours = |key: &str| owned.iter().any(|one| one == key);
        let mode = [PauseMode::Full, PauseMode::ScaleIn].into_iter().find(|mode| {
            let key = PauseKind::of(*mode).map(PauseKind::key);
            key.is_some_and(|key| is_ours(key) && annotations.contains_key(key))
        });
        Some(ClaimFacts {
            scaled_object: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            claim: annotations.get(&self.owner).and_then(|text| Claim::parse(text).ok()),
            expires: annotations.get(&self.expires).and_then(|text| text.parse().ok()),
            mode,
            marks,
        })
    }

    /// Whether our manager owns anything of a pause.
    pub(super) fn owns_any(&self, metadata: &ObjectMeta) -> bool {
        !self.owned(metadata).is_empty()
    }

    /// Annotations that are left of a claim where our manager owns nothing: somebody has applied what
    /// he once read, or the object has lost its entries of managers. Only in the latter case KEDA's
    /// annotation is known to be nobody's.
    pub(super) fn left_over(&self, metadata: &ObjectMeta) -> Vec<String> {
        let Some(annotations) = &metadata.annotations else { return Vec::new() };
        let mut keys = vec![self.owner.as_str(), self.expires.as_str()];
        keys.retain(|key| annotations.contains_key(*key));
        let is_nobodys = metadata.managed_fields.as_ref().is_none_or(Vec::is_empty);
        if is_nobodys && !keys.is_empty() {
            let modes = [PauseKind::Paused, PauseKind::ScaleIn].map(PauseKind::key);
            keys.extend(modes.into_iter().filter(|key| annotations.contains_key(*key)));
        }
        keys.into_iter().map(ToOwned::to_owned).collect()
    }

    /// The keys of annotations of pauses that our manager owns, alone or with others.
    ///
    /// Operators with another prefix write under the same name, and each is to see only its own: what
    /// stands beside an owner under another prefix is theirs.
    fn owned(&self, metadata: &ObjectMeta) -> Vec<String> {
        let entries = metadata.managed_fields.as_deref().unwrap_or_default();
        // Few objects have an entry of ours: the rest is not decoded.
        let is_ours = |entry: &&ManagedFieldsEntry| entry.manager.as_ref() == Some(&self.manager);
        let ours: Vec<_> = entries.iter().filter(is_ours).cloned().collect();
        if ours.is_empty() {
            return Vec::new();
        }
        let ownership = Ownership::decode(&ours);
        let Some(entry) = ownership.entry(&Identity::applier(&self.manager)) else {
            return Vec::new();
        };
        let annotations = metadata.annotations.as_ref();
        let is_owner = |key: &&String| {
            key.strip_suffix(OwnAnnotation::PauseOwner.as_str())
                .is_some_and(|prefix| prefix.ends_with('/'))
        };
        let owners = annotations.into_iter().flatten().map(|(key, _)| key).filter(is_owner);
        let mut owners = owners.filter(|key| entry.has(&path(key))).peekable();
        if owners.peek().is_some() && !owners.any(|key| *key == self.owner) {
            return Vec::new();
        }
        let keda = KINDS.map(PauseKind::key);
        let keys = keda.into_iter().chain([self.owner.as_str(), self.expires.as_str()]);
        keys.filter(|key| entry.has(&path(key))).map(ToOwned::to_owned).collect()
    }

    /// KEDA's pause annotations of a ScaledObject, with who owns them.
    pub(crate) fn pauses(&self, metadata: &ObjectMeta) -> Vec<PauseKey> {
        let none = BTreeMap::new();
        let annotations = metadata.annotations.as_ref().unwrap_or(&none);
        if !KINDS.iter().any(|kind| annotations.contains_key(kind.key())) {
            return Vec::new();
        }
        let entries = metadata.managed_fields.as_deref().unwrap_or_default();
        let ownership = Ownership::decode(entries);
        let us = Identity::applier(&self.manager);
        let pause = |kind: PauseKind| {
            let value = belay_api::limits::clip(annotations.get(kind.key())?, MAX_VALUE);
            let answer = ownership.at(&path(kind.key()));
            let (ours, others): (Vec<_>, Vec<_>) =
                answer.owners.iter().partition(|owner| *owner.entry.identity() == us);
            let is_ours = !ours.is_empty();
            // Whoever's entry cannot be read may own it too.
            let may_be_others = !ownership.undecodable().is_empty();
            Some(PauseKey {
                kind,
                value,
                is_ours,
                is_others: !is_ours || !others.is_empty() || may_be_others,
            })
        };
        KINDS.into_iter().filter_map(pause).collect()
    }
}

/// The longest value of a pause annotation that is repeated.
const MAX_VALUE: usize = 100;

fn path(key: &str) -> FieldPath {
    FieldPath::of_fields(["metadata", "annotations", key])
}
