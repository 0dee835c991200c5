//! `doctor`: checks of the installation and of every target.

mod fleet;
mod install;

use kube::ResourceExt as _;
use serde_json::Value;

use super::version::PLUGIN;
use crate::{
    Error, Exit, Session,
    cli::doctor::DoctorArgs,
    facts::{
        doctor::{Check, Finding, Level},
        version::of_operator,
    },
    print::{Line, Paint, object, width},
    read::{Fact, Reader},
};

/// Where a line is so long that its fix stands in the next one.
const WIDEST: usize = 160;

/// Runs it.
///
/// # Errors
/// Nothing at all can be read, or the target is not there.
pub async fn run(args: &DoctorArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let cluster = session.cluster()?;
    let reader = Reader::new(cluster.clone());
    let prefix = session.global.annotation_prefix.clone();
    let now = session.out.now();
    let namespace = (!args.all_namespaces).then_some(cluster.namespace.as_str());
    let (installation, fleet) = futures::join!(
        install::findings(&reader, prefix.clone().unwrap_or_default(), PLUGIN, namespace),
        fleet::findings(&reader, args, prefix.as_ref(), now),
    );
    let mut findings = installation.findings;
    let is_served =
        !findings.iter().any(|one| one.check == Check::Served && one.level == Level::Error);
    match fleet {
        Ok(fleet) => findings.extend(fleet),
        // Without the kinds there are no targets, and a finding has said so.
        Err(_) if !is_served => {}
        Err(error) if args.name.is_some() => return Err(error),
        Err(error) => {
            let message = format!("targets: unknown: {}", error.message);
            findings.push(Finding::new(Check::Standing, Level::Error, "", message));
        }
    }
    let errors = findings.iter().filter(|one| one.level == Level::Error).count();
    let warnings = findings.iter().filter(|one| one.level == Level::Warning).count();
    if let Some(format) = args.output.for_programs() {
        let value = findings.iter().map(Finding::report).collect::<Value>();
        let names: Vec<String> =
            findings.iter().map(|one| format!("{} {}", one.check.id(), one.object)).collect();
        object::print(&value, &names, format, session.out)?;
    } else {
        let operators = &installation.operators;
        let operator = operators.value().and_then(|all| all.first());
        let operator = operator.and_then(of_operator).map_or_else(
            || "operator not found".to_owned(),
            |version| format!("operator v{version}"),
        );
        let place = match &cluster.context {
            Some(context) => format!("context {context}"),
            None => cluster.server.clone(),
        };
        let server = match &installation.server {
            Fact::Known(version) => version.clone(),
            Fact::Unknown(_) => "version unknown".to_owned(),
        };
        session.out.line(format!("{place}, {operator} (plugin v{PLUGIN}), Kubernetes {server}"))?;
        print(&findings, args.output.is_wide(), session)?;
        let plural = |count: usize, word: &str| match count {
            1 => format!("1 {word}"),
            _ => format!("{count} {word}s"),
        };
        session.out.line(format!(
            "{}, {}.",
            plural(errors, "error"),
            plural(warnings, "warning")
        ))?;
    }
    Ok(if errors > 0 { Exit::Bad } else { Exit::Done })
}

/// One line for each finding. Of targets only what is not as it should be, but for `-o wide`.
fn print(findings: &[Finding], wide: bool, session: &mut Session<'_>) -> Result<(), Error> {
    let is_shown = |one: &&Finding| {
        wide || one.level != Level::Ok || one.object.is_empty() || one.forecast.is_some()
    };
    let objects = findings.iter().filter(is_shown).map(|one| width(&one.object)).max();
    let objects = objects.unwrap_or_default();
    for finding in findings.iter().filter(is_shown) {
        let mut line = Line::new().plain(" ").icon(finding.level.icon(), "");
        line = line.dim(format!(" {} ", finding.check.id()));
        if !finding.object.is_empty() {
            let pad = " ".repeat(objects.saturating_sub(width(&finding.object)));
            line = line.with(Paint::Bold, finding.object.clone()).plain(format!("{pad}  "));
        }
        line = line.plain(finding.message.clone());
        let Some(fix) = &finding.fix else {
            session.out.line(line)?;
            continue;
        };
        let fix = format!("fix: {fix}");
        if width(&line.bare(session.out.style)) + width(&fix) + 4 <= WIDEST {
            session.out.line(line.plain("    ").plain(fix))?;
        } else {
            session.out.line(line)?;
            session.out.line(format!("         {fix}"))?;
        }
    }
    Ok(())
}

/// The namespace of an object, for a line.
fn place(object: &kube::api::DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}
