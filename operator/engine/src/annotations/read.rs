//! All annotations of one workload.

use std::{collections::BTreeMap, fmt, str::FromStr};

use belay_api::{
    AnnotationPrefix, Duration, NamedValue as _, TargetName,
    annotations::{DefaultValue, ImageCheck, OwnAnnotation, TargetAnnotation},
    limits,
};

use super::{
    Hold, LiveContainer, Problem, RepoSlug, TargetSettings,
    containers::{self, Followed},
    managers,
};
use crate::{
    image::Repository,
    version::{Range, TagPattern, TagTemplate},
};

/// Kubernetes' own deadline where a workload sets none, and ours where its kind has none.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(600);

/// A workload, as far as its annotations are about it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its kind: `Deployment`.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// All of its annotations.
    pub annotations: &'a BTreeMap<String, String>,
    /// The containers of its pod template.
    pub containers: &'a [LiveContainer],
    /// Its `progressDeadlineSeconds`.
    pub progress_deadline: Option<i32>,
}

/// What this operator can and may do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Support {
    /// Whether ScaledObjects can be paused.
    pub scaled_objects: bool,
    /// Whether targets may do without the registry's answer.
    pub image_check_skip: bool,
}

/// What a workload's annotations say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// It has no `repo`: it is not followed.
    NotFollowed,
    /// It is followed.
    Followed {
        /// What is asked for.
        settings: Box<TargetSettings>,
        /// Names under the prefix that mean nothing here, sorted: misspellings, or of another
        /// version.
        unknown: Vec<String>,
    },
    /// It would be followed, but for these problems: at least one, sorted as the reference lists
    /// the annotations.
    Problems(Vec<Problem>),
}

/// Reads the annotations of a workload.
pub fn read(prefix: &AnnotationPrefix, subject: Subject<'_>, support: Support) -> Reading {
    let ours = subject.annotations.iter();
    let ours = ours.filter_map(|(key, value)| Some((prefix.strip(key)?, value.as_str())));
    let mut reader = Reader { prefix, ours: ours.collect(), problems: Vec::new() };
    if reader.value(TargetAnnotation::Repo).is_none() {
        return Reading::NotFollowed;
    }
    let settings = reader.settings(subject, support);
    match settings {
        Some(settings) if reader.problems.is_empty() => {
            Reading::Followed { settings: Box::new(settings), unknown: reader.unknown() }
        }
        _ => Reading::Problems(reader.problems),
    }
}

/// The target name of a workload that is followed, whatever else is wrong with its annotations.
pub fn target_name(
    prefix: &AnnotationPrefix,
    kind: &str,
    name: &str,
    annotations: &BTreeMap<String, String>,
) -> Option<TargetName> {
    annotations.get(&prefix.key(TargetAnnotation::Repo))?;
    let written = annotations.get(&prefix.key(TargetAnnotation::Target));
    named(written.map(String::as_str), kind, name).ok()
}

/// The target name that is written, or follows from the workload's own name.
fn named(written: Option<&str>, kind: &str, name: &str) -> Result<TargetName, &'static str> {
    match written {
        Some(text) => text.parse().map_err(|_| "expected a DNS name of at most 245 characters"),
        None => TargetName::default_for(kind, name)
            .map_err(|_| "it is needed, because the workload's own name is too long for it"),
    }
}

