//! Versions, and whether they fit.

use belay_engine::image::ImageRef;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;

/// The label of the chart.
const VERSION: &str = "app.kubernetes.io/version";
/// The container of the operator in the chart.
const CONTAINER: &str = "operator";

/// How the plugin's version stands to the operator's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skew {
    /// The same minor version, or one that cannot be compared.
    None,
    /// The plugin is of an older minor version.
    PluginIsOlder,
    /// The plugin is of a newer minor version.
    PluginIsNewer,
}

/// Compares major and minor version.
pub fn skew(plugin: &str, operator: &str) -> Skew {
    let (Some(plugin), Some(operator)) = (minor(plugin), minor(operator)) else {
        return Skew::None;
    };
    match plugin.cmp(&operator) {
        std::cmp::Ordering::Less => Skew::PluginIsOlder,
        std::cmp::Ordering::Equal => Skew::None,
        std::cmp::Ordering::Greater => Skew::PluginIsNewer,
    }
}

fn minor(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.trim_start_matches('v').split('.');
    let number = |part: Option<&str>| part?.parse().ok();
    Some((number(parts.next())?, number(parts.next())?))
}

/// The version of an operator, without a leading `v`: the tag of its image, which is what runs, else
/// the chart's label.
pub fn of_operator(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = pod.map(|pod| pod.containers.as_slice()).unwrap_or_default();
    let container = containers.iter().find(|one| one.name == CONTAINER).or(containers.first());
    let tag = container
        .and_then(|container| container.image.as_deref()?.parse::<ImageRef>().ok())
        .and_then(|image| image.tag().map(ToOwned::to_owned));
    let is_version = |text: &String| minor(text).is_some();
    let label = || deployment.labels().get(VERSION).cloned();
    let version = tag.filter(is_version).or_else(label)?;
    Some(version.trim_start_matches('v').to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("0.3.2", "0.3.1", Skew::None)]
    #[case("0.3.2", "v0.3.9", Skew::None)]
    #[case("0.3.2", "0.4.0", Skew::PluginIsOlder)]
    #[case("1.0.0", "0.9.0", Skew::PluginIsNewer)]
    #[case("0.3.2", "main", Skew::None)]
    fn minor_versions_must_agree(
        #[case] plugin: &str,
        #[case] operator: &str,
        #[case] expected: Skew,
    ) {
        assert_eq!(skew(plugin, operator), expected);
    }

    #[rstest]
    #[case("ghcr.io/belay-dev/operator:v0.3.1", Some("0.3.0"), Some("0.3.1"))]
    #[case("ghcr.io/belay-dev/operator:main", Some("0.3.0"), Some("0.3.0"))]
    #[case("ghcr.io/belay-dev/operator@sha256:00", None, None)]
    fn the_image_says_the_version(
        #[case] image: &str,
        #[case] label: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let deployment = serde_json::from_value(json!({
            "metadata": {"labels": label.map(|label| json!({VERSION: label}))},
            "spec": {"selector": {}, "template": {"spec": {"containers": [
                {"name": "operator", "image": image}]}}},
        }))
        .unwrap();
        assert_eq!(of_operator(&deployment).as_deref(), expected);
    }
}
