//! The crates that are compiled in more than one version, and why that is accepted for now.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;

/// A duplicate that is accepted until its reason is gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepted {
    pub(super) name: &'static str,
    /// The series of versions, as [`series`] names them.
    pub(super) series: &'static [&'static str],
    /// When the reason was last looked at.
    pub(super) date: &'static str,
    pub(super) reason: &'static str,
}

/// Every accepted duplicate.
pub(super) const ACCEPTED: [Accepted; 16] = [
    Accepted {
        name: "base64",
        series: &["0.22", "0.23"],
        date: "2026-11-30",
        reason: "k8s-openapi 0.29 asks for 0.22, kube-client 5.0 and hyper-util for 0.23",
    },
    Accepted {
        name: "block-buffer",
        series: &["0.10", "0.12"],
        date: "2026-11-30",
        reason: "below sha2 and hmac of octocrab 0.54, and below those of everybody else",
    },
    Accepted {
        name: "cpufeatures",
        series: &["0.2", "0.3"],
        date: "2026-11-30",
        reason: "below sha2 0.10 of octocrab 0.54, and below sha2 0.11",
    },
    Accepted {
        name: "crypto-common",
        series: &["0.1", "0.2"],
        date: "2026-11-30",
        reason: "below digest 0.10 of octocrab 0.54, and below digest 0.11",
    },
    Accepted {
        name: "darling",
        series: &["0.20", "0.24"],
        date: "2026-11-30",
        reason: "derive_builder below oci-spec 0.10 asks for 0.20, kube-derive 5.0 for 0.24",
    },
    Accepted {
        name: "darling_core",
        series: &["0.20", "0.24"],
        date: "2026-11-30",
        reason: "one below each darling",
    },
    Accepted {
        name: "darling_macro",
        series: &["0.20", "0.24"],
        date: "2026-11-30",
        reason: "one below each darling",
    },
    Accepted {
        name: "digest",
        series: &["0.10", "0.11"],
        date: "2026-11-30",
        reason: "sha2 and hmac of octocrab 0.54 ask for 0.10, sha2 0.11 for 0.11",
    },
    Accepted {
        name: "getrandom",
        series: &["0.2", "0.3", "0.4"],
        date: "2026-11-30",
        reason: "jsonwebtoken 10 asks for 0.2, ahash 0.8 below kube-runtime 5.0 for 0.3, tempfile for 0.4",
    },
    Accepted {
        name: "hashbrown",
        series: &["0.16", "0.17"],
        date: "2026-11-30",
        reason: "kube-runtime 5.0 asks for 0.16, indexmap for 0.17",
    },
    Accepted {
        name: "pem",
        series: &["3", "4"],
        date: "2026-11-30",
        reason: "jsonwebtoken 10 asks for 3, kube-client 5.0 for 4",
    },
    Accepted {
        name: "r-efi",
        series: &["5", "6"],
        date: "2026-11-30",
        reason: "one below each getrandom, for UEFI alone",
    },
    Accepted {
        name: "sha2",
        series: &["0.10", "0.11"],
        date: "2026-11-30",
        reason: "octocrab 0.54 asks for 0.10, oci-client 0.18 and this workspace for 0.11",
    },
    Accepted {
        name: "syn",
        series: &["2", "3"],
        date: "2026-11-30",
        reason: "serde_derive and clap_derive have moved to 3, other derive crates have not",
    },
    Accepted {
        name: "tower-http",
        series: &["0.6", "0.7"],
        date: "2026-11-30",
        reason: "reqwest 0.13 asks for 0.6, kube-client 5.0 for 0.7",
    },
    Accepted {
        name: "untrusted",
        series: &["0.7", "0.9"],
        date: "2026-11-30",
        reason: "aws-lc-rs 1.19 asks for 0.7, rustls-webpki 0.103 for 0.9",
    },
];

/// Crates of which a second version breaks something: types that no longer fit, a TLS provider that is not
/// installed, a second pool of connections. No reason makes a duplicate of these acceptable.
pub(super) const ONLY_ONE: [&str; 5] = ["hyper", "k8s-openapi", "kube", "reqwest", "rustls"];

/// Versions that cargo takes for compatible: the same first number that is not zero.
pub(super) fn series(version: &str) -> &str {
    let numbers = version.split(['+', '-']).next().unwrap_or(version);
    let mut end = 0;
    for number in numbers.split('.') {
        end += number.len();
        if number != "0" {
            return &numbers[..end];
        }
        end += 1;
    }
    numbers
}

