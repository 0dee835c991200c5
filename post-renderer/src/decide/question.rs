//! What a decision is made of.

use std::fmt;

/// A container of the manifest, and what the cluster says about it.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The kind of the object.
    pub kind: &'a str,
    /// The namespace that Helm applies it to.
    pub namespace: &'a str,
    /// The name of the object.
    pub name: &'a str,
    /// The name of the container.
    pub container: &'a str,
    /// What the document is.
    pub role: Role,
    /// The image in the manifest, N.
    pub chart_image: Option<&'a str>,
    /// Whether the manifest has an `image` key at all, be it empty.
    pub has_image: bool,
    /// `<prefix>/image` in the manifest.
    pub chart_annotation: Option<&'a str>,
    /// What the read of the live object, L, gave.
    pub live: Live,
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A Deployment, StatefulSet or DaemonSet of `apps/v1`.
    Workload,
    /// A hook of Helm's.
    Hook,
    /// Anything else: a CRD, a custom resource, a Job, a Pod, a CronJob.
    Other,
}

/// The live object. A failed read is never "not found".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// The API server says that there is none.
    NotFound,
    /// It was read.
    Found(LiveObject),
    /// The manifest gives no name to look for.
    Unnamed,
    /// It could not be read: 401, 403, a timeout, TLS, 5xx, an answer that is no object.
    Unknown {
        /// Why, as part of a sentence.
        why: String,
    },
}

/// What of a live object counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveObject {
    /// Whether Belay follows it.
    pub followed: Followed,
    /// `meta.helm.sh/release-name`.
    pub release_name: Option<String>,
    /// `meta.helm.sh/release-namespace`.
    pub release_namespace: Option<String>,
    /// `<prefix>/image`.
    pub image_annotation: Option<String>,
    /// The container of the same name in the same list; `None` where there is none.
    pub container: Option<LiveContainer>,
}

/// Whether Belay follows an object, by its annotations `<prefix>/release` and `<prefix>/repo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// It has both.
    Yes,
    /// `release` is there, `repo` is gone.
    Once,
    /// There is no `release`.
    No,
}

impl Followed {
    /// What the presence of the two annotations says.
    pub fn of(release: bool, repo: bool) -> Self {
        match (release, repo) {
            (true, true) => Self::Yes,
            (true, false) => Self::Once,
            (false, _) => Self::No,
        }
    }
}

/// A container of a live object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveContainer {
    /// Its image.
    pub image: String,
    /// The managers that own `f:image` of it.
    pub owners: Vec<Owner>,
}

/// An owner of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The field manager.
    pub manager: String,
    /// How it got the field.
    pub operation: Operation,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        write!(f, "{}, {operation}", self.manager)
    }
}

/// The operation of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// How Helm will apply the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apply {
    /// A three-way merge in the client.
    ClientSide,
    /// Server-side apply.
    ServerSide,
    /// Nothing tells.
    Unknown,
}

/// Whether Helm replaces objects: `--force` of Helm 3, `--force-replace` of Helm 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// It doesn't, or nothing tells.
    No,
    /// It does.
    Yes,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The table.
    Auto,
    /// Preserve where an owner owns the image.
    Preserve,
    /// Strip where an owner owns the image; refused under client-side apply.
    Strip,
}

/// What is the same for all containers of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `--mode`.
    pub mode: Mode,
    /// How Helm will apply.
    pub apply: Apply,
    /// Whether Helm replaces objects.
    pub force: Force,
    /// `--owner`: field managers that may keep an image.
    pub owners: Vec<String>,
    /// Helm's own field manager.
    pub helm: String,
    /// The release that is upgraded, where it is known.
    pub release: Option<String>,
    /// The namespace of that release, where it is known.
    pub release_namespace: Option<String>,
    /// `--accept-repository`.
    pub accept_repository: bool,
    /// Helm's `--take-ownership`.
    pub take_ownership: bool,
    /// `--offline`.
    pub offline: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            apply: Apply::Unknown,
            force: Force::No,
            owners: vec!["belay-operator".to_owned()],
            helm: "helm".to_owned(),
            release: None,
            release_namespace: None,
            accept_repository: false,
            take_ownership: false,
            offline: false,
        }
    }
}
