//! `version`: that of the plugin, of the operator and of Kubernetes, and whether they fit.

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use serde_json::json;

use crate::{
    Error, Exit, Session,
    cli::version::VersionArgs,
    facts::version::{Skew, of_operator, skew},
    print::object,
    read::{Fact, Reader},
};

/// The version of the plugin.
pub const PLUGIN: &str = env!("CARGO_PKG_VERSION");

/// Runs it. What cannot be read is said, and no error.
///
/// # Errors
/// The output cannot be written.
pub async fn run(args: &VersionArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let (operators, server) = if args.client {
        (Fact::default(), Fact::default())
    } else {
        let reader = Reader::new(session.cluster()?);
        futures::join!(reader.operators(), reader.server_version())
    };
    if let Some(format) = args.output.for_programs() {
        let report = json!({
            "apiVersion": "cli.belay.dev/v1",
            "kind": "Version",
            "plugin": PLUGIN,
            "operators": operators.value().map(|all| all.iter().map(|one| json!({
                "namespace": one.namespace(),
                "name": one.name_any(),
                "version": of_operator(one),
            })).collect::<Vec<_>>()),
            "kubernetes": server.value(),
        });
        object::print(&report, &[format!("version/{PLUGIN}")], format, session.out)?;
        return Ok(Exit::Done);
    }
    session.out.line(format!("Plugin:      v{PLUGIN}"))?;
    if args.client {
        return Ok(Exit::Done);
    }
    match &operators {
        Fact::Known(all) if all.is_empty() => session.out.line("Operator:    not found")?,
        Fact::Known(all) => print(all, session)?,
        Fact::Unknown(why) => session.out.line(format!("Operator:    unknown: {}", why.words()))?,
    }
    let server = match &server {
        Fact::Known(version) => version.clone(),
        Fact::Unknown(why) => format!("unknown: {}", why.words()),
    };
    session.out.line(format!("Kubernetes:  {server}"))?;
    Ok(Exit::Done)
}

fn print(all: &[Deployment], session: &mut Session<'_>) -> Result<(), Error> {
    for one in all {
        let version = of_operator(one);
        let shown =
            version.as_deref().map_or("of an unknown version".to_owned(), |it| format!("v{it}"));
        let place = format!("{}/{}", one.namespace().unwrap_or_default(), one.name_any());
        session.out.line(format!("Operator:    {shown} ({place})"))?;
        warn(version.as_deref(), session)?;
    }
    Ok(())
}

/// Says once, on standard error, that plugin and operator are of different minor versions.
///
/// # Errors
/// The output cannot be written.
pub fn warn(operator: Option<&str>, session: &mut Session<'_>) -> Result<(), Error> {
    let Some(operator) = operator else { return Ok(()) };
    let words = match skew(PLUGIN, operator) {
        Skew::None => return Ok(()),
        Skew::PluginIsOlder => "older: it may not understand all that the operator writes",
        Skew::PluginIsNewer => "newer: it may ask for what the operator does not know yet",
    };
    session.out.note(format!(
        "warning: the plugin (v{PLUGIN}) is of another minor version than the operator \
         (v{operator}), and {words}"
    ))?;
    Ok(())
}
