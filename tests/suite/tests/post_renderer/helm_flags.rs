//! The table of flags against what both Helms print and accept, and the reading of command lines
//! against where both Helms really go.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result};
use belay_components::{Binary, Components};
use belay_post_renderer::helm::{
    command_line,
    flags::{Arity, FLAGS, Flag, Scope},
};

const HELMS: [(u8, Binary); 2] = [(3, Binary::Helm3), (4, Binary::Helm4)];
const COMMANDS: [(&str, Scope); 3] =
    [("install", Scope::Install), ("upgrade", Scope::Upgrade), ("template", Scope::Template)];

/// Runs a Helm that knows nothing of this machine.
fn helm(binary: Binary, home: &Path, args: &[&str]) -> Result<Output> {
    let program = Components::from_env()?.binary(binary)?;
    Command::new(program)
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .output()
        .with_context(|| format!("run Helm with {args:?}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A flag as a help prints it, and as a row of the table says it would.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Printed {
    name: String,
    short: Option<char>,
    arity: &'static str,
    root: bool,
}

fn arity(arity: Arity) -> &'static str {
    match arity {
        Arity::Switch => "a switch",
        Arity::Value => "with a value",
        Arity::OptionalValue => "with an optional value",
    }
}

/// The flags of a help: `  -n, --namespace string   what it is for`, by section.
fn printed(help: &str) -> BTreeSet<Printed> {
    let mut root = None;
    let mut found = BTreeSet::new();
    for line in help.lines() {
        match line {
            "Flags:" => root = Some(false),
            "Global Flags:" => root = Some(true),
            _ => {}
        }
        let (Some(root), Some((before, after))) = (root, line.split_once("--")) else { continue };
        let short = match before.trim().strip_suffix(',') {
            Some(short) => short.strip_prefix('-').and_then(|short| short.chars().next()),
            None if before.trim().is_empty() => None,
            // A description that was broken into lines.
            None => continue,
        };
        // The description begins after a wide gap, so that what stands before it is name and type.
        let head = after.split("  ").next().unwrap_or(after);
        let (name, kind) = head.split_once(' ').unwrap_or((head, ""));
        let arity = match (kind, kind.contains('[')) {
            ("", _) => Arity::Switch,
            (_, true) => Arity::OptionalValue,
            (_, false) => Arity::Value,
        };
        let arity = self::arity(arity);
        found.insert(Printed { name: name.to_owned(), short, arity, root });
    }
    found
}

fn has(flag: &Flag, major: u8, scope: Scope) -> bool {
    flag.majors.contains(&major) && (flag.on.contains(&Scope::Root) || flag.on.contains(&scope))
}

#[test]
fn the_table_holds_exactly_the_flags_that_helm_prints() -> Result<()> {
    let home = tempfile::tempdir()?;
    for (major, binary) in HELMS {
        for (command, scope) in COMMANDS {
            let output = helm(binary, home.path(), &[command, "--help"])?;
            let printed = printed(&text(&output.stdout));
            assert!(printed.len() > 40, "the help of helm {major} {command} could not be read");
            let table: BTreeSet<Printed> = FLAGS
                .iter()
                .filter(|flag| flag.hidden.is_none() && has(flag, major, scope))
                .map(|flag| Printed {
                    name: flag.name.to_owned(),
                    short: flag.short,
                    arity: arity(flag.arity),
                    root: flag.on.contains(&Scope::Root),
                })
                .collect();
            let missing: Vec<_> = printed.difference(&table).collect();
            let stale: Vec<_> = table.difference(&printed).collect();
            assert!(
                missing.is_empty() && stale.is_empty(),
                "helm {major} {command}: not in the table: {missing:#?}, not in the help: {stale:#?}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_hidden_flag_is_one_that_helm_takes_all_the_same() -> Result<()> {
    let home = tempfile::tempdir()?;
    for (major, binary) in HELMS {
        for (command, scope) in COMMANDS {
            let errors = |flag: &str| -> Result<String> {
                Ok(text(&helm(binary, home.path(), &[command, flag])?.stderr))
            };
            assert!(errors("--no-such-flag")?.contains("unknown flag: --no-such-flag"));
            assert!(errors("-X")?.contains("unknown shorthand flag"));
            let hidden = FLAGS.iter().filter(|flag| {
                // Those of Helm itself are the same ones in every command.
                let again = flag.on.contains(&Scope::Root) && scope != Scope::Install;
                flag.hidden.is_some() && has(flag, major, scope) && !again
            });
            for flag in hidden {
                let long = format!("--{}", flag.name);
                for name in flag.short.map(|short| format!("-{short}")).into_iter().chain([long]) {
                    let errors = errors(&name)?;
                    let place = format!("helm {major} {command} {name}: {errors}");
                    assert!(!errors.contains("unknown"), "{place}");
                    let needs_value = errors.contains("flag needs an argument");
                    assert_eq!(needs_value, flag.arity == Arity::Value, "{place}");
                }
            }
        }
    }
    Ok(())
}

/// A chart that shows where Helm renders it to.
fn chart(home: &Path) -> Result<()> {
    let templates = home.join("chart/templates");
    fs::create_dir_all(&templates)?;
    let about = "apiVersion: v2\nname: chart\nversion: 0.1.0\n";
    fs::write(home.join("chart/Chart.yaml"), about)?;
    let place = "seen: '{{ .Release.Name }} in {{ .Release.Namespace }}'\n";
    fs::write(templates.join("place.yaml"), place)?;
    for values in ["nope.yaml", "values.yaml", "prod-env.yaml"] {
        fs::write(home.join(values), "{}\n")?;
    }
    Ok(())
}

#[test]
fn command_lines_are_read_as_both_helms_read_them() -> Result<()> {
    let home = tempfile::tempdir()?;
    chart(home.path())?;
    for line in [
        "template web chart",
        "template chart",
        "template chart -g",
        "template web chart -n shop",
        "template web chart -nshop",
        "template web chart -n=shop",
        "template web chart -n=",
        "template web chart --namespace=",
        "template web chart --namespace= -n shop",
        "template web chart -n one --namespace two -n three",
        "-n shop template web chart",
        "-nshop template web chart",
        "-v 4 --debug=false template web chart",
        "-f values.yaml template web chart",
        "--post-renderer-args template template web chart",
        "template template chart",
        "template -gn shop chart",
        "template --dry-run web chart",
        "template --atomic web chart --skip-crds -n shop",
        "template web -- chart",
        "template -n shop -- web chart",
        "template -test.v web chart -n shop",
        "template web chart -n --",
        "template web chart --version -n",
        "template web chart --description -note",
        "template web chart --set -n=foo",
        "template web chart --set n=foo",
        "template web chart -fnope.yaml",
        "template web chart -fvalues.yaml",
        "template web chart -fprod-env.yaml",
        "template web chart -fvalues.yaml --description -note",
        "template web chart --post-renderer-args -n --post-renderer-args shop",
        "template web chart --post-renderer-args=-n --post-renderer-args=shop",
        "template web chart --post-renderer-args --namespace=shop -n mine",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let owned: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let invocation = command_line::parse(&owned);
        let release = invocation.release.as_deref();
        let namespace = invocation.namespace.as_deref().unwrap_or("default");
        let expected = format!("{} in {namespace}", release.unwrap_or("release-name"));
        for (major, binary) in HELMS {
            let output = helm(binary, home.path(), &args)?;
            let (rendered, errors) = (text(&output.stdout), text(&output.stderr));
            let seen = rendered.lines().find_map(|line| line.strip_prefix("seen: "));
            let seen = seen.map(|place| place.trim_matches('\''));
            assert_eq!(seen, Some(expected.as_str()), "helm {major} {line}: {errors}");
        }
        assert!(invocation.certain, "{line}: {:?}", invocation.doubt);
    }
    Ok(())
}

#[test]
fn command_lines_that_leave_a_doubt_are_refused_by_both_helms() -> Result<()> {
    let home = tempfile::tempdir()?;
    chart(home.path())?;
    for line in [
        "template",
        "template a b c",
        "template web chart --no-such-flag",
        "template web chart --install",
        "template web chart --namesp shop",
        "template web chart -wait",
        "template web chart -n",
        "template web chart --=x",
        "template web chart ---x",
        "template web chart -g",
        "template web chart --name-template=x",
        "template web chart --dry-run=yes",
        "template web chart --force=maybe",
        "template web chart --burst-limit=x",
        "template web chart -v x",
        "install web chart --dry-run=nope",
        "install chart",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let owned: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert!(!command_line::parse(&owned).certain, "{line}");
        for (major, binary) in HELMS {
            let output = helm(binary, home.path(), &args)?;
            let errors = text(&output.stderr);
            assert!(!output.status.success(), "helm {major} {line}");
            // Refused for what it says, not for want of a cluster.
            assert!(!errors.contains("unreachable"), "helm {major} {line}: {errors}");
        }
    }
    Ok(())
}
