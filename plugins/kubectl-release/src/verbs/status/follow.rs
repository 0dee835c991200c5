//! `status -w` without a name: rows of what changed, appended at the widths of the first list as
//! kubectl does, or with `--refresh` the table drawn anew in place.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kube::{ResourceExt as _, runtime::watcher};
use tokio::time::Instant;

use super::{
    list::{self, StatusSelector},
    notes, nothing, options,
    pulse::{Beat, Pulse, Rate, changes},
    screen::Screen,
    vigil::Vigil,
};
use crate::{
    Error, Exit, Session,
    cli::{output::Format, status::StatusArgs},
    print::{Line, object},
    read::{
        Reader,
        api::kind_of,
        fleet::{Depth, Fleet, Member},
        snapshot::installed,
    },
};

/// A read is one of the whole list.
const RATE: Rate = Rate { pace: Duration::from_millis(500), poll: 5 };

/// The longest word of the column STATUS.
const LONGEST_STATUS: &str = "Progressing";

pub(super) async fn run(args: &StatusArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let is_json = match args.output.for_programs() {
        None => false,
        Some(Format::Json) => true,
        Some(_) => return Err(Error::usage("-w knows no other format for programs than json")),
    };
    let selector = args.status_selector.as_deref().map(StatusSelector::parse).transpose()?;
    let reader = Reader::new(session.cluster()?);
    let namespace = reader.cluster.namespace.clone();
    let scope = (!args.all_namespaces).then_some(namespace.as_str());
    let mut config = watcher::Config::default();
    if let Some(labels) = &args.selector {
        config = config.labels(labels);
    }
    let target = reader.api(&kind_of::<belay_api::ReleaseTarget>(), scope);
    let mut pulse = Pulse::new(changes(target, config), RATE, args.timeout);
    let refreshes = args.refresh && session.out.terminal.stdout && !is_json;
    let mut show = Rows { seen: BTreeMap::new(), widths: None, is_json, screen: Screen::default() };
    let depth = if is_json { Depth::Target } else { Depth::Workload };
    let prefix = session.global.annotation_prefix.clone();
    let mut is_first = true;
    let mut vigil = Vigil::default();
    let mut instances = BTreeSet::new();
    loop {
        let read = Instant::now();
        let labels = args.selector.as_deref();
        match reader.fleet(scope, labels, depth, prefix.as_ref()).await {
            Ok(mut fleet) => {
                if let Some(selector) = &selector {
                    let word = |one: &Member| list::standing(&one.target.value).word;
                    fleet.members.retain(|member| selector.shows(&word(member)));
                }
                if is_first {
                    notes(&fleet, session)?;
                    if fleet.members.is_empty() {
                        session.out.note(nothing(scope))?;
                    }
                }
                instances = operators(&fleet);
                if refreshes {
                    show.refresh(&fleet, &vigil, args, session)?;
                } else {
                    show.append(&fleet, args, session)?;
                }
            }
            // What was seen last stays until there is an answer again.
            Err(error) if is_first => return Err(installed(error)),
            Err(_) => pulse.poll_if(true),
        }
        is_first = false;
        loop {
            let news = vigil.look(&reader, instances.clone(), session.out.now()).await;
            if !news.is_empty() && refreshes {
                // The table has room for it.
                break;
            }
            news.into_iter().try_for_each(|line| session.out.note(line))?;
            match pulse.next().await {
                Beat::Over => return Ok(Exit::Timeout),
                Beat::Tick => {}
                Beat::Read => break,
            }
        }
        pulse.keep_pace(read).await;
    }
}

/// The Leases of the operators that follow these Targets.
fn operators(fleet: &Fleet) -> BTreeSet<String> {
    let instance = |member: &Member| member.target.value.status.as_ref()?.instance.clone();
    fleet.members.iter().filter_map(instance).collect()
}

struct Rows {
    /// What was shown last of each Target.
    seen: BTreeMap<(String, String), String>,
    widths: Option<Vec<usize>>,
    is_json: bool,
    screen: Screen,
}

impl Rows {
    /// Shows those that changed.
    fn append(
        &mut self,
        fleet: &Fleet,
        args: &StatusArgs,
        session: &mut Session<'_>,
    ) -> Result<(), Error> {
        let options = options(args, session);
        let style = options.style;
        let mut changed = Fleet::default();
        for member in &fleet.members {
            let target = &member.target.value;
            let key = (target.namespace().unwrap_or_default(), target.name_any());
            let text = self.text(member, args, session);
            if self.seen.get(&key) != Some(&text) {
                self.seen.insert(key, text);
                changed.members.push(member.clone());
            }
        }
        if self.is_json {
            for member in &changed.members {
                let mut raw = member.target.raw.clone();
                object::without_managed_fields(&mut raw);
                session.out.raw(&object::compact(&raw))?;
            }
            return Ok(session.out.flush()?);
        }
        if changed.members.is_empty() {
            return Ok(());
        }
        let table = list::table(&changed, args.all_namespaces, &options);
        let headers = self.widths.is_none() && !args.no_headers;
        let widths = self.widths.get_or_insert_with(|| {
            let mut widths = table.widths(style);
            // Rows to come have room for every status.
            let status = 1 + usize::from(args.all_namespaces);
            if let Some(width) = widths.get_mut(status) {
                *width = (*width).max(LONGEST_STATUS.len());
            }
            widths
        });
        for line in table.lines(style, widths, headers) {
            session.out.line(line)?;
        }
        Ok(session.out.flush()?)
    }

    /// What makes a row another one: everything but the age.
    fn text(&self, member: &Member, args: &StatusArgs, session: &Session<'_>) -> String {
        if self.is_json {
            return member.target.raw.to_string();
        }
        let mut options = options(args, session);
        options.absolute_time = true;
        let cells = list::row(member, &options);
        cells.iter().map(|cell| cell.bare(options.style)).collect::<Vec<_>>().join("\u{0}")
    }

    fn refresh(
        &mut self,
        fleet: &Fleet,
        vigil: &Vigil,
        args: &StatusArgs,
        session: &mut Session<'_>,
    ) -> Result<(), Error> {
        let options = options(args, session);
        let table = list::table(fleet, args.all_namespaces, &options);
        let mut lines: Vec<Line> = vigil.lines(&options);
        lines.extend(table.lines(options.style, &table.widths(options.style), !args.no_headers));
        Ok(self.screen.draw(&lines, session.out)?)
    }
}
