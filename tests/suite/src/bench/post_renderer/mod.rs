//! The post-renderer beside the least program that makes the same requests, built with it.
//!
//! CPU time where a run is short, as the wall-clock time of a few milliseconds is that of the
//! scheduler; wall-clock time where a person waits. Every figure has an API server of its own.

mod bed;
mod beside;
pub mod stream;
mod upgrade;

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;
use belay_testkit::wait;

use self::{
    bed::{Bed, Desk, Forbidden},
    stream::{RELEASE, Size, Stream},
};
use super::{
    meter::{Job, Usage},
    stats::{Ratio, interleaved},
};
use crate::programs::Programs;

/// A chart as most are.
const SMALL: Size = Size { documents: 6, bytes: 8_000 };

/// An umbrella chart as few are.
const LARGE: Size = Size { documents: 6_000, bytes: 10_000_000 };

/// Of the large one.
const LARGE_TARGETS: usize = 50;

/// Pairs of runs that take milliseconds.
const PAIRS: usize = 100;

/// Pairs of runs of the large stream.
const LARGE_PAIRS: usize = 40;

/// Runs before those that count, which find neither programs nor inputs in memory.
const WARM_UP: usize = 3;

/// CPU time of a run with one target against one GET by the bare program.
///
/// # Errors
/// When the API server, or a run of a program, fails.
pub fn one_target_cpu_ratio() -> Result<Ratio> {
    let (bed, stream, belay) = with_targets(SMALL, 1)?;
    let bare = bare(&bed, "get", &stream)?;
    against(&belay, &bare, |usage| usage.cpu, PAIRS)
}

/// CPU times of a run with one target.
///
/// # Errors
/// When the API server, or a run of a program, fails.
pub fn one_target_cpu() -> Result<Vec<Duration>> {
    let (_bed, _, belay) = with_targets(SMALL, 1)?;
    samples(&belay, |usage| usage.cpu, PAIRS)
}

/// CPU times of a run without a target, with a kubeconfig that leads where nobody may connect.
///
/// # Errors
/// When a run fails, or connects.
pub fn no_target_cpu() -> Result<Vec<Duration>> {
    let desk = Desk::new()?;
    let forbidden = Forbidden::listen()?;
    let kubeconfig = desk.file("kubeconfig", &forbidden.kubeconfig()?)?;
    let stream = stream::stream(SMALL, 0);
    let input = desk.file("stream.yaml", &stream.bytes)?;
    let belay = desk.belay(&input, "bench", &kubeconfig)?.expecting(stream.bytes);
    let used = samples(&belay, |usage| usage.cpu, PAIRS)?;
    forbidden.require_untouched()?;
    Ok(used)
}

/// CPU time of a run for Helm 4 in which only the release's record tells how Helm applies, against
/// the same three requests by the bare program.
///
/// # Errors
/// When the API server, Helm, or a run of a program fails.
pub fn record_evidence_cpu_ratio() -> Result<Ratio> {
    const TARGET: usize = 1;
    let bed = Bed::start()?;
    install(&bed, TARGET)?;
    bed.roll(&bed.namespace, &[TARGET])?;
    let (document, stripped) = stream::helm4(TARGET);
    let input = bed.desk.file("stream.yaml", &document)?;
    let belay = bed.belay(&input)?.expecting(stripped);
    let bare = bed.bare(&input, "get-record")?;
    let bare = bare.args([&bed.namespace, RELEASE, &bed.path(TARGET)]);
    against(&belay, &bare, |usage| usage.cpu, PAIRS)
}

/// Installs the release by Helm 4, which leaves its record.
fn install(bed: &Bed, target: usize) -> Result<()> {
    let chart =
        bed.desk.file("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n")?;
    let template = stream::target(target, stream::CHART_TAG);
    bed.desk.file("chart/templates/deployment.yaml", &template)?;
    let helm = bed
        .cluster
        .tool(Binary::Helm4)?
        .args(["install", RELEASE, "-n", &bed.namespace])
        .arg(chart.parent().context("a chart has a folder")?);
    wait::block_on(helm.ok())??;
    Ok(())
}

/// Wall-clock time of a run over the large stream, all of whose targets are edited, against the bare
/// program that splits it and makes the same requests.
///
/// # Errors
/// When the API server, or a run of a program, fails.
pub fn large_time_ratio() -> Result<Ratio> {
    let (bed, stream, belay) = with_targets(LARGE, LARGE_TARGETS)?;
    let bare = bare(&bed, "split-get", &stream)?.expecting(stream.bytes);
    against(&belay, &bare, |usage| usage.wall, LARGE_PAIRS)
}

/// Wall-clock times of a run over the large stream.
///
/// # Errors
/// When the API server, or a run of a program, fails.
pub fn large_time() -> Result<Vec<Duration>> {
    let (_bed, _, belay) = with_targets(LARGE, LARGE_TARGETS)?;
    samples(&belay, |usage| usage.wall, LARGE_PAIRS)
}

