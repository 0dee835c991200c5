//! Values of each annotation, good and bad, as the operator specification, section 2, and
//! docs/reference/annotations.md tell them apart.
//!
//! Where these leave a choice, neither kind is here: for the length of a rule, for example, that
//! nobody would write and somebody must refuse, there are values that are surely short enough and
//! values that are surely too long.

use crate::dice::Dice;

/// The repositories that are followed; of some of them GitHub knows nothing.
const REPOS: &[&str] = &[
    "acme/sets",
    "acme/sets",
    "acme/sets",
    "acme/sets",
    "acme/sets",
    "acme/sets",
    "Acme/Sets",
    "acme/empty",
    "acme/nothing-here",
    "a/b",
    "a-name-of-thirty-nine-letters-and-hyphens/.x_1-y",
];
const HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A value that must be followed. `container` and `target` depend on the workload and are not here.
pub(crate) fn good(key: &str, dice: &mut Dice) -> String {
    match key {
        "repo" => dice.pick(REPOS),
        "image" => dice.pick(&[
            "nginx",
            "acme/web",
            "ghcr.io/acme/web",
            "registry.example:5000/a/b_c/d-e.f",
            "localhost:5000/web",
            "10.0.0.1:5000/web",
        ]),
        "tag-pattern" => dice.pick(&[
            "v?{version}",
            "v{version}",
            "{version}",
            "web/v{version}",
            "web/v?{version}",
            "release-{version}",
            "{version}-final",
            "é{version}",
        ]),
        "tag-template" => dice.pick(&[
            "{version}",
            "{tag}",
            "v{version}",
            "{version}-alpine",
            "build.{version}",
            "{version}_{tag}",
        ]),
        "range" => range(dice),
        "prereleases" | "digest" => dice.pick(&["true", "false"]),
        "min-age" | "bake" => {
            if dice.one_in(4) {
                dice.pick(&["0s", "0h0m0s", "007s", "9999999h", "9999999h9999999m9999999s"])
            } else {
                duration(dice)
            }
        }
        "deadline" => {
            if dice.one_in(4) {
                dice.pick(&["1s", "9999999h", "0h1s"])
            } else {
                duration(dice)
            }
        }
        "image-check" => "required".to_owned(),
        "pause" => dice.pick(&["scale-in", "full", "none"]),
        "on-failure" => dice.pick(&["rollback", "stop"]),
        "mode" => dice.pick(&["apply", "observe"]),
        "hold" => {
            if dice.one_in(2) {
                "true".to_owned()
            } else {
                tag(dice)
            }
        }
        "allow" => tag(dice),
        "take-over" => dice.pick(&[
            "spinnaker",
            "helm",
            "spinnaker,jenkins",
            "spinnaker, jenkins",
            "Go-http-client",
        ]),
        "adopt" => dice.pick(&[
            "kubectl-edit=ghcr.io/acme/web:1.0.0",
            "kubectl-client-side-apply=nginx",
            "spinnaker=a=b",
            "instance=ops/belay",
            "instance=ops/belay.west",
        ]),
        other => unreachable!("{other} has no good values here"),
    }
}

