//! What came of it.

use belay_api::{
    Release, Rollback,
    conditions::find,
    gates::{Gate, Verdict},
    release::Activation,
};
use belay_engine::block::Block;

use crate::case::{Case, name_of};

impl Case {
    pub(crate) fn release_mut(&mut self, tag: &str) -> &mut Release {
        let name = name_of(tag);
        let found =
            self.releases().iter_mut().find(|one| one.metadata.name.as_ref() == Some(&name));
        found.unwrap_or_else(|| panic!("there is no Release of {tag}"))
    }

    pub(crate) fn has_release(&mut self, tag: &str) -> bool {
        let name = name_of(tag);
        self.releases().iter().any(|one| one.metadata.name.as_ref() == Some(&name))
    }

    pub(crate) fn last(&mut self, tag: &str) -> Activation {
        self.release_mut(tag).status.clone().unwrap().activations.pop().unwrap()
    }

    pub(crate) fn verdict(&mut self, tag: &str) -> Option<Verdict> {
        self.last(tag).verdict?.known()
    }

    /// The block that a Release carries.
    pub(crate) fn block(&mut self, tag: &str) -> Option<Block> {
        let annotations = self.release_mut(tag).metadata.annotations.clone()?;
        annotations.get("belay.dev/blocked").map(|text| Block::parse(text).unwrap())
    }

    pub(crate) fn set_block(&mut self, tag: &str, block: &Block) {
        let value = block.to_annotation();
        let annotations = self.release_mut(tag).metadata.annotations.get_or_insert_default();
        annotations.insert("belay.dev/blocked".to_owned(), value);
    }

    pub(crate) fn live(&mut self) -> String {
        self.workload().containers[0].live.image.clone()
    }

    pub(crate) fn condition(&mut self, kind: &str) -> Option<(String, String)> {
        let one = find(&self.status().conditions, kind)?;
        Some((one.reason.clone(), one.message.clone()))
    }

    /// The reason of a condition of the ReleaseTarget.
    pub(crate) fn reason(&mut self, kind: &str) -> Option<String> {
        self.condition(kind).map(|(reason, _)| reason)
    }

    pub(crate) fn stalled(&mut self) -> Option<String> {
        self.reason("Stalled")
    }

    pub(crate) fn message(&mut self, kind: &str) -> String {
        self.condition(kind).map(|(_, message)| message).unwrap_or_default()
    }

    pub(crate) fn gate(&mut self, tag: &str) -> Option<Gate> {
        let candidates = &self.status().candidates;
        let one = candidates.iter().find(|one| one.tag == tag);
        one.unwrap_or_else(|| panic!("{tag} is no candidate: {candidates:?}"))
            .gate
            .as_ref()?
            .known()
    }

    pub(crate) fn rollback(&mut self, name: &str) -> Rollback {
        let found = self.rollbacks().iter().find(|one| one.metadata.name.as_deref() == Some(name));
        found.unwrap_or_else(|| panic!("there is no Rollback {name}")).clone()
    }

    /// How a Rollback ended, or that it has not.
    pub(crate) fn outcome(&mut self, name: &str) -> String {
        let status = self.rollback(name).status.unwrap_or_default();
        find(&status.conditions, "Succeeded").map(|one| one.reason.clone()).unwrap_or_default()
    }
}
