//! The facts of one moment.

use std::collections::{BTreeMap, BTreeSet};

use belay_api::{
    AnnotationPrefix, Duration, NamedValue as _, Release, Rollback, Signature, TargetName,
    annotations::TargetAnnotation,
    gates::Verdict,
    names::release_name,
    reasons::ActiveReason,
    release::{
        Activation, ContainerImage, PreviousRelease, ReleaseConfig, ReleaseFields, ReleaseRef,
        ReleaseStatus, Revision,
    },
    rollback::{DEFAULT_TIMEOUT, Driver, Initiator, InitiatorType, RollbackSpec, ToReleaseRef},
    target::TargetStatus,
};
use belay_engine::{
    Timestamp,
    annotations::LiveContainer,
    judge::{Facts, ProgressingFacts},
    observed::{
        ContainerState, Fact, Forge, Handicaps, HeldBy, ImageAnswer, Observed, Surroundings,
        WorkloadFacts,
    },
    selection::{GithubRelease, GithubReleases},
    settings::Settings,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};

use crate::keda::Keda;

pub(crate) const REPOSITORY: &str = "ghcr.io/acme/web";
pub(crate) const US: &str = "belay-operator";
pub(crate) const HOUR: i64 = 3_600;
pub(crate) const DAY: i64 = 24 * HOUR;
const START: i64 = 1_800_000_000;

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The image of a version in the target's repository.
pub(crate) fn image(version: &str) -> String {
    format!("{REPOSITORY}:{version}")
}

pub(crate) fn digest(letter: char) -> String {
    format!("sha256:{}", letter.to_string().repeat(64))
}

/// The name of the Release of a release tag.
pub(crate) fn name_of(tag: &str) -> String {
    let target: TargetName = "web".parse().unwrap();
    release_name(&target, &Signature::of("web", [("application", tag)]))
}

pub(crate) fn held_by(manager: &str, applies: bool, time: i64) -> HeldBy {
    HeldBy { manager: manager.to_owned(), applies, time: Some(at(time)) }
}

/// How the workload fares after an apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is complete at once.
    Succeeds,
    /// A new pod comes up and is never ready.
    Hangs,
}

/// One target, everything around it, and an operator without memory of its own.
pub(crate) struct Case {
    pub(crate) settings: Settings,
    pub(crate) observed: Observed,
    pub(crate) now: i64,
    pub(crate) fate: Fate,
    /// What the registry would say.
    pub(crate) registry: BTreeMap<String, ImageAnswer>,
    /// Why applies are refused before anything else is looked at.
    pub(crate) refusals: Vec<belay_engine::observed::Refusal>,
    pub(crate) version: u64,
    /// The reasons of all events.
    pub(crate) told: BTreeSet<String>,
    /// ScaledObjects, and what becomes of them.
    pub(crate) keda: Keda,
}

impl Case {
    /// Two replicas of 1.0.0 that Belay applied a day ago, healthy since; GitHub has nothing newer.
    pub(crate) fn new() -> Self {
        let mut case = Self::bare("1.0.0");
        case.has_run("v1.0.0", -DAY, None, Some(Verdict::Healthy));
        case.run("v1.0.0", -DAY);
        case.passes();
        case
    }

    /// 1.1.0 runs since `seconds` and is healthy for `healthy` of them; 1.0.0 ran healthily before.
    pub(crate) fn moved(seconds: i64, healthy: Option<i64>) -> Self {
        let mut case = Self::bare("1.1.0");
        case.has_run("v1.0.0", -9 * DAY, Some(-seconds), Some(Verdict::Healthy));
        case.has_run("v1.1.0", -seconds, None, healthy.map(|_| Verdict::Healthy));
        case.mark_healthy("v1.1.0", healthy);
        case.run("v1.1.0", -seconds);
        case.publish("v1.1.0");
        if healthy.is_none() {
            case.hang();
        }
        case.passes();
        case
    }

