//! Which containers of a workload are moved.

use std::{fmt, str::FromStr};

use belay_api::limits;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::image::ImageRef;

const INIT: &str = "init:";

/// A container of a pod template: `NAME`, or `init:NAME` for an init container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerName {
    /// Whether it is an init container.
    pub is_init: bool,
    /// Its name.
    pub name: String,
}

/// A container of the live pod template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveContainer {
    /// Which one.
    pub name: ContainerName,
    /// Its image string.
    pub image: String,
}

impl ContainerName {
    /// The list of the pod template that it is in.
    pub fn list(&self) -> &'static str {
        if self.is_init { "initContainers" } else { "containers" }
    }
}

impl FromStr for ContainerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (is_init, name) = match text.strip_prefix(INIT) {
            Some(name) => (true, name),
            None => (false, text),
        };
        let is_label = !name.is_empty()
            && name.len() <= 63
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !name.starts_with('-')
            && !name.ends_with('-');
        if is_label {
            Ok(Self { is_init, name: name.to_owned() })
        } else {
            Err(format!("{:?} is no name of a container", limits::clip(text, 70)))
        }
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let init = if self.is_init { INIT } else { "" };
        write!(f, "{init}{}", self.name)
    }
}

impl Serialize for ContainerName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContainerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The followed containers, and those of the same repository that are left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Followed {
    pub(super) containers: Vec<ContainerName>,
    pub(super) left_out: Vec<ContainerName>,
}

/// Finds the containers that the annotation names, or the only one there is.
pub(super) fn follow(value: Option<&str>, live: &[LiveContainer]) -> Result<Followed, String> {
    let containers = match value {
        Some(value) => named(value, live)?,
        None => only(live)?,
    };
    let images = |name: &ContainerName| live.iter().find(|one| one.name == *name);
    let parsed = |one: &LiveContainer| one.image.parse::<ImageRef>().ok();
    let mut followed = containers.iter().filter_map(images);
    // An image that cannot be read is of no repository; the flow says so where it matters.
    let first = followed.clone().find_map(parsed);
    let is_same = |one: &LiveContainer| match (parsed(one), &first) {
        (Some(image), Some(first)) => image.repository().is_mirror_of(first.repository()),
        _ => true,
    };
    if let Some(other) = followed.find(|one| !is_same(one)) {
        let image = limits::clip(&other.image, 100);
        return Err(format!(
            "the containers must be of one image repository; {} has {image:?}",
            other.name
        ));
    }
    let is_left_out = |one: &&LiveContainer| {
        !containers.contains(&one.name) && parsed(one).is_some() && first.is_some() && is_same(one)
    };
    let left_out = live.iter().filter(is_left_out).map(|one| one.name.clone()).collect();
    Ok(Followed { containers, left_out })
}

fn named(value: &str, live: &[LiveContainer]) -> Result<Vec<ContainerName>, String> {
    let mut containers: Vec<ContainerName> = Vec::new();
    for text in value.split(',') {
        let name: ContainerName = text.trim().parse()?;
        if containers.contains(&name) {
            return Err(format!("{name} is there twice"));
        }
        if containers.len() == limits::CONTAINERS {
            return Err(format!("more than {} containers", limits::CONTAINERS));
        }
        if !live.iter().any(|one| one.name == name) {
            return Err(format!("the workload has no container {name}; it has {}", list(live)));
        }
        containers.push(name);
    }
    Ok(containers)
}

fn only(live: &[LiveContainer]) -> Result<Vec<ContainerName>, String> {
    let mut ordinary = live.iter().filter(|one| !one.name.is_init);
    match (ordinary.next(), ordinary.next()) {
        (Some(only), None) => Ok(vec![only.name.clone()]),
        (None, _) => Err("the workload has no containers".to_owned()),
        _ => Err(format!("it is needed, because there are several: {}", list(live))),
    }
}

fn list(live: &[LiveContainer]) -> String {
    let names: Vec<_> = live.iter().take(10).map(|one| one.name.to_string()).collect();
    limits::clip(&names.join(", "), 300)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn live(containers: &[(&str, &str)]) -> Vec<LiveContainer> {
        let one = |(name, image): &(&str, &str)| LiveContainer {
            name: name.parse().unwrap(),
            image: (*image).to_owned(),
        };
        containers.iter().map(one).collect()
    }

    const POD: &[(&str, &str)] = &[
        ("init:migrate", "ghcr.io/acme/web:1"),
        ("app", "ghcr.io/acme/web:1"),
        ("worker", "mirror.example/acme/web:2"),
        ("proxy", "envoy:1"),
        ("odd", "{{ not an image }}"),
    ];

    #[rstest]
    #[case("app", &["app"], &["init:migrate", "worker"])]
    #[case("app, worker ,init:migrate", &["app", "worker", "init:migrate"], &[])]
    #[case("proxy", &["proxy"], &[])]
    #[case("odd", &["odd"], &[])]
    fn containers_are_followed_by_name(
        #[case] value: &str,
        #[case] containers: &[&str],
        #[case] left_out: &[&str],
    ) {
        let names = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let expected = Followed { containers: names(containers), left_out: names(left_out) };
        assert_eq!(follow(Some(value), &live(POD)), Ok(expected));
    }

    #[rstest]
    #[case("", "is no name")]
    #[case("app,", "is no name")]
    #[case("app;worker", "is no name")]
    #[case("init:init:migrate", "is no name")]
    #[case("App", "is no name")]
    #[case("app,app", "twice")]
    #[case("migrate", "no container migrate")]
    #[case("init:app", "no container init:app")]
    #[case("app,proxy", "one image repository; proxy has")]
    fn what_cannot_be_followed_is_refused(#[case] value: &str, #[case] expected: &str) {
        let problem = follow(Some(value), &live(POD)).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }

    #[rstest]
    #[case(&POD[..2], Some("app"))]
    #[case(POD, None)]
    #[case(&POD[..1], None)]
    #[case(&[], None)]
    fn without_the_annotation_there_must_be_one(
        #[case] pod: &[(&str, &str)],
        #[case] expected: Option<&str>,
    ) {
        let followed = follow(None, &live(pod)).ok().map(|followed| followed.containers);
        assert_eq!(followed, expected.map(|name| vec![name.parse().unwrap()]));
    }
}
