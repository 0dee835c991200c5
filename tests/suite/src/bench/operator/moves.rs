//! How long it takes until something has moved.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use belay_testkit::wait;

use super::scene::{self, Scene, Size};

/// Targets of the figure with many rollouts at once.
const MANY: usize = 50;

pub(super) fn size(targets: usize, options: &[&str]) -> Size {
    let options = options.iter().map(|&option| option.to_owned()).collect();
    Size { targets, repositories: targets, options, bake: 1 }
}

/// From the publication of a release to the patched Deployment, with the default interval; one
/// sample for each of ten repositories, whose polls are spread.
///
/// # Errors
/// Why it could not be measured.
pub fn publish_to_patched() -> Result<Vec<Duration>> {
    wait::block_on(async {
        let scene = Scene::start(size(10, &[])).await?;
        let (operator, _) = scene.operator().await?;
        scene.healthy("v1.0.0").await?;
        scene.push("v1.1.0").await?;
        let begun = Instant::now();
        scene.publish("v1.1.0")?;
        let patched: Mutex<Vec<Option<Duration>>> = Mutex::new(vec![None; 10]);
        wait::until("all to be patched", Duration::from_mins(5), || async {
            let all = scene.all().await.map_err(|error| format!("{error:#}"))?;
            let mut patched = patched.lock().unwrap_or_else(PoisonError::into_inner);
            for (deployment, took) in all.iter().zip(patched.iter_mut()) {
                if took.is_none() && scene::has_tag(deployment, "1.1.0") {
                    *took = Some(begun.elapsed());
                }
            }
            let left = patched.iter().filter(|one| one.is_none()).count();
            if left == 0 { Ok(()) } else { Err(format!("{left} are not")) }
        })
        .await?;
        let patched = patched.into_inner().unwrap_or_else(PoisonError::into_inner);
        drop(operator);
        // The goal holds for each of them, not for half.
        Ok(patched.into_iter().flatten().max().into_iter().collect())
    })?
}

/// From the patch with an image that cannot be pulled to the old image, with default settings.
///
/// # Errors
/// Why it could not be measured.
pub fn pull_error_to_reverted() -> Result<Vec<Duration>> {
    wait::block_on(async {
        let scene = Scene::start(size(1, &["--poll-interval", "5s"])).await?;
        let (operator, _) = scene.operator().await?;
        scene.healthy("v1.0.0").await?;
        scene.release("v1.1.0+no-pull").await?;
        let bad = scene.runs("1.1.0_no-pull").await?;
        let back = scene.runs("1.0.0").await?;
        drop(operator);
        Ok(vec![back.duration_since(bad)])
    })?
}

/// The time of fifty releases at once over fifty targets, against the time of one.
///
/// # Errors
/// Why it could not be measured.
pub fn fifty_at_once() -> Result<Vec<f64>> {
    let many = roll(MANY)?;
    let one = roll(1)?;
    Ok(vec![many.div_duration_f64(one)])
}

/// From the publication to all healthy. The interval is short, so that waiting for a poll is not
/// what is measured.
fn roll(targets: usize) -> Result<Duration> {
    wait::block_on(async {
        let limit = MANY.to_string();
        let options = ["--poll-interval", "60s", "--max-concurrent-rollouts", &limit];
        let scene = Scene::start(size(targets, &options)).await?;
        let (operator, _) = scene.operator().await?;
        scene.healthy("v1.0.0").await?;
        scene.push("v1.1.0").await?;
        let begun = Instant::now();
        scene.publish("v1.1.0")?;
        let healthy = scene.healthy("v1.1.0").await?;
        drop(operator);
        Ok(healthy.duration_since(begun))
    })?
}
