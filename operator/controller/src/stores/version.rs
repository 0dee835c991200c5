//! Which of two versions of one object is newer.

/// Whether `new` replaces `old`. The answer to our own write may arrive before the watch delivers
/// what came before it; resourceVersions of one resource are decimal numbers that grow (KEP-5504),
/// and where one is not, the later arrival wins.
pub(super) fn replaces(old: Option<&str>, new: Option<&str>) -> bool {
    let number = |text: Option<&str>| text?.parse::<u128>().ok();
    match (number(old), number(new)) {
        (Some(old), Some(new)) => new > old,
        _ => old != new,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::newer(Some("9"), Some("10"), true)]
    #[case::older(Some("10"), Some("9"), false)]
    #[case::same(Some("10"), Some("10"), false)]
    #[case::first(None, Some("1"), true)]
    #[case::no_number(Some("abc"), Some("1"), true)]
    #[case::same_text(Some("abc"), Some("abc"), false)]
    #[case::beyond_64_bits(Some("18446744073709551616"), Some("18446744073709551617"), true)]
    fn the_greater_number_is_newer(
        #[case] old: Option<&str>,
        #[case] new: Option<&str>,
        #[case] expected: bool,
    ) {
        assert_eq!(replaces(old, new), expected);
    }
}
