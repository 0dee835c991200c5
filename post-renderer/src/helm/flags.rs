//! The flags of the commands that run a post-renderer, in Helm 3 and Helm 4.
//!
//! One table for both: where they differ, both are in it. A flag of one major that Helm of the
//! other refuses does no harm here, for that Helm does not get as far as running us.

use std::{collections::HashMap, sync::LazyLock};

/// Where a flag is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Helm itself, so before and after any command.
    Root,
    /// `helm install`.
    Install,
    /// `helm upgrade`.
    Upgrade,
    /// `helm template`.
    Template,
}

/// Whether a flag takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// A boolean: `--flag` or `--flag=false`.
    Switch,
    /// `--flag=value` or `--flag value`.
    Value,
    /// `--flag` or `--flag=value`; a word after it is not its value.
    OptionalValue,
}

/// What a flag is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing but a word, or two, that are no names.
    Nothing,
    /// Nothing but an integer: Helm's first reading ends at one that is none.
    Integer,
    /// The namespace.
    Namespace,
    /// The context of the kubeconfig.
    KubeContext,
    /// The kubeconfig.
    Kubeconfig,
    /// The server's address.
    KubeApiserver,
    /// The bearer token.
    KubeToken,
    /// The server's certificate authority.
    KubeCaFile,
    /// The user to impersonate.
    KubeAsUser,
    /// A group to impersonate.
    KubeAsGroup,
    /// The name in the server's certificate.
    KubeTlsServerName,
    /// Whether any certificate will do.
    KubeInsecureSkipTlsVerify,
    /// How Helm applies.
    ServerSide,
    /// Whether Helm only pretends.
    DryRun,
    /// `helm template` that asks the cluster.
    Validate,
    /// An upgrade that may be an install.
    Install,
    /// PUT instead of a patch.
    ForceReplace,
    /// Server-side apply with force.
    ForceConflicts,
    /// Objects of other releases are taken.
    TakeOwnership,
    /// A failed upgrade is rolled back.
    RollbackOnFailure,
    /// The values of the previous revision count.
    ReuseValues,
    /// The namespace is made.
    CreateNamespace,
    /// Helm makes the release's name up.
    GenerateName,
    /// Helm makes the release's name from a template.
    NameTemplate,
    /// The post-renderer.
    PostRenderer,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The long name, without dashes.
    pub name: &'static str,
    /// The short name.
    pub short: Option<char>,
    /// Whether it takes a value.
    pub arity: Arity,
    /// Where it is declared.
    pub on: &'static [Scope],
    /// The majors of Helm that have it so.
    pub majors: &'static [u8],
    /// Why `--help` does not print it, where it does not.
    pub hidden: Option<&'static str>,
    /// What it is to us.
    pub meaning: Meaning,
}

impl Flag {
    const fn new(name: &'static str, arity: Arity, on: &'static [Scope]) -> Self {
        let meaning = Meaning::Nothing;
        Self { name, short: None, arity, on, majors: &[3, 4], hidden: None, meaning }
    }

    const fn short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }

    const fn only_in(self, majors: &'static [u8]) -> Self {
        Self { majors, ..self }
    }

    const fn hidden(self, reason: &'static str) -> Self {
        Self { hidden: Some(reason), ..self }
    }

    const fn means(self, meaning: Meaning) -> Self {
        Self { meaning, ..self }
    }

    /// Whether a reader of this scope knows it.
    fn known_to(&self, scope: Scope) -> bool {
        self.on.contains(&Scope::Root) || self.on.contains(&scope)
    }
}

const fn switch(name: &'static str, on: &'static [Scope]) -> Flag {
    Flag::new(name, Arity::Switch, on)
}

const fn value(name: &'static str, on: &'static [Scope]) -> Flag {
    Flag::new(name, Arity::Value, on)
}

const fn optional(name: &'static str, on: &'static [Scope]) -> Flag {
    Flag::new(name, Arity::OptionalValue, on)
}

const ROOT: &[Scope] = &[Scope::Root];
const ALL: &[Scope] = &[Scope::Install, Scope::Upgrade, Scope::Template];
const APPLYING: &[Scope] = &[Scope::Install, Scope::Upgrade];
const NAMING: &[Scope] = &[Scope::Install, Scope::Template];
const UPGRADE: &[Scope] = &[Scope::Upgrade];
const TEMPLATE: &[Scope] = &[Scope::Template];

const HELM_3: &[u8] = &[3];
const HELM_4: &[u8] = &[4];

const KLOG: &str = "a flag of the logging library, hidden so as not to pollute the help";
const RENAMED: &str = "deprecated: the name it had in Helm 3";
const NO_EFFECT: &str = "deprecated: without effect in `helm template`";

