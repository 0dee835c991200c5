//! The command line (the post-renderer specification, section 4).

mod quick;

use std::{
    env,
    ffi::{OsStr, OsString},
    mem,
    path::PathBuf,
    time::Duration,
};

use belay_api::AnnotationPrefix;
use clap::{
    Arg, CommandFactory as _, FromArgMatches as _, Id, Parser, ValueEnum,
    builder::{BoolishValueParser, Resettable},
    parser::ValueSource,
};

use crate::{
    decide,
    helm::Secret,
    locate::{Given, Source, Told},
};

/// Keeps Helm's hands off the image that an operator owns. Reads manifests on standard input, writes
/// them on standard output, and changes no byte but the image of workloads whose live image an
/// operator owns.
///
/// Helm 3 and Helm 4: helm upgrade web ./chart --post-renderer belay
///
/// Each option has an environment variable, shown beside it. Exit codes: 0; 1 refused or failed,
/// nothing was written; 2 usage.
#[derive(Debug, Parser)]
#[command(name = "belay", version, max_term_width = 100)]
pub struct Cli {
    /// What to do with an image that an operator owns: what the decision table says, or always one
    /// of the two
    #[arg(long, value_enum, default_value_t = Mode::Auto, env = "BELAY_MODE")]
    pub mode: Mode,

    /// A field manager that may keep its image; repeatable
    #[arg(
        long,
        value_name = "NAME",
        default_value = "belay-operator",
        env = "BELAY_OWNER",
        value_delimiter = ','
    )]
    pub owner: Vec<String>,

    /// The prefix of Belay's annotations
    #[arg(long, value_name = "P", default_value_t, env = "BELAY_ANNOTATION_PREFIX")]
    pub annotation_prefix: AnnotationPrefix,

    /// The Helm release; without it, Helm's command line tells it, or the live objects must agree on
    /// one
    #[arg(long, value_name = "NAME", env = "BELAY_RELEASE")]
    pub release: Option<String>,

    /// The namespace for documents that name none
    #[arg(short, long, value_name = "NS", env = "BELAY_NAMESPACE")]
    pub namespace: Option<String>,

    /// The context of the kubeconfig; empty: the current one is meant
    #[arg(long, value_name = "C", env = "BELAY_KUBE_CONTEXT")]
    pub kube_context: Option<String>,

    /// The kubeconfig file
    #[arg(long, value_name = "F", env = "BELAY_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    /// The API server's URL
    #[arg(long, value_name = "URL", env = "BELAY_KUBE_APISERVER")]
    pub kube_apiserver: Option<String>,

    /// A bearer token
    #[arg(long, value_name = "T", env = "BELAY_KUBE_TOKEN", hide_env_values = true)]
    pub kube_token: Option<Secret>,

    /// The API server's certificate authority
    #[arg(long, value_name = "F", env = "BELAY_KUBE_CA_FILE")]
    pub kube_ca_file: Option<PathBuf>,

    /// The user to act as
    #[arg(long, value_name = "U", env = "BELAY_KUBE_AS_USER")]
    pub kube_as_user: Option<String>,

    /// A group to act as; repeatable
    #[arg(long, value_name = "G", env = "BELAY_KUBE_AS_GROUP", value_delimiter = ',')]
    pub kube_as_group: Vec<String>,

    /// The name that the API server's certificate must carry
    #[arg(long, value_name = "N", env = "BELAY_KUBE_TLS_SERVER_NAME")]
    pub kube_tls_server_name: Option<String>,

    /// Do not check the API server's certificate
    #[arg(long, env = "BELAY_KUBE_INSECURE_SKIP_TLS_VERIFY", value_parser = BoolishValueParser::new())]
    pub kube_insecure_skip_tls_verify: bool,

    /// How Helm will apply; auto: as its input, its command line or its newest release record tell
    #[arg(long, value_enum, default_value_t = ServerSide::Auto, env = "BELAY_SERVER_SIDE")]
    pub server_side: ServerSide,

    /// Refuse any other API server
    #[arg(long, value_name = "URL", env = "BELAY_EXPECT_SERVER")]
    pub expect_server: Option<String>,

    /// Let the chart change the image's repository, this once
    #[arg(long, env = "BELAY_ACCEPT_REPOSITORY", value_parser = BoolishValueParser::new())]
    pub accept_repository: bool,

    /// Contact no cluster and pass everything
    #[arg(long, env = "BELAY_OFFLINE", value_parser = BoolishValueParser::new())]
    pub offline: bool,

    /// For the whole run
    #[arg(long, value_name = "D", default_value = "10s", value_parser = duration, env = "BELAY_TIMEOUT")]
    pub timeout: Duration,

    /// Where to keep the report instead of the state folder
    #[arg(long, value_name = "FILE", env = "BELAY_LOG_FILE")]
    pub log_file: Option<PathBuf>,

    /// How the report is written
    #[arg(long, value_enum, default_value_t = Format::Text, env = "BELAY_REPORT")]
    pub report: Format,

    /// Write the report to standard output instead of manifests
    #[arg(long, env = "BELAY_EXPLAIN", value_parser = BoolishValueParser::new())]
    pub explain: bool,

    /// What clap knew of the sources.
    #[arg(skip)]
    given: Given,
}

