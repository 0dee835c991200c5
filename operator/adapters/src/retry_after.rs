//! `Retry-After`, in the forms that servers send.

use std::time::Duration;

use http::{HeaderMap, header};
use jiff::Timestamp;

use crate::clock::between;

/// The shortest wait: some registries ask for microseconds (the reliability rows 81 to 96).
const FLOOR: Duration = Duration::from_secs(1);
/// The longest wait that is believed. A server that asks for more is asked again after it.
pub(crate) const CEILING: Duration = Duration::from_hours(24);

/// How long a server asks to wait: seconds, an HTTP date, or a number with a unit as Go prints it.
pub(crate) fn of(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    parse(text, now).map(|wait| wait.clamp(FLOOR, CEILING))
}

/// The same, where a registry says it in the text of its answer, `retry-after: 880.5µs, …`.
pub(crate) fn in_body(body: &[u8], now: Timestamp) -> Option<Duration> {
    let text = String::from_utf8_lossy(body.get(..4096).unwrap_or(body)).to_ascii_lowercase();
    let (_, rest) = text.split_once("retry-after:")?;
    let word = rest.trim_start().split([',', '"', ' ', '\n', '}']).next()?;
    parse(word, now).map(|wait| wait.clamp(FLOOR, CEILING))
}

fn parse(text: &str, now: Timestamp) -> Option<Duration> {
    if let Some(seconds) = whole(text) {
        return Some(Duration::from_secs(seconds));
    }
    if let Ok(at) = jiff::fmt::rfc2822::parse(text) {
        return Some(between(now, at.timestamp()));
    }
    if is_beyond_all_years(text) {
        return Some(CEILING);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit {
        "ns" => number / 1e9,
        "us" | "µs" | "μs" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(CEILING))
}

/// A whole number, the largest one where it is larger still.
pub(crate) fn whole(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Whether this is a date after the last one that can be told, such as the end of the year 9999. It
/// asks for a long wait, and not for none.
fn is_beyond_all_years(text: &str) -> bool {
    // The day of the week would not fit the other year.
    let date = text.split_once(',').map_or(text, |(_, date)| date);
    let mut words: Vec<&str> = date.split_whitespace().collect();
    let year = words.get_mut(2).filter(|year| whole(year).is_some_and(|year| year >= 9999));
    let Some(year) = year else { return false };
    *year = "9998";
    jiff::fmt::rfc2822::parse(&words.join(" ")).is_ok()
}

/// The `date` of an answer, by which its other times are to be read.
pub(crate) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    jiff::fmt::rfc2822::parse(text).ok().map(|at| at.timestamp())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("17", Some(17.0))]
    #[case(" 17 ", Some(17.0))]
    #[case("0", Some(1.0))]
    #[case("880us", Some(1.0))]
    #[case("1500ms", Some(1.5))]
    #[case("2m", Some(120.0))]
    #[case("Sun, 01 Mar 2026 12:00:30 GMT", Some(30.0))]
    #[case("Sun, 01 Mar 2026 11:00:00 GMT", Some(1.0))]
    #[case("99999999999", Some(86_400.0))]
    #[case("99999999999999999999999", Some(86_400.0))]
    #[case("99999999999999999999999h", Some(86_400.0))]
    #[case("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400.0))]
    #[case("Sun, 01 Mar 12026 12:00:30 GMT", Some(86_400.0))]
    #[case("01 Mar 99999999999999999999 12:00:30 GMT", Some(86_400.0))]
    #[case("Sun, 01 Mar soon 12:00:30 GMT", None)]
    #[case("Fri, 31 Dec 9999", None)]
    #[case("Fri, 31 Foo 9999 23:59:59 GMT", None)]
    #[case("1e400s", None)]
    #[case("soon", None)]
    #[case("-1", None)]
    #[case("", None)]
    fn a_wait_is_read_in_each_form_and_kept_within_bounds(
        #[case] text: &str,
        #[case] seconds: Option<f64>,
    ) {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_str(text).unwrap());
        assert_eq!(of(&headers, now), seconds.map(Duration::from_secs_f64));
    }

    #[rstest]
    #[case(r#"{"errors":[{"message":"retry-after: 880.5µs, allowed: 44000/minute"}]}"#, Some(1))]
    #[case("Retry-After: 30", Some(30))]
    #[case("too many requests", None)]
    #[case("retry-after: soon", None)]
    #[case("", None)]
    fn a_wait_in_the_text_of_an_answer_is_read(#[case] body: &str, #[case] seconds: Option<u64>) {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        assert_eq!(in_body(body.as_bytes(), now), seconds.map(Duration::from_secs));
    }

    #[test]
    fn the_date_of_an_answer_is_read() {
        let mut headers = HeaderMap::new();
        assert_eq!(date(&headers), None);
        headers.insert(header::DATE, HeaderValue::from_static("Sun, 01 Mar 2026 12:00:00 GMT"));
        assert_eq!(date(&headers), Some("2026-03-01T12:00:00Z".parse().unwrap()));
    }
}
