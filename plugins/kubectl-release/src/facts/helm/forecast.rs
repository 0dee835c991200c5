//! The next `helm upgrade` of a target: both majors, with the post-renderer and without.

use belay_api::{
    AnnotationPrefix,
    annotations::{OwnAnnotation, TargetAnnotation},
};
use belay_ownership::Identity;
use k8s_openapi::api::core::v1::Secret;

use super::{
    RELEASE_NAME,
    chart::{ChartImage, Container},
    predict::{Major, Outcome, Question, Renderer, predict},
    record::{ApplyMethod, Record},
};
use crate::{
    facts::live::{Live, LiveContainer},
    read::Fact,
};

/// What Helm will do to the image of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The container.
    pub container: String,
    /// The image that it is about.
    pub live: String,
    /// `helm upgrade` of Helm 3.
    pub three: Outcome,
    /// `helm upgrade` of Helm 4.
    pub four: Outcome,
    /// `helm upgrade --post-renderer belay` of Helm 3.
    pub three_rendered: Outcome,
    /// `helm upgrade --post-renderer belay` of Helm 4.
    pub four_rendered: Outcome,
}

/// The release of Helm that a workload is part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// None: Helm did not install it.
    NotHelm,
    /// This one, whose newest record is known.
    Release(Box<Record>),
    /// This one, whose records are not known; why.
    Unread {
        /// The release.
        name: String,
        /// Why.
        why: String,
    },
}

impl Source {
    /// What the workload and Helm's Secrets, the newest first, say.
    pub fn of(live: &Live, secrets: &Fact<Vec<Secret>>) -> Self {
        let Some(name) = live.annotations.get(RELEASE_NAME) else { return Self::NotHelm };
        let unread = |why: String| Self::Unread { name: name.clone(), why };
        let secrets = match secrets {
            Fact::Known(secrets) => secrets,
            Fact::Unknown(why) => return unread(why.words().to_owned()),
        };
        let Some(newest) = secrets.first() else {
            return unread(format!("the release {name} has no record"));
        };
        match Record::of(newest) {
            Ok(record) => Self::Release(Box::new(record)),
            Err(why) => unread(format!("the newest record of the release {name}: {why}")),
        }
    }

    /// The newest record.
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Release(record) => Some(record),
            Self::NotHelm | Self::Unread { .. } => None,
        }
    }
}

impl Forecast {
    /// The forecast for a container with the image and owners it has.
    pub fn of(
        source: &Source,
        live: &Live,
        container: &LiveContainer,
        prefix: &AnnotationPrefix,
    ) -> Option<Self> {
        Self::after(source, live, container, &container.image, &container.owners, prefix)
    }

    /// The forecast for a container once it has another image and other owners. `None` where Helm has
    /// nothing to do with it.
    pub fn after(
        source: &Source,
        live: &Live,
        container: &LiveContainer,
        image: &str,
        owners: &[Identity],
        prefix: &AnnotationPrefix,
    ) -> Option<Self> {
        let (chart, method) = match source {
            Source::NotHelm => return None,
            Source::Unread { why, .. } => (Err(why.clone()), None),
            Source::Release(record) => {
                let wanted = Container {
                    kind: &live.kind,
                    object: &live.name,
                    list: container.name.list(),
                    name: &container.name.name,
                };
                (Ok(ChartImage::of(record, wanted)), Some(record.method))
            }
        };
        let release = prefix.key(OwnAnnotation::Release);
        let question = Question {
            chart,
            method,
            live: image,
            owners,
            operator: &live.operator,
            has_repo: live.annotation(prefix, TargetAnnotation::Repo).is_some(),
            has_release: live.annotations.contains_key(&release),
            image_annotation: live.annotation(prefix, TargetAnnotation::Image),
        };
        let ask = |major, renderer| predict(&question, major, renderer);
        Some(Self {
            container: container.name.to_string(),
            live: image.to_owned(),
            three: ask(Major::Three, Renderer::None),
            four: ask(Major::Four, Renderer::None),
            three_rendered: ask(Major::Three, Renderer::Belay),
            four_rendered: ask(Major::Four, Renderer::Belay),
        })
    }

    /// All four, each with the words for the command that it is about.
    pub fn all(&self) -> [(&'static str, &Outcome); 4] {
        [
            ("Helm 3", &self.three),
            ("Helm 4", &self.four),
            ("Helm 3 with --post-renderer belay", &self.three_rendered),
            ("Helm 4 with --post-renderer belay", &self.four_rendered),
        ]
    }

    /// In a few lines, the same outcomes together.
    pub fn lines(&self) -> Vec<String> {
        let shown = crate::facts::live::tag(&self.live);
        let plain = pair("", &self.three, &self.four, &shown);
        let rendered =
            pair(" --post-renderer belay", &self.three_rendered, &self.four_rendered, &shown);
        let [Some(plain_words), Some(rendered_words)] = [&plain.1, &rendered.1] else {
            return plain.0.into_iter().chain(rendered.0).collect();
        };
        if plain_words == rendered_words {
            return vec![format!("next `helm upgrade` {plain_words}")];
        }
        plain.0.into_iter().chain(rendered.0).collect()
    }
}

/// The lines for one command line, and the words of both majors where they are the same.
fn pair(flag: &str, three: &Outcome, four: &Outcome, live: &str) -> (Vec<String>, Option<String>) {
    let (three, four) = (three.words(live), four.words(live));
    if three == four {
        return (vec![format!("next `helm upgrade{flag}` {three}")], Some(three));
    }
    let lines = vec![
        format!("next `helm upgrade{flag}` of Helm 3 {three}"),
        format!("next `helm upgrade{flag}` of Helm 4 {four}"),
    ];
    (lines, None)
}

/// How a release applies, in words.
pub fn method_words(method: ApplyMethod) -> &'static str {
    match method {
        ApplyMethod::ClientSide => "client-side apply",
        ApplyMethod::ServerSide => "server-side apply",
        ApplyMethod::Unsaid => "client-side apply (Helm 3, or not said)",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use Outcome::{Conflicts, Keeps, Resets};

    fn forecast(outcomes: [Outcome; 4]) -> Forecast {
        let [three, four, three_rendered, four_rendered] = outcomes;
        Forecast {
            container: "app".to_owned(),
            live: "acme/web:1.9.2".to_owned(),
            three,
            four,
            three_rendered,
            four_rendered,
        }
    }

    #[rstest]
    #[case([Keeps, Keeps, Keeps, Keeps], &["next `helm upgrade` keeps 1.9.2"])]
    #[case(
        [Resets(None), Resets(None), Keeps, Keeps],
        &["next `helm upgrade` resets it to the chart's image",
          "next `helm upgrade --post-renderer belay` keeps 1.9.2"]
    )]
    #[case(
        [Resets(None), Conflicts(vec!["belay-operator".into()]), Keeps, Keeps],
        &["next `helm upgrade` of Helm 3 resets it to the chart's image",
          "next `helm upgrade` of Helm 4 fails: conflict with belay-operator",
          "next `helm upgrade --post-renderer belay` keeps 1.9.2"]
    )]
    fn the_same_outcomes_are_said_once(#[case] outcomes: [Outcome; 4], #[case] lines: &[&str]) {
        assert_eq!(forecast(outcomes).lines(), lines);
    }
}
