//! What holding KEDA still costs.

use std::time::{Duration, Instant};

use anyhow::Result;
use belay_testkit::{keda::Keda, wait};

use super::{
    counts::resident,
    moves::size,
    scene::{Scene, WEB},
};

/// Rolls of each kind.
const ROLLS: usize = 11;
/// ScaledObjects of the figure about memory.
const MANY: usize = 1_000;
/// For how long the memory is looked at, and how often.
const REST: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_secs(1);

/// How much longer a roll takes that is paused, from its Release to healthy: the median of eleven against
/// the median of eleven without a pause, in turn, on the real KEDA.
///
/// # Errors
/// Why it could not be measured.
pub fn pause_adds() -> Result<Vec<Duration>> {
    wait::block_on(async {
        let scene = Scene::start(size(1, &["--poll-interval", "1s"])).await?;
        let keda = Keda::start(&scene.cluster).await?;
        scene.scaled_objects(1).await?;
        scene.scaled().await?;
        let (operator, _) = scene.operator().await?;
        scene.healthy("v1.0.0").await?;
        let (mut plain, mut paused) = (Vec::new(), Vec::new());
        for number in 1..=2 * ROLLS {
            let is_paused = number % 2 == 0;
            scene.annotate("scaledobject", is_paused.then_some(WEB)).await?;
            let tag = format!("v1.{number}.0");
            scene.push(&tag).await?;
            scene.publish(&tag)?;
            let begun = scene.begins(&tag).await?;
            let took = scene.healthy(&tag).await?.duration_since(begun);
            if is_paused { &mut paused } else { &mut plain }.push(took);
        }
        drop(operator);
        drop(keda);
        Ok(vec![median(paused).saturating_sub(median(plain))])
    })?
}

/// The memory that a thousand ScaledObjects add to an operator at rest, in bytes.
///
/// # Errors
/// Why it could not be measured.
pub fn scaled_objects_memory() -> Result<Vec<f64>> {
    wait::block_on(async {
        let scene = Scene::start(size(1, &[])).await?;
        Keda::apply_crds(&scene.cluster).await?;
        let (first, _) = scene.operator().await?;
        scene.healthy("v1.0.0").await?;
        drop(first);
        let none = at_rest(&scene).await?;
        scene.scaled_objects(MANY).await?;
        let many = at_rest(&scene).await?;
        Ok(vec![(many - none).max(0.0)])
    })?
}

/// The most memory of an operator that has just been started.
async fn at_rest(scene: &Scene) -> Result<f64> {
    let (operator, _) = scene.operator().await?;
    let mut looks = tokio::time::interval(LOOK);
    let (mut memory, begun) = (0.0_f64, Instant::now());
    while begun.elapsed() < REST {
        looks.tick().await;
        memory = memory.max(resident(operator.id())?);
    }
    Ok(memory)
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use belay_testkit::objects::ScaledObject;

    use super::*;

    #[test]
    fn a_median_is_the_one_in_the_middle() {
        let seconds = |all: &[u64]| all.iter().map(|one| Duration::from_secs(*one)).collect();
        assert_eq!(median(seconds(&[9, 1, 2])), Duration::from_secs(2));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }

    #[test]
    fn a_scaled_object_of_the_bench_scales_its_first_target() {
        assert_eq!(ScaledObject::of(WEB).json()["spec"]["scaleTargetRef"]["name"], WEB);
    }
}
