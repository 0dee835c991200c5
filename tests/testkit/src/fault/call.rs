//! What a call is: the identity that rules match and traces show.

use std::fmt;

use form_urlencoded::parse as parse_query;
use http::{
    Method, Request,
    header::{CONTENT_TYPE, HOST},
};
use percent_encoding::percent_decode_str;

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection.
    Watch,
    /// Creates an object, or posts to a subresource.
    Create,
    /// Replaces an object.
    Update,
    /// Changes an object.
    Patch(PatchKind),
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
    /// A call that is not about a Kubernetes resource: its method.
    Http(Method),
}

/// How a patch is meant, told by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchKind {
    /// Server-side apply.
    Apply,
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// Kubernetes' strategic merge.
    Strategic,
    /// A content type the API server does not take.
    Other,
}

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// A Kubernetes resource.
    Resource(Resource),
    /// Anything else.
    Path {
        /// Host, with the port if the URL has one. `None` for the API server.
        host: Option<String>,
        /// Path, without the query; percent-decoded for the API server only.
        path: String,
    },
}

/// Coordinates of an object or collection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Namespace; `None` for what is cluster-scoped and for collections across namespaces.
    pub namespace: Option<String>,
    /// Name of the object; `None` for collections and creations.
    pub name: Option<String>,
    /// Subresource, for example `status`.
    pub subresource: Option<String>,
}

/// Which call it is. Two calls of a run never have the same identity: `nth` tells them apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallId {
    /// What it asks for.
    pub verb: Verb,
    /// On what.
    pub target: Target,
    /// Whether the API server is asked to commit nothing.
    pub dry_run: bool,
    /// The how-manieth call it is with this verb, target and `dry_run`, from 1.
    pub nth: u32,
}

impl CallId {
    /// Reads a request to the API server whose base URL has the path `prefix` (normally empty).
    ///
    /// The path is taken apart as the API server itself does it, and is decoded before, not after.
    /// A path that names no resource is a [`Target::Path`].
    pub fn kubernetes<B>(request: &Request<B>, prefix: &str) -> Self {
        let path = decode(below(request.uri().path(), prefix));
        let query = pairs(request);
        let (verb, target) = match Resource::parse(&path) {
            Some((mut resource, watched)) => {
                let verb = match request.method() {
                    _ if watched => Verb::Watch,
                    &Method::GET | &Method::HEAD if resource.name.is_some() => Verb::Get,
                    &Method::GET | &Method::HEAD if is_set(&query, "watch") => Verb::Watch,
                    &Method::GET | &Method::HEAD => Verb::List,
                    &Method::POST => Verb::Create,
                    &Method::PUT => Verb::Update,
                    &Method::PATCH => Verb::Patch(PatchKind::of(request)),
                    &Method::DELETE if resource.name.is_some() => Verb::Delete,
                    &Method::DELETE => Verb::DeleteCollection,
                    other => Verb::Http(other.clone()),
                };
                if matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
                    resource.name = resource.name.or_else(|| selected_name(&query));
                }
                (verb, Target::Resource(resource))
            }
            None => (Verb::Http(request.method().clone()), Target::Path { host: None, path }),
        };
        let dry_run = query.iter().any(|(key, value)| key == "dryRun" && !value.is_empty());
        Self { verb, target, dry_run, nth: 1 }
    }

    /// Reads a request to any other server. User name and password of the URL are left out.
    pub fn http<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        let host = match (uri.host(), uri.port()) {
            (Some(host), Some(port)) => Some(format!("{host}:{port}")),
            (Some(host), None) => Some(host.to_owned()),
            (None, _) => {
                request.headers().get(HOST).and_then(|host| host.to_str().ok()).map(Into::into)
            }
        };
        Self {
            verb: Verb::Http(request.method().clone()),
            target: Target::Path { host, path: uri.path().to_owned() },
            dry_run: false,
            nth: 1,
        }
    }

    /// The resource, unless the call is about something else.
    pub fn resource(&self) -> Option<&Resource> {
        match &self.target {
            Target::Resource(resource) => Some(resource),
            Target::Path { .. } => None,
        }
    }

    /// Whether the call changes something on the server when it is granted.
    ///
    /// Dry runs, reviews (`authentication.k8s.io`, `authorization.k8s.io`) and ServiceAccount tokens
    /// are posted but leave nothing behind; of other servers every method but the safe ones counts.
    pub fn is_write(&self) -> bool {
        let lasting = self.resource().is_none_or(|resource| {
            let review =
                matches!(&*resource.group, "authentication.k8s.io" | "authorization.k8s.io");
            !review && resource.subresource.as_deref() != Some("token")
        });
        match &self.verb {
            Verb::Get | Verb::List | Verb::Watch => false,
            Verb::Create
            | Verb::Update
            | Verb::Patch(_)
            | Verb::Delete
            | Verb::DeleteCollection => lasting && !self.dry_run,
            Verb::Http(method) => !method.is_safe(),
        }
    }

    /// Whether both are the same call but for the count.
    pub fn is_same(&self, other: &Self) -> bool {
        self.verb == other.verb && self.target == other.target && self.dry_run == other.dry_run
    }

    /// Replaces a name that differs from run to run.
    pub(crate) fn replace(&mut self, real: &str, shown: &str) {
        let put = |text: &mut String| {
            if text.contains(real) {
                *text = text.replace(real, shown);
            }
        };
        match &mut self.target {
            Target::Resource(resource) => {
                resource.namespace.iter_mut().chain(&mut resource.name).for_each(put);
            }
            Target::Path { host, path } => host.iter_mut().chain([path]).for_each(put),
        }
    }
}

