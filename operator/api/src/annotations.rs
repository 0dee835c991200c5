//! Annotation keys under any prefix (operator specification, section 2, and those that other
//! sections name), and the closed sets of values among them. Reading values is the engine's.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    limits,
    names::is_dns1123_subdomain,
    values::{NamedValue, named_values},
};

/// The prefix unless configuration says otherwise.
pub const DEFAULT_PREFIX: &str = "belay.dev";

/// Domains whose keys belong to Kubernetes itself.
const RESERVED_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// The prefix of all annotation keys: a DNS-1123 subdomain, such as `belay.dev`, without the slash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AnnotationPrefix(String);

/// A prefix that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("use {text:?} as annotation prefix: {problem}")]
pub struct InvalidPrefix {
    text: String,
    problem: &'static str,
}

impl AnnotationPrefix {
    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole key of an annotation: `belay.dev/repo`.
    pub fn key(&self, annotation: impl Annotation) -> String {
        format!("{}/{annotation}", self.0)
    }

    /// What follows the prefix and slash in `key`; `None` for the keys of others. A name that is
    /// none of the enums here is a misspelling or of a newer version.
    pub fn strip<'a>(&self, key: &'a str) -> Option<&'a str> {
        key.strip_prefix(self.0.as_str())?.strip_prefix('/')
    }
}

impl Default for AnnotationPrefix {
    fn default() -> Self {
        Self(DEFAULT_PREFIX.to_owned())
    }
}

impl FromStr for AnnotationPrefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = |problem| Err(InvalidPrefix { text: limits::clip(text, 100), problem });
        if !is_dns1123_subdomain(text) {
            return invalid("it must be a DNS subdomain such as belay.dev, without a slash");
        }
        let within = |domain: &str| {
            text.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if RESERVED_DOMAINS.into_iter().any(within) {
            return invalid("kubernetes.io and k8s.io belong to Kubernetes itself");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for AnnotationPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for AnnotationPrefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AnnotationPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::values::deserialize_str(deserializer)
    }
}

/// A name that becomes a key with a prefix.
pub trait Annotation: NamedValue {}

impl Annotation for TargetAnnotation {}
impl Annotation for ReleaseAnnotation {}
impl Annotation for NamespaceAnnotation {}
impl Annotation for OwnAnnotation {}

named_values! {
    "annotation of a workload";
    /// What users write on a workload to have Belay follow it.
    pub enum TargetAnnotation {
        /// The GitHub repository whose releases are followed, `owner/name`; one for each workload.
        Repo = "repo",
        /// The image repository that tags are appended to.
        Image = "image",
        /// Which containers are moved: a comma list of `NAME` or `init:NAME`, all of one image
        /// repository, moved in one write or not at all.
        Container = "container",
        /// The targetName under which Releases and Rollbacks are filed.
        Target = "target",
        /// The KEDA ScaledObject to pause around a rollout.
        ScaledObject = "scaledobject",
        /// Which release tags count, and which part of them is the version; `web/v{version}` in a
        /// repository with several products.
        TagPattern = "tag-pattern",
        /// How the image tag is made of the release: `{version}`, or `{tag}` for the release's tag
        /// as it is. A `+` becomes `_`.
        TagTemplate = "tag-template",
        /// A range of semantic versions; the highest release in it is followed. Without it, GitHub's
        /// latest release.
        Range = "range",
        /// `true`: with `range`, prereleases count too.
        Prereleases = "prereleases",
        /// How long a release must have been published.
        MinAge = "min-age",
        /// `true`: write `tag@sha256:…` instead of the tag alone.
        Digest = "digest",
        /// Whether the registry must show the image before it is written: `required`, or `skip`
        /// where only nodes can pull and the operator permits it.
        ImageCheck = "image-check",
        /// How the ScaledObject is paused: `scale-in`, `full` or `none`.
        Pause = "pause",
        /// The longest time that a rollout may make no progress.
        Deadline = "deadline",
        /// How long success must hold before a Release counts as healthy.
        Bake = "bake",
        /// What follows a failed rollout: `rollback` or `stop`.
        OnFailure = "on-failure",
        /// `apply`, or `observe`: decide and report, but write to no workload.
        Mode = "mode",
        /// `true` or a tag: no forward moves.
        Hold = "hold",
        /// The tag of a blocked Release that may be tried once more.
        Allow = "allow",
        /// Field managers, by exact name, whose images Belay replaces.
        TakeOver = "take-over",
        /// Takes over once: `MANAGER=VALUE` for an image, `instance=NAMESPACE/NAME` for a target of
        /// another operator.
        Adopt = "adopt",
    }
}

