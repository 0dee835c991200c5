//! The table of figures, and running it.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::{
    control_plane::control_plane_ready_samples,
    figure::{Figure, Measure, Measured, Outcome},
    machine::Machine,
    operator,
    ownership::lookup_samples,
    plugin, post_renderer,
};

/// Every figure.
pub const FIGURES: [Figure; 28] = [
    // 1,000 look-ups on a Deployment with 20 managers of 300 fields.
    Figure {
        name: "ownership/lookup",
        at_most: 50.0,
        measure: Measure::Milliseconds(|| Ok(lookup_samples())),
    },
    // From nothing to a control plane that takes pods, everything built before.
    Figure {
        name: "operator/control-plane-ready",
        at_most: 10.0,
        measure: Measure::Seconds(control_plane_ready_samples),
    },
    // 1,000 targets over 100 repositories, complete, with an operator that was started anew: five
    // minutes after two quiet ones. The renewal of the operator's Lease is not counted.
    Figure {
        name: "operator/rest-memory",
        at_most: 40.0,
        measure: Measure::Mebibytes(operator::rest_memory),
    },
    Figure {
        name: "operator/rest-writes",
        at_most: 0.0,
        measure: Measure::Count(operator::rest_writes),
    },
    Figure {
        name: "operator/rest-cpu",
        at_most: 1.0,
        measure: Measure::PerCent(operator::rest_cpu),
    },
    Figure {
        name: "operator/polls-other-than-304",
        at_most: 5.0,
        measure: Measure::PerCent(operator::other_polls),
    },
    Figure { name: "operator/ready", at_most: 15.0, measure: Measure::Seconds(operator::ready) },
    // From a publication to the patched Deployment, the slowest of ten: the interval of 60 s and 2 s.
    Figure {
        name: "operator/publish-to-patched",
        at_most: 62.0,
        measure: Measure::Seconds(operator::publish_to_patched),
    },
    Figure {
        name: "operator/pull-error-to-reverted",
        at_most: 45.0,
        measure: Measure::Seconds(operator::pull_error_to_reverted),
    },
    // 50 releases at once over 50 targets against one, from publication to healthy.
    Figure {
        name: "operator/fifty-at-once",
        at_most: 1.5,
        measure: Measure::Times(operator::fifty_at_once),
    },
    // From a Release to healthy: the median with a pause of a quiet KEDA beyond the median without.
    Figure {
        name: "operator/pause-adds",
        at_most: 0.5,
        measure: Measure::Seconds(operator::pause_adds),
    },
    // What 1,000 ScaledObjects add to the resident memory of an operator at rest.
    Figure {
        name: "operator/scaled-objects-memory",
        at_most: 10.0,
        measure: Measure::Mebibytes(operator::scaled_objects_memory),
    },
    // CPU time with one target against a bare program that does one TLS GET.
    Figure {
        name: "post-renderer/one-target-cpu-ratio",
        at_most: 1.3,
        measure: Measure::Ratio(post_renderer::one_target_cpu_ratio),
    },
    Figure {
        name: "post-renderer/one-target-cpu",
        at_most: 6.0,
        measure: Measure::Milliseconds(post_renderer::one_target_cpu),
    },
    // And no connection at all, which is an error of this figure.
    Figure {
        name: "post-renderer/no-target-cpu",
        at_most: 3.0,
        measure: Measure::Milliseconds(post_renderer::no_target_cpu),
    },
    // CPU time where only the release's record tells how Helm applies: a GET, a list by label and
    // a GET of the record, against the bare program with the same requests.
    Figure {
        name: "post-renderer/record-evidence-cpu-ratio",
        at_most: 1.3,
        measure: Measure::Ratio(post_renderer::record_evidence_cpu_ratio),
    },
    // 10 MB, 6,000 documents, 50 targets, all edited, against a bare split and 50 GETs.
    Figure {
        name: "post-renderer/large-time-ratio",
        at_most: 1.5,
        measure: Measure::Ratio(post_renderer::large_time_ratio),
    },
    Figure {
        name: "post-renderer/large-time",
        at_most: 0.25,
        measure: Measure::Seconds(post_renderer::large_time),
    },
    // Peak memory above that of an empty run, in lengths of the input.
    Figure {
        name: "post-renderer/large-memory",
        at_most: 3.0,
        measure: Measure::Times(post_renderer::large_memory),
    },
    Figure {
        name: "post-renderer/binary",
        at_most: 12.0,
        measure: Measure::Mebibytes(post_renderer::binary),
    },
    Figure {
        name: "post-renderer/binary-above-bare",
        at_most: 2.0,
        measure: Measure::Mebibytes(post_renderer::binary_above_bare),
    },
    // Wall-clock time of `helm upgrade` against the same with `cat` as post-renderer.
    Figure {
        name: "post-renderer/helm3-upgrade-ratio",
        at_most: 1.05,
        measure: Measure::Ratio(post_renderer::helm3_upgrade_ratio),
    },
    Figure {
        name: "post-renderer/helm4-upgrade-ratio",
        at_most: 1.05,
        measure: Measure::Ratio(post_renderer::helm4_upgrade_ratio),
    },
    // What people use today. kustomize is measured on a tenth of the large stream: its time grows
    // with the square of the documents.
    Figure {
        name: "post-renderer/against-kubectl-and-yq",
        at_most: 0.2,
        measure: Measure::Ratio(post_renderer::against_kubectl_and_yq),
    },
    Figure {
        name: "post-renderer/against-yq-10mb",
        at_most: 0.2,
        measure: Measure::Times(post_renderer::against_yq_10mb),
    },
    Figure {
        name: "post-renderer/against-kustomize",
        at_most: 0.2,
        measure: Measure::Times(post_renderer::against_kustomize),
    },
    // To the first byte, against `kubectl get` of the same ReleaseTarget.
    Figure {
        name: "plugin/status-first-byte-ratio",
        at_most: 0.6,
        measure: Measure::Ratio(plugin::status_first_byte_ratio),
    },
    // 1,000 targets in ten namespaces, with their Deployments.
    Figure {
        name: "plugin/list-of-1000",
        at_most: 1.0,
        measure: Measure::Seconds(plugin::list_of_1000),
    },
];

