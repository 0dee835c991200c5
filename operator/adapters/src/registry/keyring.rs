//! Which credentials a kubelet would try for an image, in its order.
//!
//! The rules are those of `k8s.io/kubernetes/pkg/credentialprovider`, with one exception: there a
//! key's path is a plain prefix, so that `ghcr.io/org` also serves `ghcr.io/org-evil`. Here it ends at
//! a slash.

use k8s_openapi::api::core::v1::{LocalObjectReference, PodSpec, ServiceAccount};

use super::{Image, PullCredential, PullSecret};

/// The credentials of all pull secrets of a pod.
#[derive(Debug, Default)]
pub struct Keyring {
    /// Keys from the most specific, each with its credentials in the order of the secrets.
    index: Vec<(Key, Vec<PullCredential>)>,
}

impl Keyring {
    /// A keyring of secrets, in the order of [`Keyring::secrets`].
    pub fn new(secrets: impl IntoIterator<Item = PullSecret>) -> Self {
        let mut index: Vec<(Key, Vec<PullCredential>)> = Vec::new();
        for (text, credential) in secrets.into_iter().flat_map(|secret| secret.entries) {
            // What is no key is ignored, as there.
            let Some(key) = Key::parse(&text) else { continue };
            match index.iter_mut().find(|(other, _)| *other == key) {
                Some((_, credentials)) => credentials.push(credential),
                None => index.push((key, vec![credential])),
            }
        }
        index.sort_by(|(a, _), (b, _)| b.text.cmp(&a.text));
        Self { index }
    }

    /// The names of the Secrets that belong in it, all of the pod's own namespace: those of the pod,
    /// or, only where it names none, those of its ServiceAccount, which admission would copy into it.
    /// One that does not exist is passed over, as by a kubelet.
    pub fn secrets(pod: &PodSpec, account: Option<&ServiceAccount>) -> Vec<String> {
        let named = |list: &Option<Vec<LocalObjectReference>>| list.clone().unwrap_or_default();
        let mut list = named(&pod.image_pull_secrets);
        if list.is_empty() {
            list = account.map(|account| named(&account.image_pull_secrets)).unwrap_or_default();
        }
        list.into_iter().map(|it| it.name).filter(|name| !name.is_empty()).collect()
    }

    /// The credentials for an image, in the order in which they are tried. None at all is anonymous.
    pub fn lookup(&self, image: &Image) -> Vec<PullCredential> {
        let (registry, path) = (image.registry(), format!("/{}", image.repository()));
        let matching = |(key, _): &&(Key, _)| key.matches(registry, &path);
        let found: Vec<_> = self
            .index
            .iter()
            .filter(matching)
            .flat_map(|(_, credentials)| credentials.clone())
            .collect();
        if found.is_empty() && matches!(registry, "docker.io" | "index.docker.io") {
            let default = self.index.iter().find(|(key, _)| key.text == "index.docker.io");
            return default.map(|(_, credentials)| credentials.clone()).unwrap_or_default();
        }
        found
    }
}

/// `HOST[:PORT][/PATH]`; a label of the host may have `*`.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    text: String,
    host: String,
    port: Option<String>,
    path: String,
}

impl Key {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let rest = rest.unwrap_or(text);
        let rest = rest.split(['?', '#']).next()?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let authority = authority.to_ascii_lowercase();
        let path = ["/v1/", "/v2/"]
            .iter()
            .find(|version| path.starts_with(**version))
            .and_then(|_| path.get(3..))
            .unwrap_or(path);
        let path = if path == "/" { "" } else { path };
        let good = |b: u8| b.is_ascii_graphic() && !matches!(b, b'[' | b']' | b'\\' | b'^' | b'`');
        if authority.is_empty() || !authority.bytes().all(good) {
            return None;
        }
        let (host, port) = split_port(&authority);
        if port.is_some_and(|port| !port.bytes().all(|b| b.is_ascii_digit())) {
            return None;
        }
        Some(Self {
            text: format!("{authority}{path}"),
            host: host.to_owned(),
            port: port.map(str::to_owned),
            path: path.to_owned(),
        })
    }

    fn matches(&self, registry: &str, path: &str) -> bool {
        let (host, port) = split_port(registry);
        self.port.as_deref() == port
            && self.host.split('.').count() == host.split('.').count()
            && self.host.split('.').zip(host.split('.')).all(|(glob, label)| fits(glob, label))
            && self.covers(path)
    }

    fn covers(&self, path: &str) -> bool {
        path.strip_prefix(self.path.as_str()).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        })
    }
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

