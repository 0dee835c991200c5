//! The rights that the chart grants as Markdown, from the tables that tests compare with what both
//! Helms render and with what the API server then permits. What each right is for stands here; a
//! right without a sentence is an error.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

/// A sentence: resource, verbs, whether names limit it, what it is for.
type Purpose = (&'static str, &'static str, bool, &'static str);

/// Verbs of objects that the operator keeps.
const KEEPS: &str = "get list watch create patch delete";

/// What the rights of the operator are for.
const OPERATOR: [Purpose; 25] = [
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        "get",
        true,
        "the version of their schema, compared at start",
    ),
    (
        "nodes",
        "list watch",
        false,
        "platforms that an image must be there for; not with `rbac.nodes: false`",
    ),
    (
        "deployments.apps",
        "get list watch patch",
        false,
        "workloads; the patch writes images and the annotations beside them",
    ),
    ("replicasets.apps", "list watch", false, "which pods are of the new image"),
    ("pods", "list watch", false, "whether the pods of a rollout run"),
    (
        "scaledobjects.keda.sh",
        "get list watch patch",
        false,
        "pauses; the patch writes annotations alone",
    ),
    (
        "horizontalpodautoscalers.autoscaling",
        "get",
        false,
        "the proof that a pause took hold, and that autoscaling resumed",
    ),
    ("releases.belay.dev", KEEPS, false, "the records of what ran; old ones are deleted"),
    (
        "rollbacks.belay.dev",
        KEEPS,
        false,
        "people's are carried out, automatic ones are made; old ones are deleted",
    ),
    ("releasetargets.belay.dev", KEEPS, false, "the status of each workload that is followed"),
    ("releases/status.belay.dev", "patch update", false, "what became of a Release"),
    ("rollbacks/status.belay.dev", "patch update", false, "how far a Rollback is"),
    ("releasetargets/status.belay.dev", "patch update", false, "the status itself"),
    (
        "automatedrollbackpolicies.belay.dev",
        "get list watch",
        false,
        "policies; this version does not act on them yet",
    ),
    ("events", "create patch", false, "[events](events.md) on workloads"),
    ("events.events.k8s.io", "create patch", false, "the same, by their newer name"),
    ("namespaces", "get", false, "the annotation `release-limit`"),
    (
        "leases.coordination.k8s.io",
        "get",
        false,
        "whether another operator, which the status of a target names, still lives",
    ),
    (
        "leases.coordination.k8s.io",
        "create",
        false,
        "its own Lease; a name cannot limit who creates",
    ),
    (
        "leases.coordination.k8s.io",
        "get update patch",
        true,
        "its own Lease, by which others see that it lives",
    ),
    ("secrets", "get", false, "pull secrets, by the names that pods and ServiceAccounts have"),
    ("serviceaccounts", "get", false, "which pull secrets they name"),
    ("scaledobjects.keda.sh", "list patch", false, "pauses that are claimed, and are ended"),
    ("deployments/scale.apps", "patch", true, "the operator is stopped first"),
    ("leases.coordination.k8s.io", "get", true, "whether it has stopped"),
];

/// What the rights of people are for.
const PEOPLE: [Purpose; 7] = [
    ("releases.belay.dev", "get list watch", false, "see what runs and ran"),
    ("rollbacks.belay.dev", "get list watch", false, "see who went back, and how it ended"),
    ("releasetargets.belay.dev", "get list watch", false, "see what Belay thinks of a workload"),
    ("automatedrollbackpolicies.belay.dev", "get list watch", false, "see policies"),
    ("releases.belay.dev", "patch", false, "annotate Releases"),
    (
        "automatedrollbackpolicies.belay.dev",
        "create update patch delete",
        false,
        "make and change policies",
    ),
    ("rollbacks.belay.dev", "create", false, "roll back: only with `rbac.editCanRollback: true`"),
];

/// A part of the page: a heading, what is to be known of it, the table that tests compare, the purposes.
struct Part {
    heading: &'static str,
    words: &'static str,
    table: &'static str,
    purposes: &'static [Purpose],
}

/// All parts.
const PARTS: [Part; 4] = [
    Part {
        heading: "`scope: cluster`, the default",
        words: "With `registry.readPullSecrets: true`, which adds the role of pull secrets: each namespace binds \
                it [by itself](../guide/private.md#private-registries). The role `release-pauses` is there only \
                while the release is uninstalled.",
        table: include_str!("../../../tests/chart/rbac/cluster-pull-secrets.txt"),
        purposes: &OPERATOR,
    },
    Part {
        heading: "`scope: namespace`",
        words: "`secrets` and `serviceaccounts` are left out by `registry.readPullSecrets: false`, `nodes` by \
                `rbac.nodes: false`.",
        table: include_str!("../../../tests/chart/rbac/namespace.txt"),
        purposes: &OPERATOR,
    },
    Part {
        heading: "`scope: namespace` with `rbac.clusterWide: false`",
        words: "No ClusterRole is made. The operator does not become ready before somebody grants its account \
                what the one above has; `helm template --show-only templates/clusterrole.yaml` shows it.",
        table: include_str!("../../../tests/chart/rbac/namespace-alone.txt"),
        purposes: &OPERATOR,
    },
    Part {
        heading: "People",
        words: "With `rbac.aggregateToPeople`, the default, and `rbac.clusterWide`: the first is added to the \
                cluster's roles `view`, `edit` and `admin`, the second to `edit` and `admin`. The plugin has no \
                rights but those of whoever runs it.",
        table: include_str!("../../../tests/chart/rbac/people.txt"),
        purposes: &PEOPLE,
    },
];

