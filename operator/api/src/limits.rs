//! Lengths and counts that the CRDs enforce, for those who write the fields.
//!
//! Lengths of strings are in Unicode code points, as the API server counts them. The API server
//! accepts a CEL rule only over lists and strings of bounded size; that is why everything that a
//! rule compares has a bound.

/// A target name: what is left of 253 for `-` and 7 hex digits of a Release's name.
pub const TARGET_NAME: usize = 245;
/// The name of an object (DNS-1123 subdomain).
pub const OBJECT_NAME: usize = 253;
/// The uid of an object, which is a UUID.
pub const UID: usize = 64;
/// A target name in a Rollback's name; a longer one is cut here.
pub const ROLLBACK_TARGET: usize = 220;
/// Revisions of one Release.
pub const REVISIONS: usize = 10;
/// `config.revisions[].name`.
pub const REVISION_NAME: usize = 253;
/// `config.revisions[].id`: a tag, a commit, a digest, a chart version.
pub const REVISION_ID: usize = 1024;
/// An image string: repository, tag and digest.
pub const IMAGE: usize = 1024;
/// A git or image tag.
pub const TAG: usize = 512;
/// Any URL.
pub const URL: usize = 2048;
/// The message of a condition (as in `metav1.Condition`) and of a whole object.
pub const CONDITION_MESSAGE: usize = 32_768;
/// A message in a list item: candidates, blocks, activations.
pub const ITEM_MESSAGE: usize = 1024;
/// A field manager, as the API server bounds it.
pub const FIELD_MANAGER: usize = 128;
/// Who did something: a user name, a field manager, a GitHub release.
pub const PRINCIPAL: usize = 512;
/// `Rollback.spec.reason`.
pub const ROLLBACK_REASON: usize = 512;
/// Containers of one workload that are followed.
pub const CONTAINERS: usize = 64;
/// Activations that a Release remembers; the writer drops the oldest finished ones.
pub const ACTIVATIONS: usize = 50;
/// `ReleaseTarget.status.candidates`.
pub const CANDIDATES: usize = 10;
/// `ReleaseTarget.status.blocked`.
pub const BLOCKS: usize = 10;
/// `ReleaseTarget.status.reverts`.
pub const REVERTS: usize = 3;

/// Returns `text` if it has at most `limit` code points, else as much of its start as leaves room
/// for an ellipsis.
pub fn clip(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    text.chars().take(limit.saturating_sub(1)).chain((limit > 0).then_some('…')).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::clip;

    #[rstest]
    #[case("", 0, "")]
    #[case("a", 0, "")]
    #[case("a", 1, "a")]
    #[case("ab", 1, "…")]
    #[case("abc", 3, "abc")]
    #[case("abcd", 3, "ab…")]
    #[case("ääää", 4, "ääää")]
    #[case("äääää", 4, "äää…")]
    fn clipping_keeps_the_start_and_never_exceeds_the_limit(
        #[case] text: &str,
        #[case] limit: usize,
        #[case] expected: &str,
    ) {
        assert_eq!(clip(text, limit), expected);
        assert!(clip(text, limit).chars().count() <= limit);
    }
}
