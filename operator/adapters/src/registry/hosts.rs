//! Which hosts may be asked: the guard against requests that a tenant makes Belay send into the
//! cluster (operator specification, section 10).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use reqwest::Url;

/// A host that the operator's configuration names: `HOST[:PORT]`, port 443 unless said otherwise.
/// With `http://` before it, it may be asked without TLS, by default on port 80.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: String,
    port: u16,
    plain: bool,
}

/// Text that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {0:?} as a host: expected [http://]HOST[:PORT]")]
pub struct InvalidHost(String);

impl FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidHost(belay_api::limits::clip(text, 100));
        let (plain, rest) = match text.strip_prefix("http://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("https://").unwrap_or(text)),
        };
        if rest.contains(['/', '@', '?', '#', '\\', '*']) {
            return Err(invalid());
        }
        // The URL parser knows all spellings of a host, and is the one that requests go through.
        let scheme = if plain { "http" } else { "https" };
        let url: Url = format!("{scheme}://{rest}").parse().map_err(|_| invalid())?;
        let (host, port) = place(&url).ok_or_else(invalid)?;
        Ok(Self { host, port, plain })
    }
}

/// Why a host is not asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An address of the machine, the link, or a private network.
    #[error("{host} is at an address that is loopback, link-local, private or reserved")]
    Address {
        /// The host.
        host: String,
    },
    /// The host is named with other ports.
    #[error("{host} is allowed, and not on port {port}")]
    Port {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// It would be asked without TLS.
    #[error("{host} would be asked without TLS")]
    Plain {
        /// The host.
        host: String,
    },
    /// The address is none of HTTP, or carries a user.
    #[error("the address is not one that Belay asks")]
    Form,
}

/// The hosts that are named, and the rule for all others: HTTPS, and public addresses only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostPolicy {
    allowed: Vec<AllowedHost>,
}

impl HostPolicy {
    /// With these hosts named.
    pub fn new(allowed: impl IntoIterator<Item = AllowedHost>) -> Self {
        Self { allowed: allowed.into_iter().collect() }
    }

    /// Whether a request to this address may be made. The addresses behind a name are checked when it
    /// is resolved, by [`HostPolicy::check_address`].
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, url: &Url) -> Result<(), Refusal> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Form);
        }
        let (host, port) = place(url).ok_or(Refusal::Form)?;
        let named = self.allowed.iter().find(|it| it.host == host && it.port == port);
        match url.scheme() {
            "https" => {}
            "http" if named.is_some_and(|it| it.plain) => {}
            "http" => return Err(Refusal::Plain { host }),
            _ => return Err(Refusal::Form),
        }
        if named.is_some() {
            return Ok(());
        }
        if self.names(&host) {
            // The resolver sees no port; without this the name's private addresses would be open on
            // every one.
            return Err(Refusal::Port { host, port });
        }
        match address(&host) {
            Some(address) if !is_public(address) => Err(Refusal::Address { host }),
            _ => Ok(()),
        }
    }

    /// Whether an address behind a name may be connected to.
    ///
    /// # Errors
    /// Why not.
    pub fn check_address(&self, host: &str, address: IpAddr) -> Result<(), Refusal> {
        let host = canonical(host);
        if is_public(address) || self.names(&host) {
            return Ok(());
        }
        Err(Refusal::Address { host })
    }

    /// Whether the very place is named, so that tokens may be fetched there.
    pub(crate) fn names_place(&self, url: &Url) -> bool {
        place(url).is_some_and(|(host, port)| {
            self.allowed.iter().any(|it| it.host == host && it.port == port)
        })
    }

    /// The scheme for a registry, `HOST[:PORT]`.
    pub(crate) fn scheme(&self, registry: &str) -> &'static str {
        let plain = |url: &Url| {
            let place = place(url);
            self.allowed.iter().any(|it| {
                it.plain
                    && place
                        .as_ref()
                        .is_some_and(|(host, port)| *host == it.host && *port == it.port)
            })
        };
        match format!("http://{registry}").parse() {
            Ok(url) if plain(&url) => "http",
            _ => "https",
        }
    }

    fn names(&self, host: &str) -> bool {
        self.allowed.iter().any(|it| it.host == host)
    }
}

