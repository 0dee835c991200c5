//! Where a token may be fetched. The registry chooses the place, and the credential goes there.

use reqwest::Url;

use super::{
    HostPolicy, Refusal,
    hosts::{address, place},
};

/// Checks the place that a registry names: HTTPS unless the configuration permits otherwise, on the
/// registry's own host, in its registrable domain, or at a place that the configuration names.
///
/// # Errors
/// `None` where it belongs to somebody else, else what the policy says against it.
pub(crate) fn check(
    hosts: &HostPolicy,
    registry: &Url,
    realm: &Url,
) -> Result<(), Option<Refusal>> {
    if !is_akin(registry, realm) && !hosts.names_place(realm) {
        return Err(None);
    }
    hosts.check(realm).map_err(Some)
}

fn is_akin(registry: &Url, realm: &Url) -> bool {
    let (Some((a, _)), Some((b, _))) = (place(registry), place(realm)) else { return false };
    if a == b {
        return true;
    }
    // An address belongs to no domain.
    if address(&a).is_some() || address(&b).is_some() {
        return false;
    }
    match (psl::domain_str(&a), psl::domain_str(&b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::hub("https://index.docker.io", "https://auth.docker.io/token", true)]
    #[case::same("https://ghcr.io", "https://ghcr.io/token", true)]
    #[case::same_other_port("https://ghcr.io", "https://ghcr.io:8443/token", true)]
    #[case::parent("https://registry.gitlab.com", "https://gitlab.com/jwt/auth", true)]
    #[case::sibling("https://registry.acme.co.uk", "https://git.acme.co.uk/jwt/auth", true)]
    #[case::shared_suffix("https://registry.acme.co.uk", "https://evil.co.uk/", false)]
    #[case::shared_hosting("https://a.github.io", "https://b.github.io/", false)]
    #[case::elsewhere("https://ghcr.io", "https://evil.example/token", false)]
    #[case::suffix_trick("https://ghcr.io", "https://notghcr.io/token", false)]
    #[case::prefix_trick("https://ghcr.io", "https://ghcr.io.evil.example/token", false)]
    #[case::plain("https://ghcr.io", "http://ghcr.io/token", false)]
    #[case::user("https://ghcr.io", "https://a@ghcr.io/token", false)]
    #[case::loopback("https://ghcr.io", "https://127.0.0.1/token", false)]
    #[case::metadata("https://8.8.8.8", "https://169.254.169.254/token", false)]
    #[case::same_private("https://10.0.0.1", "https://10.0.0.1/token", false)]
    #[case::neighbour("https://8.8.8.8", "https://8.8.4.4/token", false)]
    #[case::no_web("https://ghcr.io", "file:///etc/passwd", false)]
    #[case::named("https://registry.corp:5000", "https://auth.other:444/token", true)]
    #[case::named_other_port("https://registry.corp:5000", "https://auth.other/token", false)]
    #[case::named_plain("http://registry.corp:5001", "http://registry.corp:5001/token", true)]
    #[case::plain_is_for_one_port("http://registry.corp:5001", "http://registry.corp:80/t", false)]
    fn a_realm_is_the_registrys_own_or_one_that_is_named(
        #[case] registry: &str,
        #[case] realm: &str,
        #[case] good: bool,
    ) {
        let named = ["registry.corp:5000", "http://registry.corp:5001", "auth.other:444"];
        let hosts = HostPolicy::new(named.iter().map(|it| it.parse().unwrap()));
        let found = check(&hosts, &registry.parse().unwrap(), &realm.parse().unwrap());
        assert_eq!(found.is_ok(), good, "{found:?}");
    }
}
