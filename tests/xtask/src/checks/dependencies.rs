//! Licences, banned crates, duplicates, origins, and a written reason for every direct dependency.

use std::collections::BTreeSet;

use super::{Finding, duplicates, licence, metadata::Metadata};

const CHECK: &str = "dependencies";

/// The only origin of crates that are not ours.
pub(super) const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages that no build may compile, with what to use instead.
const BANNED: [(&str, &str); 4] = [
    ("native-tls", "rustls with aws-lc-rs is the one TLS stack"),
    ("openssl-sys", "rustls with aws-lc-rs is the one TLS stack"),
    ("ring", "aws-lc-rs is the one TLS provider; with two, rustls has no default"),
    ("serde_yaml", "it is archived; yaml_serde is its maintained successor"),
];

/// What the check looks at.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) metadata: &'a Metadata,
    /// Name and version of what is compiled: fewer crates than the metadata lists.
    pub(super) built: &'a BTreeSet<(String, String)>,
    /// The text of the top Cargo.toml.
    pub(super) manifest: &'a str,
    /// The text of all of docs/decisions.
    pub(super) decisions: &'a str,
}

pub(super) fn check(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = origins_and_licences(input);
    findings.extend(banned(input.built));
    findings.extend(duplicates::check(input.built, &duplicates::ACCEPTED));
    findings.extend(reasons(input.manifest, input.decisions));
    findings
}

/// The whole lock file, not only what is compiled: a lock entry from elsewhere is downloaded as well.
fn origins_and_licences(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let foreign = input.metadata.packages.iter().filter(|p| !input.metadata.is_member(p));
    for package in foreign {
        let name = format!("{} {}", package.name, package.version);
        if package.source.as_deref() != Some(CRATES_IO) {
            let source = package.source.as_deref().unwrap_or("a folder outside of the workspace");
            findings.push(Finding::new(
                CHECK,
                format!("{name} comes from {source}"),
                "depend on a version published on crates.io",
            ));
        }
        let problem = match package.license.as_deref().map(licence::is_accepted) {
            Some(Ok(true)) => continue,
            Some(Ok(false)) => "is not accepted".to_owned(),
            Some(Err(why)) => format!("cannot be read: {why}"),
            None => "is not named in its manifest".to_owned(),
        };
        let expression = package.license.as_deref().unwrap_or("its licence");
        findings.push(Finding::new(
            CHECK,
            format!("{name}: {expression} {problem}"),
            "use another crate, or accept the licence in tests/xtask/src/checks/licence.rs",
        ));
    }
    findings
}

fn banned(built: &BTreeSet<(String, String)>) -> Vec<Finding> {
    let found = built
        .iter()
        .filter_map(|(name, _)| BANNED.iter().find(|(banned, _)| banned == name))
        .collect::<BTreeSet<_>>();
    found
        .into_iter()
        .map(|(name, why)| {
            Finding::new(
                CHECK,
                format!("{name} is banned: {why}"),
                format!("`cargo tree --workspace --target all -i {name}` says who asks for it"),
            )
        })
        .collect()
}