/// `--mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// The decision table.
    Auto,
    /// Write the live image where an operator owns it.
    Preserve,
    /// Take the image out where an operator owns it; refused where Helm would then delete it.
    Strip,
}

/// `--server-side`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServerSide {
    /// Find out.
    Auto,
    /// On the server side.
    True,
    /// On the client side.
    False,
}

/// `--report`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines.
    Text,
    /// One JSON object.
    Json,
}

impl From<Mode> for decide::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Auto => Self::Auto,
            Mode::Preserve => Self::Preserve,
            Mode::Strip => Self::Strip,
        }
    }
}

impl Cli {
    /// Reads the command line and the variables.
    ///
    /// # Errors
    /// What clap prints: an error of usage, the help, the version.
    pub fn parse_from<I, T>(arguments: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString>,
    {
        let words: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        quick::read(&words).map_or_else(|| Self::by_clap(&words), Ok)
    }

    fn by_clap(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = Self::command().mut_args(without_empty_variable);
        let mut matches = command.try_get_matches_from_mut(words)?;
        // It is made once, goes with the process, and takes time to be taken to pieces.
        mem::forget(command);
        let is_variable =
            |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::EnvVariable);
        let variables: Vec<Id> = matches.ids().filter(is_variable).cloned().collect();
        let mut cli = Self::from_arg_matches_mut(&mut matches)?;
        cli.given = cli.given(&variables);
        Ok(cli)
    }

    /// What the options say about the place, and which of them say it.
    pub fn place(&self) -> &Given {
        &self.given
    }

