//! Words that others match are promises.

use std::collections::BTreeSet;

use belay_api::{
    NamedValue,
    conditions::{PolicyState, ReleaseState, RollbackState, State, TargetState},
    gates::Gate,
    reasons::{Note, Rejection},
};

fn reasons<S: State>(condition: &str) -> BTreeSet<&'static str> {
    let states = S::all().into_iter().filter(|state| state.condition_type() == condition);
    states.map(State::reason).collect()
}

fn words<T: NamedValue>() -> BTreeSet<&'static str> {
    T::ALL.iter().map(|value| value.as_str()).collect()
}

/// Scripts and alerts match these words: they are promises.
#[test]
fn every_word_that_the_specification_names_is_there() {
    let tables: [(&str, BTreeSet<&str>, &[&str]); 13] = [
        (
            "Ready of a Release",
            reasons::<ReleaseState>("Ready"),
            &[
                "Pausing",
                "Rolling",
                "Baking",
                "ScaledToZero",
                "Healthy",
                "Failed",
                "RolledBack",
                "Superseded",
                "Blocked",
            ],
        ),
        ("Active", reasons::<ReleaseState>("Active"), &["Restored"]),
        (
            "Healthy",
            reasons::<ReleaseState>("Healthy"),
            &[
                "ScaledToZero",
                "InvalidImageName",
                "CreateContainerConfigError",
                "CrashLoopBackOff",
                "BakeUnstable",
                "AnalysisMissing",
                "AnalysisError",
                "AnalysisInProgress",
            ],
        ),
        (
            "RollbackRequired",
            reasons::<ReleaseState>("RollbackRequired"),
            &["RolloutHealthy", "AnalysisMissing", "AnalysisError", "AnalysisInProgress"],
        ),
        (
            "Blocked",
            reasons::<ReleaseState>("Blocked"),
            &["BlockedTemporarily", "RolledBackByHelm", "Superseded"],
        ),
        ("AnnotationsValid", reasons::<ReleaseState>("AnnotationsValid"), &["OperatorOwned"]),
        (
            "InProgress",
            reasons::<RollbackState>("InProgress"),
            &["DeploymentTriggered", "Completed", "Failed", "Superseded", "TargetPaused"],
        ),
        (
            "Succeeded",
            reasons::<RollbackState>("Succeeded"),
            &[
                "DeploymentSucceeded",
                "DeploymentFailed",
                "DeploymentSuperseded",
                "DeadlineExceeded",
                "Rejected",
            ],
        ),
        ("rejections", words::<Rejection>(), &["ManagedByGitOps", "NotAllowed"]),
        (
            "Automated",
            reasons::<PolicyState>("Automated"),
            &["SetByUser", "DisabledByController", "DuplicatePolicy", "NothingToWatch"],
        ),
        (
            "Stalled",
            reasons::<TargetState>("Stalled"),
            &[
                "ReleaseNameTaken",
                "RepositoryDiffers",
                "DuplicateTarget",
                "InvalidConfig",
                "AnotherOperator",
                "CannotCompare",
                "Broken",
                "BreakerOpen",
                "ManagedByGitOps",
                "TugOfWar",
                "ChangedByPerson",
                "FieldConflict",
                "RollbackFailed",
                "NotAllowed",
            ],
        ),
        (
            "notes",
            words::<Note>(),
            &["ChangedByAdmission", "ResumeUnproven", "TagMoved", "Unauthenticated"],
        ),
        (
            "gates",
            words::<Gate>(),
            &[
                "Draft",
                "Prerelease",
                "Pattern",
                "Range",
                "Age",
                "Blocked",
                "Hold",
                "Lower",
                "WaitingForImage",
                "RegistryDenied",
                "PlatformMissing",
                "FailedElsewhere",
                "TagMoved",
            ],
        ),
    ];
    for (what, ours, named) in tables {
        for word in named {
            assert!(ours.contains(word), "{what}: {word}");
        }
    }
    let progressing = reasons::<TargetState>("Progressing");
    for word in ["CouldNotFreeze", "TargetPaused", "ImageReverted"] {
        assert!(progressing.contains(word), "Progressing: {word}");
    }
    assert!(reasons::<TargetState>("Held").contains("Mismatch"));
}
