//! Reads the targets out of a tree, following aliases and merge keys without expanding them.

use std::cell::Cell;

use granit_parser::ScalarStyle;

use crate::scan::{
    Container, ContainerList, FILENAME_ANNOTATION, Form, HOOK_ANNOTATION, Hindrance, Layout,
    Target, WorkloadKind,
    layout::{Merge, entries_of, text_of},
    tree::{Broken, Kind, NodeId, Tree},
};

/// How many merge keys or Lists may be followed one inside another.
const MAX_FOLLOWED: usize = 32;

/// A value, and where it is read from elsewhere too, if it is.
#[derive(Debug, Clone, Copy)]
struct Found {
    node: NodeId,
    /// The alias, merge key or second reader through which an edit would show elsewhere.
    shared: Option<usize>,
}

/// What a List lends its items that have no `apiVersion` and `kind` of their own.
#[derive(Debug, Clone, Copy)]
struct Inherited<'s> {
    api_version: &'s str,
    kind: &'s str,
}

pub(crate) struct Extractor<'t, 'a> {
    tree: &'t Tree<'a>,
    document: usize,
    prefix: &'t str,
    /// Visits that are left. An alias costs nothing to write, so what is read through aliases can
    /// be far more than the document; reading ends where that is no longer in proportion.
    budget: Cell<usize>,
}

impl<'t, 'a> Extractor<'t, 'a> {
    pub(crate) fn new(tree: &'t Tree<'a>, document: usize, prefix: &'t str) -> Self {
        let budget = Cell::new(1_000_000 + 64 * tree.nodes.len());
        Self { tree, document, prefix, budget }
    }

    /// Of a document that could not be read to its end: whether it is a target as far as it was
    /// read; `None` where its kind was not reached.
    pub(crate) fn is_target_so_far(&self) -> Option<bool> {
        let root = self.resolve(self.tree.root?);
        let kind = self.text(root, "kind").ok()??;
        let api_version = self.text(root, "apiVersion").ok()?;
        Some(
            kind.ends_with("List")
                || WorkloadKind::of(api_version.unwrap_or("apps/v1"), kind).is_some(),
        )
    }

    pub(crate) fn targets(&self) -> Result<Vec<Target>, Broken> {
        let mut targets = Vec::new();
        if let Some(root) = self.tree.root {
            self.objects(self.resolve(root), None, &mut Vec::new(), &mut targets)?;
        }
        Ok(targets)
    }

    fn objects(
        &self,
        object: Found,
        inherited: Option<Inherited<'_>>,
        items: &mut Vec<usize>,
        targets: &mut Vec<Target>,
    ) -> Result<(), Broken> {
        self.spend(1, object.node)?;
        let own = (self.text(object, "apiVersion")?, self.text(object, "kind")?);
        let (api_version, kind) = match (own, inherited) {
            ((Some(api_version), Some(kind)), _) => (api_version, kind),
            (_, Some(lent)) => (lent.api_version, lent.kind),
            _ => return Ok(()),
        };
        if let Some(kind) = WorkloadKind::of(api_version, kind) {
            targets.push(self.target(object, kind, items)?);
        } else if let Some(item_kind) = kind.strip_suffix("List")
            && let Some(list) = self.get(object, "items")?
        {
            if items.len() >= MAX_FOLLOWED {
                return Err(self.broken(list.node, "Lists are nested too deeply"));
            }
            let lent =
                (!item_kind.is_empty()).then_some(Inherited { api_version, kind: item_kind });
            for (index, item) in self.items(list).enumerate() {
                items.push(index);
                self.objects(item, lent, items, targets)?;
                items.pop();
            }
        }
        Ok(())
    }