    /// A workload of a version that Belay has never seen.
    pub(crate) fn bare(version: &str) -> Self {
        let now = START;
        let annotations = BTreeMap::from([("belay.dev/repo".to_owned(), "acme/web".to_owned())]);
        let workload = WorkloadFacts {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            uid: "uid-web".to_owned(),
            resource_version: "1".to_owned(),
            created: at(now - 30 * DAY),
            deleting: false,
            annotations,
            annotation_held_by: Vec::new(),
            containers: vec![ContainerState {
                live: LiveContainer { name: "app".parse().unwrap(), image: image(version) },
                held_by: vec![held_by("helm", false, now - 30 * DAY)],
            }],
            rollout: Facts {
                generation: 1,
                observed_generation: 1,
                wanted: 2,
                replicas: 2,
                updated: 2,
                available: 2,
                progress_deadline: Some(600),
                progressing: Some(ProgressingFacts {
                    reason: "NewReplicaSetAvailable".to_owned(),
                    last_update: Some(at(now - 30 * DAY)),
                }),
                ..Facts::default()
            },
        };
        let releases = GithubReleases::default();
        let forge = Forge::Found { repository_id: 7, releases, is_anonymous: false, is_low: false };
        let read = at(now);
        let observed = Observed {
            namespace: "shop".to_owned(),
            workload: Fact::known(Some(workload), read),
            target: Fact::known(None, read),
            releases: Fact::known(Vec::new(), read),
            rollbacks: Fact::known(Vec::new(), read),
            forge: Fact::known(forge, read),
            images: BTreeMap::new(),
            pods: Fact::known(Vec::new(), read),
            surroundings: Fact::known(Surroundings::default(), read),
            refused: None,
            pause_refused: None,
            scaler: None,
            claims: Vec::new(),
            handicaps: Handicaps::default(),
        };
        let mut case = Self {
            settings: Settings::default(),
            observed,
            now,
            fate: Fate::Succeeds,
            registry: BTreeMap::new(),
            refusals: Vec::new(),
            version: 1,
            told: BTreeSet::new(),
            keda: Keda::default(),
        };
        case.publish("v1.0.0");
        case
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now += seconds;
    }

    // --- What is there.

    pub(crate) fn workload(&mut self) -> &mut WorkloadFacts {
        let Fact::Known { value: Some(workload), .. } = &mut self.observed.workload else {
            panic!("the workload is not known")
        };
        workload
    }

    pub(crate) fn surroundings(&mut self) -> &mut Surroundings {
        let Fact::Known { value, .. } = &mut self.observed.surroundings else { panic!() };
        value
    }

    pub(crate) fn releases(&mut self) -> &mut Vec<Release> {
        let Fact::Known { value, .. } = &mut self.observed.releases else { panic!() };
        value
    }

    pub(crate) fn rollbacks(&mut self) -> &mut Vec<Rollback> {
        let Fact::Known { value, .. } = &mut self.observed.rollbacks else { panic!() };
        value
    }

    pub(crate) fn github(&mut self) -> &mut GithubReleases {
        let Fact::Known { value: Forge::Found { releases, .. }, .. } = &mut self.observed.forge
        else {
            panic!("GitHub's answer is not known")
        };
        releases
    }

    pub(crate) fn status(&mut self) -> &mut TargetStatus {
        let Fact::Known { value: Some(record), .. } = &mut self.observed.target else {
            panic!("there is no record")
        };
        &mut record.status
    }

    /// A release and its image.
    pub(crate) fn publish(&mut self, tag: &str) {
        let published =
            Some(at(self.now - HOUR + i64::try_from(self.github().items.len()).unwrap()));
        let release = GithubRelease {
            tag: tag.to_owned(),
            draft: false,
            prerelease: false,
            published,
            author: None,
            url: None,
        };
        self.github().items.push(release);
        self.github().latest = Some(tag.to_owned());
        self.serve(tag.trim_start_matches('v'), 'a');
    }

    /// The registry has the image of a version, with this digest.
    pub(crate) fn serve(&mut self, version: &str, letter: char) {
        let answer =
            ImageAnswer::Present { digest: Some(digest(letter)), missing_platforms: Vec::new() };
        self.registry.insert(image(version), answer);
    }

