use std::{
    io::{Read as _, Write as _},
    path::Path,
    process::Stdio,
};

use rstest::rstest;

use super::*;

#[rstest]
#[case("helm")]
#[case("helm3")]
#[case("helm4")]
#[case("helmv3")]
#[case("helm3.22.0")]
#[case("helm-3")]
#[case("helm_4")]
#[case("helm-v3.22.0")]
#[case("helm-v4.0.0-rc.1")]
#[case("helm-v4.3.1+build5")]
#[case("helm-linux-amd64")]
#[case("helm-v3.22.0-darwin-arm64")]
#[case("helm_linux_x86_64")]
fn a_helm_may_have_a_version_and_a_platform_in_its_name(#[case] name: &str) {
    assert!(name::is_helm(name));
}

#[rstest]
#[case("")]
#[case("Helm")]
#[case("helm-")]
#[case("helmfile")]
#[case("helmsman")]
#[case("helmwave")]
#[case("helmx")]
#[case("helm-diff")]
#[case("helm-docs")]
#[case("helm-2to3")]
#[case("helm-s3")]
#[case("helm-v")]
#[case("helm3x")]
#[case("helm-controller")]
#[case("xhelm")]
#[case("myhelm-3")]
fn other_names_are_no_helm(#[case] name: &str) {
    assert!(!name::is_helm(name));
}

#[rstest]
#[case("/usr/local/bin/helm", "helm")]
#[case("C:\\tools\\helm.exe", "helm")]
#[case("helm4.exe", "helm4")]
#[case("helm", "helm")]
#[case("/", "")]
fn a_base_name_has_neither_folders_nor_exe(#[case] path: &str, #[case] base: &str) {
    assert_eq!(name::base(path), base);
}

fn process(executable: Option<&str>, arguments: &[&str]) -> Process {
    Process {
        executable: executable.map(str::to_owned),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        guessed: false,
        doubt: None,
        folder: Some(PathBuf::from("/srv/ci")),
    }
}

