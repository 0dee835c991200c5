//! Conflicts of an apply without force: predicted from what is known, and read from the API
//! server's answer.

use serde_json::Value;

use crate::{
    FieldPath, Identity, Operation, Ownership, Via, claim::Wanted, identity::BEFORE_FIRST_APPLY,
    literal::same_value,
};

/// A conflict that is to be expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The field; the atomic whole where the field is part of one.
    pub path: FieldPath,
    /// Who owns it.
    pub owner: Identity,
}

impl Ownership {
    /// The conflicts that an apply without force would meet: fields that another identity owns and
    /// whose value would change.
    ///
    /// On an object without entries the API server first makes [`BEFORE_FIRST_APPLY`] the owner of
    /// all there is, so that any change of a value conflicts with that.
    ///
    /// A prediction from one reading of the object. The authority is the API server: an apply with
    /// `dryRun=All` and without force. What this does not know: defaults and normal forms of
    /// values (`1000m` for `1`), and that the API server lets an applier named `kubectl` have what
    /// the last-applied annotation names.
    pub fn predict(
        &self,
        applier: &Identity,
        wanted: &[Wanted<'_>],
        live: &Value,
    ) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        let mut add = |path: FieldPath, owner: &Identity| {
            let conflict = Conflict { path, owner: owner.clone() };
            // Two fields of one atomic whole are one conflict.
            if owner != applier && !conflicts.contains(&conflict) {
                conflicts.push(conflict);
            }
        };
        let version = live.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let before = Identity::new(BEFORE_FIRST_APPLY, Operation::Update, "", version);
        for field in wanted.iter().filter(|field| would_change(field, live)) {
            if !self.has_entries() && field.path.value_in(live).is_some() {
                add(field.path.clone(), &before);
            }
            for owner in self.at(&field.path).owners {
                let path = match owner.via {
                    Via::Field => field.path.clone(),
                    Via::Atomic(whole) => whole,
                };
                add(path, owner.entry.identity());
            }
        }
        conflicts
    }
}

fn would_change(field: &Wanted<'_>, live: &Value) -> bool {
    match (field.value, field.path.value_in(live)) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(wanted), Some(live)) => !same_value(wanted, live),
    }
}

/// The type of a cause that names a conflict between managers. A stale `resourceVersion` is a
/// conflict (409) without any such cause.
pub const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// A conflict that the API server reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedConflict {
    /// The manager's name.
    pub manager: String,
    /// How the manager wrote.
    pub operation: Operation,
    /// The subresource it wrote to; empty for the main resource.
    pub subresource: String,
    /// The version it wrote in; empty for appliers.
    pub api_version: String,
    /// The field as the API server spells it; compare with [`FieldPath::api_spelling`].
    pub field: String,
}

impl ReportedConflict {
    /// Reads one of `details.causes`: its reason, message and field.
    ///
    /// `None` if it is of another type, or the message is not one that is known.
    pub fn of_cause(reason: &str, message: &str, field: &str) -> Option<Self> {
        if reason != FIELD_MANAGER_CONFLICT {
            return None;
        }
        let (manager, rest) = unquoted(message.strip_prefix("conflict with ")?)?;
        let (subresource, rest) = match rest.strip_prefix(" with subresource ") {
            Some(rest) => unquoted(rest)?,
            None => (String::new(), rest),
        };
        let using = match rest.strip_prefix(" using ") {
            Some(using) => Some(using),
            None if rest.is_empty() => None,
            None => return None,
        };
        // An updater is printed with its version, and its time where the API server knows it.
        let version =
            using.map(|using| using.split_once(" at ").map_or(using, |(version, _)| version));
        Some(Self {
            manager,
            operation: if version.is_some() { Operation::Update } else { Operation::Apply },
            subresource,
            api_version: version.unwrap_or_default().to_owned(),
            field: field.to_owned(),
        })
    }