/// Duplicates that nobody accepted, and accepted ones that are no longer what was accepted.
pub(super) fn check(built: &BTreeSet<(String, String)>, accepted: &[Accepted]) -> Vec<Finding> {
    const CHECK: &str = "dependencies";
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, version) in built {
        versions.entry(name).or_default().insert(series(version));
    }
    let mut findings = Vec::new();
    for (name, found) in versions.iter().filter(|(_, found)| found.len() > 1) {
        let list = found.iter().copied().collect::<Vec<_>>().join(" and ");
        if ONLY_ONE.contains(name) {
            findings.push(Finding::new(
                CHECK,
                format!("{name} is compiled in versions {list}; only one may be"),
                format!("`cargo tree --target all -i {name}@VERSION` says who asks for the other"),
            ));
        } else if !accepted.iter().any(|entry| entry.name == *name) {
            findings.push(Finding::new(
                CHECK,
                format!("{name} is compiled in versions {list}"),
                "make the dependencies agree, or list it with a dated reason in \
                 tests/xtask/src/checks/duplicates.rs",
            ));
        }
    }
    for entry in accepted {
        let wanted: BTreeSet<&str> = entry.series.iter().copied().collect();
        let found = versions.get(entry.name).cloned().unwrap_or_default();
        if found != wanted {
            let list = found.iter().copied().collect::<Vec<_>>().join(" and ");
            let now = if list.is_empty() { "not compiled at all" } else { &list };
            findings.push(Finding::new(
                CHECK,
                format!(
                    "{} is accepted in versions {} since {} ({}), but is now {now}",
                    entry.name,
                    entry.series.join(" and "),
                    entry.date,
                    entry.reason
                ),
                "change or remove its entry in tests/xtask/src/checks/duplicates.rs",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const SYN: Accepted =
        Accepted { name: "syn", series: &["2", "3"], date: "2026-01-01", reason: "derives" };

    fn built(crates: &[(&str, &str)]) -> BTreeSet<(String, String)> {
        crates.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
    }

    #[rstest]
    #[case("1.2.3", "1")]
    #[case("0.22.1", "0.22")]
    #[case("0.0.7", "0.0.7")]
    #[case("12.0.0+build.1", "12")]
    #[case("0.10.0-rc.1", "0.10")]
    #[case("0.0.0", "0.0.0")]
    fn versions_belong_to_a_series(#[case] version: &str, #[case] expected: &str) {
        assert_eq!(series(version), expected);
    }

    #[test]
    fn a_duplicate_that_is_accepted_is_no_finding() {
        let crates = built(&[("syn", "2.0.1"), ("syn", "3.0.10"), ("kube", "5.0.0")]);
        assert_eq!(check(&crates, &[SYN]), []);
    }

    #[rstest]
    #[case::nobody_accepted_it(&[("syn", "2.0.1"), ("syn", "3.0.0"), ("rand", "0.9.0"), ("rand", "0.10.0")], "rand is compiled in versions 0.10 and 0.9")]
    #[case::a_third_version(&[("syn", "1.0.9"), ("syn", "2.0.1"), ("syn", "3.0.0")], "is now 1 and 2 and 3")]
    #[case::one_is_left(&[("syn", "3.0.0")], "is now 3")]
    #[case::none_is_left(&[("serde", "1.0.0")], "is now not compiled at all")]
    #[case::only_one_may_be(&[("syn", "2.0.1"), ("syn", "3.0.0"), ("rustls", "0.22.0"), ("rustls", "0.23.0")], "only one may be")]
    fn every_other_state_is_one_finding(#[case] crates: &[(&str, &str)], #[case] what: &str) {
        let findings = check(&built(crates), &[SYN]);
        assert!(findings.len() == 1 && findings[0].what.contains(what), "{findings:?}");
    }

    #[test]
    fn accepting_a_crate_of_which_only_one_may_be_does_not_help() {
        let entry = Accepted { name: "kube", series: &["4", "5"], ..SYN };
        let findings = check(&built(&[("kube", "4.0.0"), ("kube", "5.0.0")]), &[entry]);
        assert!(findings.len() == 1 && findings[0].what.contains("only one"), "{findings:?}");
    }
}
