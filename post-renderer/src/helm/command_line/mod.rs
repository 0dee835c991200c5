//! Reads Helm's arguments as Helm does.
//!
//! Helm reads them three times: once for its own flags, not yet knowing those of its commands;
//! once to find the command; and once with everything known. All three are followed, with what
//! each gets wrong, for what counts here is where Helm really goes.

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, mem, path::PathBuf};

use super::{
    Command, Doubt, DryRun, Invocation, Secret, ServerSide,
    flags::{self, Arity, Flag, Meaning, Scope},
    parse_bool,
    pflag::{self, BadValue, Reading},
};

/// Reads a command line, without the program's name.
///
/// Paths stay as they are written, see [`Invocation::resolve`].
pub fn parse(args: &[String]) -> Invocation {
    interpret(args).0
}

/// Reads a command line of which it is not known where its arguments end.
///
/// A flag of which only the name is not known then says that something was cut apart.
pub(super) fn parse_words(words: &[String]) -> Invocation {
    let (invocation, unknown) = interpret(words);
    match unknown {
        Some(_) => invocation.doubted(Doubt::Blanks),
        None => invocation,
    }
}

fn interpret(args: &[String]) -> (Invocation, Option<Doubt>) {
    let word = command_word(args);
    let command = word.and_then(|at| args.get(at)).map_or(Command::Foreign, |word| named(word));
    let scope = match command {
        Command::Install => Some(Scope::Install),
        Command::Upgrade => Some(Scope::Upgrade),
        Command::Template => Some(Scope::Template),
        Command::Other(_) | Command::Foreign => None,
    };
    let mut draft = Draft::new(command);
    pflag::read(args, None, Scope::Root, &mut |flag, value| draft.set(flag, value));
    let Some(scope) = scope else {
        return (draft.finish().doubted(Doubt::Command), None);
    };
    draft.early = mem::take(&mut draft.invocation.given);
    let Reading { names, doubt, unknown } =
        pflag::read(args, word, scope, &mut |flag, value| draft.set(flag, value));
    let (release, unnamed) = match draft.release(&names, scope) {
        Ok(release) => (release, None),
        Err(doubt) => (None, Some(doubt)),
    };
    let malformed = draft.malformed();
    let mut invocation = draft.finish();
    invocation.release = release;
    for doubt in [doubt, unnamed, malformed].into_iter().flatten() {
        invocation = invocation.doubted(doubt);
    }
    (invocation, unknown)
}

/// The index of the word that names the command, as cobra finds it: the first that is neither a
/// flag nor, for all that Helm's own flags say, the value of one.
fn command_word(args: &[String]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        if word == "--" {
            return None;
        }
        let stands_alone =
            |flag: Option<&Flag>| flag.is_some_and(|flag| flag.arity != Arity::Value);
        let takes_next = !word.contains('=')
            && match (word.strip_prefix("--"), word.as_bytes()) {
                (Some(name), _) => !stands_alone(flags::long(name, Scope::Root)),
                (None, [b'-', letter]) => !stands_alone(flags::short(*letter, Scope::Root)),
                _ => false,
            };
        if !word.is_empty() && !word.starts_with('-') {
            return Some(at);
        }
        at += if takes_next { 2 } else { 1 };
    }
    None
}

/// Helm's own commands beside the three, with their other names.
const OTHERS: [&str; 34] = [
    "__complete",
    "__completeNoDesc",
    "completion",
    "create",
    "del",
    "delete",
    "dep",
    "dependencies",
    "dependency",
    "docs",
    "env",
    "fetch",
    "get",
    "help",
    "hist",
    "history",
    "inspect",
    "lint",
    "list",
    "ls",
    "package",
    "plugin",
    "pull",
    "push",
    "registry",
    "repo",
    "rollback",
    "search",
    "show",
    "status",
    "test",
    "un",
    "uninstall",
    "verify",
];

fn named(word: &str) -> Command {
    match word {
        "install" => Command::Install,
        "upgrade" => Command::Upgrade,
        "template" => Command::Template,
        "version" => Command::Other(word.to_owned()),
        _ if OTHERS.contains(&word) => Command::Other(word.to_owned()),
        _ => Command::Foreign,
    }
}

/// What the flags have said so far.
struct Draft<'a> {
    invocation: Invocation,
    /// Helm's own flags that the first reading saw.
    early: Vec<&'static str>,
    server_side: Option<&'a str>,
    dry_run: Option<&'a str>,
    validate: bool,
    generate_name: bool,
    name_template: bool,
}

impl<'a> Draft<'a> {
    fn new(command: Command) -> Self {
        Self {
            invocation: Invocation::new(command),
            early: Vec::new(),
            server_side: None,
            dry_run: None,
            validate: false,
            generate_name: false,
            name_template: false,
        }
    }

