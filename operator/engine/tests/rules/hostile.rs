//! `plan` is total: whatever was observed, it comes to a plan, and to one that the API server takes.

use belay_api::{
    annotations::TargetAnnotation,
    limits,
    rollback::InitiatorType::{System, User},
    target::TargetStatus,
};
use belay_engine::{
    Timestamp,
    observed::{Observed, Refusal},
    plan::{Plan, Step, plan},
    settings::Settings,
};
use proptest::{collection::vec, prelude::*, sample::Index, test_runner::RngSeed};
use serde_json::{Value, json};

use crate::case::{Case, Fate, HOUR, at, image, name_of};

/// Situations that lead everywhere.
fn situations() -> Vec<Observed> {
    let mut all = Vec::new();
    let mut keep = |change: &dyn Fn(&mut Case)| {
        let mut case = Case::moved(3 * HOUR, Some(2 * HOUR));
        change(&mut case);
        all.push(case.observed);
    };
    keep(&|_| {});
    keep(&|case| case.publish("v1.2.0"));
    keep(&|case| {
        case.publish("v1.2.0");
        case.annotate(TargetAnnotation::Range, "^1");
        case.annotate(TargetAnnotation::MinAge, "9h");
        case.follow_two();
    });
    keep(&|case| {
        case.publish("v1.2.0");
        case.passes();
    });
    keep(&|case| {
        case.fate = Fate::Hangs;
        case.publish("v1.2.0");
        case.work(599);
    });
    keep(&|case| {
        case.fate = Fate::Hangs;
        case.publish("v1.2.0");
        case.work(599);
        case.fate = Fate::Succeeds;
        case.work(200);
        case.annotate(TargetAnnotation::Allow, "v1.2.0");
    });
    keep(&|case| case.write("helm", false, &image("0.9.0")));
    keep(&|case| {
        case.write("helm", false, &image("0.9.0"));
        case.work(10);
    });
    keep(&|case| {
        case.write("kubectl-edit", false, &image("0.9.0"));
        case.annotate(TargetAnnotation::Adopt, "kubectl-edit=ghcr.io/acme/web:0.9.0");
        case.publish("v1.2.0");
    });
    keep(&|case| case.undo("v1.0.0"));
    keep(&|case| {
        case.ask_back("by-hand", "", User);
    });
    keep(&|case| {
        case.fate = Fate::Hangs;
        case.ask_back("by-hand", &name_of("v1.0.0"), User);
        case.work(10);
    });
    keep(&|case| {
        case.ask_back("system", "", System);
        case.refusals = vec![Refusal::Failed { message: "because".to_owned() }];
        case.work(1);
    });
    keep(&|case| {
        case.surroundings().release_limit = Some("1".to_owned());
        case.surroundings().failed_elsewhere = vec!["v1.2.0".to_owned()];
        case.annotate(TargetAnnotation::Hold, "v1.0.0");
        case.publish("v1.2.0");
    });
    all.push(Case::bare("1.0.0").observed);
    all.push(Case::bare("edge").observed);
    all
}

const TEXTS: &[&str] = &[
    "",
    " ",
    "true",
    "null",
    "v",
    "v1.2.0",
    "1.2.0+b_1",
    "99999999999999999999.0.0",
    "ghcr.io/acme/web:1.2.0",
    "localhost:5000/a@sha256:00",
    "ghcr.io/acme/web@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "é\u{0}\u{202e}\n\u{feff}",
    "../../etc/passwd",
    "{{ .Values.image }}",
    "{version}{version}",
    "*",
    ">=1, <0 || ^*",
    "9999999999999999999h",
    "helm",
    "argocd-controller",
    "belay-operator",
    "instance=other/belay",
    "kubectl-edit=x",
    "NewReplicaSetAvailable",
    "ProgressDeadlineExceeded",
    "ImagePullBackOff",
    "CrashLoopBackOff",
];

const TIMES: &[&str] = &[
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "2027-01-15T08:00:00Z",
    "9999-12-30T22:00:00Z",
];

const NUMBERS: &[i64] =
    &[0, 1, -1, 2, 3, 7, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN, u32::MAX as i64];

/// Finds the leaves of a document.
fn leaves(value: &Value, path: &mut String, out: &mut Vec<String>) {
    let mut below = |key: &str, value: &Value| {
        let length = path.len();
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        leaves(value, path, out);
        path.truncate(length);
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| below(key, value));
        }
        Value::Array(all) if !all.is_empty() => {
            all.iter().enumerate().for_each(|(index, value)| below(&index.to_string(), value));
        }
        _ => out.push(path.clone()),
    }
}

/// One leaf becomes something else of its kind.
fn spoil(document: &mut Value, (leaf, choice, long): &(Index, Index, bool)) {
    let mut paths = Vec::new();
    leaves(document, &mut String::new(), &mut paths);
    let path = &paths[leaf.index(paths.len())];
    // The API server has seen to it that nothing of Belay's own kinds is empty or too long.
    let is_ours = ["/target", "/releases", "/rollbacks"].iter().any(|own| path.starts_with(own));
    let other = document.pointer(&paths[choice.index(paths.len())]).cloned().unwrap_or_default();
    let is_short =
        |other: &Value| other.as_str().is_some_and(|text| (1..250).contains(&text.len()));
    let Some(value) = document.pointer_mut(path) else { return };
    let new = match value {
        Value::String(text) if text.parse::<Timestamp>().is_ok() => json!(choice.get(TIMES)),
        // Something that stands elsewhere, or something bad.
        Value::String(_) if !long && is_short(&other) => other,
        Value::String(_) => {
            let text = *choice.get(TEXTS);
            let repeated = *long && !is_ours && choice.index(5) == 0;
            let text = if is_ours && text.is_empty() { "x" } else { text };
            json!(if repeated { text.repeat(3_000) } else { text.to_owned() })
        }
        Value::Number(_) => json!(choice.get(NUMBERS)),
        Value::Bool(old) => json!(!*old),
        Value::Null | Value::Array(_) | Value::Object(_) => return,
    };
    *value = new;
}