/// Every entry of `[workspace.dependencies]` has a comment above it, or above the lines it stands in without
/// a blank line between, or is named in a decision. Crates of this workspace explain themselves.
fn reasons(manifest: &str, decisions: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut inside = false;
    let mut explained = false;
    let mut open = 0_usize;
    for line in manifest.lines().map(str::trim) {
        if open == 0 && line.starts_with('[') {
            inside = line.starts_with("[workspace.dependencies]");
            explained = false;
        } else if inside && open == 0 && line.is_empty() {
            explained = false;
        } else if inside && open == 0 && line.starts_with('#') {
            explained = line.len() > 1;
        } else if inside
            && open == 0
            && let Some((name, value)) = line.split_once('=')
        {
            let name = name.split('.').next().unwrap_or(name).trim().trim_matches('"');
            let ours = value.contains("path =") || value.contains("path=");
            if !explained && !ours && !decisions.contains(&format!("`{name}`")) {
                findings.push(Finding::new(
                    CHECK,
                    format!("no reason is given for the dependency {name}"),
                    "write one as a comment above it in the top Cargo.toml, or in docs/decisions",
                ));
            }
        }
        if inside && !line.starts_with('#') {
            open += line.matches(['[', '{']).count();
            open = open.saturating_sub(line.matches([']', '}']).count());
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{
        super::metadata::{
            Package,
            fixture::{member, metadata, published},
        },
        *,
    };

    fn whats(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.what.as_str()).collect()
    }

    fn over(packages: Vec<Package>) -> Vec<Finding> {
        let metadata = metadata(packages);
        let built = BTreeSet::new();
        let input = Input { metadata: &metadata, built: &built, manifest: "", decisions: "" };
        origins_and_licences(&input)
    }

    #[test]
    fn a_crate_from_crates_io_under_a_good_licence_is_no_finding() {
        let findings = over(vec![
            published("serde", "1.0.0", "MIT OR Apache-2.0"),
            member("operator/api", "belay-api", &[]),
        ]);
        assert_eq!(findings, []);
    }

    #[rstest]
    #[case("GPL-3.0-only", "left-pad 1.0.0: GPL-3.0-only is not accepted")]
    #[case("MIT OR", "left-pad 1.0.0: MIT OR cannot be read: it ends where a licence was expected")]
    fn a_licence_that_is_not_accepted_or_not_readable_is_told(
        #[case] licence: &str,
        #[case] what: &str,
    ) {
        assert_eq!(whats(&over(vec![published("left-pad", "1.0.0", licence)])), [what]);
    }

    #[test]
    fn a_crate_without_a_licence_is_told() {
        let package = Package { license: None, ..published("left-pad", "1.0.0", "") };
        let expected = ["left-pad 1.0.0: its licence is not named in its manifest"];
        assert_eq!(whats(&over(vec![package])), expected);
    }

    #[rstest]
    #[case::git("git+https://example.com/a.git#1234", "git+https://example.com/a.git#1234")]
    #[case::registry("sparse+https://example.com/index/", "sparse+https://example.com/index/")]
    fn only_crates_io_is_an_origin(#[case] source: &str, #[case] told: &str) {
        let package = Package { source: Some(source.to_owned()), ..published("a", "1.0.0", "MIT") };
        assert_eq!(whats(&over(vec![package])), [format!("a 1.0.0 comes from {told}")]);
    }

    #[test]
    fn a_folder_outside_of_the_workspace_is_no_origin() {
        let mut metadata = metadata(vec![member("../a", "a", &[])]);
        metadata.workspace_members.clear();
        let built = BTreeSet::new();
        let input = Input { metadata: &metadata, built: &built, manifest: "", decisions: "" };
        let findings = origins_and_licences(&input);
        assert_eq!(whats(&findings), ["a 0.1.0 comes from a folder outside of the workspace"]);
    }

    #[test]
    fn a_banned_crate_counts_only_where_it_is_compiled() {
        let locked = metadata(vec![published("ring", "0.17.14", "Apache-2.0 AND ISC")]);
        let mut built = BTreeSet::from([("serde".to_owned(), "1.0.0".to_owned())]);
        let of = |built: &BTreeSet<(String, String)>| {
            let input = Input { metadata: &locked, built, manifest: "", decisions: "" };
            check(&input).into_iter().filter(|f| f.what.contains("banned")).count()
        };
        assert_eq!(of(&built), 0);
        built.insert(("ring".to_owned(), "0.17.14".to_owned()));
        assert_eq!(of(&built), 1);
    }

    const MANIFEST: &str = r#"
[workspace.lints.rust]
unsafe_code = "forbid"

[workspace.dependencies]
belay-api = { path = "operator/api" }
bare = "1"

# Reads things.
reader = { version = "1", features = [
  "a",
] }
beside = "2"

after-a-blank-line = "3"
#
empty-comment = "4"
decided.version = "5"

[profile.dev]
debug = "line-tables-only"
"#;

    #[test]
    fn a_dependency_needs_a_reason_above_it_or_above_its_group_or_in_a_decision() {
        let names = ["bare", "after-a-blank-line", "empty-comment", "decided"];
        let all = names.map(|name| format!("no reason is given for the dependency {name}"));
        assert_eq!(whats(&reasons(MANIFEST, "")), all);
        assert_eq!(whats(&reasons(MANIFEST, "We take `decided`.")), all[..3]);
    }
}
