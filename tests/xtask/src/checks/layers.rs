//! Which crate may use which, what a pure crate may not touch, and what stands at the top of the repository.
//!
//! The rules are those of docs/architecture.md: `api ← ownership ← engine ← adapters ← controller`.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Finding,
    metadata::{Kind, Metadata, Package},
    source,
};

const CHECK: &str = "layers";

/// Crates outside of tests/, each with those of this workspace that it may use.
const LAYERS: [(&str, &[&str]); 7] = [
    ("belay-api", &[]),
    ("belay-ownership", &["belay-api"]),
    ("belay-engine", &["belay-api", "belay-ownership"]),
    ("belay-adapters", &["belay-api", "belay-ownership", "belay-engine"]),
    ("belay-operator", &["belay-api", "belay-ownership", "belay-engine", "belay-adapters"]),
    ("belay-post-renderer", &["belay-api", "belay-ownership", "belay-engine"]),
    ("kubectl-release", &["belay-api", "belay-ownership", "belay-engine"]),
];

/// Crates that neither wait nor speak to anything. belay-api has kube for its derive macros.
const WITHOUT_IO: [&str; 3] = ["belay-api", "belay-engine", "belay-ownership"];
const IO_CRATES: [&str; 3] = ["hyper", "reqwest", "tokio"];

/// Crates whose answer depends on their arguments alone.
const PURE: [&str; 2] = ["belay-engine", "belay-ownership"];
const IMPURE: [&str; 9] = [
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "kube::Api",
    "kube::Client",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
];

/// What may stand at the top, beside names that start with a dot.
const TOP: [&str; 12] = [
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "charts",
    "docs",
    "operator",
    "plugins",
    "post-renderer",
    "rust-toolchain.toml",
    "tests",
];

/// A crate with fewer lines of code than this is a promise, not a crate.
const SHELL: usize = 20;

/// Checks the workspace's crates, the paths of all files, and all Rust sources.
pub(super) fn check(
    metadata: &Metadata,
    files: &BTreeSet<String>,
    sources: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata.members() {
        let folder = metadata.folder(package);
        if !folder.starts_with("tests/") {
            layer(package, &folder, &tests_crates(metadata), &mut findings);
        }
        io(package, &mut findings);
        contents(package, &folder, sources, &mut findings);
    }
    let entries: BTreeSet<&str> = files.iter().filter_map(|path| path.split('/').next()).collect();
    for entry in entries.into_iter().filter(|e| !e.starts_with('.') && !TOP.contains(e)) {
        findings.push(Finding::new(
            CHECK,
            format!("{entry} stands at the top of the repository"),
            "move it below one of the folders that docs/architecture.md names",
        ));
    }
    findings
}

fn tests_crates(metadata: &Metadata) -> BTreeSet<&str> {
    metadata
        .members()
        .filter(|package| metadata.folder(package).starts_with("tests/"))
        .map(|package| package.name.as_str())
        .collect()
}

fn layer(
    package: &Package,
    folder: &str,
    tests_crates: &BTreeSet<&str>,
    findings: &mut Vec<Finding>,
) {
    let name = &package.name;
    let Some((_, may_use)) = LAYERS.iter().find(|(layer, _)| layer == name) else {
        findings.push(Finding::new(
            CHECK,
            format!("{name} in {folder} has no place among the layers"),
            "give it one in tests/xtask/src/checks/layers.rs and in docs/architecture.md",
        ));
        return;
    };
    for used in package.dependencies.iter().filter(|used| used.path.is_some()) {
        let other = used.name.as_str();
        let for_tests = used.kind == Some(Kind::Dev) && tests_crates.contains(other);
        // A crate may name itself, to turn a feature on for its own tests.
        if for_tests || other == name || may_use.contains(&other) {
            continue;
        }
        let fix = if tests_crates.contains(other) {
            "make it a dev-dependency"
        } else {
            "move what is needed to a layer below both, or hand it in from above"
        };
        findings.push(Finding::new(CHECK, format!("{name} may not depend on {other}"), fix));
    }
}

fn io(package: &Package, findings: &mut Vec<Finding>) {
    if !WITHOUT_IO.contains(&package.name.as_str()) {
        return;
    }
    let direct = package.dependencies.iter().filter(|used| used.kind != Some(Kind::Dev));
    for used in direct.filter(|used| IO_CRATES.contains(&used.name.as_str())) {
        findings.push(Finding::new(
            CHECK,
            format!("{} does no I/O and may not depend on {}", package.name, used.name),
            "do it in belay-adapters, and hand in what was read",
        ));
    }
}

