//! Who an entry of `managedFields` speaks for.

use std::{fmt, str::FromStr};

/// How a manager writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl Operation {
    /// The word in `managedFields`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Operation {
    type Err = NotAnOperation;

    fn from_str(text: &str) -> Result<Self, NotAnOperation> {
        match text {
            "Apply" => Ok(Self::Apply),
            "Update" => Ok(Self::Update),
            _ => Err(NotAnOperation),
        }
    }
}

/// The error of [`Operation::from_str`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation is Apply or Update")]
pub struct NotAnOperation;

/// The name that the API server gives a writer without one.
pub const UNKNOWN_MANAGER: &str = "unknown";

/// The updater that the API server makes the owner of all there is, at the first apply to an object
/// that has no `managedFields`.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What tells one owner from another: the API server keeps one set of fields per identity.
///
/// One manager name may stand for several owners: `helm` that applies and `helm` that updates
/// conflict with each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    manager: Box<str>,
    operation: Operation,
    subresource: Box<str>,
    api_version: Option<Box<str>>,
}

impl Identity {
    /// An identity. The version counts for updates only; an empty manager is
    /// [`UNKNOWN_MANAGER`].
    pub fn new(manager: &str, operation: Operation, subresource: &str, api_version: &str) -> Self {
        let manager = if manager.is_empty() { UNKNOWN_MANAGER } else { manager };
        Self {
            manager: manager.into(),
            operation,
            subresource: subresource.into(),
            api_version: (operation == Operation::Update).then(|| api_version.into()),
        }
    }

    /// A manager that applies to the main resource.
    pub fn applier(manager: &str) -> Self {
        Self::new(manager, Operation::Apply, "", "")
    }

    /// The manager's name.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// How it writes.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The subresource it writes to; empty for the main resource.
    pub fn subresource(&self) -> &str {
        &self.subresource
    }

    /// The version it writes in, for updates.
    pub fn api_version(&self) -> Option<&str> {
        self.api_version.as_deref()
    }
}

/// Prints `helm (Update)` or `kube-controller-manager (Update of scale)`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.manager, self.operation)?;
        if !self.subresource.is_empty() {
            write!(f, " of {}", self.subresource)?;
        }
        f.write_str(")")
    }
}

/// What a known name says about an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// [`BEFORE_FIRST_APPLY`].
    BeforeFirstApply,
    /// `ancient-changes`: the API server merges the oldest of more than ten updaters.
    AncientChanges,
    /// `kubectl-client-side-apply` beside an applier: the field stays even when that applier
    /// leaves it out, until this entry is gone.
    ClientSideApplyLeftover,
}

impl Note {
    /// The note on an owner; `co_owned_by_apply`: another owner of the field applies.
    pub(crate) fn on(owner: &Identity, co_owned_by_apply: bool) -> Option<Self> {
        if owner.operation != Operation::Update {
            return None;
        }
        match owner.manager() {
            BEFORE_FIRST_APPLY => Some(Self::BeforeFirstApply),
            "ancient-changes" => Some(Self::AncientChanges),
            "kubectl-client-side-apply" if co_owned_by_apply => Some(Self::ClientSideApplyLeftover),
            _ => None,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BeforeFirstApply => "owner before server-side apply began",
            Self::AncientChanges => "older writers merged",
            Self::ClientSideApplyLeftover => {
                "left over from client-side apply: the field stays even when the applier drops it"
            }
        })
    }
}

/// The owner that is expected of a field: `helm`, or `helm/Apply` for one operation alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedOwner {
    /// The manager's name.
    pub manager: String,
    /// Its operation; `None` for either.
    pub operation: Option<Operation>,
}

impl ExpectedOwner {
    /// Whether `owner` is the expected one.
    pub fn is(&self, owner: &Identity) -> bool {
        self.manager == owner.manager()
            && self.operation.is_none_or(|operation| operation == owner.operation)
    }
}

impl fmt::Display for ExpectedOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(operation) => write!(f, "{}/{operation}", self.manager),
            None => f.write_str(&self.manager),
        }
    }
}

impl FromStr for ExpectedOwner {
    type Err = NoManager;

    fn from_str(text: &str) -> Result<Self, NoManager> {
        // Any other slash belongs to the name: `manager/v1`.
        let (manager, operation) = match text.rsplit_once('/') {
            Some((manager, word)) => match word.parse() {
                Ok(operation) => (manager, Some(operation)),
                Err(NotAnOperation) => (text, None),
            },
            None => (text, None),
        };
        if manager.is_empty() {
            return Err(NoManager);
        }
        Ok(Self { manager: manager.to_owned(), operation })
    }
}

/// The error of [`ExpectedOwner::from_str`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an expected owner is MANAGER, MANAGER/Apply or MANAGER/Update")]
pub struct NoManager;

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::a_name("helm", "helm", None)]
    #[case::with_operation("helm/Apply", "helm", Some(Operation::Apply))]
    #[case::a_slash_of_the_name("a/b", "a/b", None)]
    #[case::both("a/b/Update", "a/b", Some(Operation::Update))]
    #[case::other_case_is_a_name("helm/apply", "helm/apply", None)]
    fn an_expected_owner_is_read(
        #[case] text: &str,
        #[case] manager: &str,
        #[case] operation: Option<Operation>,
    ) {
        let read: ExpectedOwner = text.parse().unwrap();
        assert_eq!(read, ExpectedOwner { manager: manager.to_owned(), operation });
        assert_eq!(read.to_string(), text);
    }

    #[rstest]
    #[case::nothing("")]
    #[case::operation_alone("/Apply")]
    fn an_expected_owner_needs_a_name(#[case] text: &str) {
        assert_eq!(text.parse::<ExpectedOwner>(), Err(NoManager));
    }

    #[test]
    fn the_version_counts_for_updates_only() {
        let of = |operation, version| Identity::new("helm", operation, "", version);
        assert_eq!(of(Operation::Apply, "apps/v1"), of(Operation::Apply, "apps/v1beta2"));
        assert_ne!(of(Operation::Update, "apps/v1"), of(Operation::Update, "apps/v1beta2"));
    }

    #[test]
    fn an_empty_manager_is_unknown() {
        assert_eq!(Identity::applier("").to_string(), "unknown (Apply)");
    }
}