    fn target(&self, object: Found, kind: WorkloadKind, items: &[usize]) -> Result<Target, Broken> {
        let metadata = self.get(object, "metadata")?;
        let of_metadata = |key: &str| -> Result<Option<String>, Broken> {
            let Some(metadata) = metadata else { return Ok(None) };
            let text = self.text(metadata, key)?;
            Ok(text.filter(|text| !text.is_empty()).map(str::to_owned))
        };
        let mut target = Target {
            document: self.document,
            at: self.tree.nodes[object.node].span.start,
            kind,
            name: of_metadata("name")?,
            namespace: of_metadata("namespace")?,
            hook: false,
            filename: None,
            annotations: std::collections::BTreeMap::new(),
            containers: Vec::new(),
            items: items.to_vec(),
        };
        if let Some(metadata) = metadata
            && let Some(annotations) = self.get(metadata, "annotations")?
        {
            self.annotations(annotations, 0, &mut target)?;
        }
        let pod = self.path(object, &["spec", "template", "spec"])?;
        for list in [ContainerList::Containers, ContainerList::InitContainers] {
            let Some(pod) = pod else { break };
            let Some(containers) = self.get(pod, list.as_str())? else { continue };
            for (index, container) in self.items(containers).enumerate() {
                target.containers.push(self.container(list, index, container)?);
            }
        }
        Ok(target)
    }