fn contents(
    package: &Package,
    folder: &str,
    sources: &BTreeMap<String, String>,
    findings: &mut Vec<Finding>,
) {
    let inside = format!("{folder}/src/");
    let mut lines = 0;
    for (path, text) in sources.iter().filter(|(path, _)| path.starts_with(&inside)) {
        let code = source::code_only(text);
        lines += source::lines_of_code(&code);
        if !PURE.contains(&package.name.as_str()) {
            continue;
        }
        let code = source::without_tests(&code);
        for (word, at) in IMPURE.iter().flat_map(|w| source::words(&code, w).map(move |at| (w, at)))
        {
            findings.push(Finding::new(
                CHECK,
                format!(
                    "{path}:{}: {} is pure and may not use {word}",
                    source::line(&code, at),
                    package.name
                ),
                "take it as an argument",
            ));
        }
    }
    if lines < SHELL {
        findings.push(Finding::new(
            CHECK,
            format!("{} has {lines} lines of code in {inside}", package.name),
            "add the crate when it has content",
        ));
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{
        super::metadata::fixture::{member, metadata, published},
        *,
    };

    /// Findings about one crate beside the test crates, each with enough code.
    fn whats(folder: &str, name: &str, uses: &[(&str, &str)], source: &str) -> Vec<String> {
        let packages = vec![
            member(folder, name, uses),
            member("tests/testkit", "belay-testkit", &[("normal", "belay-operator")]),
            published("tokio", "1.0.0", "MIT"),
        ];
        let code = "fn f() {}\n".repeat(SHELL);
        let sources = BTreeMap::from([
            (format!("{folder}/src/lib.rs"), format!("{code}{source}")),
            ("tests/testkit/src/lib.rs".to_owned(), code),
        ]);
        let files = sources.keys().cloned().collect();
        let findings = check(&metadata(packages), &files, &sources);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[rstest]
    #[case("belay-ownership", "normal", "belay-api")]
    #[case("belay-operator", "normal", "belay-adapters")]
    #[case("belay-post-renderer", "build", "belay-engine")]
    #[case("kubectl-release", "normal", "belay-ownership")]
    #[case("belay-api", "dev", "belay-testkit")]
    #[case("belay-api", "dev", "tokio")]
    #[case("belay-adapters", "normal", "tokio")]
    fn a_layer_may_use_those_below_it_and_tests_may_use_the_testkit(
        #[case] name: &str,
        #[case] kind: &str,
        #[case] used: &str,
    ) {
        assert_eq!(whats("operator/a", name, &[(kind, used)], ""), Vec::<String>::new());
    }

    #[rstest]
    #[case("belay-api", "normal", "belay-ownership")]
    #[case("belay-engine", "normal", "belay-adapters")]
    #[case("belay-post-renderer", "normal", "belay-operator")]
    #[case("belay-post-renderer", "dev", "belay-adapters")]
    #[case("kubectl-release", "normal", "belay-adapters")]
    #[case("belay-operator", "normal", "belay-testkit")]
    #[case("belay-api", "build", "belay-testkit")]
    fn every_other_use_is_a_finding(#[case] name: &str, #[case] kind: &str, #[case] used: &str) {
        let found = whats("operator/a", name, &[(kind, used)], "");
        assert_eq!(found, [format!("{name} may not depend on {used}")]);
    }

    #[rstest]
    #[case("belay-api", "tokio")]
    #[case("belay-engine", "reqwest")]
    #[case("belay-ownership", "hyper")]
    fn a_crate_without_io_may_not_depend_on_it(#[case] name: &str, #[case] used: &str) {
        let found = whats("operator/a", name, &[("normal", used)], "");
        assert_eq!(found, [format!("{name} does no I/O and may not depend on {used}")]);
    }

    #[test]
    fn a_crate_that_no_layer_names_is_a_finding() {
        let found = whats("operator/new", "belay-new", &[], "");
        assert_eq!(found, ["belay-new in operator/new has no place among the layers"]);
    }

    #[test]
    fn a_pure_crate_reads_neither_clock_nor_files_outside_of_its_tests() {
        let source = "fn g() { Timestamp::now() }\n#[cfg(test)] mod tests { use std::fs; }";
        let found = whats("operator/engine", "belay-engine", &[], source);
        let line = SHELL + 1;
        assert_eq!(
            found,
            [format!(
                "operator/engine/src/lib.rs:{line}: belay-engine is pure and may not use Timestamp::now"
            )]
        );
        assert_eq!(whats("operator/api", "belay-api", &[], source), Vec::<String>::new());
    }

    #[test]
    fn a_crate_of_comments_is_a_finding() {
        let packages = vec![member("operator/api", "belay-api", &[])];
        let text = "//! To come.\n".repeat(50);
        let sources = BTreeMap::from([("operator/api/src/lib.rs".to_owned(), text)]);
        let found = check(&metadata(packages), &BTreeSet::new(), &sources);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "belay-api has 0 lines of code in operator/api/src/");
    }

    #[rstest]
    #[case("README.md", 0)]
    #[case(".github/workflows/ci.yaml", 0)]
    #[case("charts/belay/Chart.yaml", 0)]
    #[case("NOTES.md", 1)]
    #[case("scripts/run", 1)]
    fn only_known_names_stand_at_the_top(#[case] path: &str, #[case] findings: usize) {
        let files = BTreeSet::from([path.to_owned()]);
        let found = check(&metadata(Vec::new()), &files, &BTreeMap::new());
        assert_eq!(found.len(), findings);
    }
}