/// Every flag. Of two rows with the same name and scope the first is the one that readers take;
/// either none or both of such rows take the next word as their value.
pub const FLAGS: &[Flag] = &[
    // Helm itself.
    value("burst-limit", ROOT).means(Meaning::Integer),
    value("color", ROOT).only_in(HELM_4),
    value("colour", ROOT).only_in(HELM_4),
    value("content-cache", ROOT).only_in(HELM_4),
    switch("debug", ROOT),
    value("kube-apiserver", ROOT).means(Meaning::KubeApiserver),
    value("kube-as-group", ROOT).means(Meaning::KubeAsGroup),
    value("kube-as-user", ROOT).means(Meaning::KubeAsUser),
    value("kube-ca-file", ROOT).means(Meaning::KubeCaFile),
    value("kube-context", ROOT).means(Meaning::KubeContext),
    switch("kube-insecure-skip-tls-verify", ROOT).means(Meaning::KubeInsecureSkipTlsVerify),
    value("kube-tls-server-name", ROOT).means(Meaning::KubeTlsServerName),
    value("kube-token", ROOT).means(Meaning::KubeToken),
    value("kubeconfig", ROOT).means(Meaning::Kubeconfig),
    value("namespace", ROOT).short('n').means(Meaning::Namespace),
    value("qps", ROOT),
    value("registry-config", ROOT),
    value("repository-cache", ROOT),
    value("repository-config", ROOT),
    // Helm itself, hidden.
    switch("add-dir-header", ROOT).hidden(KLOG),
    switch("alsologtostderr", ROOT).hidden(KLOG),
    value("alsologtostderrthreshold", ROOT).hidden(KLOG),
    switch("legacy-stderr-threshold-behavior", ROOT).hidden(KLOG),
    value("log-backtrace-at", ROOT).hidden(KLOG),
    value("log-dir", ROOT).hidden(KLOG),
    value("log-file", ROOT).hidden(KLOG),
    value("log-file-max-size", ROOT).hidden(KLOG),
    switch("logtostderr", ROOT).hidden(KLOG),
    switch("one-output", ROOT).hidden(KLOG),
    switch("skip-headers", ROOT).hidden(KLOG),
    switch("skip-log-headers", ROOT).hidden(KLOG),
    value("stderrthreshold", ROOT).hidden(KLOG),
    value("v", ROOT).short('v').hidden(KLOG).means(Meaning::Integer),
    value("vmodule", ROOT).hidden(KLOG),
    // The three commands.
    value("ca-file", ALL),
    value("cert-file", ALL),
    switch("create-namespace", ALL).means(Meaning::CreateNamespace),
    switch("dependency-update", ALL),
    value("description", ALL),
    switch("devel", ALL),
    switch("disable-openapi-validation", ALL),
    optional("dry-run", ALL).means(Meaning::DryRun),
    switch("enable-dns", ALL),
    switch("force", ALL).only_in(HELM_3).means(Meaning::ForceReplace),
    switch("force", ALL).only_in(HELM_4).hidden(RENAMED).means(Meaning::ForceReplace),
    switch("force-conflicts", ALL).only_in(HELM_4).means(Meaning::ForceConflicts),
    switch("force-replace", ALL).only_in(HELM_4).means(Meaning::ForceReplace),
    switch("help", ALL).short('h'),
    switch("insecure-skip-tls-verify", ALL),
    value("key-file", ALL),
    value("keyring", ALL),
    value("labels", ALL).short('l'),
    switch("no-hooks", ALL),
    switch("pass-credentials", ALL),
    value("password", ALL),
    switch("plain-http", ALL),
    value("post-renderer", ALL).means(Meaning::PostRenderer),
    value("post-renderer-args", ALL),
    value("repo", ALL),
    switch("atomic", ALL).only_in(HELM_3).means(Meaning::RollbackOnFailure),
    switch("atomic", ALL).only_in(HELM_4).hidden(RENAMED).means(Meaning::RollbackOnFailure),
    switch("rollback-on-failure", ALL).only_in(HELM_4).means(Meaning::RollbackOnFailure),
    value("set", ALL),
    value("set-file", ALL),
    value("set-json", ALL),
    value("set-literal", ALL),
    value("set-string", ALL),
    switch("skip-crds", ALL),
    switch("skip-schema-validation", ALL),
    switch("take-ownership", ALL).means(Meaning::TakeOwnership),
    value("timeout", ALL),
    value("username", ALL),
    value("values", ALL).short('f'),
    switch("verify", ALL),
    value("version", ALL),
    optional("wait", ALL).only_in(HELM_4),
    switch("wait", ALL).only_in(HELM_3),
    switch("wait-for-jobs", ALL),
    // Some of them.
    switch("hide-notes", APPLYING),
    switch("hide-notes", TEMPLATE).only_in(HELM_3),
    switch("hide-notes", TEMPLATE).only_in(HELM_4).hidden(NO_EFFECT),
    switch("render-subchart-notes", APPLYING),
    switch("render-subchart-notes", TEMPLATE).only_in(HELM_3),
    switch("render-subchart-notes", TEMPLATE).only_in(HELM_4).hidden(NO_EFFECT),
    switch("hide-secret", APPLYING),
    value("output", APPLYING).short('o'),
    switch("generate-name", NAMING).short('g').means(Meaning::GenerateName),
    value("name-template", NAMING).means(Meaning::NameTemplate),
    switch("replace", NAMING),
    switch("server-side", NAMING).only_in(HELM_4).means(Meaning::ServerSide),
    value("server-side", UPGRADE).only_in(HELM_4).means(Meaning::ServerSide),
    switch("cleanup-on-fail", UPGRADE),
    value("history-max", UPGRADE),
    switch("install", UPGRADE).short('i').means(Meaning::Install),
    switch("recreate-pods", UPGRADE)
        .only_in(HELM_3)
        .hidden("deprecated: no longer worked on, gone in Helm 4"),
    switch("reset-then-reuse-values", UPGRADE),
    switch("reset-values", UPGRADE),
    switch("reuse-values", UPGRADE).means(Meaning::ReuseValues),
    value("api-versions", TEMPLATE).short('a'),
    switch("include-crds", TEMPLATE),
    switch("is-upgrade", TEMPLATE),
    value("kube-version", TEMPLATE),
    value("output-dir", TEMPLATE),
    switch("release-name", TEMPLATE),
    value("show-only", TEMPLATE).short('s'),
    switch("skip-tests", TEMPLATE),
    switch("validate", TEMPLATE).only_in(HELM_3).means(Meaning::Validate),
    switch("validate", TEMPLATE)
        .only_in(HELM_4)
        .hidden("deprecated: --dry-run=server says it in Helm 4")
        .means(Meaning::Validate),
];

