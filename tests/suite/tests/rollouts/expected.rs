//! What must be said of each rollout of each scenario, in the order of the writes of its image; the
//! install is the first.

/// The words of a rollout's judgements, without repetitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// With the deadline of the Deployment, 10 s, which is shorter than what certain causes get.
    pub(crate) own: &'static str,
    /// With a deadline of 10 minutes, and 3 s for certain causes.
    pub(crate) patient: &'static str,
}

const fn both(words: &'static str) -> Expected {
    Expected { own: words, patient: words }
}

/// Rolled out, and then left for another image.
const LEFT: Expected = both("rolling > baking");
const GOOD: Expected = both("rolling > baking > healthy");
/// Once good, then not, then good again.
const MENDED: Expected = both("rolling > baking > broken > baking > healthy");
const BAD_IMAGE: Expected = both("rolling > rolling ImagePull > failed ImagePullFailed");

pub(crate) const EXPECTED: &[(&str, &[Expected])] = &[
    ("good-roll-of-3", &[LEFT, GOOD]),
    ("good-roll-of-1", &[LEFT, GOOD]),
    ("slow-but-moving", &[LEFT, GOOD]),
    ("min-ready-seconds", &[LEFT, GOOD]),
    ("recreate", &[LEFT, GOOD]),
    ("recreate-beside-an-ended-pod", &[both("rolling > baking > broken > baking"), GOOD]),
    ("no-surge-slow-end", &[LEFT, GOOD]),
    ("superseded", &[LEFT, both("rolling"), GOOD]),
    ("annotated-in-mid-rollout", &[LEFT, GOOD]),
    ("bad-image-1", &[LEFT, BAD_IMAGE]),
    ("bad-image-3", &[LEFT, BAD_IMAGE]),
    ("crash-loop", &[LEFT, both("rolling > failed CrashLoopBackOff")]),
    ("never-given-up", &[LEFT, BAD_IMAGE]),
    ("flapping", &[LEFT, both("rolling > failed DeadlineExceeded")]),
    ("flapping-availability", &[LEFT, both("rolling > failed DeadlineExceeded")]),
    (
        "pull-error-passes",
        &[LEFT, both("rolling > rolling ImagePull > rolling > baking > healthy")],
    ),
    ("fix-forward", &[LEFT, BAD_IMAGE, GOOD]),
    ("rollback-to-a-full-replica-set", &[LEFT, BAD_IMAGE, GOOD]),
    ("rollback-recreate", &[LEFT, BAD_IMAGE, GOOD]),
    ("rollback-without-surge", &[LEFT, BAD_IMAGE, GOOD]),
    ("rollback-slow-end", &[LEFT, BAD_IMAGE, GOOD]),
    ("undo-by-kubectl", &[LEFT, LEFT, BAD_IMAGE, GOOD]),
    ("quota", &[LEFT, both("rolling > rolling Quota > failed QuotaExceeded")]),
    ("quota-lifted", &[LEFT, both("rolling > rolling Quota > rolling > baking > healthy")]),
    ("no-service-account", &[LEFT, both("rolling > rolling Admission > failed AdmissionDenied")]),
    ("unschedulable", &[LEFT, both("rolling > rolling Unschedulable > failed Unschedulable")]),
    (
        "zero-then-one-bad",
        &[both("zero"), both("zero > rolling > rolling ImagePull > failed ImagePullFailed")],
    ),
    ("zero-then-one-good", &[both("zero"), both("zero > rolling > baking > healthy")]),
    ("scaled-out-in-mid-rollout", &[LEFT, GOOD]),
    ("scaled-in-in-mid-rollout", &[LEFT, GOOD]),
    ("zero-in-mid-rollout", &[LEFT, both("rolling > zero")]),
    (
        "paused-at-the-write",
        &[both("rolling > baking > paused"), both("paused > rolling > baking > healthy")],
    ),
    ("paused-in-mid-rollout", &[LEFT, both("rolling > paused > rolling > baking > healthy")]),
    ("crash-after-success", &[LEFT, both("rolling > baking > broken > failed BakeFailed")]),
    ("unready-after-success", &[LEFT, both("rolling > baking > broken > failed BakeFailed")]),
    ("replacement-crashes-in-bake", &[LEFT, both("rolling > baking > broken > failed BakeFailed")]),
    ("evicted-in-bake", &[LEFT, MENDED]),
    ("evicted-by-api-in-bake", &[LEFT, MENDED]),
    ("preempted-in-bake", &[LEFT, MENDED]),
    ("node-lost-in-bake", &[LEFT, MENDED]),
    ("restarted-in-bake", &[LEFT, MENDED]),
    ("scaled-out-in-bake", &[LEFT, GOOD]),
    ("zero-in-bake", &[LEFT, both("rolling > baking > zero > rolling > baking > healthy")]),
];
