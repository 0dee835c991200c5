//! Which name is being typed, and which ones there are.

use std::collections::BTreeMap;

use clap::CommandFactory as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::{ResourceExt, api::ListParams};

use crate::{
    cli::{Cli, cluster},
    connect::{Cluster, Entry},
    facts::{history::entries, live::tag},
    read::{Parts, Reader, api::kind_of, fleet::Depth},
};

/// What kind of name it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// Of the kubeconfig.
    Config(Entry),
    Namespace,
    Target,
    /// Of this target.
    Release(String),
    /// Of this target.
    Tag(String),
    /// Of the image of this target.
    Manager(String),
}

/// A name that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) what: What,
    /// What of the name is there already.
    pub(super) typed: String,
    /// What stands before it in the same word, such as `--context=`.
    pub(super) keep: String,
}

/// How a flag takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// None, or one behind `=` alone.
    Attached,
    /// In the next word, or behind `=`.
    Next,
}

/// The flags of the command line, in every spelling.
struct Flags(BTreeMap<String, (Value, bool)>);

impl Flags {
    fn read() -> Self {
        let root = Cli::command();
        let commands = std::iter::once(&root).chain(root.get_subcommands());
        let mut flags = BTreeMap::new();
        for arg in commands.flat_map(clap::Command::get_arguments) {
            let is_next = arg.get_action().takes_values() && !arg.is_require_equals_set();
            let value = if is_next { Value::Next } else { Value::Attached };
            let is_of_cluster = arg.get_help_heading() == Some(cluster::HEADING);
            let long = arg.get_long().map(|long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!("-{short}"));
            flags.extend(long.into_iter().chain(short).map(|flag| (flag, (value, is_of_cluster))));
        }
        Self(flags)
    }

    /// Whether it takes the next word; without that a value would look like a name.
    fn takes_value(&self, flag: &str) -> bool {
        self.0.get(flag).is_some_and(|(value, _)| *value == Value::Next)
    }

    /// Whether it says which cluster, as whom, or which namespace.
    fn is_of_cluster(&self, flag: &str) -> bool {
        self.0.get(flag).is_some_and(|(_, is_of_cluster)| *is_of_cluster)
    }
}

/// What the word after `before` is, where it is a name of the cluster or the kubeconfig.
pub(super) fn wanted(before: &[String], current: &str) -> Option<Wanted> {
    let flags = Flags::read();
    let positional = positional(before, &flags);
    let target = positional.get(1).cloned();
    let verb = positional.first().map(String::as_str);
    let of = |what: Option<What>, typed: &str, keep: &str| {
        what.map(|what| Wanted { what, typed: typed.to_owned(), keep: keep.to_owned() })
    };
    if let Some(flag) = before.last().filter(|flag| flags.takes_value(flag)) {
        return of(of_flag(flag, target), current, "");
    }
    if current.starts_with('-') {
        let (flag, typed) = current.split_once('=')?;
        return of(of_flag(flag, target), typed, &format!("{flag}="));
    }
    let what = match (verb?, positional.len()) {
        ("rollback" | "undo", _)
        | (
            "status" | "get" | "ls" | "history" | "hist" | "hold" | "resume" | "adopt" | "leave"
            | "owners" | "who" | "why" | "doctor",
            1,
        ) => Some(What::Target),
        ("hold", 2) => target.map(What::Tag),
        _ => None,
    };
    of(what, current, "")
}

fn of_flag(flag: &str, target: Option<String>) -> Option<What> {
    match flag {
        "--context" => Some(What::Config(Entry::Context)),
        "--cluster" => Some(What::Config(Entry::Cluster)),
        "--user" => Some(What::Config(Entry::User)),
        "-n" | "--namespace" => Some(What::Namespace),
        "--to" | "--diff" => target.map(What::Release),
        "--allow" => target.map(What::Tag),
        "--expect" => target.map(What::Manager),
        _ => None,
    }
}

/// The words that are neither flags nor their values.
fn positional(words: &[String], flags: &Flags) -> Vec<String> {
    let mut all = Vec::new();
    let mut is_value = false;
    for word in words {
        if std::mem::take(&mut is_value) {
            continue;
        }
        if word.starts_with('-') && word.len() > 1 {
            is_value = flags.takes_value(word);
        } else {
            all.push(word.clone());
        }
    }
    all
}

