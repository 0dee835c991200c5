//! `owners`: who owns the fields of any object, live or from a file.

mod blame;
mod discover;
mod field;
mod load;
mod summary;

use belay_api::AnnotationPrefix;
use belay_ownership::{ExpectedOwner, Ownership};
use serde_json::{Value, json};

pub use self::discover::{Kind, discover};
use crate::{
    Error, Exit, Session,
    cli::owners::OwnersArgs,
    print::{Line, Paint, object},
};

/// The version of the reports that this plugin computes.
pub const REPORT_VERSION: &str = "cli.belay.dev/v1";

/// An object with its ownership decoded. Values of a Secret are gone.
struct Subject {
    value: Value,
    ownership: Ownership,
    /// Whether it came from the API server, so that missing managedFields mean something.
    is_live: bool,
    prefix: AnnotationPrefix,
}

impl Subject {
    fn new(value: Value, is_live: bool, prefix: AnnotationPrefix) -> Result<Self, Error> {
        let mut value = value;
        let entries = value.pointer("/metadata/managedFields").cloned().unwrap_or_default();
        let ownership = Ownership::from_value(&entries).map_err(|error| {
            Error::other(format!("{}: {error}", name_of(&value)))
                .hint("its metadata.managedFields must be a list")
        })?;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
        hide_secrets(&mut value);
        Ok(Self { value, ownership, is_live, prefix })
    }

    fn text(&self, at: &str) -> &str {
        self.value.pointer(at).and_then(Value::as_str).unwrap_or_default()
    }

    fn name(&self) -> String {
        name_of(&self.value)
    }

    fn annotation(&self, name: impl belay_api::annotations::Annotation) -> Option<&str> {
        let annotations = self.value.pointer("/metadata/annotations")?;
        annotations.get(self.prefix.key(name))?.as_str()
    }

    /// The object in a report.
    fn reference(&self) -> Value {
        json!({
            "apiVersion": self.text("/apiVersion"),
            "kind": self.text("/kind"),
            "namespace": self.text("/metadata/namespace"),
            "name": self.text("/metadata/name"),
            "resourceVersion": self.text("/metadata/resourceVersion"),
        })
    }

    fn undecodable(&self) -> Value {
        let one = |bad: &belay_ownership::Undecodable| {
            json!({
                "manager": bad.manager, "operation": bad.operation,
                "subresource": bad.subresource, "problem": bad.problem.to_string(),
            })
        };
        self.ownership.undecodable().iter().map(one).collect()
    }

    /// What to say beside the answer: entries that cannot be read, or none at all.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.ownership.has_entries() {
            warnings.push(if self.is_live {
                format!(
                    "{} has no managedFields: they were cleared, and nobody's writes are tracked \
                     until the next server-side apply",
                    self.name()
                )
            } else {
                format!(
                    "{} has no managedFields; save it with `kubectl get -o yaml \
                     --show-managed-fields`",
                    self.name()
                )
            });
        }
        for bad in self.ownership.undecodable() {
            warnings.push(format!("{}: an entry cannot be decoded: {bad}", self.name()));
        }
        warnings
    }
}

fn name_of(value: &Value) -> String {
    let text = |at: &str| value.pointer(at).and_then(Value::as_str).unwrap_or_default();
    object::name(text("/apiVersion"), text("/kind"), text("/metadata/name"))
}

/// The values of a Secret are nobody's business here; who owns them is.
fn hide_secrets(value: &mut Value) {
    const HIDDEN: &str = "(hidden)";
    if value.get("kind").and_then(Value::as_str) != Some("Secret") {
        return;
    }
    for field in ["data", "stringData"] {
        let values = value.get_mut(field).and_then(Value::as_object_mut);
        for (_, secret) in values.into_iter().flatten() {
            *secret = HIDDEN.into();
        }
    }
    let annotations = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    for (key, copy) in annotations.into_iter().flatten() {
        if key == "kubectl.kubernetes.io/last-applied-configuration" {
            *copy = HIDDEN.into();
        }
    }
}

/// Runs it.
///
/// # Errors
/// The object cannot be had, or the path is none.
pub async fn run(args: &OwnersArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    if args.blame && args.output.for_programs().is_some() {
        return Err(Error::usage("--blame is for people; leave out -o, or ask with --path"));
    }
    let expected = args.expect.as_deref().map(expected).transpose()?;
    let subjects = load::subjects(args, session).await?;
    let mut exit = Exit::Done;
    let mut reports = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        for warning in subject.warnings() {
            session.out.note(Line::from((Paint::Warn, "warning: ")).plain(warning))?;
        }
        if args.output.for_programs().is_none() && index > 0 {
            session.out.line("")?;
        }
        if args.blame {
            blame::print(subject, args.all, session)?;
            continue;
        }
        let Some(path) = &args.path else {
            match args.output.for_programs() {
                Some(_) => reports.push(summary::report(subject)),
                None => summary::print(subject, !args.no_headers, session)?,
            }
            continue;
        };
        let answers = field::answers(subject, path)?;
        match args.output.for_programs() {
            Some(_) => reports.push(field::report(subject, &answers)),
            None => field::print(subject, &answers, !args.no_headers, session)?,
        }
        if let Some(expected) = &expected {
            let met = field::expect(subject, &answers, expected, session)?;
            exit = if met { exit } else { Exit::Bad };
        }
    }
    if let Some(format) = args.output.for_programs() {
        let names: Vec<String> = subjects.iter().map(Subject::name).collect();
        let value = match <[Value; 1]>::try_from(reports) {
            Ok([only]) => only,
            Err(items) => json!({ "apiVersion": "v1", "kind": "List", "items": items }),
        };
        object::print(&value, &names, format, session.out)?;
    }
    Ok(exit)
}

/// `MANAGER`, or `MANAGER/Apply`.
fn expected(text: &str) -> Result<ExpectedOwner, Error> {
    let (manager, operation) = match text.rsplit_once('/') {
        Some((manager, operation)) => match operation.parse() {
            Ok(operation) => (manager, Some(operation)),
            Err(_) => (text, None),
        },
        None => (text, None),
    };
    if manager.is_empty() {
        return Err(Error::usage("--expect needs a manager: MANAGER or MANAGER/Apply"));
    }
    Ok(ExpectedOwner { manager: manager.to_owned(), operation })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("helm", "helm", None)]
    #[case("helm/Apply", "helm", Some(belay_ownership::Operation::Apply))]
    #[case("a/b", "a/b", None)]
    #[case("a/b/Update", "a/b", Some(belay_ownership::Operation::Update))]
    fn an_expected_owner_is_read(
        #[case] text: &str,
        #[case] manager: &str,
        #[case] operation: Option<belay_ownership::Operation>,
    ) {
        let read = expected(text).unwrap();
        assert_eq!((read.manager.as_str(), read.operation), (manager, operation));
    }

    #[test]
    fn values_of_a_secret_are_hidden() {
        let mut secret = json!({
            "kind": "Secret", "data": { "password": "aHVudGVyMg==" },
            "stringData": { "token": "hunter3" },
            "metadata": { "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "hunter4", "a": "b",
            } },
        });
        hide_secrets(&mut secret);
        let text = secret.to_string();
        assert!(!text.contains("hunter") && !text.contains("aHV") && text.contains("\"b\""));
    }
}