/// A value that must be refused. `container` depends on the pod and is not here.
pub(crate) fn bad(key: &str, dice: &mut Dice) -> String {
    match key {
        "repo" => repo(dice),
        "image" => image(dice),
        "target" => target(dice),
        "scaledobject" => match dice.below(4) {
            0 => dice.junk(),
            1 => dice.long("web-"),
            // Sound names: this version pauses nothing.
            _ => dice.pick(&["web", "web.shop", "keda"]),
        },
        "tag-pattern" => rule(
            dice,
            &["v", "{version}{version}", "{version}-{version}", "?{version}", "v??{version}"],
            &["{}", "{Version}", "v{tag}{version}", "{{version}}", "v*{version}", "v {version}"],
            &["^v{version}$", "[0-9]{version}", "v\\d{version}", "v\u{0}{version}", "{version}\n"],
        ),
        "tag-template" => rule(
            dice,
            &["latest", "{Version}", "{}", "{version", "version}", "{version} ", "{version}/x"],
            &["{version}:x", "{version}@sha256", ".{version}", "-{version}", "{{version}}"],
            &["é{version}", "{version}\u{0}", "{version}{other}", "{version}\n"],
        ),
        "range" => rule(
            dice,
            &["||", "^1 ||", "|| ^1", "1.2.3", "1.2", "1.2.3 || ^2", "latest", "=latest", ">="],
            &["1.2 - 1.4", "!=1.2.3", "^", "^v1.2", "^1.2.3.4", "^01.2", "(1.0,2.0]", "^1 && ^2"],
            &[
                "^99999999999999999999",
                ">=1.0\u{0}",
                ">>1",
                "=>1",
                "^-1",
                "^1.2.3-",
                "^1;^2",
                "[1,2)",
            ],
        ),
        "prereleases" | "digest" => {
            word(dice, &["True", "FALSE", "1", "on", "t", "true ", " true", "true,false", "sha256"])
        }
        "min-age" | "bake" => not_a_duration(dice),
        "deadline" => {
            // No rollout makes progress all the time.
            if dice.one_in(4) { dice.pick(&["0s", "0m", "0h0m0s"]) } else { not_a_duration(dice) }
        }
        "image-check" => word(dice, &["off", "none", "Skip", "skip ", "optional", "false"]),
        "pause" => word(dice, &["off", "half", "scale-out", "Full", "full ", "scale-in,full"]),
        "on-failure" => word(dice, &["restart", "Stop", "stop ", "rollback,stop", "none", "true"]),
        "mode" => word(dice, &["dry-run", "Apply", "observe ", "apply,observe", "off", "0"]),
        "hold" | "allow" => match dice.below(6) {
            0 => dice.long("1"),
            1 => dice.long("é"),
            _ => dice.pick(&["", " ", "a b", "v1 ", "a\nb", "\t", "\u{0}", "v\u{1b}[31m1"]),
        },
        "take-over" => match dice.below(8) {
            0 => dice.long("a"),
            1 => "a".repeat(129),
            2 | 3 => dice.pick(&["", ",", "a,,b", "helm,", "*", "spinn*", "two words", "a\u{7}"]),
            4 | 5 => dice.pick(&[
                "kubectl",
                "kubectl-edit",
                "kubectl-client-side-apply",
                "kubectl-rollout",
                "helm,kubectl-edit",
            ]),
            _ => dice.pick(&[
                "argocd-controller",
                "argocd-application-controller",
                "kustomize-controller",
                "helm-controller",
                "helm, argocd-controller",
            ]),
        },
        "adopt" => match dice.below(6) {
            0 => format!("spinnaker={}", dice.long("a")),
            1 => format!("{}=nginx:1", "a".repeat(129)),
            2 => dice.junk(),
            _ => dice.pick(&[
                "true",
                "=x",
                "spinnaker=",
                "instance=",
                "instance=ops",
                "instance=ops/",
                "instance=/belay",
                "instance=ops/a/b",
                "instance=Ops/belay",
                "two words=x",
                "a\u{0}=x",
            ]),
        },
        other => unreachable!("{other} has no bad values here"),
    }
}

/// Joined comparators, joined alternatives.
fn range(dice: &mut Dice) -> String {
    const ONE: &[&str] = &[
        "^1.2",
        "~1.2.3",
        ">=1.0",
        ">=1.0.0",
        "<2.0.0",
        ">0.1",
        "<=3",
        "=1.2.3",
        "1.x",
        "1.2.*",
        "*",
        ">=2.0.0-rc.1",
        "^0.3",
    ];
    let mut alternatives = Vec::new();
    for _ in 0..=dice.below(3) {
        let joint = dice.pick(&[" ", ", "]);
        // A wildcard stands alone.
        let all = match dice.below(3) {
            0 => vec![dice.pick(ONE)],
            1 => vec![dice.pick(&[">=1.0", ">1.2.3"]), dice.pick(&["<2.0", "<=1.9.9"])],
            _ => vec!["^1.2".to_owned(), ">=1.2.3".to_owned(), "<1.9".to_owned()],
        };
        alternatives.push(all.join(&joint));
    }
    alternatives.join(&dice.pick(&["||", " || "]))
}