/// The table by name: a hostile command line has a million flags to look up.
struct Index {
    long: HashMap<&'static str, Vec<&'static Flag>>,
    short: HashMap<u8, Vec<&'static Flag>>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index { long: HashMap::new(), short: HashMap::new() };
    for flag in FLAGS {
        index.long.entry(flag.name).or_default().push(flag);
        if let Some(short) = flag.short.and_then(|short| u8::try_from(short).ok()) {
            index.short.entry(short).or_default().push(flag);
        }
    }
    index
});

/// The flag of this long name, as a reader of this scope knows it.
pub fn long(name: &str, scope: Scope) -> Option<&'static Flag> {
    INDEX.long.get(name)?.iter().find(|flag| flag.known_to(scope)).copied()
}

/// The flag of this short name, as a reader of this scope knows it.
pub fn short(name: u8, scope: Scope) -> Option<&'static Flag> {
    INDEX.short.get(&name)?.iter().find(|flag| flag.known_to(scope)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPES: [Scope; 4] = [Scope::Root, Scope::Install, Scope::Upgrade, Scope::Template];

    #[test]
    fn rows_of_one_name_agree_on_whether_the_next_word_is_their_value() {
        for (at, flag) in FLAGS.iter().enumerate() {
            for other in &FLAGS[at + 1..] {
                let meet =
                    SCOPES.iter().any(|scope| flag.known_to(*scope) && other.known_to(*scope));
                if !meet || flag.name != other.name {
                    let same_short = flag.short.is_some() && flag.short == other.short;
                    assert!(!meet || !same_short, "{flag:?} {other:?}");
                    continue;
                }
                let taking = [flag, other].map(|flag| flag.arity == Arity::Value);
                assert_eq!(taking[0], taking[1], "{}", flag.name);
                assert_eq!(flag.meaning, other.meaning, "{}", flag.name);
                let both = flag.majors.iter().any(|major| other.majors.contains(major));
                assert!(!both, "{} twice in one Helm", flag.name);
            }
        }
    }

    #[test]
    fn every_row_can_be_found_by_its_names() {
        for flag in FLAGS {
            for scope in flag.on {
                assert_eq!(long(flag.name, *scope).unwrap().name, flag.name);
                if let Some(name) = flag.short {
                    assert_eq!(short(name as u8, *scope).unwrap().name, flag.name);
                }
            }
        }
        assert!(long("install", Scope::Install).is_none(), "a flag of upgrade alone");
        assert!(long("values", Scope::Root).is_none(), "not one of Helm itself");
        assert!(long("namespace", Scope::Template).is_some(), "one of Helm itself");
    }
}