    fn set(&mut self, flag: &'static Flag, value: Option<&'a str>) -> Result<(), BadValue> {
        let text = value.unwrap_or_default();
        let on = match flag.arity {
            Arity::Switch => parse_bool(value.unwrap_or("true")).ok_or(BadValue)?,
            Arity::Value | Arity::OptionalValue => true,
        };
        // What is empty is not said.
        let said = || Some(text.to_owned()).filter(|text| !text.is_empty());
        let invocation = &mut self.invocation;
        match flag.meaning {
            Meaning::Nothing => {}
            Meaning::Integer => {
                text.parse::<i32>().map_err(|_| BadValue)?;
            }
            Meaning::Namespace => invocation.namespace = said(),
            Meaning::KubeContext => invocation.kube_context = said(),
            Meaning::Kubeconfig => invocation.kubeconfig = said().map(PathBuf::from),
            Meaning::KubeApiserver => invocation.kube_apiserver = said(),
            Meaning::KubeToken => invocation.kube_token = said().map(Secret::from),
            Meaning::KubeCaFile => invocation.kube_ca_file = said().map(PathBuf::from),
            Meaning::KubeAsUser => invocation.kube_as_user = said(),
            Meaning::KubeAsGroup => invocation.kube_as_groups.push(text.to_owned()),
            Meaning::KubeTlsServerName => invocation.kube_tls_server_name = said(),
            Meaning::KubeInsecureSkipTlsVerify => invocation.kube_insecure_skip_tls_verify = on,
            Meaning::ServerSide if flag.arity == Arity::Switch => {
                self.server_side = Some(if on { "true" } else { "false" });
            }
            Meaning::ServerSide => self.server_side = Some(text),
            Meaning::DryRun => self.dry_run = Some(value.unwrap_or("client")),
            Meaning::Validate => self.validate = on,
            Meaning::Install => invocation.install = on,
            Meaning::ForceReplace => invocation.force_replace = on,
            Meaning::ForceConflicts => invocation.force_conflicts = on,
            Meaning::TakeOwnership => invocation.take_ownership = on,
            Meaning::RollbackOnFailure => invocation.rollback_on_failure = on,
            Meaning::ReuseValues => invocation.reuse_values = on,
            Meaning::CreateNamespace => invocation.create_namespace = on,
            Meaning::GenerateName => self.generate_name = on,
            Meaning::NameTemplate => self.name_template = !text.is_empty(),
            Meaning::PostRenderer => {
                // An empty one is passed over, so that the one before stays.
                invocation.post_renderer = said().or_else(|| invocation.post_renderer.take());
            }
        }
        if is_setting(flag.meaning) && !invocation.given.contains(&flag.name) {
            invocation.given.push(flag.name);
        }
        Ok(())
    }

    /// The release that the names name.
    fn release(&self, names: &[&str], scope: Scope) -> Result<Option<String>, Doubt> {
        let made_up = self.generate_name || self.name_template;
        match names {
            [_, _] if made_up => Err(Doubt::NamedTwice),
            [release, _] => Ok(Some((*release).to_owned())),
            [_] if scope == Scope::Template || scope == Scope::Install && made_up => Ok(None),
            _ => Err(Doubt::Names { count: names.len() }),
        }
    }

    fn server_side(&self) -> Result<Option<ServerSide>, Doubt> {
        let read = |text| server_side(text).ok_or(Doubt::Value { flag: "server-side" });
        self.server_side.map(read).transpose()
    }

    fn dry_run(&self) -> Result<Option<DryRun>, Doubt> {
        let template = self.invocation.command == Command::Template;
        let read = |text| dry_run(text, template).ok_or(Doubt::Value { flag: "dry-run" });
        let dry_run = self.dry_run.map(read).transpose()?;
        // The flag is there in `helm template` alone.
        Ok(if self.validate { Some(DryRun::Server) } else { dry_run })
    }

    /// A value that Helm refuses only once it has read all of them.
    fn malformed(&self) -> Option<Doubt> {
        self.server_side().err().or(self.dry_run().err())
    }

    fn finish(self) -> Invocation {
        let server_side = self.server_side().unwrap_or_default();
        let dry_run = self.dry_run().unwrap_or_default();
        let mut invocation = Invocation { server_side, dry_run, ..self.invocation };
        let late = mem::take(&mut invocation.given);
        invocation.strays =
            self.early.iter().copied().filter(|flag| !late.contains(flag)).collect();
        invocation.given = once_each(self.early.into_iter().chain(late).collect());
        // Each reading adds its groups to those of the one before.
        invocation.kube_as_groups = once_each(mem::take(&mut invocation.kube_as_groups));
        invocation
    }
}

/// Whether it is one of the settings that [`Invocation::given`] speaks of.
fn is_setting(meaning: Meaning) -> bool {
    matches!(
        meaning,
        Meaning::Namespace
            | Meaning::KubeContext
            | Meaning::Kubeconfig
            | Meaning::KubeApiserver
            | Meaning::KubeToken
            | Meaning::KubeCaFile
            | Meaning::KubeAsUser
            | Meaning::KubeAsGroup
            | Meaning::KubeTlsServerName
            | Meaning::KubeInsecureSkipTlsVerify
    )
}

fn once_each<T: Clone + Eq + std::hash::Hash>(mut items: Vec<T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(item.clone()));
    items
}

fn server_side(text: &str) -> Option<ServerSide> {
    match text {
        "true" => Some(ServerSide::True),
        "false" => Some(ServerSide::False),
        "auto" => Some(ServerSide::Auto),
        _ => None,
    }
}

/// What a value of `--dry-run` comes to in either major; what both take means the same to both.
fn dry_run(text: &str, template: bool) -> Option<DryRun> {
    let none = if template { DryRun::Server } else { DryRun::None };
    match text {
        // `unset` is Helm 4's own spelling of a flag without a value.
        "client" | "unset" => Some(DryRun::Client),
        "server" => Some(DryRun::Server),
        "none" | "false" => Some(none),
        "" => Some(if template { DryRun::Client } else { DryRun::None }),
        _ => match parse_bool(text) {
            Some(true) => Some(DryRun::Client),
            Some(false) if !template => Some(DryRun::None),
            Some(false) | None => None,
        },
    }
}
