//! What a figure is, and how one becomes an outcome.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use anyhow::{Result, anyhow};
use serde::Serialize;

use super::stats::{Estimate, Ratio, estimate};

const MEBIBYTE: f64 = 1_048_576.0;

/// Something measured that has a goal.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Area and what is measured, such as `ownership/lookup`.
    pub name: &'static str,
    /// The goal: the median is at most this, in the figure's unit.
    pub at_most: f64,
    /// How it is measured; decides the unit.
    pub measure: Measure,
}

/// How a figure is measured, in a release build.
#[derive(Debug, Clone, Copy)]
pub enum Measure {
    /// Times, told in milliseconds.
    Milliseconds(fn() -> Result<Vec<Duration>>),
    /// Times, told in seconds.
    Seconds(fn() -> Result<Vec<Duration>>),
    /// How many times as long as something else, of [`interleaved`](super::stats::interleaved) pairs.
    Ratio(fn() -> Result<Ratio>),
    /// How many times as much as something else, where that is known by other means than many pairs.
    Times(fn() -> Result<Vec<f64>>),
    /// Sizes in bytes, told in MiB.
    Mebibytes(fn() -> Result<Vec<f64>>),
    /// Per cent of something.
    PerCent(fn() -> Result<Vec<f64>>),
    /// How many there are.
    Count(fn() -> Result<Vec<f64>>),
}

/// What `bench --json` prints about a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The figure's name.
    pub name: &'static str,
    /// The median; `None` if it could not be measured.
    pub value: Option<f64>,
    /// `ms`, `s`, `ratio`, `MiB`, `%` or `times`.
    pub unit: &'static str,
    /// The goal in words, with its unit.
    pub goal: String,
    /// Whether there is a value, and it is within the goal.
    pub met: bool,
}

/// What a measurement gave, in the figure's unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The median of the samples, with its 95 % interval.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// In the order they were measured.
    pub samples: Vec<f64>,
    /// For a ratio, the seconds of both sides of each sample.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<(f64, f64)>,
}

impl Measure {
    /// The unit's symbol.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Milliseconds(_) => "ms",
            Self::Seconds(_) => "s",
            Self::Ratio(_) | Self::Times(_) => "ratio",
            Self::Mebibytes(_) => "MiB",
            Self::PerCent(_) => "%",
            Self::Count(_) => "times",
        }
    }
}

impl Figure {
    /// The goal in words.
    pub fn goal(&self) -> String {
        match self.measure {
            Measure::Ratio(_) | Measure::Times(_) => format!("at most {} times", self.at_most),
            _ => format!("at most {} {}", self.at_most, self.measure.unit()),
        }
    }

    /// Measures.
    ///
    /// # Errors
    /// Why it could not be measured; a panic of the measuring function is one reason.
    pub fn measure(&self) -> Result<Measured> {
        catch_unwind(AssertUnwindSafe(|| match self.measure {
            Measure::Milliseconds(times) => of_times(&times()?, Duration::from_millis(1)),
            Measure::Seconds(times) => of_times(&times()?, Duration::from_secs(1)),
            Measure::Ratio(ratio) => Ok(of_ratio(&ratio()?)),
            Measure::Times(values) | Measure::PerCent(values) | Measure::Count(values) => {
                of_values(values()?)
            }
            Measure::Mebibytes(sizes) => {
                of_values(sizes()?.into_iter().map(|bytes| bytes / MEBIBYTE).collect())
            }
        }))
        .unwrap_or_else(|_| Err(anyhow!("the measurement panicked")))
    }

    /// What to say about the figure when this was measured, or nothing was.
    pub fn outcome(&self, measured: Option<&Measured>) -> Outcome {
        let value = measured.map(|measured| measured.estimate.median);
        Outcome {
            name: self.name,
            value,
            unit: self.measure.unit(),
            goal: self.goal(),
            met: value.is_some_and(|value| value <= self.at_most),
        }
    }
}

fn of_times(times: &[Duration], unit: Duration) -> Result<Measured> {
    of_values(times.iter().map(|time| time.div_duration_f64(unit)).collect())
}

