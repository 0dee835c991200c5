//! Which kind a word on the command line means, as the API server tells.

use kube::{
    api::ApiResource,
    core::{
        GroupVersionKind,
        discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery},
    },
};

use crate::{Error, error::Class, read::Reader};

/// A kind that the API server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// How to ask for it.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

/// Asks the API server which kind `word` means: a kind, a resource or a short name, with or without
/// `.GROUP` or `.VERSION.GROUP`.
///
/// # Errors
/// The API server cannot be asked, or serves no such kind.
pub async fn discover(reader: &Reader, word: &str) -> Result<Kind, Error> {
    if let Some(kind) = common(word) {
        return Ok(kind);
    }
    let client = &reader.cluster.client;
    let core = reader.within("list core resources", client.list_core_api_versions_aggregated());
    let groups = reader.within("list resources", client.list_api_groups_aggregated());
    let (core, groups) = futures::future::join(core, groups).await;
    let groups = groups?;
    let core = core?;
    find(word, &[&core, &groups]).ok_or_else(|| {
        Error::new(Class::NotFound, format!("the server does not have a resource type \"{word}\""))
            .hint("kubectl api-resources lists them")
    })
}

/// Kinds that never need a question.
fn common(word: &str) -> Option<Kind> {
    let (kind, plural) = match word.to_ascii_lowercase().as_str() {
        "deploy" | "deployment" | "deployments" | "deployment.apps" | "deployments.apps" => {
            ("Deployment", "deployments")
        }
        "sts" | "statefulset" | "statefulsets" | "statefulset.apps" | "statefulsets.apps" => {
            ("StatefulSet", "statefulsets")
        }
        "ds" | "daemonset" | "daemonsets" | "daemonset.apps" | "daemonsets.apps" => {
            ("DaemonSet", "daemonsets")
        }
        _ => return None,
    };
    let gvk = GroupVersionKind::gvk("apps", "v1", kind);
    Some(Kind { resource: ApiResource::from_gvk_with_plural(&gvk, plural), namespaced: true })
}

/// The first match in the order of the API server, which is that of preference; the core group first.
fn find(word: &str, lists: &[&APIGroupDiscoveryList]) -> Option<Kind> {
    let word = word.to_ascii_lowercase();
    let (name, rest) = word.split_once('.').map_or((word.as_str(), None), |(a, b)| (a, Some(b)));
    let mut fallback = None;
    for list in lists {
        for group in &list.items {
            let group_name = group.metadata.as_ref().and_then(|it| it.name.clone());
            let group_name = group_name.unwrap_or_default();
            for version in &group.versions {
                let version_name = version.version.clone().unwrap_or_default();
                let is_here = rest.is_none_or(|rest| {
                    rest == group_name || rest == format!("{version_name}.{group_name}")
                });
                if !is_here {
                    continue;
                }
                for resource in &version.resources {
                    let Some(kind) = kind_of(resource, &group_name, &version_name) else {
                        continue;
                    };
                    if is_called(resource, &kind.resource.kind, name) {
                        return Some(kind);
                    }
                    let short = resource.short_names.iter().any(|one| one == name);
                    if short && fallback.is_none() {
                        fallback = Some(kind);
                    }
                }
            }
        }
    }
    fallback
}

fn is_called(resource: &APIResourceDiscovery, kind: &str, name: &str) -> bool {
    resource.resource.as_deref() == Some(name)
        || resource.singular_resource.as_deref() == Some(name)
        || kind.eq_ignore_ascii_case(name)
}

fn kind_of(resource: &APIResourceDiscovery, group: &str, version: &str) -> Option<Kind> {
    let plural = resource.resource.as_deref()?;
    let kind = resource.response_kind.as_ref()?.kind.as_deref()?;
    if !resource.verbs.iter().any(|verb| verb == "get") {
        return None;
    }
    let gvk = GroupVersionKind::gvk(group, version, kind);
    Some(Kind {
        resource: ApiResource::from_gvk_with_plural(&gvk, plural),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn resource(plural: &str, singular: &str, kind: &str, short: &[&str], scope: &str) -> Value {
        json!({ "resource": plural, "singularResource": singular, "scope": scope,
                "responseKind": { "group": "", "version": "", "kind": kind },
                "shortNames": short, "verbs": ["get", "list"] })
    }

    fn lists() -> (APIGroupDiscoveryList, APIGroupDiscoveryList) {
        let core = json!({ "items": [{ "versions": [{ "version": "v1", "resources": [
            resource("configmaps", "configmap", "ConfigMap", &["cm"], "Namespaced"),
            resource("nodes", "node", "Node", &["no"], "Cluster"),
            resource("events", "event", "Event", &["ev"], "Namespaced"),
        ] }] }] });
        let others = json!({ "items": [
            { "metadata": { "name": "events.k8s.io" }, "versions": [{ "version": "v1", "resources": [
                resource("events", "event", "Event", &["ev"], "Namespaced"),
            ] }] },
            { "metadata": { "name": "example.com" }, "versions": [
                { "version": "v2", "resources": [
                    resource("widgets", "widget", "Widget", &["cm", "wd"], "Namespaced")] },
                { "version": "v1", "resources": [
                    resource("widgets", "widget", "Widget", &[], "Namespaced")] },
            ] },
        ] });
        (serde_json::from_value(core).unwrap(), serde_json::from_value(others).unwrap())
    }

    #[rstest]
    #[case("cm", "v1", "configmaps", true)]
    #[case("ConfigMap", "v1", "configmaps", true)]
    #[case("no", "v1", "nodes", false)]
    #[case("events", "v1", "events", true)]
    #[case("events.events.k8s.io", "events.k8s.io/v1", "events", true)]
    #[case("widget", "example.com/v2", "widgets", true)]
    #[case("widgets.v1.example.com", "example.com/v1", "widgets", true)]
    #[case("wd.example.com", "example.com/v2", "widgets", true)]
    fn a_word_means_a_kind(
        #[case] word: &str,
        #[case] version: &str,
        #[case] plural: &str,
        #[case] namespaced: bool,
    ) {
        let (core, others) = lists();
        let kind = find(word, &[&core, &others]).unwrap();
        assert_eq!(kind.resource.api_version, version);
        assert_eq!((kind.resource.plural.as_str(), kind.namespaced), (plural, namespaced));
    }

    #[rstest]
    fn an_unknown_word_means_none(#[values("", "x", "widget.v3.example.com", ".v1")] word: &str) {
        let (core, others) = lists();
        assert_eq!(find(word, &[&core, &others]), None);
    }
}