/// Host and port of an address.
pub(crate) fn place(url: &Url) -> Option<(String, u16)> {
    let host = url.host_str().filter(|host| !host.is_empty())?;
    Some((canonical(host), url.port_or_known_default()?))
}

/// One spelling for each name.
fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// The address that a host is, if it is one.
pub(crate) fn address(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

/// Whether an address is one of the public internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network, shared between carriers, protocols, benchmarks, relays.
        (0, ..) | (192, 0, 0) | (192, 88, 99) => true,
        (100, b, _) => b & 0xc0 == 64,
        (198, b, _) => b & 0xfe == 18,
        _ => false,
    };
    // 224 and above are multicast and reserved.
    !(special
        || a >= 224
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // Unspecified, loopback, and IPv4 in its two old spellings.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] if address != Ipv6Addr::LOCALHOST => {
            embedded(high, low)
        }
        // NAT64, and 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, and documentation.
        [0x2001, 0 | 0xdb8, ..] => false,
        // Global unicast is 2000::/3; all else is local, multicast or not assigned.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.plain { "http://" } else { "" };
        write!(f, "{scheme}{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn policy(allowed: &[&str]) -> HostPolicy {
        HostPolicy::new(allowed.iter().map(|it| it.parse().unwrap()))
    }

    #[rstest]
    #[case("8.8.8.8", true)]
    #[case("0.0.0.0", false)]
    #[case("0.1.2.3", false)]
    #[case("10.0.0.1", false)]
    #[case("100.64.0.1", false)]
    #[case("100.63.0.1", true)]
    #[case("127.0.0.1", false)]
    #[case("127.255.0.1", false)]
    #[case("169.254.169.254", false)]
    #[case("169.254.170.23", false)]
    #[case("172.16.0.1", false)]
    #[case("172.32.0.1", true)]
    #[case("192.0.0.1", false)]
    #[case("192.0.2.1", false)]
    #[case("192.168.1.1", false)]
    #[case("198.18.0.1", false)]
    #[case("198.20.0.1", true)]
    #[case("224.0.0.1", false)]
    #[case("240.0.0.1", false)]
    #[case("255.255.255.255", false)]
    #[case("::", false)]
    #[case("::1", false)]
    #[case("::ffff:127.0.0.1", false)]
    #[case("::ffff:10.0.0.1", false)]
    #[case("::ffff:8.8.8.8", true)]
    #[case("::127.0.0.1", false)]
    #[case("64:ff9b::7f00:1", false)]
    #[case("64:ff9b::808:808", true)]
    #[case("64:ff9b:1::808:808", false)]
    #[case("2002:7f00:1::", false)]
    #[case("2002:808:808::", true)]
    #[case("2001::1", false)]
    #[case("2001:db8::1", false)]
    #[case("2606:4700::1111", true)]
    #[case("fc00::1", false)]
    #[case("fd00:ec2::254", false)]
    #[case("fe80::1", false)]
    #[case("fec0::1", false)]
    #[case("ff02::1", false)]
    #[case("4000::1", false)]
    fn public_addresses_are_told_from_all_others(#[case] address: &str, #[case] public: bool) {
        assert_eq!(is_public(address.parse().unwrap()), public);
    }

    #[rstest]
    #[case::public("https://ghcr.io/v2/", &[], "")]
    #[case::public_port("https://ghcr.io:8443/v2/", &[], "")]
    #[case::public_address("https://8.8.8.8/v2/", &[], "")]
    #[case::plain("http://ghcr.io/v2/", &[], "plain")]
    #[case::other_scheme("ftp://ghcr.io/", &[], "form")]
    #[case::file("file:///etc/passwd", &[], "form")]
    #[case::user("https://a@ghcr.io/", &[], "form")]
    #[case::password("https://:b@ghcr.io/", &[], "form")]
    #[case::loopback("https://127.0.0.1/", &[], "address")]
    #[case::decimal("https://2130706433/", &[], "address")]
    #[case::octal("https://0177.0.0.1/", &[], "address")]
    #[case::hexadecimal("https://0x7f000001/", &[], "address")]
    #[case::short("https://127.1/", &[], "address")]
    #[case::full_width("https://１２７.0.0.1/", &[], "address")]
    #[case::v6("https://[::1]/", &[], "address")]
    #[case::mapped("https://[::ffff:169.254.169.254]/", &[], "address")]
    #[case::metadata("https://169.254.169.254/", &[], "address")]
    #[case::named("https://10.0.0.1:5000/", &["10.0.0.1:5000"], "")]
    #[case::named_v6("https://[fd00::1]:5000/", &["[fd00::1]:5000"], "")]
    #[case::named_other_spelling("https://10.1:5000/", &["10.0.0.1:5000"], "")]
    #[case::named_other_port("https://10.0.0.1:5001/", &["10.0.0.1:5000"], "port")]
    #[case::named_default_port("https://registry.corp/", &["registry.corp"], "")]
    #[case::named_dot("https://registry.corp./", &["registry.corp"], "")]
    #[case::named_capitals("https://Registry.Corp/", &["REGISTRY.corp"], "")]
    #[case::named_not_plain("http://registry.corp:443/", &["registry.corp:443"], "plain")]
    #[case::named_plain("http://registry.corp:5000/", &["http://registry.corp:5000"], "")]
    #[case::named_plain_port("http://registry.corp/", &["http://registry.corp"], "")]
    #[case::plain_other_port("http://registry.corp:81/", &["http://registry.corp"], "plain")]
    #[case::other_name("https://auth.corp/", &["registry.corp"], "")]
    fn an_address_may_be_asked(
        #[case] url: &str,
        #[case] allowed: &[&str],
        #[case] expected: &str,
    ) {
        let word = match policy(allowed).check(&url.parse().unwrap()) {
            Ok(()) => "",
            Err(Refusal::Address { .. }) => "address",
            Err(Refusal::Port { .. }) => "port",
            Err(Refusal::Plain { .. }) => "plain",
            Err(Refusal::Form) => "form",
        };
        assert_eq!(word, expected);
    }

    #[rstest]
    #[case("registry.corp", "10.0.0.1", true)]
    #[case("Registry.Corp.", "10.0.0.1", true)]
    #[case("other.corp", "10.0.0.1", false)]
    #[case("localhost", "127.0.0.1", false)]
    #[case("ghcr.io", "8.8.8.8", true)]
    fn an_address_behind_a_name_may_be_connected_to(
        #[case] host: &str,
        #[case] address: &str,
        #[case] may: bool,
    ) {
        let policy = policy(&["registry.corp:5000"]);
        assert_eq!(policy.check_address(host, address.parse().unwrap()).is_ok(), may);
    }

    #[rstest]
    #[case("registry.corp", "registry.corp:443")]
    #[case("https://registry.corp:5000", "registry.corp:5000")]
    #[case("http://registry.corp", "http://registry.corp:80")]
    #[case("[::1]:5000", "[::1]:5000")]
    fn a_host_is_read(#[case] text: &str, #[case] printed: &str) {
        assert_eq!(text.parse::<AllowedHost>().unwrap().to_string(), printed);
    }

    #[rstest]
    #[case("")]
    #[case(":5000")]
    #[case("a/b")]
    #[case("*.corp")]
    #[case("a@b")]
    #[case("a:99999")]
    #[case("ftp://a")]
    fn what_is_no_host_is_refused(#[case] text: &str) {
        text.parse::<AllowedHost>().unwrap_err();
    }
}
