//! Single reads with a deadline.

use std::time::Duration;

use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, ListParams, TypeMeta},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    connect::Cluster,
    error::{Class, Error},
};

/// Reads of one cluster.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The cluster.
    pub cluster: Cluster,
}

impl Reader {
    /// Reads of that cluster.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster }
    }

    /// Runs one read under the deadline of `--request-timeout`; `attempt` says what it is, such as
    /// `get deployments.apps "web"`.
    ///
    /// # Errors
    /// What the API server, the connection or the deadline said.
    pub async fn within<T>(
        &self,
        attempt: &str,
        read: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let result = match self.cluster.timeout {
            None => read.await,
            Some(limit) => tokio::time::timeout(limit, read)
                .await
                .map_err(|_| self.no_answer(attempt, limit))?,
        };
        result.map_err(|error| {
            let error = Error::of_kube(attempt, &error);
            if error.class == Class::Unreachable && error.hints.is_empty() {
                return error.hint(format!("the API server is {}", self.cluster.server));
            }
            error
        })
    }

    fn no_answer(&self, attempt: &str, limit: Duration) -> Error {
        let seconds = limit.as_secs_f64();
        let server = &self.cluster.server;
        let proxy = self.cluster.proxy.as_ref();
        let way = proxy.map_or_else(String::new, |proxy| format!(" through the proxy {proxy}"));
        Error::new(
            Class::Unreachable,
            format!("{attempt}: no answer from {server}{way} within {seconds}s"),
        )
        .hint("give it longer with --request-timeout")
    }

    /// Reads one object as it is; `None` if it is not there.
    ///
    /// # Errors
    /// It could not be read. A kind that is not served has the reason `NotServed`.
    pub async fn get(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<DynamicObject>, Error> {
        let attempt = format!("get {} \"{name}\"", resource(kind));
        match self.within(&attempt, self.api(kind, namespace).get(name)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if is_unserved(&error) => Err(unserved(kind)),
            Err(error) if error.class == Class::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists objects as they are.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub async fn list(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<Vec<DynamicObject>, Error> {
        Ok(self.page(kind, namespace, params).await?.0)
    }

    /// One page of a list, and the token of the next one.
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub async fn page(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<(Vec<DynamicObject>, Option<String>), Error> {
        let attempt = format!("list {}", resource(kind));
        let list = self.within(&attempt, async { self.api(kind, namespace).list(params).await });
        match list.await {
            Ok(list) => Ok((with_types(list.items, kind), list.metadata.continue_)),
            Err(error) if error.class == Class::NotFound => Err(unserved(kind)),
            Err(error) => Err(error),
        }
    }

    /// Access to a kind, in a namespace or in all.
    pub fn api(&self, kind: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        let client = self.cluster.client.clone();
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, kind),
            None => Api::all_with(client, kind),
        }
    }
}

/// The resource of one of our or Kubernetes' own types.
pub fn kind_of<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// `deployments.apps`, as kubectl writes it.
pub fn resource(kind: &ApiResource) -> String {
    match kind.group.as_str() {
        "" => kind.plural.clone(),
        group => format!("{}.{group}", kind.plural),
    }
}

/// The API server says `the server could not find the requested resource` of a path that it does not
/// know, and names the object otherwise.
fn is_unserved(error: &Error) -> bool {
    error.class == Class::NotFound && says_so(&error.message)
}

fn says_so(message: &str) -> bool {
    message.contains("could not find the requested resource") || message.contains("page not found")
}

fn unserved(kind: &ApiResource) -> Error {
    Error::new(
        Class::NotFound,
        format!("the server does not serve {} in version {}", resource(kind), kind.version),
    )
    .reason("NotServed")
}

/// An object under a type of this version.
///
/// # Errors
/// It cannot be read as one.
pub fn typed<T: DeserializeOwned>(raw: &Value) -> Result<T, Error> {
    T::deserialize(raw).map_err(|error| Error::other(format!("read the object: {error}")))
}

/// Items of a list come without apiVersion and kind.
fn with_types(mut items: Vec<DynamicObject>, kind: &ApiResource) -> Vec<DynamicObject> {
    for item in &mut items {
        item.types.get_or_insert_with(|| TypeMeta {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
        });
    }
    items
}