/// Which figures to run, and how to tell them.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only figures whose name starts with this.
    pub only: Option<String>,
    /// One JSON document instead of a table.
    pub json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    figures: &'a [Outcome],
}

/// One file of raw samples.
#[derive(Serialize)]
struct Raw<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    #[serde(flatten)]
    measured: &'a Measured,
    machine: &'a Machine,
}

/// Refuses a build with debug assertions: what it measures says nothing about a release.
///
/// # Errors
/// With the command that builds right.
pub fn refuse_debug_build(debug_assertions: bool) -> Result<()> {
    ensure!(!debug_assertions, "figures of a debug build mean nothing: run `cargo xtask bench`");
    Ok(())
}

/// Where raw samples are kept: `bench` in cargo's target folder.
pub fn raw_folder() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), Into::into);
    target.join("bench")
}

/// Measures figures, keeps their raw samples in a folder, and writes the report to `out` alone.
///
/// Why one could not be measured goes to standard error; the others are measured all the same.
///
/// # Errors
/// When no figure is selected, or the samples or the report cannot be written.
pub fn run(figures: &[Figure], options: &Options, raw: &Path, out: &mut dyn Write) -> Result<()> {
    let prefix = options.only.as_deref().unwrap_or_default();
    let selected: Vec<_> = figures.iter().filter(|f| f.name.starts_with(prefix)).collect();
    let names: Vec<_> = figures.iter().map(|figure| figure.name).collect();
    ensure!(
        !selected.is_empty(),
        "no figure starts with {prefix:?}; there are {}",
        names.join(", ")
    );
    fs::create_dir_all(raw).with_context(|| format!("create {}", raw.display()))?;
    let machine = Machine::look();
    let mut outcomes = Vec::new();
    let mut rows = Vec::new();
    for figure in selected {
        eprintln!("measuring {} …", figure.name);
        let path = raw.join(figure.name.replace('/', "-") + ".json");
        let measured = match figure.measure() {
            Ok(measured) => Some(measured),
            Err(error) => {
                eprintln!("{} could not be measured: {error:#}", figure.name);
                None
            }
        };
        let outcome = figure.outcome(measured.as_ref());
        match &measured {
            Some(measured) => keep(&path, &Raw { outcome: &outcome, measured, machine: &machine })?,
            None => forget(&path)?,
        }
        rows.push(row(&outcome, measured.as_ref()));
        outcomes.push(outcome);
    }
    if options.json {
        serde_json::to_writer(&mut *out, &Report { figures: &outcomes })?;
        writeln!(out).context("write the report")
    } else {
        table(&rows, out).context("write the report")
    }
}