fn of_values(samples: Vec<f64>) -> Result<Measured> {
    Ok(Measured { estimate: estimate(&samples)?, samples, pairs: Vec::new() })
}

fn of_ratio(ratio: &Ratio) -> Measured {
    Measured {
        estimate: ratio.estimate,
        samples: Ratio::samples(&ratio.pairs),
        pairs: ratio.pairs.iter().map(|(a, b)| (a.as_secs_f64(), b.as_secs_f64())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use rstest::rstest;

    use super::{super::stats::interleaved, *};

    const TIMES: fn() -> Result<Vec<Duration>> =
        || Ok([40, 50, 60].map(Duration::from_millis).to_vec());

    fn ratio() -> Result<Ratio> {
        interleaved(|| Ok(Duration::from_secs(1)), || Ok(Duration::from_secs(4)), 40)
    }

    #[rstest]
    #[case::below(Measure::Milliseconds(TIMES), 51.0, 50.0, "at most 51 ms", true)]
    #[case::exactly(Measure::Milliseconds(TIMES), 50.0, 50.0, "at most 50 ms", true)]
    #[case::above(Measure::Milliseconds(TIMES), 49.5, 50.0, "at most 49.5 ms", false)]
    #[case::seconds(Measure::Seconds(TIMES), 0.1, 0.05, "at most 0.1 s", true)]
    #[case::ratio_within(Measure::Ratio(ratio), 0.25, 0.25, "at most 0.25 times", true)]
    #[case::ratio_above(Measure::Ratio(ratio), 0.2, 0.25, "at most 0.2 times", false)]
    #[case::times(Measure::Times(|| Ok(vec![2.0, 4.0, 3.0])), 3.0, 3.0, "at most 3 times", true)]
    #[case::share(Measure::PerCent(|| Ok(vec![0.7])), 1.0, 0.7, "at most 1 %", true)]
    #[case::none(Measure::Count(|| Ok(vec![0.0])), 0.0, 0.0, "at most 0 times", true)]
    #[case::some(Measure::Count(|| Ok(vec![2.0])), 0.0, 2.0, "at most 0 times", false)]
    #[case::size(Measure::Mebibytes(|| Ok(vec![3_145_728.0])), 2.0, 3.0, "at most 2 MiB", false)]
    #[case::smaller(Measure::Mebibytes(|| Ok(vec![-524_288.0])), 2.0, -0.5, "at most 2 MiB", true)]
    fn a_goal_is_met_by_a_median_within_it(
        #[case] measure: Measure,
        #[case] at_most: f64,
        #[case] value: f64,
        #[case] goal: &str,
        #[case] met: bool,
    ) {
        let figure = Figure { name: "a/b", at_most, measure };
        let outcome = figure.outcome(Some(&figure.measure().unwrap()));
        let expected = Outcome {
            name: "a/b",
            value: Some(value),
            unit: measure.unit(),
            goal: goal.to_owned(),
            met,
        };
        assert_eq!(outcome, expected);
    }

    #[rstest]
    #[case::failed(|| bail!("no server"), "no server")]
    #[case::without_samples(|| Ok(Vec::new()), "there are no samples")]
    #[case::panicked(|| panic!("as if by a bug"), "the measurement panicked")]
    fn what_could_not_be_measured_is_an_error_and_its_goal_is_not_met(
        #[case] measure: fn() -> Result<Vec<Duration>>,
        #[case] why: &str,
    ) {
        let figure = Figure { name: "a/b", at_most: 1.0, measure: Measure::Seconds(measure) };
        assert_eq!(figure.measure().unwrap_err().to_string(), why);
        let outcome = figure.outcome(None);
        assert_eq!((outcome.value, outcome.met), (None, false));
    }

    #[test]
    fn a_ratio_keeps_both_sides_of_each_pair() {
        let figure = Figure { name: "a/b", at_most: 1.0, measure: Measure::Ratio(ratio) };
        let measured = figure.measure().unwrap();
        assert_eq!(measured.samples, [0.25; 40]);
        assert_eq!(measured.pairs, [(1.0, 4.0); 40]);
    }
}
