//! What people use today, beside belay doing the same: for the guide, not to be beaten by a hair.
//!
//! Wall-clock time, as a person waits. The tools take so long that few pairs tell enough.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use belay_components::Binary;

use super::{
    LARGE, SMALL, against,
    bed::Bed,
    few,
    stream::{self, CHART_TAG, LIVE_TAG, Size, Stream},
};
use crate::bench::{meter::Job, stats::Ratio};

/// Pairs with a script of two programs.
const PAIRS: usize = 40;

/// Pairs with a tool that takes seconds.
const FEW: usize = 9;

/// kustomize takes a time that grows with the square of the documents, two minutes for the large
/// stream; of this one it is seconds. belay reads the same.
const KUSTOMIZE: Size = Size { documents: 600, bytes: 1_000_000 };

/// A manifest with one target, its live object, and belay for it.
struct OneTarget {
    bed: Bed,
    stream: Stream,
    belay: Job,
}

impl OneTarget {
    fn new(size: Size) -> Result<Self> {
        let bed = Bed::start()?;
        let stream = stream::stream(size, 1);
        bed.targets(&stream.targets)?;
        let input = bed.desk.file("stream.yaml", &stream.bytes)?;
        let belay = bed.belay(&input)?.expecting(&*stream.preserved);
        Ok(Self { bed, stream, belay })
    }

    fn index(&self) -> usize {
        self.stream.targets.first().copied().unwrap_or_default()
    }

    /// The expression that sets the image of the target.
    fn expression(&self, image: &str) -> String {
        format!(
            "(select(.kind == \"Deployment\" and .metadata.name == \"{}\") | \
             .spec.template.spec.containers[] | select(.name == \"app\") | .image) = {image}",
            stream::name(self.index())
        )
    }

    /// Fails if the tool did not do what belay does: then their times do not compare.
    fn require_edited(&self, job: &Job) -> Result<()> {
        let output = fs::read_to_string(job.output()).context("read what the tool wrote")?;
        let repository = stream::repository(self.index());
        let has = |tag: &str| output.contains(&format!("{repository}:{tag}"));
        ensure!(has(LIVE_TAG) && !has(CHART_TAG), "the tool did not set the image of {repository}");
        Ok(())
    }
}

/// Against a script that asks kubectl for the live image and lets yq write it.
pub(super) fn kubectl_and_yq() -> Result<Ratio> {
    let own = OneTarget::new(SMALL)?;
    let (bed, name) = (&own.bed, stream::name(own.index()));
    let script = format!(
        "set -e\n\
         image=$('{kubectl}' get deployment {name} -n {namespace} \
         -o 'jsonpath={{.spec.template.spec.containers[?(@.name==\"app\")].image}}')\n\
         IMAGE=$image exec '{yq}' '{expression}'\n",
        kubectl = bed.tool(Binary::Kubectl)?.display(),
        yq = bed.tool(Binary::Yq)?.display(),
        namespace = bed.namespace,
        expression = own.expression("strenv(IMAGE)"),
    );
    let input = bed.desk.file("stream.yaml", &own.stream.bytes)?;
    let script = bed.desk.file("script.sh", &script)?;
    let job = bed.desk.job("/bin/sh".as_ref(), &input)?.args([script]);
    let job = job.env("KUBECONFIG", &bed.kubeconfig);
    let ratio = against(&own.belay, &job, |usage| usage.wall, PAIRS)?;
    own.require_edited(&job)?;
    Ok(ratio)
}

/// Against yq alone, told the image, on the large stream.
pub(super) fn yq() -> Result<Vec<f64>> {
    let own = OneTarget::new(LARGE)?;
    let bed = &own.bed;
    let input = bed.desk.file("stream.yaml", &own.stream.bytes)?;
    let image = format!("\"{}:{LIVE_TAG}\"", stream::repository(own.index()));
    let job = bed.desk.job(&bed.tool(Binary::Yq)?, &input)?.args([own.expression(&image)]);
    let ratios = few(&own.belay, &job, |usage| usage.wall, FEW)?;
    own.require_edited(&job)?;
    Ok(ratios)
}

/// Against `kubectl kustomize` with an `images` entry, told the image, on a smaller stream.
pub(super) fn kustomize() -> Result<Vec<f64>> {
    let own = OneTarget::new(KUSTOMIZE)?;
    let bed = &own.bed;
    let repository = stream::repository(own.index());
    let folder = bed.desk.file("kustomize/stream.yaml", &own.stream.bytes)?.with_file_name("");
    let kustomization =
        format!("resources: [stream.yaml]\nimages:\n- name: {repository}\n  newTag: {LIVE_TAG}\n");
    bed.desk.file("kustomize/kustomization.yaml", &kustomization)?;
    let nothing = bed.desk.file("nothing", "")?;
    let job = bed.desk.job(&bed.tool(Binary::Kubectl)?, &nothing)?;
    let job = job.args(["kustomize"]).args([folder]);
    let ratios = few(&own.belay, &job, |usage| usage.wall, FEW)?;
    own.require_edited(&job)?;
    Ok(ratios)
}