    /// Reads all conflicts of a `Status` as JSON. Empty if it is of another kind.
    pub fn of_status(status: &Value) -> Vec<Self> {
        let causes = status.pointer("/details/causes").and_then(Value::as_array);
        let text = |cause: &Value, field: &str| {
            cause.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        causes
            .into_iter()
            .flatten()
            .filter_map(|cause| {
                Self::of_cause(
                    &text(cause, "reason"),
                    &text(cause, "message"),
                    &text(cause, "field"),
                )
            })
            .collect()
    }

    /// Who it is.
    pub fn identity(&self) -> Identity {
        Identity::new(&self.manager, self.operation, &self.subresource, &self.api_version)
    }

    /// Whether it is this predicted one.
    pub fn is(&self, predicted: &Conflict) -> bool {
        self.identity() == predicted.owner && self.field == predicted.path.api_spelling()
    }
}

/// A text in quotes as Go's `%q` prints it, and what follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut out = String::new();
    let mut chars = inner.char_indices();
    while let Some((index, char)) = chars.next() {
        let char = match char {
            '"' => return Some((out, &inner[index + 1..])),
            '\\' => match chars.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                'x' => code_point(&mut chars, 2)?,
                'u' => code_point(&mut chars, 4)?,
                'U' => code_point(&mut chars, 8)?,
                escaped => escaped,
            },
            char => char,
        };
        out.push(char);
    }
    None
}