impl Resource {
    /// Takes a decoded path apart. The flag is set for the deprecated `/api/v1/watch/…` form.
    fn parse(path: &str) -> Option<(Self, bool)> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !group.is_empty() => (*group, *version, rest),
            _ => return None,
        };
        let (watched, rest) = match rest {
            ["watch", rest @ ..] => (true, rest),
            _ => (false, rest),
        };
        let (namespace, rest) = match rest {
            // These two belong to the namespace itself, everything else is inside it.
            ["namespaces", _, "status" | "finalize", ..] => (None, rest),
            ["namespaces", namespace, inside @ ..] if !inside.is_empty() => {
                // The API server takes an empty one for all of them.
                (Some(*namespace).filter(|namespace| !namespace.is_empty()), inside)
            }
            _ => (None, rest),
        };
        if version.is_empty() || rest.contains(&"") {
            return None;
        }
        let owned = |segment: &&str| (*segment).to_owned();
        let resource = Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: rest.first().map(owned)?,
            namespace: namespace.map(str::to_owned),
            name: rest.get(1).map(owned),
            subresource: rest.get(2).map(owned),
        };
        Some((resource, watched))
    }
}

impl PatchKind {
    fn of<B>(request: &Request<B>) -> Self {
        let value = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media_type = value.and_then(|value| value.split(';').next()).unwrap_or_default();
        match media_type.trim().to_ascii_lowercase().as_str() {
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => Self::Apply,
            "application/json-patch+json" => Self::Json,
            "application/merge-patch+json" => Self::Merge,
            "application/strategic-merge-patch+json" => Self::Strategic,
            _ => Self::Other,
        }
    }
}

/// The decoded query of a request, in the order it has there.
pub(crate) fn pairs<B>(request: &Request<B>) -> Vec<(String, String)> {
    parse_query(request.uri().query().unwrap_or_default().as_bytes()).into_owned().collect()
}

/// The API server takes every value of a flag as true but these.
fn is_set(query: &[(String, String)], flag: &str) -> bool {
    query
        .iter()
        .find(|(key, _)| key == flag)
        .is_some_and(|(_, value)| !value.eq_ignore_ascii_case("false") && value != "0")
}

/// The one object a collection is narrowed to, which the API server takes for its name too.
fn selected_name(query: &[(String, String)]) -> Option<String> {
    let (_, selector) = query.iter().find(|(key, _)| key == "fieldSelector")?;
    selector
        .split(',')
        .find_map(|term| term.strip_prefix("metadata.name="))
        .map(|name| name.trim_start_matches('=').to_owned())
        .filter(|name| !name.is_empty())
}

fn below<'a>(path: &'a str, prefix: &str) -> &'a str {
    match path.strip_prefix(prefix.trim_end_matches('/')) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ => path,
    }
}

/// A path whose escapes make no text stays as it is.
fn decode(path: &str) -> String {
    percent_decode_str(path).decode_utf8().map_or_else(|_| path.to_owned(), Into::into)
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Watch => "WATCH",
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Patch(PatchKind::Apply) => "PATCH(apply)",
            Self::Patch(PatchKind::Json) => "PATCH(json)",
            Self::Patch(PatchKind::Merge) => "PATCH(merge)",
            Self::Patch(PatchKind::Strategic) => "PATCH(strategic)",
            Self::Patch(PatchKind::Other) => "PATCH(?)",
            Self::Delete => "DELETE",
            Self::DeleteCollection => "DELETECOLLECTION",
            Self::Http(method) => method.as_str(),
        })
    }
}

/// One line: `apps/v1 deployments/scale shop/web`; a collection in a namespace ends with its slash.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { host, path } => {
                write!(f, "{}{}", Plain(host.as_deref().unwrap_or_default()), Plain(path))
            }
            Self::Resource(Resource { group, version, resource, namespace, name, subresource }) => {
                if !group.is_empty() {
                    write!(f, "{}/", Plain(group))?;
                }
                write!(f, "{} {}", Plain(version), Plain(resource))?;
                if let Some(subresource) = subresource {
                    write!(f, "/{}", Plain(subresource))?;
                }
                match (namespace, name) {
                    (Some(namespace), name) => {
                        let name = name.as_deref().unwrap_or_default();
                        write!(f, " {}/{}", Plain(namespace), Plain(name))
                    }
                    (None, Some(name)) => write!(f, " {}", Plain(name)),
                    (None, None) => Ok(()),
                }
            }
        }
    }
}

/// One line: `PATCH(apply) apps/v1 deployments shop/web #2`; the first of its kind has no number.
impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.target)?;
        if self.nth > 1 {
            write!(f, " #{}", self.nth)?;
        }
        Ok(())
    }
}

/// Text for one line of a trace: control characters are escaped, and what is too long is cut off.
pub(crate) struct Plain<'a>(pub(crate) &'a str);

/// The longest name Kubernetes has is 253 characters.
const SHOWN: usize = 253;

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars().take(SHOWN) {
            if character.is_control() {
                write!(f, "{}", character.escape_default())?;
            } else {
                write!(f, "{character}")?;
            }
        }
        match self.0.chars().count().saturating_sub(SHOWN) {
            0 => Ok(()),
            rest => write!(f, "…(+{rest})"),
        }
    }
}