/// Flags about the cluster, with their values.
pub(super) fn cluster_flags(words: &[String]) -> Vec<String> {
    let flags = Flags::read();
    let mut all = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let flag = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
        if !flags.is_of_cluster(flag) {
            continue;
        }
        if flag == word && flags.takes_value(flag) {
            // The last flag may still wait for its value.
            let Some(value) = words.next() else { continue };
            all.extend([word.clone(), value.clone()]);
        } else {
            all.push(word.clone());
        }
    }
    all
}

/// The names that there are; none where they cannot be read.
pub(super) async fn find(wanted: &Wanted, cluster: Cluster) -> Vec<(String, Option<String>)> {
    let namespace = cluster.namespace.clone();
    let reader = Reader::new(cluster);
    match &wanted.what {
        What::Config(_) => Vec::new(),
        What::Namespace => {
            let listed = reader.list(&kind_of::<Namespace>(), None, &ListParams::default()).await;
            let names = listed.unwrap_or_default().into_iter().map(|one| (one.name_any(), None));
            names.collect()
        }
        What::Target => {
            let listed = reader.fleet(Some(&namespace), None, Depth::Target, None).await;
            let members = listed.map(|fleet| fleet.members).unwrap_or_default();
            members
                .into_iter()
                .map(|member| {
                    let status = member.target.value.status.as_ref();
                    let image = status.and_then(|status| status.current.as_ref()?.image.clone());
                    (member.target.value.name_any(), image)
                })
                .collect()
        }
        What::Release(target) | What::Tag(target) => {
            let parts = Parts { releases: true, ..Parts::default() };
            let snapshot = reader.snapshot(&namespace, target, parts).await;
            let releases = snapshot.releases.value().map(Vec::as_slice).unwrap_or_default();
            let releases: Vec<_> = releases.iter().map(|one| &one.value).collect();
            let is_tag = matches!(wanted.what, What::Tag(_));
            entries(&releases, &[])
                .into_iter()
                .map(|entry| {
                    let word = format!("{}, {}", entry.image, entry.word);
                    if is_tag { (tag(&entry.tag), Some(word)) } else { (entry.name, Some(word)) }
                })
                .collect()
        }
        What::Manager(target) => {
            let snapshot = reader.snapshot(&namespace, target, Parts::default()).await;
            let workload = snapshot.workload();
            let entries = workload.map(ResourceExt::managed_fields).unwrap_or_default();
            let mut names: Vec<String> =
                entries.iter().filter_map(|entry| entry.manager.clone()).collect();
            names.sort_unstable();
            names.dedup();
            names.into_iter().map(|name| (name, None)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[rstest]
    #[case("status", "we", Some((What::Target, "we", "")))]
    #[case("ls", "", Some((What::Target, "", "")))]
    #[case("-n shop status", "", Some((What::Target, "", "")))]
    #[case("status web", "", None)]
    #[case("rollback web", "", Some((What::Target, "", "")))]
    #[case("rollback web --to", "web-", Some((What::Release("web".to_owned()), "web-", "")))]
    #[case("rollback web", "--to=w", Some((What::Release("web".to_owned()), "w", "--to=")))]
    #[case("hold web", "1", Some((What::Tag("web".to_owned()), "1", "")))]
    #[case("status -n", "sh", Some((What::Namespace, "sh", "")))]
    #[case("status", "--context=p", Some((What::Config(Entry::Context), "p", "--context=")))]
    #[case("status --cluster", "b", Some((What::Config(Entry::Cluster), "b", "")))]
    #[case("status --user", "", Some((What::Config(Entry::User), "", "")))]
    #[case("--proxy-url http://p status", "w", Some((What::Target, "w", "")))]
    #[case("-v=3 --dry-run=server rollback", "w", Some((What::Target, "w", "")))]
    #[case("status -o", "", None)]
    #[case("", "st", None)]
    #[case("version", "", None)]
    fn the_words_before_say_which_name_it_is(
        #[case] before: &str,
        #[case] current: &str,
        #[case] expected: Option<(What, &str, &str)>,
    ) {
        let expected = expected.map(|(what, typed, keep)| Wanted {
            what,
            typed: typed.to_owned(),
            keep: keep.to_owned(),
        });
        assert_eq!(wanted(&words(before), current), expected);
    }

    #[test]
    fn flags_about_the_cluster_are_kept() {
        let before =
            words("status web -n shop --color never --context=x --insecure-skip-tls-verify");
        assert_eq!(
            cluster_flags(&before),
            ["-n", "shop", "--context=x", "--insecure-skip-tls-verify"]
        );
    }
}
