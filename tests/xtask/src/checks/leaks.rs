//! What belongs to one machine and not into the repository: absolute paths, hosts of package registries.

use super::{Finding, source};

const CHECK: &str = "leaks";

/// Folders of one machine. In pieces, as this file is checked as well.
const FOLDERS: [&str; 3] = [concat!("/", "root"), concat!("/", "work"), concat!("/", "home/")];

/// Hosts that package managers talk to: the user's configuration says which, not a file of ours.
const HOSTS: [&str; 8] = [
    concat!("files.", "pythonhosted.org"),
    concat!("index.", "crates.io"),
    concat!("proxy.", "golang.org"),
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("static.", "crates.io"),
    concat!("storage.", "googleapis.com"),
    concat!("sum.", "golang.org"),
];

/// Lock files are written by package managers, in their own words.
pub(super) fn is_checked(path: &str) -> bool {
    !matches!(path.rsplit('/').next(), Some("Cargo.lock" | "go.sum"))
}

/// Checks one file of any kind; a binary one is left alone.
pub(super) fn check(path: &str, bytes: &[u8]) -> Vec<Finding> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Vec::new() };
    let mut findings = Vec::new();
    for folder in FOLDERS {
        let found = text.match_indices(folder).filter(|(at, _)| is_absolute(text, *at, folder));
        for (at, _) in found {
            findings.push(Finding::new(
                CHECK,
                format!("{path}:{}: {folder} is a path of one machine", source::line(text, at)),
                "name it relative to the repository, or by the variable that leads there",
            ));
        }
    }
    for host in HOSTS {
        for (at, _) in text.match_indices(host) {
            findings.push(Finding::new(
                CHECK,
                format!("{path}:{}: {host} is a package registry", source::line(text, at)),
                "leave it to the configuration of the package manager \
                 (npm: `npm install --omit-lockfile-registry-resolved`)",
            ));
        }
    }
    findings
}

/// Whether the path starts here, and its last part ends here.
fn is_absolute(text: &str, at: usize, folder: &str) -> bool {
    let part_of_a_name = |next: char| next.is_alphanumeric() || "_-".contains(next);
    let before = text[..at].chars().next_back();
    let continued = before.is_some_and(|last| part_of_a_name(last) || ".~/>})]*$".contains(last));
    let after = text[at + folder.len()..].chars().next();
    !continued && (folder.ends_with('/') || !after.is_some_and(part_of_a_name))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::in_quotes("a = \"/{root}/.cache\"")]
    #[case::alone("cd /{work}")]
    #[case::at_the_start("/{home}/someone/belay")]
    #[case::after_an_equals_sign("DIR=/{work}/main")]
    #[case::in_a_sentence("It was in /{root}.")]
    #[case::host("see https://proxy.{golang}/x")]
    #[case::registry("\"resolved\": \"https://registry.{npmjs}/a\"")]
    fn a_trace_of_a_machine_is_one_finding(#[case] text: &str) {
        let text = fill(text);
        let found = check("docs/a.md", text.as_bytes());
        assert!(found.len() == 1 && found[0].what.starts_with("docs/a.md:1: "), "{found:?}");
    }

    #[rstest]
    #[case::below_something("apis/{work}/v1")]
    #[case::below_a_variable("$HOME/{work} ${{x}}/{root} {{dir}}/{work}")]
    #[case::relative("../{work} ./{root}/x")]
    #[case::longer_name("/{work}space /{root}fs /{work}-dir")]
    #[case::in_an_address("https://example.com/{home}/x")]
    #[case::host_of_modules("require {golang}/x/net v0.1.0")]
    fn what_only_looks_like_one_is_no_finding(#[case] text: &str) {
        assert_eq!(check("a", fill(text).as_bytes()), []);
    }

    /// The words are put together here, as the file they stand in is checked too.
    fn fill(text: &str) -> String {
        [
            ("root", "root"),
            ("work", "work"),
            ("home", "home"),
            ("golang", "golang.org"),
            ("npmjs", "npmjs.org"),
        ]
        .iter()
        .fold(text.to_owned(), |text, (name, word)| text.replace(&format!("{{{name}}}"), word))
    }

    #[test]
    fn binary_files_and_lock_files_are_left_alone() {
        let text = fill("\u{0}/{root}");
        assert_eq!(check("a", &[text.as_bytes(), &[0xff]].concat()), []);
        assert!(!is_checked("Cargo.lock") && !is_checked("tests/components/etcd/go.sum"));
        assert!(is_checked("package-lock.json"));
    }
}