fn helm(parent: Parent) -> Invocation {
    match parent {
        Parent::Helm(invocation) => invocation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn paths_on_the_command_line_start_at_the_folder_helm_runs_in() {
    let line =
        ["helm", "upgrade", "web", "./c", "--kubeconfig=k/config", "--kube-ca-file", "ca.pem"];
    let invocation = helm(judge(process(Some("/bin/helm"), &line)));
    assert_eq!(invocation.kubeconfig.as_deref(), Some(Path::new("/srv/ci/k/config")));
    assert_eq!(invocation.kube_ca_file.as_deref(), Some(Path::new("/srv/ci/ca.pem")));
    let line = ["helm", "upgrade", "web", "./c", "--kubeconfig=/etc/kube"];
    let invocation = helm(judge(process(Some("/bin/helm"), &line)));
    assert_eq!(invocation.kubeconfig.as_deref(), Some(Path::new("/etc/kube")));
    let nowhere = Process { folder: None, ..process(None, &["helm", "upgrade", "--kubeconfig=k"]) };
    let here = std::env::current_dir().unwrap().join("k");
    assert_eq!(helm(judge(nowhere)).kubeconfig, Some(here));
}

/// What a process is taken for, in a word.
fn kind(parent: &Parent) -> String {
    match parent {
        Parent::Helm(invocation) => format!("helm {:?}", invocation.command),
        Parent::Other { program } => format!("other {program}"),
        Parent::Hidden { why } => format!("hidden {why}"),
    }
}

#[rstest]
#[case(Some("/usr/bin/helm"), &["helm", "upgrade", "a", "b"], "helm Upgrade")]
#[case(Some("/usr/bin/helm3"), &["helm", "install", "a", "b"], "helm Install")]
// The link says what runs; a program can call itself anything.
#[case(Some("/usr/bin/bash"), &["helm", "upgrade", "a", "b"], "other bash")]
#[case(None, &["/opt/helm", "template", "a"], "helm Template")]
#[case(None, &["/opt/helmfile", "apply"], "other helmfile")]
#[case(Some("/usr/bin/helm"), &["helm", "list"], "helm Other(\"list\")")]
#[case(Some("/bin/helm"), &["helm", "diff", "upgrade", "a", "b"], "other helm (a plugin's command)")]
#[case(Some("/bin/helm"), &["helm", "-n", "x", "secrets", "upgrade"], "other helm (a plugin's command)")]
#[case(Some("/bin/helm"), &["helm"], "other helm (a plugin's command)")]
#[case(Some("/usr/bin/make"), &["make", "TOKEN=hunter2"], "other make")]
#[case(None, &[], "hidden neither its executable nor its name shows")]
#[case(None, &[""], "hidden neither its executable nor its name shows")]
fn a_process_is_a_helm_by_its_executable_and_its_command(
    #[case] executable: Option<&str>,
    #[case] arguments: &[&str],
    #[case] expected: &str,
) {
    assert_eq!(kind(&judge(process(executable, arguments))), expected);
}

#[test]
fn nothing_of_another_programs_arguments_is_kept() {
    let line = ["bash", "-c", "deploy --kube-token hunter2"];
    let parent = judge(process(Some("/bin/bash"), &line));
    assert_eq!(parent, Parent::Other { program: "bash".to_owned() });
    let plugin = judge(process(None, &["helm", "--no-such-flag", "x", "hunter2"]));
    assert!(!format!("{plugin:?}").contains("hunter2"));
}

#[rstest]
#[case(b"helm\0upgrade\0", &["helm", "upgrade"], None)]
#[case(b"helm\0-n\0\0web\0", &["helm", "-n", "", "web"], None)]
#[case(b"helm\0-n\0\0", &["helm", "-n", ""], None)]
#[case(b"helm\0a\nb c\0", &["helm", "a\nb c"], None)]
#[case(b"a title", &["a title"], None)]
#[case(b"helm\0\xff\0", &["helm", "\u{fffd}"], Some(Doubt::Encoding))]
fn a_cmdline_file_is_parted_at_zero_bytes(
    #[case] bytes: &[u8],
    #[case] expected: &[&str],
    #[case] doubt: Option<Doubt>,
) {
    let (arguments, found) = proc::arguments(bytes).unwrap();
    assert_eq!(arguments, expected);
    assert_eq!(found, doubt);
}

#[test]
fn a_cmdline_file_that_is_empty_or_too_long_is_refused() {
    let empty = proc::arguments(b"").unwrap_err();
    assert_eq!(empty, "its command line is empty");
    let full = [b"helm\0".as_slice(), &vec![b'a'; MOST_BYTES - 6], b"\0"].concat();
    assert_eq!(full.len(), MOST_BYTES);
    assert_eq!(proc::arguments(&full).unwrap().0.len(), 2);
    let long = proc::arguments(&[full.as_slice(), b"\0"].concat()).unwrap_err();
    assert_eq!(long, "its command line is longer than 2097152 bytes");
}

#[test]
fn an_argument_that_is_no_text_leaves_a_doubt_and_the_rest() {
    let line = ["helm", "upgrade", "web", "./c", "--set", "a=\u{fffd}", "-n", "shop"];
    let odd = Process { doubt: Some(Doubt::Encoding), ..process(None, &line) };
    let invocation = helm(judge(odd));
    assert_eq!((invocation.certain, invocation.doubt), (false, Some(Doubt::Encoding)));
    assert_eq!(invocation.namespace.as_deref(), Some("shop"));
    assert_eq!(invocation.release.as_deref(), Some("web"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_running_process_shows_its_executable_its_arguments_and_its_folder() {
    let folder = std::fs::canonicalize(std::env::temp_dir()).unwrap();
    let mut child = std::process::Command::new("cat")
        .args(["-", "", "é"])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    // Its command line shows for sure only once it runs.
    input.write_all(b"x").unwrap();
    output.read_exact(&mut [0]).unwrap();
    let seen = proc::whole(child.id(), proc::executable(child.id()));
    let judged = proc::process(child.id()).map(judge);
    drop(input);
    child.wait().unwrap();
    let seen = seen.unwrap();
    assert_eq!(seen.arguments, ["cat", "-", "", "é"]);
    assert_eq!(seen.folder, Some(folder));
    let program = seen.executable.as_deref().map(name::base).unwrap().to_owned();
    assert_eq!(judged, Ok(Parent::Other { program }));
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_is_not_there_says_what_could_not_be_read() {
    // Above the largest number that Linux gives.
    let why = proc::process(u32::MAX).unwrap_err();
    assert!(why.starts_with("its command line could not be read: "), "{why}");
}

#[test]
fn the_parent_of_a_test_is_found() {
    // Whatever runs the tests, it is no Helm that renders.
    let parent = look();
    #[cfg(target_os = "linux")]
    assert!(matches!(parent, Parent::Other { .. }), "{parent:?}");
    assert!(!matches!(parent, Parent::Helm(_)), "{parent:?}");
    assert_eq!(id(), id());
}

fn from_ps(comm: &str, command: &str) -> Parent {
    judge(ps::process(comm, command))
}

#[test]
fn arguments_that_ps_prints_in_one_line_are_parted_at_blanks() {
    let command = "/opt/homebrew/bin/helm upgrade web ./chart -n shop --set a=b,c=d\n";
    let invocation = helm(from_ps("/opt/homebrew/bin/helm\n", command));
    assert!(invocation.certain, "{:?}", invocation.doubt);
    assert_eq!(invocation.release.as_deref(), Some("web"));
    assert_eq!(invocation.namespace.as_deref(), Some("shop"));
}

#[test]
fn a_program_whose_path_holds_blanks_is_one_word() {
    let invocation = helm(from_ps("/Users/a b/helm\n", "/Users/a b/helm upgrade web ./chart\n"));
    assert!(invocation.certain);
    assert_eq!(invocation.release.as_deref(), Some("web"));
}

#[rstest]
#[case::quotes("helm upgrade web ./c --set a='b' -n shop")]
#[case::escaped("helm upgrade web ./c --set a=\\303\\251 -n shop")]
#[case::an_empty_argument("helm upgrade web ./c --description  -n shop")]
#[case::an_empty_argument_at_the_end("helm upgrade web ./c -n shop --description ")]
#[case::a_value_with_a_blank("helm upgrade web ./c --description a b -n shop")]
#[case::a_flag_in_a_value("helm upgrade web ./c --description a --b=c -n shop")]
#[case::an_unknown_flag("helm upgrade web ./c --b -n shop")]
#[case::a_line_break("helm upgrade web ./c --set a=b\nc -n shop")]
#[case::another_name("/bin/helm upgrade web ./c -n shop")]
fn what_ps_leaves_open_is_not_certain(#[case] command: &str) {
    let invocation = helm(from_ps("helm", command));
    assert!(!invocation.certain);
    assert_eq!(invocation.release, None);
    assert_eq!(invocation.namespace.as_deref(), Some("shop"), "what is there still counts");
}

#[test]
fn a_program_of_another_name_is_no_helm_for_ps_either() {
    assert_eq!(kind(&from_ps("-zsh\n", "-zsh\n")), "other -zsh");
    assert_eq!(kind(&from_ps("", "")), "hidden neither its executable nor its name shows");
}

#[cfg(unix)]
#[test]
fn ps_is_asked_for_one_column_of_one_process() {
    assert_eq!(ps::ask("echo", "comm=", 7).unwrap(), "-ww -o comm= -p 7\n");
    assert!(ps::ask("false", "comm=", 7).unwrap_err().starts_with("false ended with "));
    let why = ps::ask("/nonexistent/ps", "comm=", 7).unwrap_err();
    assert!(why.starts_with("/nonexistent/ps could not be run: "), "{why}");
}