fn keep(path: &Path, raw: &Raw<'_>) -> Result<()> {
    let text = serde_json::to_string_pretty(raw).context("print the raw samples")? + "\n";
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

/// Samples of an earlier run do not belong to a figure that could not be measured now.
fn forget(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

const HEADINGS: [&str; 6] = ["FIGURE", "MEDIAN", "95 % INTERVAL", "SAMPLES", "GOAL", "MET"];

fn row(outcome: &Outcome, measured: Option<&Measured>) -> [String; 6] {
    let told = |value: f64| format!("{value:.3}");
    let estimate = measured.map(|measured| measured.estimate);
    [
        outcome.name.to_owned(),
        estimate.map_or("–".to_owned(), |e| format!("{} {}", told(e.median), outcome.unit)),
        estimate.map_or("–".to_owned(), |e| format!("{} to {}", told(e.low), told(e.high))),
        measured.map_or(0, |measured| measured.samples.len()).to_string(),
        outcome.goal.clone(),
        if outcome.met { "yes" } else { "NO" }.to_owned(),
    ]
}

fn table(rows: &[[String; 6]], out: &mut dyn Write) -> std::io::Result<()> {
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend_from_slice(rows);
    let widths: [usize; 6] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
    });
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::bail;
    use serde_json::{Value, json};

    use super::*;

    const FAKES: [Figure; 3] = [
        Figure {
            name: "ownership/a",
            at_most: 50.0,
            measure: Measure::Milliseconds(|| Ok(vec![Duration::from_millis(20); 5])),
        },
        Figure {
            name: "operator/b",
            at_most: 1.0,
            measure: Measure::Seconds(|| Ok(vec![Duration::from_secs(3)])),
        },
        Figure {
            name: "operator/c",
            at_most: 1.0,
            measure: Measure::Seconds(|| bail!("no server")),
        },
    ];

    fn told(only: Option<&str>, json: bool, raw: &Path) -> Result<String> {
        let mut out = Vec::new();
        run(&FAKES, &Options { only: only.map(str::to_owned), json }, raw, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn json_is_one_document_with_exactly_the_promised_keys() {
        let raw = tempfile::tempdir().unwrap();
        let text = told(None, true, raw.path()).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({"figures": [
            {"name": "ownership/a", "value": 20.0, "unit": "ms", "goal": "at most 50 ms", "met": true},
            {"name": "operator/b", "value": 3.0, "unit": "s", "goal": "at most 1 s", "met": false},
            {"name": "operator/c", "value": null, "unit": "s", "goal": "at most 1 s", "met": false},
        ]});
        assert_eq!(report, expected);
    }

    #[test]
    fn only_figures_with_the_prefix_are_measured() {
        let raw = tempfile::tempdir().unwrap();
        let text = told(Some("ownership/"), true, raw.path()).unwrap();
        assert!(text.contains("ownership/a") && !text.contains("operator/"), "{text}");
    }

    #[test]
    fn a_prefix_of_no_figure_is_an_error_that_names_them() {
        let raw = tempfile::tempdir().unwrap();
        let error = told(Some("none"), true, raw.path()).unwrap_err().to_string();
        assert!(error.contains("ownership/a, operator/b, operator/c"), "{error}");
    }

    #[test]
    fn raw_samples_are_kept_with_the_facts_of_the_machine() {
        let raw = tempfile::tempdir().unwrap();
        fs::write(raw.path().join("operator-c.json"), "of an earlier run").unwrap();
        told(None, true, raw.path()).unwrap();
        let text = fs::read_to_string(raw.path().join("ownership-a.json")).unwrap();
        let kept: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(kept["samples"], json!([20.0, 20.0, 20.0, 20.0, 20.0]));
        assert_eq!((&kept["low"], &kept["high"]), (&json!(20.0), &json!(20.0)));
        for fact in ["cores", "rustc", "profile", "date"] {
            assert!(!kept["machine"][fact].is_null(), "{fact} is missing in {text}");
        }
        assert!(!raw.path().join("operator-c.json").exists());
    }

    #[test]
    fn the_table_tells_what_was_measured_and_what_was_not() {
        let raw = tempfile::tempdir().unwrap();
        let text = told(None, false, raw.path()).unwrap();
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").filter(|w| !w.is_empty()).map(str::trim).collect())
            .collect();
        assert_eq!(words[0], HEADINGS);
        let measured =
            ["ownership/a", "20.000 ms", "20.000 to 20.000", "5", "at most 50 ms", "yes"];
        assert_eq!(words[1], measured);
        assert_eq!(words[3], ["operator/c", "–", "–", "0", "at most 1 s", "NO"]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let raw = tempfile::tempdir().unwrap();
        fs::write(raw.path().join("file"), "").unwrap();
        let error = told(None, true, &raw.path().join("file/bench")).unwrap_err().to_string();
        assert!(error.starts_with("create "), "{error}");
    }

    #[test]
    fn a_debug_build_is_refused_with_the_right_command() {
        refuse_debug_build(false).unwrap();
        let error = refuse_debug_build(true).unwrap_err().to_string();
        assert!(error.contains("`cargo xtask bench`"), "{error}");
    }

    #[test]
    fn figures_are_named_after_an_area_and_once() {
        let names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        for name in &names {
            let area = name.split('/').next().unwrap();
            let known = ["ownership", "post-renderer", "operator", "plugin"].contains(&area);
            assert!(known, "{name} is in no area");
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
    }
}