/// Peak memory of a run over the large stream above that of a run without input, in lengths of the input.
///
/// # Errors
/// When the API server, or a run of a program, fails, or the system's count cannot be trusted.
pub fn large_memory() -> Result<Vec<f64>> {
    const RUNS: usize = 11;
    let (bed, stream, belay) = with_targets(LARGE, LARGE_TARGETS)?;
    let empty = bed.belay(&bed.desk.file("nothing", "")?)?.expecting("");
    let length = float(stream.bytes.len() as u64);
    (0..RUNS).map(|_| Ok((float(peak(&belay)?) - float(peak(&empty)?)) / length)).collect()
}

fn peak(job: &Job) -> Result<u64> {
    let usage = job.run()?;
    let floor = usage.floor.context("this system does not tell a process's own peak memory")?;
    ensure!(usage.peak > floor, "the peak is hidden by the meter's own: {usage:?}");
    Ok(usage.peak)
}

/// The size of `belay`, in bytes.
///
/// # Errors
/// When it is not there.
pub fn binary() -> Result<Vec<f64>> {
    Ok(vec![size_of("belay")?])
}

/// The size of `belay` above that of the bare program, in bytes.
///
/// # Errors
/// When one of them is not there.
pub fn binary_above_bare() -> Result<Vec<f64>> {
    Ok(vec![size_of("belay")? - size_of("bare")?])
}

fn size_of(program: &str) -> Result<f64> {
    let path = Programs::find()?.path(program)?;
    let file = fs::metadata(&path).with_context(|| format!("look at {}", path.display()))?;
    Ok(float(file.len()))
}

/// `helm upgrade` of Helm 3 with belay against the same with `cat`.
///
/// # Errors
/// When the API server or an upgrade fails, or an upgrade takes the image from the operator.
pub fn helm3_upgrade_ratio() -> Result<Ratio> {
    upgrade::ratio(Binary::Helm3)
}

/// The same of Helm 4, which applies on the server side.
///
/// # Errors
/// When the API server or an upgrade fails, or an upgrade takes the image from the operator.
pub fn helm4_upgrade_ratio() -> Result<Ratio> {
    upgrade::ratio(Binary::Helm4)
}

/// Wall-clock time against a script of kubectl and yq that does the same for one target.
///
/// # Errors
/// When the API server, or a run of a program, fails.
pub fn against_kubectl_and_yq() -> Result<Ratio> {
    beside::kubectl_and_yq()
}

/// Wall-clock time against yq, which is told the image of the one target in the large stream.
///
/// # Errors
/// When the API server, or a run of a program, fails.
pub fn against_yq_10mb() -> Result<Vec<f64>> {
    beside::yq()
}

/// Wall-clock time against kustomize, which is told the image, on a tenth of the large stream.
///
/// # Errors
/// When the API server, or a run of a program, fails.
pub fn against_kustomize() -> Result<Vec<f64>> {
    beside::kustomize()
}

/// A bed with the live objects of a stream's targets, and belay that preserves them all.
fn with_targets(size: Size, targets: usize) -> Result<(Bed, Stream, Job)> {
    let bed = Bed::start()?;
    let stream = stream::stream(size, targets);
    bed.targets(&stream.targets)?;
    let input = bed.desk.file("stream.yaml", &stream.bytes)?;
    let belay = bed.belay(&input)?.expecting(&*stream.preserved);
    Ok((bed, stream, belay))
}

/// The bare program that reads a stream and makes the requests for its targets.
fn bare(bed: &Bed, mode: &str, stream: &Stream) -> Result<Job> {
    let input = bed.desk.file("stream.yaml", &stream.bytes)?;
    Ok(bed.bare(&input, mode)?.args(stream.targets.iter().map(|index| bed.path(*index))))
}

fn warm_up(jobs: &[&Job]) -> Result<()> {
    for job in std::iter::repeat_n(jobs, WARM_UP).flatten() {
        job.run()?;
    }
    Ok(())
}

/// What one job uses.
fn samples(job: &Job, what: impl Fn(&Usage) -> Duration, runs: usize) -> Result<Vec<Duration>> {
    warm_up(&[job])?;
    (0..runs).map(|_| Ok(what(&job.run()?))).collect()
}

/// What one job uses against what another uses.
fn against(a: &Job, b: &Job, what: impl Fn(&Usage) -> Duration, pairs: usize) -> Result<Ratio> {
    warm_up(&[a, b])?;
    interleaved(|| Ok(what(&a.run()?)), || Ok(what(&b.run()?)), pairs)
}

/// The same with fewer pairs than a ratio near one needs.
fn few(a: &Job, b: &Job, what: impl Fn(&Usage) -> Duration, pairs: usize) -> Result<Vec<f64>> {
    a.run()?;
    let pair = |_| Ok(what(&a.run()?).div_duration_f64(what(&b.run()?)));
    (0..pairs).map(pair).collect()
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53 bytes")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}
