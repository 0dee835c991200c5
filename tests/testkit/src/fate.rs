//! What becomes of a pod, decided by words in the names of its images.
//!
//! kwok's stages and the scripted kubelet read the same words, so a test can change sides without
//! changing its images.

use k8s_openapi::api::core::v1::Pod;

/// What becomes of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Runs and is ready.
    Ready,
    /// Runs and never becomes ready: the image name contains `never-ready`.
    NeverReady,
    /// Crashes again and again (`CrashLoopBackOff`): `crash-loop`.
    CrashLoop,
    /// Cannot be pulled (`ImagePullBackOff`): `no-pull`.
    NoPull,
}

impl Fate {
    /// Every fate, from the best to the worst.
    pub const ALL: [Self; 4] = [Self::Ready, Self::NeverReady, Self::CrashLoop, Self::NoPull];

    /// The word in an image's name that brings it about; any other image is ready.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Ready => None,
            Self::NeverReady => Some("never-ready"),
            Self::CrashLoop => Some("crash-loop"),
            Self::NoPull => Some("no-pull"),
        }
    }

    /// The fate of a container with this image; where several words match, the worst.
    pub fn of_image(image: &str) -> Self {
        Self::ALL
            .into_iter()
            .rev()
            .find(|fate| fate.word().is_some_and(|word| image.contains(word)))
            .unwrap_or(Self::Ready)
    }

    /// The fate of a whole pod: the worst of its containers.
    pub fn of_pod(pod: &Pod) -> Self {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers
            .filter_map(|container| container.image.as_deref())
            .map(Self::of_image)
            .max()
            .unwrap_or(Self::Ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_word_wins() {
        assert_eq!(Fate::of_image("registry/app:1"), Fate::Ready);
        assert_eq!(Fate::of_image("registry/app:never-ready"), Fate::NeverReady);
        assert_eq!(Fate::of_image("registry/crash-loop:never-ready"), Fate::CrashLoop);
        assert_eq!(Fate::of_image("registry/crash-loop:no-pull"), Fate::NoPull);
    }

    #[test]
    fn the_stages_of_kwok_know_the_same_words() {
        let stages = include_str!("stages.yaml");
        for word in Fate::ALL.into_iter().filter_map(Fate::word) {
            assert!(stages.contains(&format!("contains \"{word}\" .image")), "{word}");
        }
    }

    #[test]
    fn every_stage_of_pods_leaves_those_of_the_chart_belay_alone() {
        let stages = include_str!("stages.yaml").split("\n---\n");
        let of_pods: Vec<_> = stages.filter(|stage| stage.contains("kind: Pod}")).collect();
        assert_eq!(of_pods.len(), 2);
        let (key, value) = crate::operator::LABEL;
        let rule = format!(
            "    - key: '.metadata.labels[\"{key}\"]'\n      operator: NotIn\n      values: [{value}]\n"
        );
        for stage in of_pods {
            assert!(stage.contains(&rule), "{stage}");
        }
    }

    #[test]
    fn no_stage_of_kwok_completes_a_pod() {
        assert!(!include_str!("stages.yaml").contains("Succeeded"));
    }
}
