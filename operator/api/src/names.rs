//! Names that follow from what they name, so that a create is idempotent and a second one meets
//! the first (operator specification, sections 1.1, 2 and 7).

use std::{fmt, str::FromStr};

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::limits;

/// Writes the image of followed containers and the `release` annotation of their workload. The
/// operator's configuration may choose another name.
pub const IMAGE_FIELD_MANAGER: &str = "belay-operator";
/// Writes the pause claim on a ScaledObject.
pub const PAUSE_FIELD_MANAGER: &str = "belay-operator-pause";
/// Writes the status of Belay's own kinds.
pub const STATUS_FIELD_MANAGER: &str = "belay-operator-status";
/// Writes what `kubectl release` writes: Belay's kinds and annotations.
pub const PLUGIN_FIELD_MANAGER: &str = "kubectl-release";

/// A name that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("use {text:?} as {what}: {problem}")]
pub struct InvalidName {
    what: &'static str,
    text: String,
    problem: String,
}

impl InvalidName {
    fn new(what: &'static str, text: &str, problem: impl Into<String>) -> Self {
        Self { what, text: limits::clip(text, 100), problem: problem.into() }
    }
}

/// Whether `text` is a DNS-1123 subdomain, by Kubernetes' rules for the names of objects: at most
/// 253 characters of labels joined by dots. The length of one label is not limited.
pub fn is_dns1123_subdomain(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    text.len() <= limits::OBJECT_NAME
        && text.split('.').all(|label| {
            !label.is_empty()
                && label.bytes().all(inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// The name under which a workload's Releases and Rollbacks are filed: a DNS-1123 subdomain of at
/// most 245 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetName(String);

impl TargetName {
    const WHAT: &str = "a target name";

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The target name of a workload that has no `target` annotation: its name for a Deployment,
    /// `kind.name` with the kind in lower case otherwise.
    ///
    /// # Errors
    /// [`InvalidName`] when that is too long, which a `target` annotation cures.
    pub fn default_for(kind: &str, name: &str) -> Result<Self, InvalidName> {
        match kind {
            "Deployment" => name.parse(),
            _ => format!("{}.{name}", kind.to_ascii_lowercase()).parse(),
        }
    }
}

impl FromStr for TargetName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > limits::TARGET_NAME {
            let problem = format!("it is longer than {} characters", limits::TARGET_NAME);
            return Err(InvalidName::new(Self::WHAT, text, problem));
        }
        if !is_dns1123_subdomain(text) {
            let problem = "it must be lower-case letters, digits, '-' and '.', \
                           and each part must begin and end with a letter or digit";
            return Err(InvalidName::new(Self::WHAT, text, problem));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What makes a Release this one and no other: 10 hex digits over target and revisions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature(String);

impl Signature {
    const LENGTH: usize = 10;

    /// The signature of a Release of `target` with revisions of these names and ids. Their order
    /// does not matter.
    pub fn of<'a>(target: &str, revisions: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Content<'a> {
            target_name: &'a str,
            revisions: Vec<Revision<'a>>,
        }
        #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
        struct Revision<'a> {
            name: &'a str,
            id: &'a str,
        }

        let mut revisions: Vec<_> =
            revisions.into_iter().map(|(name, id)| Revision { name, id }).collect();
        revisions.sort_unstable();
        let content = Content { target_name: target, revisions };
        #[expect(clippy::expect_used, reason = "a struct of strings always has a JSON form")]
        let bytes = serde_json::to_vec(&content).expect("strings have a JSON form");
        Self(hex(&bytes, Self::LENGTH))
    }

    /// All ten digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first seven digits, which end a Release's name.
    pub fn short(&self) -> ShortHash {
        ShortHash(self.0[..ShortHash::LENGTH].to_owned())
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The seven hex digits that end a Release's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShortHash(String);

impl ShortHash {
    const LENGTH: usize = 7;

    /// The digits as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digits that end `release`, if it is the name of a Release of `target`.
    ///
    /// # Errors
    /// [`InvalidName`].
    pub fn of_release(target: &TargetName, release: &str) -> Result<Self, InvalidName> {
        release
            .strip_prefix(target.as_str())
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|hash| hash.parse().ok())
            .ok_or_else(|| {
                let problem = format!("it must be {target} followed by '-' and 7 hex digits");
                InvalidName::new("the name of a Release", release, problem)
            })
    }
}

impl FromStr for ShortHash {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if text.len() == Self::LENGTH && text.bytes().all(digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName::new("a short hash", text, "it must be 7 lower-case hex digits"))
        }
    }
}

impl fmt::Display for ShortHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The name of a Release: `<target>-<first 7 digits of the signature>`.
pub fn release_name(target: &TargetName, signature: &Signature) -> String {
    format!("{target}-{}", signature.short())
}

/// The name of a Rollback: `<target>-<hash from>-to-<hash to>`, and `-N` where that name is taken
/// by an earlier, ended Rollback. A target over 220 characters is cut there and gets `-` and 7 hex
/// digits of its SHA-256.
///
/// A cut that would end in `.` or `-` ends before it: `.-` is in no valid name.
pub fn rollback_name(
    target: &TargetName,
    from: &ShortHash,
    to: &ShortHash,
    again: Option<u16>,
) -> String {
    let again = again.map(|n| format!("-{n}")).unwrap_or_default();
    format!("{}-{from}-to-{to}{again}", rollback_target(target))
}

fn rollback_target(target: &TargetName) -> String {
    let name = target.as_str();
    if name.len() <= limits::ROLLBACK_TARGET {
        return name.to_owned();
    }
    let head = name[..limits::ROLLBACK_TARGET].trim_end_matches(['.', '-']);
    format!("{head}-{}", hex(name.as_bytes(), ShortHash::LENGTH))
}

/// The first `digits` hex digits of the SHA-256 of `bytes`.
fn hex(bytes: &[u8], digits: usize) -> String {
    let mut text = HEXLOWER.encode(&Sha256::digest(bytes));
    text.truncate(digits);
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[("application", "abc123")], "c4c1645e7f")]
    #[case(&[("database", "def456"), ("application", "abc123")], "3fe6a64d52")]
    #[case(&[("application", "abc123"), ("database", "def456")], "3fe6a64d52")]
    fn the_signature_is_that_of_the_specification(
        #[case] revisions: &[(&str, &str)],
        #[case] expected: &str,
    ) {
        let signature = Signature::of("test-target", revisions.iter().copied());
        assert_eq!(signature.as_str(), expected);
    }

    #[test]
    fn the_signature_is_over_plain_utf8() {
        // SHA-256 of {"targetName":"t","revisions":[{"name":"a<&>","id":"ä\"\\"}]}, by sha256sum.
        let signature = Signature::of("t", [("a<&>", "ä\"\\")]);
        assert_eq!(signature.as_str(), "f7dbf05805");
    }

    #[test]
    fn a_release_is_named_after_its_target_and_signature() {
        let target: TargetName = "test-target".parse().unwrap();
        let signature = Signature::of(target.as_str(), [("application", "abc123")]);
        let name = release_name(&target, &signature);
        assert_eq!(name, "test-target-c4c1645");
        assert_eq!(ShortHash::of_release(&target, &name).unwrap(), signature.short());
    }

    #[rstest]
    #[case("web", "web2-c4c1645")]
    #[case("web", "web-c4c164")]
    #[case("web", "web-C4C1645")]
    #[case("web", "webc4c1645")]
    #[case("web", "web-x-c4c1645")]
    #[case("web", "")]
    fn a_name_of_another_release_has_no_hash(#[case] target: &str, #[case] release: &str) {
        ShortHash::of_release(&target.parse().unwrap(), release).unwrap_err();
    }

    #[rstest]
    #[case("Deployment", "web", "web")]
    #[case("StatefulSet", "db", "statefulset.db")]
    #[case("DaemonSet", "agent.v1", "daemonset.agent.v1")]
    fn a_workload_without_annotation_has_a_target_name_of_its_own(
        #[case] kind: &str,
        #[case] name: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(TargetName::default_for(kind, name).unwrap().as_str(), expected);
    }

    #[test]
    fn a_long_workload_name_needs_the_annotation() {
        TargetName::default_for("Deployment", &"a".repeat(245)).unwrap();
        TargetName::default_for("Deployment", &"a".repeat(246)).unwrap_err();
        TargetName::default_for("StatefulSet", &"a".repeat(233)).unwrap();
        TargetName::default_for("StatefulSet", &"a".repeat(234)).unwrap_err();
    }

    #[rstest]
    #[case("")]
    #[case("-a")]
    #[case("a-")]
    #[case("a..b")]
    #[case(".a")]
    #[case("a.")]
    #[case("a.-b")]
    #[case("A")]
    #[case("a_b")]
    #[case("a/b")]
    #[case("ä")]
    #[case("a\n")]
    fn what_is_no_subdomain_is_no_target_name(#[case] text: &str) {
        text.parse::<TargetName>().unwrap_err();
    }

    fn hashes() -> (ShortHash, ShortHash) {
        ("2b7e1f0".parse().unwrap(), "4f1c0a9".parse().unwrap())
    }

    #[rstest]
    #[case(None, "web-2b7e1f0-to-4f1c0a9")]
    #[case(Some(2), "web-2b7e1f0-to-4f1c0a9-2")]
    fn a_rollback_is_named_after_both_releases(#[case] again: Option<u16>, #[case] expected: &str) {
        let (from, to) = hashes();
        assert_eq!(rollback_name(&"web".parse().unwrap(), &from, &to, again), expected);
    }

    #[rstest]
    #[case(&"a".repeat(220), &"a".repeat(220))]
    #[case(&"a".repeat(221), &format!("{}-5ab16c2", "a".repeat(220)))]
    #[case(&format!("{}.{}", "a".repeat(219), "b".repeat(25)), &format!("{}-f765d22", "a".repeat(219)))]
    fn a_long_target_is_cut_in_the_name_of_a_rollback(#[case] target: &str, #[case] head: &str) {
        let (from, to) = hashes();
        let name = rollback_name(&target.parse().unwrap(), &from, &to, None);
        assert_eq!(name, format!("{head}-2b7e1f0-to-4f1c0a9"));
        assert!(is_dns1123_subdomain(&name));
    }

    /// Any valid target name, most of them near the limits where names are cut.
    fn any_target() -> impl Strategy<Value = TargetName> {
        prop_oneof![
            "[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?",
            "[a-z0-9][a-z0-9.-]{200,243}[a-z0-9]",
            "([a-z][.-]){100,122}[a-z]",
        ]
        .prop_map(|text| {
            // A dot beside a dot or a hyphen is not valid; make it a letter.
            let mut bytes = text.into_bytes();
            for at in 1..bytes.len() {
                let pair = (bytes[at - 1], bytes[at]);
                if matches!(pair, (b'.', b'.' | b'-') | (b'-', b'.')) {
                    bytes[at] = b'x';
                }
            }
            String::from_utf8(bytes).unwrap().parse().unwrap()
        })
    }

    proptest! {
        #[test]
        fn names_are_valid_for_every_target(
            target in any_target(),
            id in ".{0,40}",
            again in proptest::option::of(any::<u16>()),
        ) {
            let signature = Signature::of(target.as_str(), [("application", id.as_str())]);
            let name = release_name(&target, &signature);
            prop_assert!(is_dns1123_subdomain(&name), "{}", name);
            let (from, to) = hashes();
            let name = rollback_name(&target, &from, &to, again);
            prop_assert!(is_dns1123_subdomain(&name), "{}", name);
        }

        #[test]
        fn the_order_of_revisions_does_not_change_the_signature(
            (revisions, shuffled) in proptest::collection::btree_map(".{1,9}", ".{1,9}", 1..10)
                .prop_map(|map| map.into_iter().collect::<Vec<_>>())
                .prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle())),
        ) {
            let of = |list: &[(String, String)]| {
                Signature::of("t", list.iter().map(|(name, id)| (name.as_str(), id.as_str())))
            };
            prop_assert_eq!(of(&revisions), of(&shuffled));
        }

        #[test]
        fn another_id_makes_another_signature(name in ".{1,9}", a in ".{1,9}", b in ".{1,9}") {
            prop_assume!(a != b);
            let of = |id: &str| Signature::of("t", [(name.as_str(), id)]);
            prop_assert_ne!(of(&a), of(&b));
        }

        #[test]
        fn no_text_makes_the_readers_panic(text in ".{0,300}") {
            drop(text.parse::<TargetName>());
            drop(text.parse::<ShortHash>());
            drop(ShortHash::of_release(&"web".parse().unwrap(), &text));
        }
    }
}
