//! The workload that `explain` makes up: one container, the image that is said to run, and the
//! annotations that the options stand for.

use belay_api::annotations::TargetAnnotation;
use belay_engine::{annotations::Problem, observed::WorkloadFacts, settings::Settings};
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::cli;

/// A repository for an image that nobody named. Nothing is asked of it.
const MADE_UP: &str = "registry.invalid/explained";

/// Settings under which every annotation may be used that this version knows.
pub(super) fn settings() -> Settings {
    Settings { image_check_skip: true, ..Settings::default() }
}

pub(super) fn workload(arguments: &cli::Explain, settings: &Settings) -> WorkloadFacts {
    let prefix = &settings.prefix;
    let mut annotations = arguments.annotations.under(prefix);
    let repo = arguments.repository.to_string();
    annotations.insert(prefix.key(TargetAnnotation::Repo), repo);
    let image = arguments.annotations.get(TargetAnnotation::Image).unwrap_or(MADE_UP);
    let image = match &arguments.running {
        Some(tag) => format!("{image}:{tag}"),
        None => image.to_owned(),
    };
    let container = |name: &str| Container {
        name: name.to_owned(),
        image: Some(image.clone()),
        ..Container::default()
    };
    // Those that are named are there; the reader says what is wrong with the others.
    let named = arguments.annotations.get(TargetAnnotation::Container).unwrap_or("app");
    let (init, ordinary): (Vec<_>, Vec<_>) =
        named.split(',').map(str::trim).partition(|name| name.starts_with("init:"));
    let init = init.iter().filter_map(|name| name.strip_prefix("init:"));
    let pod = PodSpec {
        init_containers: Some(init.map(container).collect()),
        containers: ordinary.into_iter().map(container).collect(),
        ..PodSpec::default()
    };
    let deployment = Deployment {
        metadata: ObjectMeta {
            name: Some("explained".to_owned()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            template: PodTemplateSpec { spec: Some(pod), ..PodTemplateSpec::default() },
            ..DeploymentSpec::default()
        }),
        status: None,
    };
    let release = prefix.key(belay_api::annotations::OwnAnnotation::Release);
    WorkloadFacts::of(&deployment, &release)
}

/// Problems, with the options that they are about in the place of the annotations.
pub(super) fn words(problems: &[Problem], settings: &Settings) -> String {
    let option = |problem: &Problem| {
        let name = settings.prefix.strip(&problem.key).unwrap_or(&problem.key);
        let option = format!("--{name}");
        Problem { key: option, ..problem.clone() }.to_string()
    };
    problems.iter().map(option).collect::<Vec<_>>().join("; ")
}