/// What holds where a workload does not have an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// The workload is not followed without it.
    Required,
    /// Nothing.
    Absent,
    /// This value.
    Value(&'static str),
    /// What these words say.
    Derived(&'static str),
}

impl TargetAnnotation {
    /// What holds where it is absent. This is the only place that says so.
    pub fn default_value(self) -> DefaultValue {
        use DefaultValue::{Absent, Derived, Required, Value};
        match self {
            Self::Repo => Required,
            Self::Image => Derived("the repository last asked for, else that of the live image"),
            Self::Container => Derived("the only container; an error where there are several"),
            Self::Target => Derived("the name of a Deployment, `kind.name` of other kinds"),
            Self::ScaledObject
            | Self::Range
            | Self::Hold
            | Self::Allow
            | Self::TakeOver
            | Self::Adopt => Absent,
            Self::TagPattern => Value("v?{version}"),
            Self::TagTemplate => Value("{version}"),
            Self::Prereleases | Self::Digest => Value("false"),
            Self::MinAge => Value("0s"),
            Self::ImageCheck => Value("required"),
            Self::Pause => Derived("`scale-in` where `scaledobject` is set"),
            Self::Deadline => {
                Derived("`progressDeadlineSeconds`, 600 seconds where the kind has none")
            }
            Self::Bake => Value("1m"),
            Self::OnFailure => Value("rollback"),
            Self::Mode => Value("apply"),
        }
    }
}

named_values! {
    "annotation of a Release";
    /// What CI and people write on a Release. The first four are mirrored into its status where no
    /// workload that Belay follows has its target.
    pub enum ReleaseAnnotation {
        /// Exactly `true`: the Release is active.
        Active = "active",
        /// When its deployment began (RFC 3339).
        DeploymentStartTime = "deployment-start-time",
        /// When its deployment ended (RFC 3339).
        DeploymentEndTime = "deployment-end-time",
        /// The name of the Release that was active before.
        PreviousRelease = "previous-release",
        /// A label selector of analysis templates for this Release.
        AnalysisSelector = "analysis-selector",
        /// `true`: cluster-wide analysis templates labelled `global=true` do not apply.
        NoGlobalAnalysis = "no-global-analysis",
    }
}

named_values! {
    "annotation of a Namespace";
    /// What administrators write on a Namespace.
    pub enum NamespaceAnnotation {
        /// How many Releases are kept for each target (30 unless set).
        ReleaseLimit = "release-limit",
    }
}

named_values! {
    "annotation written by Belay";
    /// What Belay alone writes.
    pub enum OwnAnnotation {
        /// On a workload, in the same write as the image: the name of the Release that runs.
        Release = "release",
        /// On a Release: the interval that leaving it has blocked, until when, and how often.
        Blocked = "blocked",
        /// On a ScaledObject: who claims the pause.
        PauseOwner = "pause-owner",
        /// On a ScaledObject: when the claim ends by itself (RFC 3339).
        PauseExpires = "pause-expires",
        /// On Belay's CRDs: the version of their schema.
        Schema = "schema",
    }
}

named_values! {
    "pause mode";
    /// How a ScaledObject is paused.
    pub enum PauseMode [default ScaleIn] {
        /// Scaling in is held; scaling out works.
        ScaleIn = "scale-in",
        /// Neither direction works.
        Full = "full",
        /// Nothing is paused.
        None = "none",
    }
}

named_values! {
    "answer to failure";
    /// What follows a failed rollout.
    pub enum OnFailure [default Rollback] {
        /// Go back to the last Release that was healthy.
        Rollback = "rollback",
        /// Leave it as it is.
        Stop = "stop",
    }
}

named_values! {
    "mode";
    /// Whether Belay writes.
    pub enum Mode [default Apply] {
        /// Decide, report and write.
        Apply = "apply",
        /// Decide and report; write no workload.
        Observe = "observe",
    }
}

named_values! {
    "image check";
    /// Whether the registry is asked before an image is written.
    pub enum ImageCheck [default Required] {
        /// The registry must have the image.
        Required = "required",
        /// The registry is not asked.
        Skip = "skip",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("belay.dev")]
    #[case("release.example.com")]
    #[case("x")]
    #[case("mykubernetes.io")]
    #[case("k8s.io.example.com")]
    #[case(&"a".repeat(253))]
    fn a_dns_subdomain_is_a_prefix(#[case] text: &str) {
        let prefix: AnnotationPrefix = text.parse().unwrap();
        assert_eq!(prefix.key(TargetAnnotation::Repo), format!("{text}/repo"));
    }

    #[rstest]
    #[case("")]
    #[case("belay.dev/")]
    #[case("/")]
    #[case("Belay.dev")]
    #[case("belay..dev")]
    #[case(".belay.dev")]
    #[case("belay.dev.")]
    #[case("-belay.dev")]
    #[case("belay dev")]
    #[case("belay.dev\n")]
    #[case("belay.dev/x: y")]
    #[case("../../etc")]
    #[case("{{ .Values.x }}")]
    #[case("bélay.dev")]
    #[case("kubernetes.io")]
    #[case("app.kubernetes.io")]
    #[case("k8s.io")]
    #[case("x-k8s.k8s.io")]
    #[case(&"a".repeat(254))]
    fn anything_else_is_no_prefix(#[case] text: &str) {
        text.parse::<AnnotationPrefix>().unwrap_err();
    }

    #[test]
    fn a_long_hostile_prefix_does_not_fill_the_error() {
        let error = "/".repeat(1_000_000).parse::<AnnotationPrefix>().unwrap_err();
        assert!(error.to_string().len() < 300);
    }

    #[rstest]
    #[case("belay.dev/repo", Some("repo"))]
    #[case("belay.dev/no-such", Some("no-such"))]
    #[case("belay.dev", None)]
    #[case("belay.device/repo", None)]
    #[case("x.belay.dev/repo", None)]
    fn only_keys_under_the_prefix_are_ours(#[case] key: &str, #[case] name: Option<&str>) {
        assert_eq!(AnnotationPrefix::default().strip(key), name);
    }

    #[test]
    fn no_name_means_two_things_and_every_key_is_valid() {
        let names: Vec<&str> = TargetAnnotation::ALL
            .iter()
            .map(|name| name.as_str())
            .chain(ReleaseAnnotation::ALL.iter().map(|name| name.as_str()))
            .chain(NamespaceAnnotation::ALL.iter().map(|name| name.as_str()))
            .chain(OwnAnnotation::ALL.iter().map(|name| name.as_str()))
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for name in names {
            assert!(name.len() <= 63 && is_dns1123_subdomain(name), "{name}");
        }
    }

    #[test]
    fn the_four_annotations_of_the_older_operator_keep_their_names() {
        let prefix: AnnotationPrefix = "release.example.com".parse().unwrap();
        let keys = [
            TargetAnnotation::Repo,
            TargetAnnotation::Image,
            TargetAnnotation::Container,
            TargetAnnotation::ScaledObject,
        ]
        .map(|annotation| prefix.key(annotation));
        assert_eq!(
            keys,
            [
                "release.example.com/repo",
                "release.example.com/image",
                "release.example.com/container",
                "release.example.com/scaledobject"
            ]
        );
    }

    #[test]
    fn defaults_of_closed_sets_are_the_documented_ones() {
        let value = |annotation: TargetAnnotation| annotation.default_value();
        assert_eq!(
            value(TargetAnnotation::OnFailure),
            DefaultValue::Value(OnFailure::default().as_str())
        );
        assert_eq!(value(TargetAnnotation::Mode), DefaultValue::Value(Mode::default().as_str()));
        assert_eq!(
            value(TargetAnnotation::ImageCheck),
            DefaultValue::Value(ImageCheck::default().as_str())
        );
    }

    #[test]
    fn default_durations_are_durations() {
        for annotation in [TargetAnnotation::MinAge, TargetAnnotation::Bake] {
            let DefaultValue::Value(text) = annotation.default_value() else {
                panic!("{annotation} has no default value");
            };
            text.parse::<crate::Duration>().unwrap();
        }
    }
}