    fn annotations(&self, map: Found, depth: usize, target: &mut Target) -> Result<(), Broken> {
        let Kind::Mapping { entries, .. } = &self.tree.nodes[map.node].kind else {
            return Ok(());
        };
        self.spend(1 + entries.len(), map.node)?;
        // Merges first: a key that is written itself wins.
        for &(key, value) in entries {
            if self.is_merge(key) && depth < MAX_FOLLOWED {
                for source in self.sources(value) {
                    self.annotations(source, depth + 1, target)?;
                }
            }
        }
        for &(key, value) in entries {
            let Some(key) = text_of(&self.tree.nodes[key]) else { continue };
            let value = text_of(&self.tree.nodes[self.resolve(value).node]).unwrap_or_default();
            let own = key.strip_prefix(self.prefix).and_then(|rest| rest.strip_prefix('/'));
            if key == HOOK_ANNOTATION {
                target.hook = true;
            } else if key == FILENAME_ANNOTATION {
                target.filename = Some(value.to_owned());
            } else if let Some(name) = own {
                target.annotations.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    fn container(
        &self,
        list: ContainerList,
        index: usize,
        found: Found,
    ) -> Result<Container, Broken> {
        let node = &self.tree.nodes[found.node];
        let mut container = Container {
            list,
            index,
            name: None,
            image: None,
            has_image: false,
            at: node.span.start,
            layout: Layout::default(),
        };
        let Kind::Mapping { entries, flow } = &node.kind else { return Ok(container) };
        self.spend(entries.len(), found.node)?;
        container.name =
            self.text(found, "name")?.filter(|name| !name.is_empty()).map(str::to_owned);
        let mut layout = Layout { flow: *flow, ..Layout::default() };
        let mut merged_image = None;
        for (at, &(key, value)) in entries.iter().enumerate() {
            if self.is_merge(key) {
                for source in self.sources(value) {
                    if let Some(image) = self.get(source, "image")? {
                        let text = text_of(&self.tree.nodes[image.node]).map(str::to_owned);
                        merged_image = Some(Merge { entry: at, image: text });
                        break;
                    }
                }
            } else if matches!(&self.tree.nodes[key].kind, Kind::Scalar { text, .. } if text == "image")
            {
                layout.images.push(at);
            }
        }
        layout.entries = entries_of(self.tree, entries);
        layout.merge = merged_image;
        let image = layout.image();
        container.has_image = image.is_some() || layout.merge.is_some();
        container.image = match (image, &layout.merge) {
            (Some(entry), _) => entry.text.clone(),
            (None, Some(merge)) => merge.image.clone(),
            (None, None) => None,
        }
        .filter(|image| !image.is_empty());
        layout.hindrance = hindrance(found, &layout);
        container.layout = layout;
        Ok(container)
    }

    fn path(&self, object: Found, keys: &[&str]) -> Result<Option<Found>, Broken> {
        let mut found = object;
        for key in keys {
            let Some(next) = self.get(found, key)? else { return Ok(None) };
            found = next;
        }
        Ok(Some(found))
    }

    fn text(&self, map: Found, key: &str) -> Result<Option<&'t str>, Broken> {
        Ok(self.get(map, key)?.and_then(|found| text_of(&self.tree.nodes[found.node])))
    }

    /// The value of a key: of the last one that is written, else of a merge key.
    fn get(&self, map: Found, key: &str) -> Result<Option<Found>, Broken> {
        self.get_within(map, key, 0)
    }

    fn get_within(&self, map: Found, key: &str, depth: usize) -> Result<Option<Found>, Broken> {
        let Kind::Mapping { entries, .. } = &self.tree.nodes[map.node].kind else {
            return Ok(None);
        };
        self.spend(1 + entries.len(), map.node)?;
        for &(own, value) in entries.iter().rev() {
            if matches!(&self.tree.nodes[own].kind, Kind::Scalar { text, .. } if text == key) {
                let found = self.resolve(value);
                return Ok(Some(Found { shared: map.shared.or(found.shared), ..found }));
            }
        }
        for &(own, value) in entries.iter().rev() {
            if !self.is_merge(own) {
                continue;
            }
            if depth >= MAX_FOLLOWED {
                return Err(self.broken(own, "merge keys are nested too deeply"));
            }
            for source in self.sources(value) {
                if let Some(found) = self.get_within(source, key, depth + 1)? {
                    let at = self.tree.nodes[value].span.start;
                    return Ok(Some(Found { shared: found.shared.or(Some(at)), ..found }));
                }
            }
        }
        Ok(None)
    }

    /// Only a plain `<<`, or one with the tag that Helm 4 writes, merges.
    fn is_merge(&self, key: NodeId) -> bool {
        match &self.tree.nodes[key].kind {
            Kind::Scalar { text, style, tag } if text == "<<" => match tag {
                Some(tag) => {
                    tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() == Some("merge")
                }
                None => *style == ScalarStyle::Plain,
            },
            _ => false,
        }
    }

    /// What a merge key brings: a mapping, or each of a sequence.
    fn sources(&self, value: NodeId) -> impl Iterator<Item = Found> {
        let found = self.resolve(value);
        let several = matches!(self.tree.nodes[found.node].kind, Kind::Sequence { .. });
        let one = (!several).then_some(found);
        one.into_iter().chain(several.then(|| self.items(found)).into_iter().flatten())
    }

    fn items(&self, list: Found) -> impl Iterator<Item = Found> {
        let items = match &self.tree.nodes[list.node].kind {
            Kind::Sequence { items } => items.as_slice(),
            _ => &[],
        };
        items.iter().map(move |&item| {
            let found = self.resolve(item);
            Found { shared: list.shared.or(found.shared), ..found }
        })
    }

    /// Follows an alias; notes where a node is read from elsewhere.
    fn resolve(&self, node: NodeId) -> Found {
        let target = &self.tree.nodes[node];
        match target.kind {
            Kind::Alias(anchor) => Found {
                node: self.tree.anchors.get(&anchor).copied().unwrap_or(node),
                shared: Some(target.span.start),
            },
            _ => Found { node, shared: self.tree.uses.get(&target.anchor).map(|uses| uses.first) },
        }
    }

    fn spend(&self, visits: usize, node: NodeId) -> Result<(), Broken> {
        let left = self.budget.get().checked_sub(visits);
        self.budget.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| self.broken(node, "aliases make it far larger than it is"))
    }

    fn broken(&self, node: NodeId, what: &str) -> Broken {
        Broken { at: self.tree.nodes[node].span.start, what: what.to_owned() }
    }
}

/// What rules an edit of the container's image out.
fn hindrance(container: Found, layout: &Layout) -> Option<Hindrance> {
    if let Some(at) = container.shared {
        return Some(Hindrance { at, what: "the container is read through an alias too" });
    }
    let image = layout.image();
    if let (Some(merge), Some(&last)) = (&layout.merge, layout.images.last())
        && merge.entry > last
    {
        // Go's yaml.v2, which Helm reads with, lets the later of the two win; yaml.v3 does not.
        let at = layout.entries[merge.entry].key.start;
        return Some(Hindrance { at, what: "a merge key after the image brings another one" });
    }
    image.filter(|entry| entry.form == Form::Unusable).map(|entry| Hindrance {
        at: entry.key.start,
        what: "the image is no string that can be replaced",
    })
}
