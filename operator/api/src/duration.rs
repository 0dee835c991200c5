//! Durations as users write them: `30m`, `1h30m`, `45s`.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time in whole seconds, written as hours, minutes and seconds in this order, each at
/// most once: `90s`, `30m`, `1h30m`, `0s`.
///
/// It is a subset of what Go's `time.ParseDuration` and CEL's `duration()` read, so that a rule of
/// a CRD can compare it. It prints in its shortest form: `90m` reads and prints as `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// Text that is no [`Duration`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read {text:?} as a duration: expected hours, minutes and seconds such as 30m or 1h30m")]
pub struct InvalidDuration {
    text: String,
}

impl Duration {
    /// The spelling, for a CRD: up to seven digits for each unit.
    pub(crate) const PATTERN: &str = "^([0-9]{1,7}h)?([0-9]{1,7}m)?([0-9]{1,7}s)?$";
    /// The longest text that [`Self::PATTERN`] matches.
    pub(crate) const MAX_LENGTH: usize = 24;

    /// A duration of `seconds`.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// The whole seconds.
    pub const fn as_secs(self) -> u64 {
        self.0
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        Self::from_secs(duration.0)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.pad("0s");
        }
        let mut text = String::new();
        for (count, unit) in [(self.0 / 3600, 'h'), (self.0 / 60 % 60, 'm'), (self.0 % 60, 's')] {
            if count > 0 {
                write!(text, "{count}{unit}")?;
            }
        }
        f.pad(&text)
    }
}

impl FromStr for Duration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidDuration { text: crate::limits::clip(text, 100) };
        if text.is_empty() {
            return Err(invalid());
        }
        let mut units = [('h', 3600_u64), ('m', 60), ('s', 1)].into_iter();
        let mut rest = text;
        let mut seconds = 0_u64;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=7).contains(&digits) {
                return Err(invalid());
            }
            let (count, tail) = rest.split_at(digits);
            let mut tail = tail.chars();
            let unit = tail.next().ok_or_else(invalid)?;
            // The iterator is shared: a unit that was passed cannot come again.
            let (_, factor) = units.find(|(name, _)| *name == unit).ok_or_else(invalid)?;
            let count: u64 = count.parse().map_err(|_| invalid())?;
            seconds = seconds.saturating_add(count.saturating_mul(factor));
            rest = tail.as_str();
        }
        Ok(Self(seconds))
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::values::deserialize_str(deserializer)
    }
}

impl schemars::JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "minLength": 2,
            "maxLength": Self::MAX_LENGTH,
            "pattern": Self::PATTERN,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::Duration;

    #[rstest]
    #[case("0s", 0, "0s")]
    #[case("0h0m0s", 0, "0s")]
    #[case("45s", 45, "45s")]
    #[case("30m", 1800, "30m")]
    #[case("90m", 5400, "1h30m")]
    #[case("1h30m", 5400, "1h30m")]
    #[case("1h1s", 3601, "1h1s")]
    #[case("007s", 7, "7s")]
    #[case("9999999h", 35_999_996_400, "9999999h")]
    fn a_duration_reads_and_prints_in_its_shortest_form(
        #[case] text: &str,
        #[case] seconds: u64,
        #[case] printed: &str,
    ) {
        let duration: Duration = text.parse().unwrap();
        assert_eq!(duration.as_secs(), seconds);
        assert_eq!(duration.to_string(), printed);
    }

    #[rstest]
    #[case("")]
    #[case("30")]
    #[case("m")]
    #[case("-1m")]
    #[case("+1m")]
    #[case("1.5h")]
    #[case("1d")]
    #[case("1ms")]
    #[case("1s1m")]
    #[case("1m1m")]
    #[case(" 1m")]
    #[case("1m ")]
    #[case("12345678s")]
    #[case("99999999999999999999999999h")]
    #[case("1e400h")]
    #[case("１m")]
    fn what_is_no_duration_is_refused(#[case] text: &str) {
        text.parse::<Duration>().unwrap_err();
    }

    proptest! {
        #[test]
        fn every_duration_survives_printing(seconds in 0_u64..36_000_000_000) {
            let duration = Duration::from_secs(seconds);
            prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,40}") {
            drop(text.parse::<Duration>());
        }
    }
}