fn duration(dice: &mut Dice) -> String {
    let mut text = String::new();
    for unit in ["h", "m", "s"] {
        if dice.one_in(2) {
            text.push_str(&(1 + dice.below(90)).to_string());
            text.push_str(unit);
        }
    }
    if text.is_empty() { "90s".to_owned() } else { text }
}

fn tag(dice: &mut Dice) -> String {
    match dice.below(5) {
        0 => "1".repeat(128),
        _ => dice.pick(&["v1.0.0", "1.0.0", "web/v1.2.3-rc.1+b4", "nightly", "v0.9.0"]),
    }
}

fn not_a_duration(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => dice.long("1"),
        1 => format!("{}s", dice.long("9")),
        2 => dice.junk(),
        _ => dice.pick(&[
            "",
            "30",
            "-1m",
            "+1m",
            "-9223372036854775808s",
            "18446744073709551616s",
            "99999999999999999999999999h",
            "1.5h",
            "1d",
            "1w",
            "1ms",
            "1s1m",
            "1m1m",
            " 1m",
            "1m ",
            "1 m",
            "1e400h",
            "１m",
            "m",
            "P1D",
            "PT5M",
            "5 minutes",
            "inf",
        ]),
    }
}

fn word(dice: &mut Dice, wrong: &[&str]) -> String {
    match dice.below(6) {
        0 => dice.junk(),
        1 => dice.long("true"),
        _ => dice.pick(wrong),
    }
}

fn rule(dice: &mut Dice, one: &[&str], two: &[&str], three: &[&str]) -> String {
    match dice.below(8) {
        0 => dice.junk(),
        1 => format!("{}{{version}}", dice.long("a")),
        2 => dice.long("{version}"),
        _ => {
            let list = dice.one_of(&[one, two, three]);
            dice.pick(list)
        }
    }
}

fn repo(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => dice.junk(),
        1 => format!("acme/{}", dice.long("web")),
        2 => format!("{}/web", dice.long("é")),
        3 => format!("acme/{}", dice.odd()),
        _ => dice.pick(&[
            "",
            "acme",
            "acme/",
            "/web",
            "/",
            "acme/web/x",
            "acme//web",
            "https://github.com/acme/web",
            "git@github.com:acme/web.git",
            "acme/..",
            "../web",
            "acme/we b",
            "acme/web?x=1",
            "acme/web#x",
            "acme/web\n",
            " acme/web",
            "acme/%2e%2e",
            "acme\\web",
            "-acme/web",
        ]),
    }
}

fn image(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => format!("ghcr.io/acme/{}", dice.odd()),
        1 => format!("ghcr.io/{}", dice.long("a")),
        2 => format!("ghcr.io/acme/web@sha256:{HASH}"),
        _ => dice.pick(&[
            "",
            "/",
            "ghcr.io/acme/web:1.0",
            "https://ghcr.io/acme/web",
            "ghcr.io/acme/Web",
            "ghcr.io/",
            "/web",
            "ghcr.io//web",
            "ghcr.io/acme/web/",
            " nginx",
            "nginx\n",
            "ghcr.io/../web",
            "ghcr.io/acme/-web",
            "host:70000/web",
            "host:port/web",
            "[::g]/web",
            "ghcr.io/acme/web?x=y",
            "user@ghcr.io/acme/web",
            "{{ .Values.image }}",
            "a b",
        ]),
    }
}

fn target(dice: &mut Dice) -> String {
    match dice.below(8) {
        0 => dice.long("a"),
        1 => "a".repeat(246),
        2 => dice.odd(),
        _ => dice.pick(&[
            "", " ", "Web", "a_b", "a/b", "-a", "a-", ".a", "a.", "a..b", "a b", "a\n", "web:1",
            "*",
        ]),
    }
}
