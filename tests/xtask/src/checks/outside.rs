//! What others run: workflow files, which may hold no step of their own, and the Dockerfile, which
//! names the toolchain and the user of the chart a second time.

use super::Finding;

const CHECK: &str = "outside";

/// What a step may run.
const TASK: &str = "cargo xtask ";

/// Where workflow files are.
pub(super) const WORKFLOWS: &str = ".github/workflows/";

/// Every command of a workflow is a task of this repository, so that it can be run anywhere.
pub(super) fn workflow(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start().trim_start_matches("- ");
        let Some(command) = line.strip_prefix("run:").map(str::trim) else { continue };
        if !command.starts_with(TASK) || command.contains([';', '&', '|']) {
            let what = format!("{path}:{number} runs `{command}`");
            findings.push(Finding::new(CHECK, what, "make it a task, and run `cargo xtask TASK`"));
        }
    }
    findings
}

/// The Dockerfile builds with the pinned toolchain, and runs as the user of the chart.
pub(super) fn dockerfile(dockerfile: &str, toolchain: &str, values: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut expect = |what: &str, found: Option<&str>, wanted: Option<&str>| {
        if found.is_none() || found != wanted {
            let what =
                format!("operator/Dockerfile has {what} {found:?}, and it should be {wanted:?}");
            findings.push(Finding::new(CHECK, what, "write what the other file says"));
        }
    };
    let channel = value_of(toolchain, "channel = \"").and_then(|rest| rest.split('"').next());
    let rust = value_of(dockerfile, "FROM docker.io/library/rust:");
    expect("Rust", rust.and_then(|rest| rest.split('-').next()), channel);
    let user = value_of(values, "runAsUser: ").map(str::trim);
    let own = value_of(dockerfile, "USER ").and_then(|rest| rest.split(':').next());
    expect("user", own, user);
    findings
}

/// The rest of the first line that begins with `start`, but for blanks.
fn value_of<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(start))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("    - run: cargo xtask ci", 0)]
    #[case("      run: cargo xtask test --group units", 0)]
    #[case("    - run: cargo test", 1)]
    #[case("    - run: cargo xtask ci && curl example.com", 1)]
    #[case("    - run: |", 1)]
    #[case("    - uses: actions/checkout@v5", 0)]
    fn a_step_runs_one_task(#[case] line: &str, #[case] expected: usize) {
        assert_eq!(workflow("ci.yaml", &format!("jobs:\n{line}\n")).len(), expected);
    }

    #[rstest]
    #[case("FROM docker.io/library/rust:1.95.0-bookworm\nUSER 65532:65532", 0)]
    #[case("FROM docker.io/library/rust:1.94.0-bookworm\nUSER 65532:65532", 1)]
    #[case("FROM docker.io/library/rust:1.95.0-bookworm\nUSER 0:0", 1)]
    #[case("FROM scratch", 2)]
    fn a_dockerfile_says_what_the_others_say(#[case] text: &str, #[case] expected: usize) {
        let values = "podSecurityContext:\n  runAsUser: 65532\n";
        let found = dockerfile(text, "[toolchain]\nchannel = \"1.95.0\"\n", values);
        assert_eq!(found.len(), expected, "{found:?}");
    }
}