fn code_point(chars: &mut std::str::CharIndices<'_>, digits: usize) -> Option<char> {
    let mut code = 0;
    for _ in 0..digits {
        code = code * 16 + chars.next()?.1.to_digit(16)?;
    }
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::{Schema, claim::fields_of};

    const IMAGE: &str = ".spec.template.spec.containers[name=\"app\"].image";

    #[rstest]
    #[case::an_applier(r#"conflict with "helm""#, "helm", Operation::Apply, "", "")]
    #[case::an_updater(
        r#"conflict with "kubectl-edit" using apps/v1"#,
        "kubectl-edit",
        Operation::Update,
        "",
        "apps/v1"
    )]
    #[case::with_its_time(
        r#"conflict with "helm" using apps/v1 at 2026-11-27T02:00:00Z"#,
        "helm",
        Operation::Update,
        "",
        "apps/v1"
    )]
    #[case::of_a_subresource(
        r#"conflict with "kube-controller-manager" with subresource "scale" using apps/v1"#,
        "kube-controller-manager",
        Operation::Update,
        "scale",
        "apps/v1"
    )]
    #[case::a_name_with_quotes(
        r#"conflict with "a \"b\" \\ using c\n\x01\u200b""#,
        "a \"b\" \\ using c\n\u{1}\u{200b}",
        Operation::Apply,
        "",
        ""
    )]
    fn a_cause_is_read(
        #[case] message: &str,
        #[case] manager: &str,
        #[case] operation: Operation,
        #[case] subresource: &str,
        #[case] version: &str,
    ) {
        let read = ReportedConflict::of_cause(FIELD_MANAGER_CONFLICT, message, IMAGE).unwrap();
        let identity = Identity::new(manager, operation, subresource, version);
        assert_eq!((read.identity(), read.field.as_str()), (identity, IMAGE));
    }

    #[rstest]
    #[case::another_type("FieldValueInvalid", r#"conflict with "helm""#)]
    #[case::another_message(FIELD_MANAGER_CONFLICT, "somebody has it")]
    #[case::an_open_quote(FIELD_MANAGER_CONFLICT, r#"conflict with "helm"#)]
    #[case::more_behind_it(FIELD_MANAGER_CONFLICT, r#"conflict with "helm" and more"#)]
    #[case::a_bad_escape(FIELD_MANAGER_CONFLICT, r#"conflict with "\xzz""#)]
    fn other_causes_are_none(#[case] reason: &str, #[case] message: &str) {
        assert_eq!(ReportedConflict::of_cause(reason, message, IMAGE), None);
    }

    #[test]
    fn a_stale_resource_version_is_no_conflict_of_managers() {
        let status = json!({ "reason": "Conflict", "code": 409, "message": "modified" });
        assert_eq!(ReportedConflict::of_status(&status), []);
    }

    #[test]
    fn all_conflicts_of_a_status_are_read() {
        let cause = |field: &str| {
            json!({ "reason": "FieldManagerConflict", "field": field,
                    "message": "conflict with \"kubectl\" using apps/v1" })
        };
        let status = json!({ "details": { "causes": [
            cause(IMAGE), { "reason": "Other" }, cause(".metadata.annotations.belay.dev/release"),
        ] } });
        let read = ReportedConflict::of_status(&status);
        let fields: Vec<_> = read.iter().map(|conflict| conflict.field.as_str()).collect();
        assert_eq!(fields, [IMAGE, ".metadata.annotations.belay.dev/release"]);
    }

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": operation, "apiVersion": "apps/v1",
                "fieldsType": "FieldsV1", "fieldsV1": fields })
    }

    fn container(fields: &Value) -> Value {
        json!({ "f:spec": { "f:template": { "f:spec": { "f:containers": {
            "k:{\"name\":\"app\"}": fields } } } } })
    }

    fn body(container: &Value) -> Value {
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
                "spec": { "template": { "spec": { "containers": [container] } } } })
    }

    #[rstest]
    #[case::the_same_value(json!({ "name": "app", "image": "a:1" }), &[])]
    #[case::another_value(json!({ "name": "app", "image": "a:2" }), &[("helm (Update)", ".image")])]
    #[case::an_atomic_list(
        json!({ "name": "app", "args": ["--a", "--b"] }),
        &[("other (Apply)", ".args")]
    )]
    #[case::a_field_nobody_owns(json!({ "name": "app", "imagePullPolicy": "Always" }), &[])]
    #[case::its_own_field(json!({ "name": "app", "workingDir": "/b" }), &[])]
    #[case::a_new_container(json!({ "name": "new", "image": "b:1" }), &[])]
    fn a_conflict_is_predicted(#[case] wanted: Value, #[case] expected: &[(&str, &str)]) {
        let entries = json!([
            entry("helm", "Update", &container(&json!({ ".": {}, "f:name": {}, "f:image": {} }))),
            entry("other", "Apply", &container(&json!({ ".": {}, "f:name": {}, "f:args": {} }))),
            entry("me", "Apply", &container(&json!({ ".": {}, "f:name": {}, "f:workingDir": {} }))),
        ]);
        let live = body(&json!({
            "name": "app", "image": "a:1", "args": ["--a"], "workingDir": "/a",
            "imagePullPolicy": "IfNotPresent",
        }));
        let ownership = Ownership::from_value(&entries).unwrap();
        let apply = body(&wanted);
        let wanted = fields_of(&apply, Schema::Deployment).unwrap();
        let conflicts = ownership.predict(&Identity::applier("me"), &wanted, &live);
        let found: Vec<_> = conflicts
            .iter()
            .map(|conflict| (conflict.owner.to_string(), conflict.path.to_string()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(who, field)| {
                let container = ".spec.template.spec.containers[name=\"app\"]";
                ((*who).to_owned(), format!("{container}{field}"))
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::another_value("a:2", &["before-first-apply (Update) apps/v1"])]
    #[case::the_same_value("a:1", &[])]
    fn without_entries_all_there_is_has_one_owner(#[case] image: &str, #[case] owners: &[&str]) {
        let live = body(&json!({ "name": "app", "image": "a:1" }));
        let apply = body(&json!({ "name": "app", "image": image, "workingDir": "/new" }));
        let wanted = fields_of(&apply, Schema::Deployment).unwrap();
        let ownership = Ownership::decode(&[]);
        let conflicts = ownership.predict(&Identity::applier("me"), &wanted, &live);
        let found: Vec<_> = conflicts
            .iter()
            .map(|conflict| {
                let version = conflict.owner.api_version().unwrap_or_default();
                format!("{} {version}", conflict.owner)
            })
            .collect();
        assert_eq!(found, owners);
    }

    #[test]
    fn two_fields_of_one_whole_are_one_conflict() {
        let fields = json!({ "f:spec": { "f:selector": {} } });
        let entries = json!([entry("helm", "Update", &fields)]);
        let ownership = Ownership::from_value(&entries).unwrap();
        let (one, two) = (json!("1"), json!("2"));
        let label = |name: &str| {
            FieldPath::of_fields(["spec", "selector", "matchLabels"])
                .join(crate::Element::field(name))
        };
        let wanted = [
            Wanted { path: label("a"), value: Some(&one) },
            Wanted { path: label("b"), value: Some(&two) },
        ];
        let conflicts = ownership.predict(&Identity::applier("me"), &wanted, &json!({}));
        let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.to_string()).collect();
        assert_eq!(paths, [".spec.selector"]);
    }
}
