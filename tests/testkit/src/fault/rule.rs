//! Which calls a fault is for.

use std::fmt;

use super::{CallId, Fault, Target, Verb};

/// A set of calls, by what they have in common. What is not said does not matter.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    writes: bool,
    verb: Option<Verb>,
    group: Option<String>,
    resource: Option<(String, Option<String>)>,
    namespace: Option<String>,
    name: Option<String>,
    host: Option<String>,
    path: Option<String>,
    same: Option<CallId>,
}

impl Calls {
    /// All calls.
    pub fn any() -> Self {
        Self::default()
    }

    /// The calls that are the same as this one, whatever its count.
    pub fn same_as(id: &CallId) -> Self {
        Self { same: Some(id.clone()), ..Self::default() }
    }

    /// Only those that change something ([`CallId::is_write`]).
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.writes = true;
        self
    }

    /// Only those with this verb.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }

    /// Only those of this API group; the core group is empty.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// Only those of this resource, written as in a Role: `deployments` means the object itself,
    /// `deployments/status` the subresource.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(match resource.split_once('/') {
            Some((resource, sub)) => (resource.to_owned(), Some(sub.to_owned())),
            None => (resource.to_owned(), None),
        });
        self
    }

    /// Only those in this namespace (as the trace shows it, see [`super::FaultPlan::alias`]).
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only those of the object with this name (as the trace shows it).
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only those to this host (as the trace shows it, with a port if the URL has one).
    #[must_use]
    pub fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// Only those that are not about a Kubernetes resource and whose path begins so.
    #[must_use]
    pub fn path(mut self, prefix: &str) -> Self {
        self.path = Some(prefix.to_owned());
        self
    }

    /// Whether the call is one of them.
    pub fn contains(&self, id: &CallId) -> bool {
        let Self { writes, verb, group, resource, namespace, name, host, path, same } = self;
        let of = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let found = id.resource();
        let (found_host, found_path) = match &id.target {
            Target::Path { host, path } => (host.as_deref(), Some(path)),
            Target::Resource(_) => (None, None),
        };
        (!writes || id.is_write())
            && verb.as_ref().is_none_or(|verb| *verb == id.verb)
            && of(group, found.map(|found| found.group.as_str()))
            && resource.as_ref().is_none_or(|(resource, sub)| {
                found.is_some_and(|it| it.resource == *resource && it.subresource == *sub)
            })
            && of(namespace, found.and_then(|found| found.namespace.as_deref()))
            && of(name, found.and_then(|found| found.name.as_deref()))
            && of(host, found_host)
            && path
                .as_ref()
                .is_none_or(|prefix| found_path.is_some_and(|it| it.starts_with(prefix)))
            && same.as_ref().is_none_or(|same| same.is_same(id))
    }
}

/// Which of the calls that match, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nth {
    /// This one alone.
    Only(u32),
    /// This one and all that follow.
    From(u32),
    /// So many, then no more.
    First(u32),
    /// All.
    Every,
}

impl Nth {
    /// Whether it includes the call with this count.
    pub fn includes(self, count: u32) -> bool {
        match self {
            Self::Only(nth) => count == nth,
            Self::From(nth) => count >= nth,
            Self::First(many) => count <= many,
            Self::Every => true,
        }
    }
}

/// A fault and the calls it is for.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The calls that are counted.
    pub calls: Calls,
    /// Which of them get the fault.
    pub nth: Nth,
    /// What becomes of these.
    pub fault: Fault,
}

/// `crash after: the 2nd …`, for messages of tests that try many plans.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, nth, fault } = self;
        write!(f, "{fault}: {nth} of {calls}")
    }
}

impl fmt::Display for Nth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Only(nth) => write!(f, "number {nth}"),
            Self::From(nth) => write!(f, "number {nth} and later"),
            Self::First(many) => write!(f, "the first {many}"),
            Self::Every => f.write_str("every"),
        }
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, verb, group, resource, namespace, name, host, path, same } = self;
        let mut words = Vec::new();
        words.extend(writes.then(|| "writes".to_owned()));
        words.extend(verb.as_ref().map(ToString::to_string));
        words.extend(group.as_ref().map(|group| format!("group={group}")));
        words.extend(resource.as_ref().map(|(resource, sub)| match sub {
            Some(sub) => format!("{resource}/{sub}"),
            None => resource.clone(),
        }));
        words.extend(namespace.as_ref().map(|namespace| format!("namespace={namespace}")));
        words.extend(name.as_ref().map(|name| format!("name={name}")));
        words.extend(host.as_ref().map(|host| format!("host={host}")));
        words.extend(path.as_ref().map(|path| format!("path={path}")));
        words.extend(same.as_ref().map(|id| {
            let dry_run = if id.dry_run { " dryRun" } else { "" };
            format!("{} {}{dry_run}", id.verb, id.target)
        }));
        if words.is_empty() {
            words.push("all calls".to_owned());
        }
        f.write_str(&words.join(" "))
    }
}
