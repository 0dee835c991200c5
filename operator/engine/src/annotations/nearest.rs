//! Which annotation a misspelt one may have been meant to be.

use belay_api::{NamedValue as _, annotations::TargetAnnotation};

/// The annotation whose name is nearest to `name`, if it is near enough to be meant.
pub fn nearest(name: &str) -> Option<TargetAnnotation> {
    let length = name.chars().count();
    let near = |known: &TargetAnnotation| {
        let known = known.as_str();
        let distance = distance(name, known);
        // One slip in a short name, two in a longer one; never as many as there are letters.
        let most = if length.min(known.len()) < 5 { 1 } else { 2 };
        (distance <= most && distance < known.len()).then_some(distance)
    };
    TargetAnnotation::ALL
        .iter()
        .copied()
        .filter_map(|known| near(&known).map(|distance| (distance, known)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// How many characters must be inserted, removed, replaced, or exchanged with their neighbour.
/// Case, and whether words are joined by `-`, `_` or nothing, is no difference.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| {
        let all = text.chars().filter(|c| !matches!(c, '-' | '_' | '.'));
        all.flat_map(char::to_lowercase).take(MAX_LENGTH).collect::<String>()
    };
    strsim::osa_distance(&letters(one), &letters(other))
}

/// Longer than any known name; the rest of a hostile one makes no difference.
const MAX_LENGTH: usize = 40;

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("rage", Some(TargetAnnotation::Range))]
    #[case("rnage", Some(TargetAnnotation::Range))]
    #[case("ranges", Some(TargetAnnotation::Range))]
    #[case("Range", Some(TargetAnnotation::Range))]
    #[case("containers", Some(TargetAnnotation::Container))]
    #[case("minAge", Some(TargetAnnotation::MinAge))]
    #[case("min_age", Some(TargetAnnotation::MinAge))]
    #[case("scaled-object", Some(TargetAnnotation::ScaledObject))]
    #[case("onfailure", Some(TargetAnnotation::OnFailure))]
    #[case("tag-patern", Some(TargetAnnotation::TagPattern))]
    #[case("held", Some(TargetAnnotation::Hold))]
    #[case("holds", Some(TargetAnnotation::Hold))]
    #[case("x", None)]
    #[case("", None)]
    #[case("note", None)]
    #[case("something-else", None)]
    #[case(&"range".repeat(1000), None)]
    fn a_slip_is_traced_to_what_was_meant(
        #[case] name: &str,
        #[case] expected: Option<TargetAnnotation>,
    ) {
        assert_eq!(nearest(name), expected);
    }
}
