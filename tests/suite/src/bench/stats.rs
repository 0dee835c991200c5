//! Medians with their uncertainty, and ratios of two things measured in turn.
//!
//! Times on a shared machine are skewed and drift. So the middle is the median, its uncertainty comes from the
//! samples themselves (percentile bootstrap, Efron and Tibshirani, "An Introduction to the Bootstrap", chapter
//! 13), and two things are compared pair by pair.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use crate::random::SplitMix64;

/// The fewest pairs that a ratio is computed from.
pub const MIN_PAIRS: usize = 40;

const RESAMPLES: usize = 2_000;

/// The bounds of the middle 95 %.
const TAILS: [f64; 2] = [0.025, 0.975];

/// A median and the interval in which it lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The middle of the samples.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// The median of the samples; the same samples give the same interval every time.
///
/// # Errors
/// When there is no sample, or one is no finite number.
pub fn estimate(samples: &[f64]) -> Result<Estimate> {
    ensure!(!samples.is_empty(), "there are no samples");
    ensure!(samples.iter().all(|sample| sample.is_finite()), "a sample is no finite number");
    // A fixed seed: the interval is a function of the samples, and a figure can be computed again.
    let mut random = SplitMix64::new(0x6265_6c61_7921);
    let mut resample = vec![0.0; samples.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for drawn in &mut resample {
                *drawn = samples[random.below(samples.len())];
            }
            median(&mut resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let [low, high] = TAILS.map(|tail| quantile(&medians, tail));
    Ok(Estimate { median: median(&mut samples.to_vec()), low, high })
}

/// The middle value, or the mean of the two in the middle. Reorders the samples.
fn median(samples: &mut [f64]) -> f64 {
    let middle = samples.len() / 2;
    let even = samples.len().is_multiple_of(2);
    let (below, upper, _) = samples.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if even => f64::midpoint(lower, *upper),
        _ => *upper,
    }
}

/// A quantile of sorted values, interpolated between neighbours.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand values")]
    let position = part * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position between 0 and the number of values"
    )]
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * position.fract()
}

/// How many times as long one thing takes as another.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratio {
    /// What each pair measured.
    pub pairs: Vec<(Duration, Duration)>,
    /// The median of the pairs' ratios.
    pub estimate: Estimate,
}

impl Ratio {
    /// The ratio of each pair.
    pub fn samples(pairs: &[(Duration, Duration)]) -> Vec<f64> {
        pairs.iter().map(|(a, b)| a.div_duration_f64(*b)).collect()
    }
}

