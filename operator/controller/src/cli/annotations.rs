//! Annotations of a workload as options.

use std::collections::BTreeMap;

use belay_api::{
    AnnotationPrefix, NamedValue as _,
    annotations::{DefaultValue, TargetAnnotation},
};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, error::Error};

/// What the options say, by annotation. They are read as on a workload, later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnotationFlags(BTreeMap<&'static str, String>);

impl AnnotationFlags {
    /// The value of one, as written.
    pub fn get(&self, annotation: TargetAnnotation) -> Option<&str> {
        self.0.get(annotation.as_str()).map(String::as_str)
    }

    /// All of them, as they would stand on a workload.
    pub fn under(&self, prefix: &AnnotationPrefix) -> BTreeMap<String, String> {
        let pairs = options().filter_map(|one| Some((prefix.key(one), self.get(one)?.to_owned())));
        pairs.collect()
    }
}

/// The repository is what the command is about, hence no option.
fn options() -> impl Iterator<Item = TargetAnnotation> {
    TargetAnnotation::ALL.iter().copied().filter(|one| *one != TargetAnnotation::Repo)
}

fn option(annotation: TargetAnnotation) -> Arg {
    let name = annotation.as_str();
    let help = annotation.describe().trim_end_matches('.');
    let arg =
        Arg::new(name).long(name).help(help).help_heading("Annotations").action(ArgAction::Set);
    match annotation.default_value() {
        // `--prereleases` alone stands for `true`; what follows it is not its value.
        DefaultValue::Value("false") => arg
            .value_name("true|false")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        _ => arg.value_name("VALUE"),
    }
}

impl Args for AnnotationFlags {
    fn augment_args(command: Command) -> Command {
        options().map(option).fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for AnnotationFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for name in options().map(TargetAnnotation::as_str) {
            if let Some(value) = matches.get_one::<String>(name) {
                self.0.insert(name, value.clone());
            }
        }
        Ok(())
    }
}
