//! What the operator does for tenants, who write annotations (operator specification, section 10).

use std::{fmt, str::FromStr};

use belay_adapters::registry::Image;
use glob::{MatchOptions, Pattern};

use crate::cli::{InvalidValue, registry_host};

/// Which repositories may be followed and which registries asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allow {
    /// Whether private repositories are followed only where a rule says so.
    private_by_rule: bool,
    repos: Vec<RepoRule>,
    registries: Vec<RegistryRule>,
}

impl Allow {
    /// The rules. `shared_credential` is whether namespaces of several tenants are served with one
    /// credential of GitHub, which sees more than each of them may. Then, and as soon as there is a
    /// rule about repositories, private ones need one.
    pub fn new(
        shared_credential: bool,
        repos: Vec<RepoRule>,
        registries: Vec<RegistryRule>,
    ) -> Self {
        Self { private_by_rule: shared_credential || !repos.is_empty(), repos, registries }
    }

    /// Whether the workloads of a namespace may follow the repository `OWNER/NAME`, which is
    /// `private` or public. Everybody can read a public one without Belay.
    pub fn may_follow(&self, namespace: &str, repo: &str, private: bool) -> bool {
        !private || !self.private_by_rule || self.repos.iter().any(|it| it.covers(namespace, repo))
    }

    /// Whether a registry may be asked for a repository on it. Both as [`Image`] has them, and
    /// `live` the registries of the images that the workload runs: these the kubelet asks anyway.
    pub fn may_ask<'a>(
        &self,
        registry: &str,
        repository: &str,
        live: impl IntoIterator<Item = &'a str>,
    ) -> bool {
        if self.registries.is_empty() {
            return live.into_iter().any(|it| it == registry);
        }
        self.registries.iter().any(|it| it.covers(registry, repository))
    }

    /// Whether registries are named. Else those of live images count.
    pub(crate) fn lists_registries(&self) -> bool {
        !self.registries.is_empty()
    }

    /// Whether an image may be written into a workload. A list of registries holds for Rollbacks too,
    /// which ask no registry first, and whoever wrote the image into a Release.
    pub fn may_run(&self, image: &str) -> bool {
        self.registries.is_empty()
            || Image::parse(image).is_ok_and(|image| {
                self.registries.iter().any(|it| it.covers(image.registry(), image.repository()))
            })
    }
}

/// A rule of `--allow-repo`: `NS=OWNER/NAME`, each part with `*` for any text and `?` for any
/// character. Neither stands for a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoRule {
    namespace: Pattern,
    owner: Pattern,
    name: Pattern,
}

impl RepoRule {
    fn covers(&self, namespace: &str, repo: &str) -> bool {
        // As GitHub compares names; namespaces have no capitals.
        let options = MatchOptions { case_sensitive: false, ..MatchOptions::default() };
        let fits = |pattern: &Pattern, text| pattern.matches_with(text, options);
        repo.split_once('/').is_some_and(|(owner, name)| {
            fits(&self.namespace, namespace) && fits(&self.owner, owner) && fits(&self.name, name)
        })
    }
}

impl FromStr for RepoRule {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let invalid = || {
            InvalidValue::new(
                "expected NAMESPACE=OWNER/NAME, each of them with * for any text and ? for any \
                 character",
            )
        };
        let part = |text: &str| {
            let is_known = |c: char| c.is_ascii_alphanumeric() || "-_.*?".contains(c);
            // Two stars mean folders to the library, and here they mean no more than one.
            let good = !text.is_empty() && text.chars().all(is_known) && !text.contains("**");
            Pattern::new(text).ok().filter(|_| good).ok_or_else(invalid)
        };
        let (namespace, repo) = text.split_once('=').ok_or_else(invalid)?;
        let (owner, name) = repo.split_once('/').ok_or_else(invalid)?;
        Ok(Self { namespace: part(namespace)?, owner: part(owner)?, name: part(name)? })
    }
}

impl fmt::Display for RepoRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}/{}", self.namespace, self.owner, self.name)
    }
}