    pub(crate) fn annotate(&mut self, annotation: TargetAnnotation, value: &str) {
        let key = AnnotationPrefix::default().key(annotation);
        self.workload().annotations.insert(key, value.to_owned());
        self.changed();
    }

    pub(crate) fn strip(&mut self, annotation: TargetAnnotation) {
        let key = AnnotationPrefix::default().key(annotation);
        self.workload().annotations.remove(&key);
        self.changed();
    }

    /// The workload was written: measured, annotations move its generation too.
    pub(crate) fn changed(&mut self) {
        self.version += 1;
        let version = self.version.to_string();
        let workload = self.workload();
        workload.resource_version = version;
        workload.rollout.generation += 1;
        workload.rollout.observed_generation = workload.rollout.generation;
    }

    /// Somebody writes the image and owns it alone.
    pub(crate) fn write(&mut self, manager: &str, applies: bool, image: &str) {
        let now = self.now;
        let container = &mut self.workload().containers[0];
        image.clone_into(&mut container.live.image);
        container.held_by = vec![held_by(manager, applies, now)];
        self.changed();
        self.complete();
    }

    /// A person's `kubectl rollout undo` to a Release.
    pub(crate) fn undo(&mut self, tag: &str) {
        let name = name_of(tag);
        self.write("kubectl", false, &image(tag.trim_start_matches('v')));
        let now = self.now;
        let workload = self.workload();
        workload.annotations.insert("belay.dev/release".to_owned(), name);
        workload.annotation_held_by = vec![held_by("kubectl", false, now)];
    }

    /// A second container of the same image, followed too; what ran before had it.
    pub(crate) fn follow_two(&mut self) {
        let workload = self.workload();
        let mut second = workload.containers[0].clone();
        second.live.name = "worker".parse().unwrap();
        workload.containers.push(second);
        self.annotate(TargetAnnotation::Container, "app, worker");
        self.passes();
    }

    /// All pods are new and ready.
    pub(crate) fn complete(&mut self) {
        let now = self.now;
        let rollout = &mut self.workload().rollout;
        let wanted = rollout.wanted;
        (rollout.replicas, rollout.updated, rollout.available) = (wanted, wanted, wanted);
        rollout.progressing = Some(ProgressingFacts {
            reason: "NewReplicaSetAvailable".to_owned(),
            last_update: Some(at(now)),
        });
    }

    /// New pods do not become ready.
    pub(crate) fn hang(&mut self) {
        let now = self.now;
        let rollout = &mut self.workload().rollout;
        (rollout.replicas, rollout.updated, rollout.available) = (3, 1, 2);
        rollout.progressing = Some(ProgressingFacts {
            reason: "ReplicaSetUpdated".to_owned(),
            last_update: Some(at(now)),
        });
    }

    // --- What ran before.

