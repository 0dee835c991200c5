//! Ages as kubectl prints them (`HumanDuration` of apimachinery): at most two units.

use jiff::{SignedDuration, Timestamp};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// From `since` to `now`.
pub fn between(since: Timestamp, now: Timestamp) -> String {
    human(now.duration_since(since))
}

/// A length of time, such as `41s`, `6m30s`, `3d4h`, `212d`.
pub fn human(length: SignedDuration) -> String {
    let seconds = length.as_secs();
    let two = |big: i64, unit: char, small: i64, other: char| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{other}"),
    };
    match seconds {
        // Clocks differ a little between machines.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds / HOUR, 'h', seconds / MINUTE % 60, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds / DAY, 'd', seconds / HOUR % 24, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, 'y', seconds / DAY % 365, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // The table of apimachinery's own test of HumanDuration.
    #[rstest]
    #[case(-2, "<invalid>")]
    #[case(-1, "0s")]
    #[case(0, "0s")]
    #[case(1, "1s")]
    #[case(70, "70s")]
    #[case(119, "119s")]
    #[case(190, "3m10s")]
    #[case(600, "10m")]
    #[case(2820, "47m")]
    #[case(3 * HOUR, "3h")]
    #[case(3 * HOUR + 5 * MINUTE, "3h5m")]
    #[case(8 * HOUR, "8h")]
    #[case(47 * HOUR, "47h")]
    #[case(2 * DAY, "2d")]
    #[case(7 * DAY + 23 * HOUR, "7d23h")]
    #[case(8 * DAY + HOUR, "8d")]
    #[case(212 * DAY, "212d")]
    #[case(2 * YEAR - 1, "729d")]
    #[case(2 * YEAR, "2y")]
    #[case(2 * YEAR + DAY, "2y1d")]
    #[case(8 * YEAR, "8y")]
    #[case(9 * YEAR + 100 * DAY, "9y")]
    fn an_age_is_kubectls(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(human(SignedDuration::from_secs(seconds)), expected);
    }
}