/// Measures `a` and `b` in turn and says how many times as long `a` takes.
///
/// Which goes first changes from pair to pair, so that neither always finds the caches the other has filled.
///
/// # Errors
/// When fewer than [`MIN_PAIRS`] are asked for, a measurement fails, or `b` takes no time at all.
pub fn interleaved(
    mut a: impl FnMut() -> Result<Duration>,
    mut b: impl FnMut() -> Result<Duration>,
    pairs: usize,
) -> Result<Ratio> {
    ensure!(pairs >= MIN_PAIRS, "{pairs} pairs are too few for a ratio, {MIN_PAIRS} are needed");
    let mut measured = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        let (first, second) = if pair.is_multiple_of(2) {
            let first = a().with_context(|| format!("first of pair {pair}"))?;
            (first, b().with_context(|| format!("second of pair {pair}"))?)
        } else {
            let second = b().with_context(|| format!("second of pair {pair}"))?;
            (a().with_context(|| format!("first of pair {pair}"))?, second)
        };
        ensure!(!second.is_zero(), "the second of pair {pair} took no time: do more in each");
        measured.push((first, second));
    }
    let estimate = estimate(&Ratio::samples(&measured))?;
    Ok(Ratio { pairs: measured, estimate })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use anyhow::bail;
    use rstest::rstest;

    use super::*;

    fn close(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9
    }

    #[rstest]
    #[case::one(&[3.0], 3.0)]
    #[case::odd(&[9.0, 1.0, 5.0], 5.0)]
    #[case::even(&[8.0, 1.0, 4.0, 2.0], 3.0)]
    #[case::two(&[1.0, 2.0], 1.5)]
    #[case::repeated(&[2.0, 2.0, 7.0, 2.0], 2.0)]
    #[case::below_zero(&[-1.0, -3.0, -2.0], -2.0)]
    fn the_median_is_the_middle(#[case] samples: &[f64], #[case] expected: f64) {
        assert!(close(estimate(samples).unwrap().median, expected));
    }

    #[rstest]
    #[case(0.0, 1.0)]
    #[case(0.25, 2.0)]
    #[case(0.3, 2.2)]
    #[case(0.975, 4.9)]
    #[case(1.0, 5.0)]
    fn quantiles_are_interpolated(#[case] part: f64, #[case] expected: f64) {
        assert!(close(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], part), expected));
    }

    #[test]
    fn equal_samples_leave_no_uncertainty() {
        let found = estimate(&[4.0; 50]).unwrap();
        assert_eq!(found, Estimate { median: 4.0, low: 4.0, high: 4.0 });
    }

    #[test]
    fn one_outlier_moves_neither_median_nor_interval() {
        let mut samples = vec![1.0; 49];
        samples.push(1_000.0);
        let found = estimate(&samples).unwrap();
        assert_eq!(found, Estimate { median: 1.0, low: 1.0, high: 1.0 });
    }

    /// The interval of a median from order statistics (binomial, n = 101) runs from the 41st to the 61st
    /// value; the bootstrap has to come close to it.
    #[test]
    fn the_interval_is_that_of_the_binomial_distribution() {
        let samples: Vec<f64> = (1..=101).map(f64::from).collect();
        let found = estimate(&samples).unwrap();
        assert!(close(found.median, 51.0), "{found:?}");
        assert!((39.0..=43.0).contains(&found.low), "{found:?}");
        assert!((59.0..=63.0).contains(&found.high), "{found:?}");
    }

    #[test]
    fn the_same_samples_give_the_same_interval() {
        let samples: Vec<f64> = (0..60).map(|n| f64::from(n * n % 17)).collect();
        assert_eq!(estimate(&samples).unwrap(), estimate(&samples).unwrap());
    }

    #[rstest]
    #[case::none(&[])]
    #[case::not_a_number(&[1.0, f64::NAN])]
    #[case::infinite(&[f64::INFINITY])]
    fn samples_that_mean_nothing_are_refused(#[case] samples: &[f64]) {
        estimate(samples).unwrap_err();
    }

    #[test]
    fn a_ratio_is_the_median_of_pairs_measured_in_turn() {
        let order = RefCell::new(String::new());
        let mut drift = 0;
        let found = interleaved(
            || {
                order.borrow_mut().push('a');
                Ok(Duration::from_millis(30))
            },
            || {
                order.borrow_mut().push('b');
                drift += 1;
                Ok(Duration::from_millis(if drift % 8 == 0 { 300 } else { 10 }))
            },
            MIN_PAIRS,
        )
        .unwrap();
        assert_eq!(found.pairs.len(), MIN_PAIRS);
        assert_eq!(*order.borrow(), "abba".repeat(MIN_PAIRS / 2));
        assert!(close(found.estimate.median, 3.0) && close(found.estimate.high, 3.0), "{found:?}");
    }

    #[test]
    fn too_few_pairs_are_refused_before_anything_is_measured() {
        let measure = || bail!("it was called");
        let error = interleaved(measure, measure, MIN_PAIRS - 1).unwrap_err().to_string();
        assert!(error.starts_with("39 pairs are too few"), "{error}");
    }

    #[test]
    fn a_pair_that_took_no_time_has_no_ratio() {
        let error = interleaved(|| Ok(Duration::from_secs(1)), || Ok(Duration::ZERO), MIN_PAIRS);
        assert!(error.unwrap_err().to_string().contains("took no time"));
    }

    #[test]
    fn a_measurement_that_fails_has_no_ratio() {
        let error = interleaved(|| Ok(Duration::from_secs(1)), || bail!("no server"), MIN_PAIRS)
            .unwrap_err();
        assert_eq!(format!("{error:#}"), "second of pair 0: no server");
    }
}
