//! How long a control plane takes from nothing to ready.

use std::time::{Duration, Instant};

use anyhow::Result;
use belay_testkit::{Cluster, cluster::Options, wait};

/// Enough for a median; each start takes seconds.
const STARTS: usize = 10;

/// From the call to a control plane with nodes that takes pods, everything built already.
///
/// # Errors
/// Why one of the starts failed.
pub fn control_plane_ready_samples() -> Result<Vec<Duration>> {
    let mut samples = Vec::new();
    for start in 0..=STARTS {
        let took = wait::block_on(async {
            let begin = Instant::now();
            let cluster = Cluster::start(Options::default()).await?;
            let took = begin.elapsed();
            drop(cluster);
            Ok::<_, anyhow::Error>(took)
        })??;
        // The first start may build, and reads binaries from disk.
        if start > 0 {
            samples.push(took);
        }
    }
    Ok(samples)
}