/// The page.
pub(crate) fn page() -> Result<String> {
    let mut page = String::from(
        "<!-- Generated by `cargo xtask generate`. Do not edit. -->\n\n# Rights\n\n\
         What `charts/belay` grants, installed as `belay` in the namespace `belay-system`. No role has a \
         wildcard, and none may create, update or delete a workload. On servers that have \
         ValidatingAdmissionPolicies the chart [limits each patch](../security.md#what-the-operator-may-do) \
         to fields, which a role cannot.\n",
    );
    for Part { heading, words, table, purposes } in &PARTS {
        writeln!(page, "\n## {heading}\n\n{words}")?;
        for block in table.trim().split("\n\n") {
            role(block, purposes, &mut page)
                .with_context(|| format!("read the table of {heading}"))?;
        }
    }
    Ok(page)
}

/// One role: a line of what it is and whose, and a line for each right.
fn role(block: &str, purposes: &[Purpose], page: &mut String) -> Result<()> {
    let mut lines = block.lines();
    let (name, bound) = lines
        .next()
        .and_then(|line| line.split_once(", bound to "))
        .context("a role does not begin with its name and whom it is bound to")?;
    let (kind, name) = name.split_once(' ').context("a role without a name")?;
    let (name, place) = name.split_once(" in ").unwrap_or((name, ""));
    let place = if place.is_empty() { String::new() } else { format!(" in `{place}`") };
    let bound = match bound.split_once(' ') {
        Some((kind, name)) => format!("bound to the {kind} `{name}`"),
        None => "bound to nobody".to_owned(),
    };
    writeln!(page, "\n{kind} `{name}`{place}, {bound}:\n")?;
    writeln!(page, "| group | resource | verbs | names | for |\n| --- | --- | --- | --- | --- |")?;
    for line in lines {
        let (resource, verbs, names) = right(line)?;
        let has_names = !names.is_empty();
        let purpose = purposes
            .iter()
            .find(|(a, b, c, _)| (*a, *b, *c) == (resource, verbs.as_str(), has_names))
            .with_context(|| format!("nothing says what {verbs} of {resource} is for"))?;
        let (short, group) = resource.split_once('.').unwrap_or((resource, ""));
        let group = if group.is_empty() { "–".to_owned() } else { format!("`{group}`") };
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let names = if has_names { names.join(" ") } else { "–".to_owned() };
        writeln!(
            page,
            "| {group} | `{short}` | {} | {names} | {} |",
            verbs.replace(' ', ", "),
            purpose.3
        )?;
    }
    Ok(())
}

/// Resource, verbs and names, which are set apart by two blanks or more.
fn right(line: &str) -> Result<(&str, String, Vec<&str>)> {
    let mut cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    let resource = cells.next().context("a right without a resource")?;
    let verbs = cells.next().context("a right without verbs")?.to_owned();
    let names = cells.next().map(|names| names.split(' ').collect()).unwrap_or_default();
    Ok((resource, verbs, names))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_right_of_the_tables_has_its_row() {
        let page = page().unwrap();
        let rows = page.lines().filter(|line| line.contains(" | `") && line.starts_with("| "));
        let rights = PARTS.iter().flat_map(|part| part.table.lines());
        let rights = rights.filter(|line| line.starts_with("  ")).count();
        assert!(rights > 60, "{rights}");
        assert_eq!(
            rows.inspect(|row| assert_eq!(row.matches('|').count(), 6, "{row}")).count(),
            rights
        );
        let row =
            "| `coordination.k8s.io` | `leases` | get, update, patch | `belay-operator` | its own";
        assert!(page.contains(row), "{page}");
        assert!(
            page.contains("`belay-system:belay-operator:pull-secrets`, bound to nobody:"),
            "{page}"
        );
    }

    #[test]
    fn a_right_that_nobody_explains_is_an_error() {
        let block = "ClusterRole x, bound to nobody\n  pods                  list watch delete";
        let error = role(block, &OPERATOR, &mut String::new()).unwrap_err().to_string();
        assert_eq!(error, "nothing says what list watch delete of pods is for");
    }

    #[test]
    fn every_sentence_explains_a_right() {
        let mut unused = BTreeSet::new();
        for purposes in [&OPERATOR[..], &PEOPLE[..]] {
            unused.extend(purposes.iter().map(|(a, b, c, _)| (*a, (*b).to_owned(), *c)));
            let of = |part: &&Part| part.purposes.len() == purposes.len();
            let lines = PARTS.iter().filter(of).flat_map(|part| part.table.lines());
            for line in lines.filter(|line| line.starts_with("  ")) {
                let (resource, verbs, names) = right(line).unwrap();
                unused.remove(&(resource, verbs, !names.is_empty()));
            }
            assert!(unused.is_empty(), "{unused:?}");
        }
    }
}
