//! Names are resolved here, and connected to only at the addresses that were checked: a name that
//! answers otherwise the second time is not asked a second time.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::HostPolicy;

type Resolved = BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// What turns a name into addresses. Tests hand in one of their own.
#[derive(Clone)]
pub struct Lookup(Arc<dyn Fn(String) -> Resolved + Send + Sync>);

impl Lookup {
    /// The system's resolver.
    pub fn system() -> Self {
        Self::of(|name| async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    /// Any other one.
    pub fn of<F>(lookup: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        Self(Arc::new(move |name| Box::pin(lookup(name))))
    }
}

impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

/// A resolver that gives out no address which the policy refuses.
pub(crate) struct CheckedResolver {
    pub(crate) hosts: Arc<HostPolicy>,
    pub(crate) lookup: Lookup,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (hosts, found) = (self.hosts.clone(), (self.lookup.0)(name.as_str().to_owned()));
        Box::pin(async move {
            let mut addresses = Vec::new();
            for address in found.await? {
                // One bad address spoils the name: which of them is used is not ours to choose.
                hosts.check_address(name.as_str(), address)?;
                addresses.push(SocketAddr::new(address, 0));
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
