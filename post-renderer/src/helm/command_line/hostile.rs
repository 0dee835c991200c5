//! Arguments that nobody would write.

use proptest::{collection::vec, prelude::*, sample::select};
use rstest::rstest;

use super::*;
use crate::helm::flags::FLAGS;

#[rstest]
#[case::one_argument_of_two_mebibytes(vec!["a".repeat(2 << 20)])]
#[case::one_group_of_two_mebibytes(vec![format!("-{}", "i".repeat(2 << 20))])]
#[case::one_unknown_group(vec![format!("-{}", "é".repeat(1 << 20))])]
#[case::many_names(vec!["x".to_owned(); 100_000])]
#[case::many_switches(vec!["--wait".to_owned(); 100_000])]
#[case::many_unknown_flags(vec!["--nope".to_owned(); 100_000])]
#[case::many_values(vec!["--kube-as-group=x".to_owned(); 100_000])]
#[case::many_groups((0..100_000).map(|group| format!("--kube-as-group={group}")).collect())]
#[case::nothing_but_dashes(vec!["-".to_owned(), "--".to_owned(), "---".to_owned(), "--=".to_owned()])]
#[case::zero_bytes(vec!["-n\0".to_owned(), "\0".to_owned(), "--\0=\0".to_owned()])]
#[case::nothing(vec![])]
fn hostile_arguments_are_read_to_their_end(#[case] hostile: Vec<String>) {
    for command in ["upgrade", "install", "template", "list", "diff"] {
        let args: Vec<String> =
            [command, "-n", "shop"].map(str::to_owned).into_iter().chain(hostile.clone()).collect();
        let invocation = parse(&args);
        if command == "upgrade" {
            assert!(invocation.namespace.is_some());
            assert_eq!(invocation.release, None);
        }
        parse(&hostile);
    }
}

/// Text as it stands in command lines: flags, halves of flags, values.
fn argument() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("upgrade".to_owned()),
        Just("install".to_owned()),
        Just("template".to_owned()),
        "-{0,3}[a-z=.]{0,6}",
        "\\PC{0,8}",
        any::<String>(),
        (0..FLAGS.len(), "[=]?[a-z0-9]{0,4}")
            .prop_map(|(row, value)| { format!("--{}{value}", FLAGS[row].name) }),
        "-[a-z]{1,4}=?[a-z]{0,3}",
    ]
}

/// A flag of the table that any command of this scope knows, in one of its spellings.
fn spelled(scope: Scope) -> impl Strategy<Value = Vec<String>> {
    let rows: Vec<&Flag> = FLAGS
        .iter()
        .filter(|flag| flag.on.contains(&scope) || flag.on.contains(&Scope::Root))
        // These two say that there is no name.
        .filter(|flag| !matches!(flag.meaning, Meaning::GenerateName | Meaning::NameTemplate))
        .collect();
    let switches: Vec<char> = rows
        .iter()
        .filter(|flag| flag.arity != Arity::Value)
        .filter_map(|flag| flag.short)
        .collect();
    (select(rows), argument(), 0..4_u8, select(switches)).prop_map(
        |(flag, value, spelling, switch)| {
            let long = format!("--{}", flag.name);
            match (flag.arity, flag.short, spelling) {
                (Arity::Value, Some(short), 0) => vec![format!("-{short}"), value],
                (Arity::Value, Some(short), 1) => vec![format!("-{switch}{short}={value}")],
                (Arity::Value, Some(short), 2) => vec![format!("-{short}={value}")],
                (Arity::Value, _, 0 | 1) => vec![long, value],
                (_, Some(short), 0) => vec![format!("-{switch}{short}")],
                (_, Some(short), 1) => vec![format!("-{short}")],
                (Arity::Switch | Arity::OptionalValue, _, 0 | 1) => vec![long],
                _ => vec![format!("{long}={value}")],
            }
        },
    )
}

proptest! {
    #[test]
    fn no_arguments_make_it_panic(args in vec(argument(), 0..12)) {
        let invocation = parse(&args);
        prop_assert_eq!(invocation.certain, invocation.doubt.is_none());
        prop_assert!(!parse_words(&args).certain || invocation.certain);
        prop_assert!(invocation.strays.iter().all(|flag| invocation.given.contains(flag)));
    }

    #[test]
    fn a_known_flag_anywhere_leaves_the_release_as_it_is(
        command in 0..3_usize,
        install in vec(spelled(Scope::Install), 4),
        upgrade in vec(spelled(Scope::Upgrade), 4),
        template in vec(spelled(Scope::Template), 4),
        // Where each of the flags stands: after the command, the name, or the chart.
        places in vec(0..3_usize, 4),
    ) {
        let (word, flags) =
            [("install", install), ("upgrade", upgrade), ("template", template)][command].clone();
        let mut args = Vec::new();
        for (place, name) in [word, "web", "./chart"].into_iter().enumerate() {
            args.push(name.to_owned());
            let here = flags.iter().zip(&places).filter(|(_, at)| **at == place);
            args.extend(here.flat_map(|(flag, _)| flag.clone()));
        }
        let invocation = parse(&args);
        prop_assert_eq!(invocation.release.as_deref(), Some("web"), "{:?}", args);
    }

    #[test]
    fn a_flag_of_helm_itself_may_stand_before_the_command(
        value in argument(),
        row in 0..FLAGS.len(),
        spelling in 0..3_u8,
    ) {
        let flag = FLAGS[row];
        prop_assume!(flag.on.contains(&Scope::Root));
        let mut args = match (flag.arity, flag.short, spelling) {
            (Arity::Value, Some(short), 0) => vec![format!("-{short}"), value],
            (Arity::Value, None, 0) | (Arity::Value, _, 1) => vec![format!("--{}", flag.name), value],
            (Arity::Switch | Arity::OptionalValue, _, 0 | 1) => vec![format!("--{}", flag.name)],
            _ => vec![format!("--{}={value}", flag.name)],
        };
        args.extend(["upgrade", "web", "./chart"].map(str::to_owned));
        let invocation = parse(&args);
        prop_assert_eq!(invocation.release.as_deref(), Some("web"), "{:?}", args);
    }
}