fn is_short(text: Option<&String>, most: usize) -> bool {
    text.is_none_or(|text| (1..=most).contains(&text.chars().count()))
}

/// What the API server would refuse in a status that holds only what it took before.
fn check_status(status: &TargetStatus) -> Result<(), TestCaseError> {
    for condition in &status.conditions {
        prop_assert!(condition.message.chars().count() <= limits::CONDITION_MESSAGE);
        prop_assert!(!condition.reason.is_empty());
    }
    prop_assert!(status.candidates.len() <= limits::CANDIDATES);
    for candidate in &status.candidates {
        prop_assert!(is_short(Some(&candidate.tag), limits::TAG));
        prop_assert!(is_short(candidate.message.as_ref(), limits::ITEM_MESSAGE));
    }
    prop_assert!(status.blocked.len() <= limits::BLOCKS);
    prop_assert!(status.blocked.iter().all(|one| is_short(Some(&one.from), limits::TAG)));
    prop_assert!(status.blocked.iter().all(|one| is_short(one.to.as_ref(), limits::TAG)));
    prop_assert!(status.reverts.len() <= limits::REVERTS);
    prop_assert!(is_short(status.hold.as_ref(), limits::TAG));
    let current = status.current.as_ref();
    prop_assert!(is_short(current.and_then(|one| one.image.as_ref()), limits::IMAGE));
    let wanted = status.wanted.as_ref();
    prop_assert!(is_short(wanted.and_then(|one| one.image.as_ref()), limits::IMAGE));
    prop_assert!(is_short(wanted.and_then(|one| one.tag.as_ref()), limits::TAG));
    Ok(())
}

fn check(plan: &Plan, now: Timestamp) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(plan).unwrap();
    let read: Plan = serde_json::from_str(&text).unwrap();
    prop_assert_eq!(&read, plan);
    if let Some(status) = &plan.status {
        check_status(status)?;
    }
    if let Some(Step::Apply(intent)) = &plan.step {
        prop_assert!(!intent.images.is_empty() && !intent.release.is_empty());
        for one in &intent.images {
            prop_assert!(one.image.parse::<belay_engine::image::ImageRef>().is_ok(), "{one:?}");
        }
    }
    let is_idle = plan.step.is_none() && plan.look.is_empty();
    // A wake that is over would be a busy loop, unless the status changes too.
    if is_idle && plan.status.is_none() {
        prop_assert!(plan.wake.is_none_or(|wake| wake > now), "{plan:?}");
    }
    Ok(())
}

thread_local! {
    static SITUATIONS: Vec<Value> =
        situations().iter().map(|one| serde_json::to_value(one).unwrap()).collect();
}

/// The same cases each time, so that no run fails by chance; `PROPTEST_RNG_SEED` and
/// `PROPTEST_CASES` make it others, and more.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        written @ RngSeed::Fixed(_) => written,
    };
    let cases = default.cases.max(3_000);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn hostile_facts_come_to_a_plan(
        situation in any::<Index>(),
        spoilt in vec(any::<(Index, Index, bool)>(), 1..8),
        later in prop_oneof![Just(0_i64), Just(61), Just(700), Just(100_000), Just(-50_000)],
    ) {
        let document = SITUATIONS.with(|all| situation.get(all).clone());
        let mut observed: Observed = serde_json::from_value(document.clone()).unwrap();
        let mut document = document;
        for one in &spoilt {
            let mut next = document.clone();
            spoil(&mut next, one);
            // Some of it can be no fact at all.
            if let Ok(read) = serde_json::from_value(next.clone()) {
                document = next;
                observed = read;
            }
        }
        let now = at(1_800_000_000 + later);
        let decided = plan(&observed, &Settings::default(), now);
        check(&decided, now)?;
        // The same facts, the same plan.
        prop_assert_eq!(plan(&observed, &Settings::default(), now), decided);
    }

    #[test]
    fn hostile_annotations_come_to_a_plan(
        written in vec((any::<Index>(), "\\PC{0,40}"), 1..6),
        image in "\\PC{0,30}|[a-z./:@-]{0,60}",
        now in prop_oneof![Just(at(-62_135_596_800)), Just(Timestamp::MAX), Just(at(1_800_000_000))],
    ) {
        let mut case = Case::new();
        case.publish("v1.1.0");
        for (annotation, value) in &written {
            use belay_api::NamedValue as _;
            case.annotate(*annotation.get(TargetAnnotation::ALL), value);
        }
        if !image.is_empty() {
            case.workload().containers[0].live.image = image;
        }
        let decided = plan(&case.observed, &case.settings, now);
        check(&decided, now)?;
    }
}

#[test]
fn the_ends_of_time_come_to_a_plan() {
    for observed in situations() {
        for now in [Timestamp::MIN, Timestamp::MAX] {
            let decided = plan(&observed, &Settings::default(), now);
            assert!(decided.status.is_some() || decided.step.is_some() || !decided.look.is_empty());
        }
    }
}