/// Whether a label fits a pattern in which `*` stands for any text.
fn fits(glob: &str, label: &str) -> bool {
    let Some((head, mut rest)) = glob.split_once('*') else { return glob == label };
    let Some(mut label) = label.strip_prefix(head) else { return false };
    while let Some((part, after)) = rest.split_once('*') {
        let Some(at) = label.find(part) else { return false };
        label = label.get(at + part.len()..).unwrap_or_default();
        rest = after;
    }
    label.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn keyring(secrets: &[&[(&str, &str)]]) -> Keyring {
        Keyring::new(secrets.iter().enumerate().map(|(number, entries)| {
            PullSecret {
                entries: entries
                    .iter()
                    .map(|(key, user)| {
                        let secret = format!("s{number}");
                        ((*key).to_owned(), PullCredential::new(secret, *user, "password"))
                    })
                    .collect(),
            }
        }))
    }

    fn users(keyring: &Keyring, image: &str) -> String {
        let found = keyring.lookup(&Image::parse(image).unwrap());
        found.iter().map(PullCredential::username).collect::<Vec<_>>().join(" ")
    }

    #[rstest]
    #[case::host("ghcr.io", "ghcr.io/acme/web", true)]
    #[case::other_host("ghcr.io", "quay.io/acme/web", false)]
    #[case::scheme("https://ghcr.io", "ghcr.io/acme/web", true)]
    #[case::plain_scheme("http://ghcr.io", "ghcr.io/acme/web", true)]
    #[case::slash("ghcr.io/", "ghcr.io/acme/web", true)]
    #[case::v1("https://ghcr.io/v1/", "ghcr.io/acme/web", true)]
    #[case::v2("https://ghcr.io/v2/", "ghcr.io/acme/web", true)]
    #[case::v2_and_path("https://ghcr.io/v2/acme", "ghcr.io/acme/web", true)]
    #[case::v1_without_slash("https://ghcr.io/v1", "ghcr.io/acme/web", false)]
    #[case::capitals("GHCR.io", "ghcr.io/acme/web", true)]
    #[case::path("ghcr.io/acme", "ghcr.io/acme/web", true)]
    #[case::path_slash("ghcr.io/acme/", "ghcr.io/acme/web", true)]
    #[case::whole_path("ghcr.io/acme/web", "ghcr.io/acme/web", true)]
    #[case::longer_path("ghcr.io/acme/web/x", "ghcr.io/acme/web", false)]
    #[case::not_at_a_slash("ghcr.io/acme", "ghcr.io/acme-evil/web", false)]
    #[case::not_at_a_slash_either("ghcr.io/acme/we", "ghcr.io/acme/web", false)]
    #[case::other_path("ghcr.io/other", "ghcr.io/acme/web", false)]
    #[case::port("registry.test:5000", "registry.test:5000/web", true)]
    #[case::no_port("registry.test", "registry.test:5000/web", false)]
    #[case::port_only("registry.test:5000", "registry.test/web", false)]
    #[case::port_443("registry.test:443", "registry.test/web", false)]
    #[case::glob("*.azurecr.io", "acme.azurecr.io/web", true)]
    #[case::glob_within("ac*e.azurecr.io", "acme.azurecr.io/web", true)]
    #[case::glob_two_labels("*.azurecr.io", "a.b.azurecr.io/web", false)]
    #[case::glob_no_label("*.azurecr.io", "azurecr.io/web", false)]
    #[case::glob_each_label("*.*.io", "acme.azurecr.io/web", true)]
    #[case::glob_other("*.azurecr.io", "azurecr.io.evil.test/web", false)]
    #[case::no_glob_in_path("ghcr.io/*", "ghcr.io/acme/web", false)]
    #[case::suffix("cr.io", "ghcr.io/acme/web", false)]
    #[case::prefix("ghcr.io", "ghcr.io.evil.test/acme/web", false)]
    #[case::user("https://me@ghcr.io", "ghcr.io/acme/web", true)]
    #[case::empty("", "ghcr.io/acme/web", false)]
    #[case::no_host("/acme", "ghcr.io/acme/web", false)]
    #[case::blank("ghcr.io ", "ghcr.io/acme/web", false)]
    #[case::bad_port("ghcr.io:x", "ghcr.io/acme/web", false)]
    #[case::hub("docker.io", "nginx", true)]
    #[case::hub_index("index.docker.io", "nginx", true)]
    #[case::hub_v1("https://index.docker.io/v1/", "nginx", true)]
    #[case::hub_written_out("https://index.docker.io/v1/", "docker.io/acme/web", true)]
    #[case::hub_path("docker.io/acme", "acme/web", true)]
    #[case::hub_registry_1("registry-1.docker.io", "nginx", false)]
    #[case::hub_is_no_other("https://index.docker.io/v1/", "ghcr.io/acme/web", false)]
    fn a_key_serves_an_image(#[case] key: &str, #[case] image: &str, #[case] serves: bool) {
        let found = users(&keyring(&[&[(key, "u")]]), image);
        assert_eq!(found, if serves { "u" } else { "" });
    }

    #[test]
    fn more_specific_keys_come_first_and_all_that_match_are_tried() {
        let keyring = keyring(&[
            &[("ghcr.io", "host"), ("ghcr.io/acme", "org"), ("ghcr.io/acme/web", "image")],
            &[("ghcr.io/acme", "second"), ("*.io", "glob"), ("quay.io", "other")],
        ]);
        assert_eq!(users(&keyring, "ghcr.io/acme/web"), "image org second host glob");
        assert_eq!(users(&keyring, "ghcr.io/acme/api"), "org second host glob");
        assert_eq!(users(&keyring, "ghcr.io/other/x"), "host glob");
    }

    #[test]
    fn one_key_in_several_spellings_is_one_key() {
        let keyring = keyring(&[&[("https://ghcr.io", "a")], &[("ghcr.io/v2/", "b")]]);
        assert_eq!(users(&keyring, "ghcr.io/acme/web"), "a b");
    }

    #[test]
    fn the_default_registrys_key_helps_only_where_nothing_else_matches() {
        let keyring = keyring(&[&[("https://index.docker.io/v1/", "hub"), ("docker.io/a", "a")]]);
        assert_eq!(users(&keyring, "a/web"), "a");
        assert_eq!(users(&keyring, "b/web"), "hub");
    }

    #[rstest]
    #[case::pod(&["a", "b"], Some(vec!["c"]), &["a", "b"])]
    #[case::account(&[], Some(vec!["c", "d"]), &["c", "d"])]
    #[case::neither(&[], None, &[])]
    #[case::empty_names(&["", "a"], Some(vec!["c"]), &["a"])]
    #[case::only_an_empty_name(&[""], Some(vec!["c"]), &[])]
    fn the_accounts_secrets_count_only_where_the_pod_names_none(
        #[case] pod: &[&str],
        #[case] account: Option<Vec<&str>>,
        #[case] expected: &[&str],
    ) {
        let list = |names: &[&str]| {
            let names = names.iter().map(|it| LocalObjectReference { name: (*it).to_owned() });
            Some(names.collect())
        };
        let pod = PodSpec { image_pull_secrets: list(pod), ..PodSpec::default() };
        let account = account.map(|names| ServiceAccount {
            image_pull_secrets: list(&names),
            ..ServiceAccount::default()
        });
        assert_eq!(Keyring::secrets(&pod, account.as_ref()), expected);
    }

    proptest! {
        #[test]
        fn any_key_is_parsed_or_ignored(key in "\\PC{0,40}") {
            let _ = users(&keyring(&[&[(&key, "u")]]), "ghcr.io/acme/web");
        }

        #[test]
        fn a_host_without_a_glob_serves_no_other_host(
            host in "[a-z]{1,8}(\\.[a-z]{1,8}){1,3}",
            other in "[a-z]{1,8}(\\.[a-z]{1,8}){1,3}",
        ) {
            prop_assume!(host != other);
            prop_assert_eq!(users(&keyring(&[&[(&host, "u")]]), &format!("{other}/a/b")), "");
        }
    }
}
