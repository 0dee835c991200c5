//! Command lines that nearly all runs have: none at all, or a few options that tell the place.
//!
//! To describe all options to clap, with their help, takes as long as a tenth of a whole run, and is
//! needed only where there is something to refuse, to print, or to read that is not read here.

use std::{env, ffi::OsString, path::PathBuf, time::Duration};

use super::{Cli, Format, Mode, ServerSide};
use crate::locate::Given;

/// Reads a command line as clap would; `None`: clap has to.
pub(super) fn read(words: &[OsString]) -> Option<Cli> {
    let is_ours = |name: &OsString| {
        let start = name.as_encoded_bytes().get(..6);
        start.is_some_and(|start| start.eq_ignore_ascii_case(b"BELAY_"))
    };
    if env::vars_os().any(|(name, _)| is_ours(&name)) {
        return None;
    }
    let mut cli = plain();
    let mut kubeconfig = None;
    let mut words = words.get(1..)?.iter();
    while let Some(word) = words.next() {
        let place = match word.to_str()? {
            "-n" | "--namespace" => &mut cli.namespace,
            "--release" => &mut cli.release,
            "--kube-context" => &mut cli.kube_context,
            "--kubeconfig" => &mut kubeconfig,
            _ => return None,
        };
        let value = words.next()?.to_str()?;
        // An empty context has a meaning; what is empty otherwise, looks like an option or is told
        // twice may be an error.
        let is_plain = !value.starts_with('-') && (!value.is_empty() || word == "--kube-context");
        if !is_plain || place.replace(value.to_owned()).is_some() {
            return None;
        }
    }
    cli.kubeconfig = kubeconfig.map(PathBuf::from);
    cli.given = cli.given(&[]);
    Some(cli)
}

/// What holds where nothing is said.
fn plain() -> Cli {
    Cli {
        mode: Mode::Auto,
        owner: vec!["belay-operator".to_owned()],
        annotation_prefix: belay_api::AnnotationPrefix::default(),
        release: None,
        namespace: None,
        kube_context: None,
        kubeconfig: None,
        kube_apiserver: None,
        kube_token: None,
        kube_ca_file: None,
        kube_as_user: None,
        kube_as_group: Vec::new(),
        kube_tls_server_name: None,
        kube_insecure_skip_tls_verify: false,
        server_side: ServerSide::Auto,
        expect_server: None,
        accept_repository: false,
        offline: false,
        timeout: Duration::from_secs(10),
        log_file: None,
        report: Format::Text,
        explain: false,
        given: Given::default(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn words(line: &[&str]) -> Vec<OsString> {
        std::iter::once("belay").chain(line.iter().copied()).map(OsString::from).collect()
    }

    #[rstest]
    #[case::nothing(&[])]
    #[case::short(&["-n", "shop"])]
    #[case::long(&["--namespace", "shop", "--release", "web"])]
    #[case::the_current_context(&["--kube-context", ""])]
    #[case::odd_values(&["--kube-context", "a=b, c", "--kubeconfig", "relative/file", "-n", "é"])]
    #[case::an_absolute_path(&["--kubeconfig", "/a/b"])]
    fn plain_command_lines_are_read_as_clap_reads_them(#[case] line: &[&str]) {
        let quick = read(&words(line)).unwrap();
        let clap = Cli::by_clap(&words(line)).unwrap();
        assert_eq!(format!("{quick:?}"), format!("{clap:?}"));
    }

    #[rstest]
    #[case::help(&["--help"])]
    #[case::version(&["-V"])]
    #[case::another_option(&["--mode", "strip"])]
    #[case::no_option(&["shop"])]
    #[case::no_value(&["-n", "shop", "--release"])]
    #[case::an_option_for_a_value(&["-n", "--release"])]
    #[case::twice(&["-n", "shop", "--namespace", "shop"])]
    #[case::empty(&["-n", ""])]
    #[case::an_empty_path(&["--kubeconfig", ""])]
    #[case::joined(&["--namespace=shop"])]
    #[case::glued(&["-nshop"])]
    #[case::abbreviated(&["--names", "shop"])]
    #[case::the_end_of_options(&["--", "-n", "shop"])]
    fn the_rest_is_for_clap(#[case] line: &[&str]) {
        assert!(read(&words(line)).is_none());
    }

    #[test]
    fn without_a_name_clap_has_to_look() {
        assert!(read(&[]).is_none());
    }
}