struct Reader<'a> {
    prefix: &'a AnnotationPrefix,
    /// Names, without the prefix, and values.
    ours: Vec<(&'a str, &'a str)>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn value(&self, annotation: TargetAnnotation) -> Option<&'a str> {
        let name = annotation.as_str();
        self.ours.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn refuse(&mut self, annotation: TargetAnnotation, problem: impl Into<String>) {
        let key = self.prefix.key(annotation);
        self.problems.push(Problem::new(key, self.value(annotation), problem));
    }

    /// The value of an annotation that was read by `read`, if it is there and can be read.
    fn with<T>(
        &mut self,
        annotation: TargetAnnotation,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        match read(self.value(annotation)?) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.refuse(annotation, problem);
                None
            }
        }
    }

    fn parsed<T>(
        &mut self,
        annotation: TargetAnnotation,
        problem: impl FnOnce(T::Err) -> String,
    ) -> Option<T>
    where
        T: FromStr,
    {
        self.with(annotation, |text| text.parse().map_err(problem))
    }

    /// One of a closed set, or the documented default.
    fn word<T>(&mut self, annotation: TargetAnnotation) -> Option<T>
    where
        T: belay_api::NamedValue,
    {
        self.with(annotation, |text| {
            let words: Vec<_> = T::ALL.iter().map(|word| word.as_str()).collect();
            text.parse().map_err(|_| format!("expected {}", words.join(" or ")))
        })
    }

    fn bool(&mut self, annotation: TargetAnnotation) -> bool {
        self.with(annotation, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("expected true or false".to_owned()),
        })
        .unwrap_or_default()
    }

    fn duration(&mut self, annotation: TargetAnnotation) -> Duration {
        let default = match annotation.default_value() {
            DefaultValue::Value(text) => text.parse().unwrap_or_default(),
            DefaultValue::Required | DefaultValue::Absent | DefaultValue::Derived(_) => {
                Duration::default()
            }
        };
        self.parsed(annotation, |_| duration_problem()).unwrap_or(default)
    }

    fn tag(&mut self, annotation: TargetAnnotation) -> Option<String> {
        self.with(annotation, |text| {
            let is_valid = !text.is_empty()
                && text.chars().count() <= limits::TAG
                && !text.chars().any(|c| c.is_control() || c.is_whitespace());
            if is_valid {
                Ok(text.to_owned())
            } else {
                let length = limits::TAG;
                Err(format!("expected a tag of at most {length} characters without blanks"))
            }
        })
    }

    fn settings(&mut self, subject: Subject<'_>, support: Support) -> Option<TargetSettings> {
        use TargetAnnotation as Key;

        let repo = self.parsed::<RepoSlug>(Key::Repo, |_| "expected owner/name".to_owned());
        let image = self.parsed::<Repository>(Key::Image, |error| error.problem().to_owned());
        let followed = self.containers(subject.containers);
        let target = self.target(subject);
        let scaled_object = self.scaled_object(support);
        let lists_releases = self.value(Key::TagPattern).is_some();
        let tag_pattern = self
            .parsed::<TagPattern>(Key::TagPattern, |error| error.problem().to_owned())
            .unwrap_or_default();
        let tag_template = self
            .parsed::<TagTemplate>(Key::TagTemplate, |error| error.problem().to_owned())
            .unwrap_or_default();
        let range = self.parsed::<Range>(Key::Range, |error| error.problem().to_owned());
        let prereleases = self.bool(Key::Prereleases);
        let min_age = self.duration(Key::MinAge);
        let digest = self.bool(Key::Digest);
        let image_check = self.image_check(support, digest);
        let pause = self.word(Key::Pause);
        let deadline = self.deadline(subject.progress_deadline);
        let bake = self.duration(Key::Bake);
        let on_failure = self.word(Key::OnFailure).unwrap_or_default();
        let mode = self.word(Key::Mode).unwrap_or_default();
        let hold = self.tag(Key::Hold).and_then(|text| match text.as_str() {
            "true" => Some(Hold::Here),
            // Who writes this means "not held"; no tag of a release is called so.
            "false" => None,
            _ => Some(Hold::Tag(text)),
        });
        let allow = self.tag(Key::Allow);
        let take_over = self.with(Key::TakeOver, managers::take_over).unwrap_or_default();
        let adopt = self.with(Key::Adopt, managers::adopt);
        let Followed { containers, left_out } = followed?;
        Some(TargetSettings {
            repo: repo?,
            image,
            containers,
            left_out,
            target: target?,
            scaled_object,
            tag_pattern,
            lists_releases,
            tag_template,
            range,
            prereleases,
            min_age,
            digest,
            image_check,
            pause,
            deadline,
            bake,
            on_failure,
            mode,
            hold,
            allow,
            take_over,
            adopt,
        })
    }

    fn containers(&mut self, live: &[LiveContainer]) -> Option<Followed> {
        match containers::follow(self.value(TargetAnnotation::Container), live) {
            Ok(followed) => Some(followed),
            Err(problem) => {
                self.refuse(TargetAnnotation::Container, problem);
                None
            }
        }
    }

    fn target(&mut self, subject: Subject<'_>) -> Option<TargetName> {
        let written = self.value(TargetAnnotation::Target);
        match named(written, subject.kind, subject.name) {
            Ok(name) => Some(name),
            Err(problem) => {
                self.refuse(TargetAnnotation::Target, problem);
                None
            }
        }
    }

    fn scaled_object(&mut self, support: Support) -> Option<String> {
        self.with(TargetAnnotation::ScaledObject, |text| {
            if !belay_api::names::is_dns1123_subdomain(text) {
                return Err("expected the name of a ScaledObject".to_owned());
            }
            if support.scaled_objects {
                Ok(text.to_owned())
            } else {
                Err("not supported by this version of Belay".to_owned())
            }
        })
    }

    fn image_check(&mut self, support: Support, digest: bool) -> ImageCheck {
        let check = self.word(TargetAnnotation::ImageCheck).unwrap_or_default();
        if check == ImageCheck::Skip && !support.image_check_skip {
            let problem = "this operator is not configured to permit skip";
            self.refuse(TargetAnnotation::ImageCheck, problem);
        } else if check == ImageCheck::Skip && digest {
            self.refuse(
                TargetAnnotation::Digest,
                "the digest is the registry's to say, and \
                 image-check is skip",
            );
        }
        check
    }

    fn deadline(&mut self, progress_deadline: Option<i32>) -> Duration {
        let deadline =
            self.with(TargetAnnotation::Deadline, |text| match text.parse::<Duration>() {
                Ok(deadline) if deadline.as_secs() > 0 => Ok(deadline),
                Ok(_) => Err("it must be at least 1s".to_owned()),
                Err(_) => Err(duration_problem()),
            });
        let own = progress_deadline.and_then(|seconds| u64::try_from(seconds).ok());
        deadline.or(own.filter(|own| *own > 0).map(Duration::from_secs)).unwrap_or(DEFAULT_DEADLINE)
    }

    fn unknown(&self) -> Vec<String> {
        let is_known = |name: &str| {
            TargetAnnotation::ALL.iter().any(|one| one.as_str() == name)
                || OwnAnnotation::ALL.iter().any(|one| one.as_str() == name)
        };
        self.ours
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !is_known(name))
            .take(10)
            .map(|name| limits::clip(name, 100))
            .collect()
    }
}

fn duration_problem() -> String {
    "expected a duration such as 90s, 30m or 1h30m".to_owned()
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFollowed => f.write_str("not followed"),
            Self::Followed { settings, .. } => write!(f, "follows {}", settings.repo),
            Self::Problems(problems) => {
                let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("; "))
            }
        }
    }
}
