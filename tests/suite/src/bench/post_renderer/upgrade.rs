//! `helm upgrade` with belay beside the same upgrade with `cat`, when a target is in its steady state.

use std::{ffi::OsString, path::PathBuf};

use anyhow::{Context as _, Result};
use belay_components::Binary;
use belay_testkit::wait;

use super::{
    against,
    bed::Bed,
    stream::{self, LIVE_TAG, RELEASE, Size},
};
use crate::bench::{meter::Job, stats::Ratio};

/// An upgrade takes half a second and varies by a tenth of that: enough for an interval of some per cent.
const PAIRS: usize = 80;

/// The number of the target in the chart.
const TARGET: usize = 1;

/// Wall-clock time of `helm upgrade --post-renderer belay` against `--post-renderer cat`.
///
/// Each has a namespace with a release of its own: the operator owns the image and has rolled it.
/// With belay the chart keeps its old tag; with `cat`, which would fight, it is told the live one.
///
/// # Errors
/// When an upgrade fails, or takes the image from the operator.
pub(super) fn ratio(helm: Binary) -> Result<Ratio> {
    let bed = Bed::start()?;
    let release = Release::new(&bed, helm)?;
    let cat = release.steady("cat", &["--set".into(), format!("tag={LIVE_TAG}").into()])?;
    let belay = release.steady("belay", &[])?;
    let ratio = against(&belay.job, &cat.job, |usage| usage.wall, PAIRS)?;
    for side in [&belay, &cat] {
        bed.require_rolled(&side.namespace, TARGET)?;
    }
    Ok(ratio)
}

struct Release<'a> {
    bed: &'a Bed,
    helm: PathBuf,
    chart: PathBuf,
    nothing: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

struct Side {
    namespace: String,
    job: Job,
}

impl<'a> Release<'a> {
    fn new(bed: &'a Bed, helm: Binary) -> Result<Self> {
        let desk = &bed.desk;
        let chart =
            desk.file("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 0.1.0\n")?;
        let chart = chart.parent().context("a chart has a folder")?.to_owned();
        desk.file("chart/values.yaml", &format!("tag: {}\n", stream::CHART_TAG))?;
        let template = stream::target(TARGET, "{{ .Values.tag }}");
        desk.file("chart/templates/deployment.yaml", &template)?;
        let others = stream::stream(Size { documents: 4, bytes: 4_000 }, 0).bytes;
        desk.file("chart/templates/others.yaml", &others)?;
        for name in ["belay", "cat"] {
            // A bare name is looked up on PATH, where Helm 3 finds it too.
            let plugin = format!(
                "apiVersion: v1\ntype: postrenderer/v1\nname: {name}\nversion: 0.1.0\n\
                 runtime: subprocess\nruntimeConfig:\n  platformCommand:\n  - command: {name}\n"
            );
            desk.file(&format!("plugins/{name}/plugin.yaml"), &plugin)?;
        }
        let mut path = vec![desk.programs.folder().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(path).context("join PATH")?;
        // Helm 3 does not load plugins of Helm 4.
        let plugins = desk.folder().join(if helm == Binary::Helm4 { "plugins" } else { "none" });
        let environment = vec![
            ("PATH", path),
            ("KUBECONFIG", bed.kubeconfig.clone().into()),
            ("HELM_PLUGINS", plugins.into()),
        ];
        let nothing = desk.file("nothing", "")?;
        desk.programs.path("belay")?;
        Ok(Self { bed, helm: bed.tool(helm)?, chart, nothing, environment })
    }

    fn helm(&self, verb: &str, namespace: &str) -> Result<Job> {
        let job = self.bed.desk.job(&self.helm, &self.nothing)?;
        let job = self.environment.iter().fold(job, |job, (name, value)| job.env(name, value));
        Ok(job.args([verb, RELEASE]).args([&self.chart]).args(["-n", namespace]))
    }

    /// Installs the release, lets the operator roll it, and upgrades it once as it will be measured.
    fn steady(&self, post_renderer: &str, values: &[OsString]) -> Result<Side> {
        let namespace = wait::block_on(self.bed.cluster.namespace(post_renderer))??;
        self.helm("install", &namespace)?.run()?;
        self.bed.roll(&namespace, &[TARGET])?;
        let job = self.helm("upgrade", &namespace)?.args(["--post-renderer", post_renderer]);
        let job = job.args(values.to_vec());
        job.run().with_context(|| format!("upgrade with {post_renderer}"))?;
        self.bed.require_rolled(&namespace, TARGET)?;
        Ok(Side { namespace, job })
    }
}