    /// `variables`: the options that a variable stands in for.
    fn given(&self, variables: &[Id]) -> Given {
        let from = |id: &str, option: &'static str, variable: &'static str| {
            let is_variable = variables.iter().any(|known| known.as_str() == id);
            Source::Belay(if is_variable { variable } else { option })
        };
        // An empty variable is one that is not set, but for the context, where it has a meaning.
        let text = |value: &Option<String>, source: Source| {
            let value = value.clone().filter(|value| !value.is_empty())?;
            Some(Told::new(value, source))
        };
        let path = |value: &Option<PathBuf>, source: Source| {
            let value = value.clone().filter(|value| !value.as_os_str().is_empty())?;
            Some(Told::new(std::path::absolute(&value).unwrap_or(value), source))
        };
        let context = from("kube_context", "--kube-context", "BELAY_KUBE_CONTEXT");
        let groups = from("kube_as_group", "--kube-as-group", "BELAY_KUBE_AS_GROUP");
        let token = from("kube_token", "--kube-token", "BELAY_KUBE_TOKEN");
        Given {
            namespace: text(&self.namespace, from("namespace", "--namespace", "BELAY_NAMESPACE")),
            release: text(&self.release, from("release", "--release", "BELAY_RELEASE")),
            kube_context: self.kube_context.clone().map(|value| Told::new(value, context)),
            kubeconfig: path(
                &self.kubeconfig,
                from("kubeconfig", "--kubeconfig", "BELAY_KUBECONFIG"),
            ),
            kube_apiserver: text(
                &self.kube_apiserver,
                from("kube_apiserver", "--kube-apiserver", "BELAY_KUBE_APISERVER"),
            ),
            kube_token: self.kube_token.clone().map(|value| Told::new(value, token)),
            kube_ca_file: path(
                &self.kube_ca_file,
                from("kube_ca_file", "--kube-ca-file", "BELAY_KUBE_CA_FILE"),
            ),
            kube_as_user: text(
                &self.kube_as_user,
                from("kube_as_user", "--kube-as-user", "BELAY_KUBE_AS_USER"),
            ),
            kube_as_groups: (!self.kube_as_group.is_empty())
                .then(|| Told::new(self.kube_as_group.clone(), groups)),
            kube_tls_server_name: text(
                &self.kube_tls_server_name,
                from(
                    "kube_tls_server_name",
                    "--kube-tls-server-name",
                    "BELAY_KUBE_TLS_SERVER_NAME",
                ),
            ),
            kube_insecure_skip_tls_verify: self.kube_insecure_skip_tls_verify,
        }
    }
}

/// Pipelines often set a variable to nothing, which then is as good as not set. Only for the context
/// an empty value has a meaning.
fn without_empty_variable(argument: Arg) -> Arg {
    let is_empty = |name: &OsStr| env::var_os(name).is_some_and(|value| value.is_empty());
    let unset = argument.get_env().is_some_and(is_empty) && argument.get_id() != "kube_context";
    if unset { argument.env(Resettable::Reset) } else { argument }
}

/// `10s`, `1m30s`, `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let duration = match text.strip_suffix("ms") {
        Some(number) => {
            Duration::from_millis(number.parse().map_err(|_| format!("{text:?} is no duration"))?)
        }
        None => text
            .parse::<belay_api::Duration>()
            .map_err(|_| format!("{text:?} is no duration such as 10s or 500ms"))?
            .into(),
    };
    if duration.is_zero() { Err("a run needs some time".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_command_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_option_has_a_variable() {
        for argument in Cli::command().get_arguments() {
            let long = argument.get_long().unwrap_or_default();
            if ["help", "version"].contains(&long) {
                continue;
            }
            let expected = format!("BELAY_{}", long.to_uppercase().replace('-', "_"));
            let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned());
            assert_eq!(variable, Some(expected));
        }
    }

    #[rstest]
    #[case("10s", Some(10_000))]
    #[case("1m30s", Some(90_000))]
    #[case("500ms", Some(500))]
    #[case("0s", None)]
    #[case("", None)]
    #[case("ten", None)]
    #[case("-1s", None)]
    fn a_timeout_is_a_duration(#[case] text: &str, #[case] milliseconds: Option<u64>) {
        assert_eq!(duration(text).ok(), milliseconds.map(Duration::from_millis));
    }

    #[test]
    fn a_token_is_not_in_the_debug_output() {
        let cli = Cli::parse_from(["belay", "--kube-token", "hunter2"]).unwrap();
        assert!(!format!("{cli:?}").contains("hunter2"));
    }

    #[test]
    fn owners_are_repeatable_or_separated_by_commas() {
        let cli = Cli::parse_from(["belay", "--owner", "a", "--owner", "b,c"]).unwrap();
        assert_eq!(cli.owner, ["a", "b", "c"]);
    }

    #[rstest]
    #[case(&["belay", "--mode", "both"])]
    #[case(&["belay", "--annotation-prefix", "a/b"])]
    #[case(&["belay", "chart"])]
    #[case(&["belay", "--server-side"])]
    fn usage_errors_are_told_by_clap(#[case] words: &[&str]) {
        let error = Cli::parse_from(words).unwrap_err();
        assert!(error.use_stderr());
    }
}