/// A rule of `--allow-registry`: a registry, or what is below a path on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryRule {
    registry: String,
    path: Option<String>,
}

impl RegistryRule {
    fn covers(&self, registry: &str, repository: &str) -> bool {
        let below = |path: &String| {
            let rest = repository.strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.registry == registry && self.path.as_ref().is_none_or(below)
    }
}

impl FromStr for RegistryRule {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let invalid = || {
            InvalidValue::new(
                "expected HOST[:PORT][/PATH], the registry and a path as they stand in images",
            )
        };
        let (host, path) = match text.split_once('/') {
            Some((host, path)) => (host, Some(path)),
            None => (text, None),
        };
        let registry = registry_host(host).ok_or_else(invalid)?;
        if let Some(path) = path {
            // Something behind it: a single word on Docker Hub is one of `library`.
            let image = Image::parse(&format!("{registry}/{path}/x")).map_err(|_| invalid())?;
            let is_path = image.repository().strip_suffix("/x") == Some(path);
            if !is_path || image.digest().is_some() {
                return Err(invalid());
            }
        }
        Ok(Self { registry, path: path.map(str::to_owned) })
    }
}

impl fmt::Display for RegistryRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}/{path}", self.registry),
            None => f.write_str(&self.registry),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn rules<T: FromStr<Err = InvalidValue>>(texts: &[&str]) -> Vec<T> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[rstest]
    // One tenant, or no credential: what GitHub shows is what may be followed.
    #[case::private(false, &[], "shop", "acme/web", true, true)]
    #[case::public(false, &[], "shop", "acme/web", false, true)]
    // Several tenants share a credential.
    #[case::shared_public(true, &[], "shop", "acme/web", false, true)]
    #[case::shared_private(true, &[], "shop", "acme/web", true, false)]
    #[case::listed(true, &["shop=acme/web"], "shop", "acme/web", true, true)]
    #[case::listed_capitals(true, &["shop=acme/web"], "shop", "Acme/WEB", true, true)]
    #[case::other_namespace(true, &["shop=acme/web"], "blog", "acme/web", true, false)]
    #[case::other_name(true, &["shop=acme/web"], "shop", "acme/web2", true, false)]
    #[case::other_owner(true, &["shop=acme/web"], "shop", "evil-acme/web", true, false)]
    #[case::public_needs_none(true, &["shop=acme/web"], "blog", "foo/bar", false, true)]
    #[case::star(true, &["team-*=acme/*"], "team-a", "acme/web.site", true, true)]
    #[case::star_is_not_all(true, &["team-*=acme/*"], "shop", "acme/web", true, false)]
    #[case::anything(true, &["*=*/*"], "shop", "acme/web", true, true)]
    #[case::question_mark(true, &["shop=acme/we?"], "shop", "acme/web", true, true)]
    #[case::question_mark_is_one(true, &["shop=acme/we?"], "shop", "acme/we", true, false)]
    #[case::second(true, &["a=x/y", "shop=acme/web"], "shop", "acme/web", true, true)]
    // A list that is written counts everywhere.
    #[case::one_tenant_with_rules(false, &["shop=acme/web"], "shop", "acme/api", true, false)]
    #[case::no_repository(true, &["*=*/*"], "shop", "acme", true, false)]
    fn a_repository_may_be_followed(
        #[case] shared: bool,
        #[case] listed: &[&str],
        #[case] namespace: &str,
        #[case] repo: &str,
        #[case] private: bool,
        #[case] expected: bool,
    ) {
        let allow = Allow::new(shared, rules(listed), Vec::new());
        assert_eq!(allow.may_follow(namespace, repo, private), expected);
    }

    #[rstest]
    #[case::live(&[], "ghcr.io/acme/web:1", &["ghcr.io"], true)]
    #[case::none_live(&[], "ghcr.io/acme/web:1", &[], false)]
    #[case::other_live(&[], "evil.example/acme/web:1", &["ghcr.io", "docker.io"], false)]
    #[case::hub(&[], "nginx", &["docker.io"], true)]
    #[case::other_port(&[], "localhost:5001/web", &["localhost:5000"], false)]
    #[case::host(&["ghcr.io"], "ghcr.io/acme/web:1", &[], true)]
    #[case::host_replaces_live(&["ghcr.io"], "docker.io/acme/web", &["docker.io"], false)]
    #[case::path(&["ghcr.io/acme"], "ghcr.io/acme/web", &[], true)]
    #[case::whole_path(&["ghcr.io/acme/web"], "ghcr.io/acme/web:1", &[], true)]
    #[case::other_path(&["ghcr.io/acme"], "ghcr.io/evil/web", &[], false)]
    #[case::part_of_a_word(&["ghcr.io/acme"], "ghcr.io/acme-evil/web", &[], false)]
    #[case::hub_path(&["docker.io/library"], "nginx:1", &[], true)]
    #[case::hub_by_another_name(&["index.docker.io"], "acme/web", &[], true)]
    #[case::capitals(&["GHCR.io"], "ghcr.io/acme/web", &[], true)]
    #[case::port(&["registry.corp:5000"], "registry.corp:5000/web", &[], true)]
    #[case::no_port(&["registry.corp"], "registry.corp:5000/web", &[], false)]
    fn a_registry_may_be_asked(
        #[case] listed: &[&str],
        #[case] image: &str,
        #[case] live: &[&str],
        #[case] expected: bool,
    ) {
        let allow = Allow::new(true, Vec::new(), rules(listed));
        let image = Image::parse(image).unwrap();
        let live = live.iter().copied();
        assert_eq!(allow.may_ask(image.registry(), image.repository(), live), expected);
    }

    #[rstest]
    #[case::no_list(&[], "evil.example/acme/web:1", true)]
    #[case::host(&["ghcr.io"], "ghcr.io/acme/web:1", true)]
    #[case::other_host(&["ghcr.io"], "evil.example/acme/web:1", false)]
    #[case::path(&["ghcr.io/acme"], "ghcr.io/acme/web:1", true)]
    #[case::other_path(&["ghcr.io/acme"], "ghcr.io/evil/web:1", false)]
    #[case::no_image(&["ghcr.io"], "[::1]:5000/web", false)]
    fn an_image_may_be_run(#[case] listed: &[&str], #[case] image: &str, #[case] expected: bool) {
        let allow = Allow::new(true, Vec::new(), rules(listed));
        assert_eq!(allow.may_run(image), expected);
    }

    #[rstest]
    #[case("acme/web")]
    #[case("shop=acme")]
    #[case("shop=acme/web/x")]
    #[case("=acme/web")]
    #[case("shop=/web")]
    #[case("shop=acme/")]
    #[case("shop=acme/**")]
    #[case("shop=acme/[a-z]")]
    #[case("shop=acme/web ")]
    #[case("")]
    fn what_is_no_rule_about_repositories_is_refused(#[case] text: &str) {
        text.parse::<RepoRule>().unwrap_err();
    }

    #[rstest]
    #[case("")]
    #[case("registry")]
    #[case("https://ghcr.io")]
    #[case("ghcr.io/")]
    #[case("ghcr.io/acme/")]
    #[case("ghcr.io//acme")]
    #[case("ghcr.io/Acme")]
    #[case("ghcr.io/acme:1")]
    #[case("ghcr.io/*")]
    fn what_is_no_rule_about_registries_is_refused(#[case] text: &str) {
        text.parse::<RegistryRule>().unwrap_err();
    }

    #[rstest]
    #[case("team-*=acme/web", "team-*=acme/web")]
    fn a_rule_about_repositories_prints_as_it_is_written(
        #[case] text: &str,
        #[case] printed: &str,
    ) {
        assert_eq!(text.parse::<RepoRule>().unwrap().to_string(), printed);
    }

    #[rstest]
    #[case("GHCR.io/acme", "ghcr.io/acme")]
    #[case("index.docker.io", "docker.io")]
    fn a_rule_about_registries_prints_in_one_spelling(#[case] text: &str, #[case] printed: &str) {
        assert_eq!(text.parse::<RegistryRule>().unwrap().to_string(), printed);
    }
}
