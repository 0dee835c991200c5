//! All entries of an object in one tree, so that a look-up walks once for all managers.

use std::collections::BTreeMap;

use crate::{Element, FieldPath, decode::Decoded};

/// Index of a node; the root is 0.
pub(crate) type NodeId = usize;

#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) children: BTreeMap<Element, NodeId>,
    /// Who has this node or something below it, sorted by owner.
    pub(crate) marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) owner: usize,
    /// Whether the node itself is in the owner's set.
    pub(crate) member: bool,
}

/// Kept in one vector: neither building nor dropping it recurses.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self { nodes: vec![Node::default()] }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    pub(crate) fn child(&self, id: NodeId, element: &Element) -> Option<NodeId> {
        self.nodes[id].children.get(element).copied()
    }

    /// Adds what an owner has. Owners come in ascending order; one may come more than once.
    pub(crate) fn add(&mut self, owner: usize, entry: Decoded) {
        // Nobody owns the object as a whole, whatever stands under the dot of its root.
        self.mark(0, owner, false);
        let mut places: Vec<NodeId> = Vec::with_capacity(entry.nodes.len());
        for flat in entry.nodes {
            let parent = flat.parent.map_or(0, |parent| places[parent]);
            let next = self.nodes.len();
            let id = *self.nodes[parent].children.entry(flat.element).or_insert(next);
            if id == next {
                self.nodes.push(Node::default());
            }
            self.mark(id, owner, flat.member);
            places.push(id);
        }
    }

    fn mark(&mut self, id: NodeId, owner: usize, member: bool) {
        let marks = &mut self.nodes[id].marks;
        match marks.last_mut() {
            Some(last) if last.owner == owner => last.member |= member,
            _ => marks.push(Mark { owner, member }),
        }
    }

    pub(crate) fn mark_of(&self, id: NodeId, owner: usize) -> Option<Mark> {
        let marks = &self.nodes[id].marks;
        marks.binary_search_by_key(&owner, |mark| mark.owner).ok().map(|index| marks[index])
    }

    /// The paths that an owner has, sorted.
    pub(crate) fn paths_of(&self, owner: usize) -> Vec<FieldPath> {
        let mut paths = Vec::new();
        let mut open = vec![(self.nodes[0].children.iter(), FieldPath::root())];
        while let Some((children, path)) = open.last_mut() {
            let Some((element, id)) = children.next() else {
                open.pop();
                continue;
            };
            let Some(mark) = self.mark_of(*id, owner) else { continue };
            let path = path.clone().join(element.clone());
            if mark.member {
                paths.push(path.clone());
            }
            open.push((self.nodes[*id].children.iter(), path));
        }
        paths
    }

    pub(crate) fn count_of(&self, owner: usize) -> usize {
        let is_member = |id| self.mark_of(id, owner).is_some_and(|mark| mark.member);
        (1..self.nodes.len()).filter(|id| is_member(*id)).count()
    }
}
