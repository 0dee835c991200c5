//! Pods of all shapes, and what may be said of their containers.

use crate::dice::Dice;

/// Where images of the generated Deployments are.
#[derive(Debug, Clone)]
pub(crate) struct Repositories {
    /// Of what is followed.
    pub(crate) own: String,
    /// Of others.
    pub(crate) foreign: String,
}

/// The containers of a pod template.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pod {
    /// Names and images.
    pub(crate) containers: Vec<(String, String)>,
    /// The same of init containers.
    pub(crate) init: Vec<(String, String)>,
    /// Whether the annotation is needed: there are several.
    pub(crate) is_ambiguous: bool,
    good: Vec<String>,
    bad: Vec<String>,
}

/// Images that are no references, or hardly any. The API server takes them all.
const ODD_IMAGES: &[&str] = &[
    "UPPER/Case:1",
    "no such thing",
    "{{ .Values.image }}",
    "nginx:",
    "nginx@sha256:zz",
    "🐳",
    "../../etc/passwd",
    "nginx:\u{0}1",
    "-:-",
    "https://registry.example/web:1",
];
const TAGS: &[&str] = &["1.0.0", "1.0.0", "1.0.0", "0.9.0", "latest", "sha-8c1e9f2", "1.0.0-rc.1"];

impl Pod {
    pub(crate) fn new(dice: &mut Dice, repositories: &Repositories) -> Self {
        let own = format!("{}:{}", repositories.own, dice.pick(TAGS));
        let foreign = format!("{}:{}", repositories.foreign, dice.pick(TAGS));
        match dice.below(10) {
            // Its objects are ten times as large as all others, hence there are few.
            8 if dice.one_in(10) => Self::crowd(&own),
            0..=2 | 8 => Self::of(&[("app", &own)], &[]).good(&["app"]),
            3 => {
                let longest = "a".repeat(63);
                Self::of(&[(&longest, &own)], &[]).good(&[&longest])
            }
            4 => Self::of(&[("app", &own), ("worker", &own)], &[])
                .good(&["app", "worker", "app,worker", "app, worker"])
                .bad(&["app,worker,app", "app worker", "init:worker"]),
            5 => Self::of(&[("app", &own), ("proxy", &foreign)], &[])
                .good(&["app", "proxy"])
                .bad(&["app,proxy", "proxy,app"]),
            6 => Self::of(&[("app", &own)], &[("migrate", &own)])
                .good(&["app", "init:migrate", "app,init:migrate"])
                .bad(&["migrate", "init:app", "app,migrate", "init:migrate,init:migrate"]),
            7 => Self::of(&[("app", &own)], &[("setup", &foreign)])
                .good(&["app", "init:setup"])
                .bad(&["app,init:setup", "init:setup,app"]),
            _ => {
                let odd = if dice.one_in(4) { "a".repeat(2_000) } else { dice.pick(ODD_IMAGES) };
                Self::of(&[("app", &odd)], &[]).good(&["app"])
            }
        }
    }

    fn of(containers: &[(&str, &str)], init: &[(&str, &str)]) -> Self {
        let owned = |all: &[(&str, &str)]| {
            all.iter().map(|(name, image)| ((*name).to_owned(), (*image).to_owned())).collect()
        };
        let first = containers.first().map(|(name, _)| *name).unwrap_or_default();
        let bad = [
            String::new(),
            ",".to_owned(),
            format!("{first},"),
            format!(",{first}"),
            format!("{first},{first}"),
            format!("{first};{first}"),
            format!("init:init:{first}"),
            format!("{first},no-such-container"),
            "no-such-container".to_owned(),
            "init:no-such-container".to_owned(),
            "init:".to_owned(),
            first.to_uppercase(),
            "*".to_owned(),
        ];
        Self {
            containers: owned(containers),
            init: owned(init),
            is_ambiguous: containers.len() > 1,
            good: Vec::new(),
            bad: bad.into(),
        }
    }

    fn crowd(image: &str) -> Self {
        let names: Vec<_> = (0..50).map(|number| format!("c{number}")).collect();
        let all: Vec<_> = names.iter().map(|name| (name.as_str(), image)).collect();
        let list = names.join(",");
        Self::of(&all, &[]).good(&["c7", &list]).bad(&[&format!("{list},c50"), &names.join(" ")])
    }

    fn good(mut self, values: &[&str]) -> Self {
        self.good = values.iter().map(|value| (*value).to_owned()).collect();
        self
    }

    fn bad(mut self, values: &[&str]) -> Self {
        self.bad.extend(values.iter().map(|value| (*value).to_owned()));
        self
    }

    /// A value of `container` that fits.
    pub(crate) fn good_value(&self, dice: &mut Dice) -> String {
        dice.one_of(&self.good)
    }

    /// One that does not.
    pub(crate) fn bad_value(&self, dice: &mut Dice) -> String {
        match dice.below(10) {
            0 => dice.long("app,"),
            1 | 2 => dice.junk(),
            _ => dice.one_of(&self.bad),
        }
    }
}
