//! A process that has just begun knows less than the one before it, for a moment: neither GitHub nor
//! the pods. What it decides then must not be worse for ever, and takes nothing back.

use belay_engine::{judge::PodFacts, observed::Fact};

use crate::case::{Case, Fate, at};

fn unknown<T>(case: &Case) -> Fact<T> {
    Fact::Unknown { why: "it was not read yet".to_owned(), read: at(case.now) }
}

#[test]
fn a_block_that_was_written_without_github_gets_its_times_once_github_is_known() {
    let mut case = Case::new();
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(599);
    case.fate = Fate::Succeeds;
    let github = case.observed.forge.clone();
    case.observed.forge = unknown(&case);
    case.work(200);
    let block = case.block("v1.1.0").unwrap();
    assert_eq!((block.from.published, block.to.unwrap().published), (None, None));
    case.observed.forge = github;
    case.passes();
    let block = case.block("v1.1.0").unwrap();
    assert!(block.from.published.is_some());
    assert!(block.to.unwrap().published.is_some());
    assert!(case.passes().is_empty());
}

#[test]
fn what_was_said_of_pods_stands_while_they_are_not_known() {
    let mut case = Case::new();
    case.fate = Fate::Hangs;
    case.publish("v1.1.0");
    case.work(10);
    let pod = PodFacts {
        name: "web-2".to_owned(),
        is_new: true,
        created: at(case.now),
        started: None,
        ready: false,
        deleting: false,
        disrupted: false,
        unschedulable: Some("0/1 nodes are available".to_owned()),
        containers: Vec::new(),
    };
    let pods = Fact::known(vec![pod], at(case.now));
    case.observed.pods = pods.clone();
    assert_eq!(case.passes().len(), 1);
    let said = case.condition("Progressing");
    assert_eq!(said.as_ref().map(|(reason, _)| reason.as_str()), Some("Unschedulable"));
    case.observed.pods = unknown(&case);
    assert!(case.passes().is_empty());
    assert_eq!(case.condition("Progressing"), said);
    case.observed.pods = pods;
    assert!(case.passes().is_empty());
    // Pods that are known and without trouble take it back.
    case.observed.pods = Fact::known(Vec::new(), at(case.now));
    assert_eq!(case.passes().len(), 1);
    assert_eq!(case.reason("Progressing").as_deref(), Some("Rolling"));
}