    /// A Release of this tag: active from `start` to `end`, in seconds from the beginning.
    pub(crate) fn has_run(
        &mut self,
        tag: &str,
        start: i64,
        end: Option<i64>,
        verdict: Option<Verdict>,
    ) {
        let version = tag.trim_start_matches('v');
        let (start, end) = (at(START + start), end.map(|end| at(START + end)));
        let activation = |ordinal| Activation {
            ordinal,
            start_time: Time(start),
            end_time: end.map(Time),
            initiator: Some(format!("GitHub {tag}")),
            verdict: verdict.map(Into::into),
            message: None,
            workload: None,
        };
        let name = name_of(tag);
        let known =
            self.releases().iter_mut().find(|one| one.metadata.name.as_ref() == Some(&name));
        if let Some(known) = known {
            let activations = &mut known.status.as_mut().unwrap().activations;
            let ordinal = activations.last().map_or(1, |last| last.ordinal + 1);
            activations.push(activation(ordinal));
            return;
        }
        let previous = self
            .releases()
            .iter()
            .max_by_key(|one| one.status.as_ref().unwrap().activations[0].start_time.0)
            .map(|one| one.metadata.name.clone().unwrap());
        let condition = |kind: &str, status: &str, reason: &str| Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            last_transition_time: Time(start),
            observed_generation: None,
        };
        let active = if end.is_none() { "True" } else { "False" };
        let reason = if end.is_none() { ActiveReason::Applied } else { ActiveReason::Superseded };
        let config = ReleaseConfig {
            target_name: "web".to_owned(),
            revisions: vec![Revision {
                name: "application".to_owned(),
                id: tag.to_owned(),
                source: Some("acme/web".to_owned()),
                type_: Some("github".to_owned()),
                metadata: None,
            }],
            workload_ref: None,
        };
        let status = ReleaseStatus {
            signature: Some(config.signature().as_str().to_owned()),
            images: vec![ContainerImage {
                container: "app".to_owned(),
                asked: image(version),
                stored: Some(image(version)),
                digest: Some(digest('a')),
            }],
            repository_id: Some(7),
            activations: vec![activation(1)],
            previous_release: previous.map(|name| PreviousRelease {
                release_ref: ReleaseRef { target: "web".to_owned(), name },
                transition_time: Time(start),
            }),
            conditions: vec![condition("Active", active, reason.as_str())],
            ..ReleaseStatus::default()
        };
        self.version += 1;
        let metadata = ObjectMeta {
            name: Some(name),
            uid: Some(format!("uid-{}", self.version)),
            resource_version: Some(self.version.to_string()),
            creation_timestamp: Some(Time(start)),
            ..ObjectMeta::default()
        };
        let release = Release { metadata, spec: ReleaseFields { config }, status: Some(status) };
        self.releases().push(release);
        self.serve(version, 'a');
    }

    /// The Release is healthy for so many seconds.
    pub(crate) fn mark_healthy(&mut self, tag: &str, seconds: Option<i64>) {
        let Some(seconds) = seconds else { return };
        let condition = Condition {
            type_: "Healthy".to_owned(),
            status: "True".to_owned(),
            reason: "Baked".to_owned(),
            message: String::new(),
            last_transition_time: Time(at(self.now - seconds)),
            observed_generation: None,
        };
        let conditions = &mut self.release_mut(tag).status.as_mut().unwrap().conditions;
        conditions.retain(|one| one.type_ != "Healthy");
        conditions.push(condition);
    }

    /// The workload runs a Release that Belay applied, in seconds from the beginning.
    pub(crate) fn run(&mut self, tag: &str, applied: i64) {
        let time = START + applied;
        let workload = self.workload();
        workload.annotations.insert("belay.dev/release".to_owned(), name_of(tag));
        workload.annotation_held_by = vec![held_by(US, true, time)];
        workload.containers[0].live.image = image(tag.trim_start_matches('v'));
        workload.containers[0].held_by = vec![held_by(US, true, time)];
    }

    /// A Rollback by `who`, created now.
    pub(crate) fn ask_back(
        &mut self,
        own: &str,
        to: &str,
        who: InitiatorType,
    ) -> &mut RollbackSpec {
        self.version += 1;
        let metadata = ObjectMeta {
            name: Some(own.to_owned()),
            uid: Some(format!("uid-{own}")),
            resource_version: Some(self.version.to_string()),
            creation_timestamp: Some(Time(at(self.now))),
            ..ObjectMeta::default()
        };
        let spec = RollbackSpec {
            to_release_ref: ToReleaseRef { target: "web".to_owned(), name: to.to_owned() },
            reason: "because".to_owned(),
            initiated_by: Initiator { principal: "alice".to_owned(), type_: who },
            driver: Driver::Native,
            deployment_options: BTreeMap::new(),
            force: false,
            timeout: DEFAULT_TIMEOUT,
        };
        self.rollbacks().push(Rollback { metadata, spec, status: None });
        &mut self.rollbacks().last_mut().unwrap().spec
    }
}

pub(crate) fn seconds(duration: i64) -> Duration {
    Duration::from_secs(u64::try_from(duration).unwrap())
}
