//! Values of options, each read by itself.

use std::collections::BTreeSet;

use belay_adapters::registry::Image;
use belay_api::{Duration, limits, names::is_dns1123_subdomain};
use belay_engine::annotations::{is_gitops, is_kubectl};
use reqwest::Url;

/// Text that is no value of an option. clap names the option and the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(String);

impl InvalidValue {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }
}

type Value<T> = Result<T, InvalidValue>;

/// The shortest and the longest time between two looks at a repository.
const INTERVALS: std::ops::RangeInclusive<u64> = 1..=86_400;

pub(super) fn namespace(text: &str) -> Value<String> {
    // A namespace is one label.
    if text.len() <= 63 && is_dns1123_subdomain(text) && !text.contains('.') {
        return Ok(text.to_owned());
    }
    let rule = "expected the name of a namespace: at most 63 lower-case letters, digits and '-'";
    Err(InvalidValue::new(rule))
}

pub(super) fn namespaced_name(text: &str) -> Value<(String, String)> {
    let (of, name) =
        text.split_once('/').ok_or_else(|| InvalidValue::new("expected NAMESPACE/NAME"))?;
    Ok((namespace(of)?, object_name(name)?))
}

pub(super) fn object_name(text: &str) -> Value<String> {
    if is_dns1123_subdomain(text) {
        return Ok(text.to_owned());
    }
    let rule =
        "expected the name of an object: at most 253 lower-case letters, digits, '-' and '.'";
    Err(InvalidValue::new(rule))
}

/// The name under which Belay itself writes.
pub(super) fn own_manager(text: &str) -> Value<String> {
    use belay_api::names;

    let own: BTreeSet<_> =
        [names::PAUSE_FIELD_MANAGER, names::STATUS_FIELD_MANAGER, names::PLUGIN_FIELD_MANAGER]
            .into();
    let name = manager(text)?;
    if own.contains(name.as_str()) {
        return Err(InvalidValue::new("another part of Belay writes under this name"));
    }
    if name == "helm" {
        return Err(InvalidValue::new("Helm writes under this name, and would own Belay's fields"));
    }
    Ok(name)
}

/// The name under which an older operator wrote.
pub(super) fn manager(text: &str) -> Value<String> {
    let is_printable = |c: char| c.is_ascii_graphic();
    if text.is_empty() || text.len() > limits::FIELD_MANAGER || !text.chars().all(is_printable) {
        let rule =
            "expected the name of a field manager: at most 128 visible characters without blanks";
        return Err(InvalidValue::new(rule));
    }
    if is_kubectl(text) {
        return Err(InvalidValue::new("people write under names that begin with kubectl"));
    }
    if is_gitops(text) {
        return Err(InvalidValue::new("a GitOps controller writes under this name"));
    }
    Ok(text.to_owned())
}

/// The whole key of an annotation that is neither KEDA's nor Kubernetes' own.
pub(super) fn annotation_key(text: &str) -> Value<String> {
    let rule = || InvalidValue::new("expected the whole key of an annotation: PREFIX/NAME");
    let (prefix, name) = text.split_once('/').ok_or_else(rule)?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_name = name.len() <= 63
        && name.chars().all(is_word)
        && is_edge(name.chars().next())
        && is_edge(name.chars().next_back());
    if !is_name || !is_dns1123_subdomain(prefix) {
        return Err(rule());
    }
    let is_anothers = ["keda.sh", "kubernetes.io", "k8s.io"]
        .iter()
        .any(|domain| prefix == *domain || prefix.ends_with(&format!(".{domain}")));
    if is_anothers {
        let why = "this is no operator's mark: an annotation of KEDA's or Kubernetes' own stands on \
                   objects that nobody's operator has paused";
        return Err(InvalidValue::new(why));
    }
    Ok(text.to_owned())
}

pub(super) fn api(text: &str) -> Value<Url> {
    let url: Url = text
        .parse()
        .map_err(|_| InvalidValue::new("expected a URL such as https://api.github.com"))?;
    let is_http = matches!(url.scheme(), "https" | "http") && url.host_str().is_some();
    let is_plain = url.query().is_none() && url.fragment().is_none();
    if !is_http || !is_plain {
        let rule = "expected https://HOST[:PORT][/PATH] without a query";
        return Err(InvalidValue::new(rule));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidValue::new("it holds a credential; put it into --github-token-file"));
    }
    Ok(url)
}

pub(super) fn duration(text: &str) -> Value<Duration> {
    text.parse().map_err(|_| InvalidValue::new("expected a duration such as 90s, 30m or 1h30m"))
}

pub(super) fn interval(text: &str) -> Value<Duration> {
    let interval = duration(text)?;
    if INTERVALS.contains(&interval.as_secs()) {
        return Ok(interval);
    }
    Err(InvalidValue::new("expected a duration from 1s to 24h"))
}

/// A registry as it stands in images, in one spelling: `docker.io` for Docker Hub.
pub(crate) fn registry_host(text: &str) -> Option<String> {
    let text = text.to_ascii_lowercase();
    let image = Image::parse(&format!("{text}/a/b")).ok()?;
    // A word without dot and port is the first part of a path on Docker Hub.
    (image.repository() == "a/b").then(|| image.registry().to_owned())
}

/// `HOST=HOST`
pub(super) fn mirror(text: &str) -> Value<(String, String)> {
    let both = text
        .split_once('=')
        .and_then(|(registry, mirror)| Some((registry_host(registry)?, registry_host(mirror)?)));
    match both {
        Some((registry, mirror)) if registry == mirror => {
            Err(InvalidValue::new("a registry is no mirror of itself"))
        }
        Some(both) => Ok(both),
        None => Err(InvalidValue::new(
            "expected HOST[:PORT]=HOST[:PORT], the registry as it stands in images and its mirror",
        )),
    }
}

pub(super) fn log_filter(text: &str) -> Value<String> {
    match tracing_subscriber::EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(InvalidValue::new(
            "expected a level (error, warn, info, debug, trace) or directives such as \
             info,belay_operator=debug",
        )),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("docker.io", Some("docker.io"))]
    #[case("index.docker.io", Some("docker.io"))]
    #[case("GHCR.io", Some("ghcr.io"))]
    #[case("localhost:5000", Some("localhost:5000"))]
    #[case("registry.corp:5000", Some("registry.corp:5000"))]
    #[case("registry", None)]
    #[case("", None)]
    #[case("ghcr.io/acme", None)]
    #[case("https://ghcr.io", None)]
    #[case("ghcr.io:port", None)]
    fn a_registry_has_one_spelling(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(registry_host(text).as_deref(), expected);
    }

    #[rstest]
    #[case("belay-operator", true)]
    #[case("release.example.com/roller", true)]
    #[case("helm", false)]
    #[case("kubectl-edit", false)]
    #[case("argocd-controller", false)]
    #[case("belay-operator-status", false)]
    #[case("kubectl-release", false)]
    #[case("two words", false)]
    #[case("", false)]
    fn belay_writes_under_a_name_of_its_own(#[case] name: &str, #[case] good: bool) {
        assert_eq!(own_manager(name).is_ok(), good);
    }

    #[rstest]
    #[case("1s", true)]
    #[case("24h", true)]
    #[case("0s", false)]
    #[case("24h1s", false)]
    #[case("60", false)]
    fn an_interval_has_bounds(#[case] text: &str, #[case] good: bool) {
        assert_eq!(interval(text).is_ok(), good);
    }
}
