//! The static checks as a whole, over a small workspace of their own with one fault of each kind.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use xtask::checks::{Finding, run_all};

const TOP: &str = r#"[workspace]
resolver = "3"
members = ["operator/engine", "tests/testkit"]

[workspace.dependencies]
unexplained = "1"
"#;

const ENGINE: &str = r#"[package]
name = "belay-engine"
version = "0.1.0"
edition = "2024"

[dependencies]
belay-testkit = { path = "../../tests/testkit" }
"#;

const TESTKIT: &str = r#"[package]
name = "belay-testkit"
version = "0.1.0"
edition = "2024"
"#;

/// In pieces, as this file is checked as well.
const PAGE: &str = concat!("[gone](gone.md), kept in /", "root.\n");

fn workspace(folder: &Path) -> Result<()> {
    for (path, text) in [
        ("Cargo.toml", TOP),
        ("operator/engine/Cargo.toml", ENGINE),
        ("operator/engine/src/lib.rs", "pub struct PassCtx;\n"),
        ("tests/testkit/Cargo.toml", TESTKIT),
        ("tests/testkit/src/lib.rs", "#[test]\n#[ignore]\nfn t() {}\n"),
        ("README.md", PAGE),
        ("operator/Dockerfile", "FROM scratch\n"),
        ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.95.0\"\n"),
        ("charts/belay/values.yaml", "runAsUser: 65532\n"),
        (".github/workflows/ci.yaml", "    - run: cargo test\n"),
    ] {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for command in [
        Command::new(cargo).args(["generate-lockfile", "--offline", "--quiet"]),
        Command::new("git").args(["init", "--quiet"]),
    ] {
        let status = command.current_dir(folder).status()?;
        ensure!(status.success(), "{command:?} failed ({status})");
    }
    Ok(())
}

#[test]
fn every_check_takes_part() {
    let folder = tempfile::tempdir().unwrap();
    workspace(folder.path()).unwrap();
    let findings = run_all(folder.path()).unwrap();
    for (check, what) in [
        ("dependencies", "no reason is given for the dependency unexplained"),
        ("dependencies", "is now not compiled at all"),
        ("layers", "belay-engine may not depend on belay-testkit"),
        ("layers", "belay-engine has 1 lines of code in operator/engine/src/"),
        ("leaks", "README.md:1: "),
        ("links", "README.md:1: gone.md does not exist"),
        ("tests", "tests/testkit/src/lib.rs:2: #[ignore] keeps"),
        ("outside", ".github/workflows/ci.yaml:1 runs `cargo test`"),
        ("outside", "operator/Dockerfile has Rust None"),
        ("vocabulary", "struct PassCtx says Ctx"),
    ] {
        let found = |finding: &Finding| finding.check == check && finding.what.contains(what);
        assert!(findings.iter().any(found), "{check}: {what} is not among {findings:#?}");
    }
}

#[test]
fn a_folder_that_is_no_workspace_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    workspace(folder.path()).unwrap();
    fs::remove_file(folder.path().join("Cargo.lock")).unwrap();
    let error = format!("{:#}", run_all(folder.path()).unwrap_err());
    assert!(error.contains("cargo metadata"), "{error}");
}
