//! The line about Helm: which release the workload is part of, and whether the next `helm upgrade`
//! leaves the image alone.

use super::view::{Options, Seen};
use crate::{
    facts::{
        helm::{ChartImage, Forecast, Outcome, Source, chart::Container},
        live::tag,
    },
    print::{Icon, Line, Paint},
    read::{Fact, Why},
};

/// `None` where the workload is not part of a release of Helm, or nobody asked.
pub(super) fn line(seen: &Seen<'_>, options: &Options) -> Option<Line> {
    let live = seen.live.as_ref()?;
    // A watch reads Helm's records for its last frame alone.
    if matches!(seen.snapshot.helm, Fact::Unknown(Why::NotAsked)) {
        return None;
    }
    let source = Source::of(live, &seen.snapshot.helm);
    let (first, second) = match &source {
        Source::NotHelm => return None,
        Source::Unread { name, why } => {
            (name.clone(), Line::new().with(Paint::Warn, format!("unknown: {why}")))
        }
        Source::Release(record) => (
            format!("{}, revision {}", record.chart_name(), record.revision),
            prospect(seen, &source),
        ),
    };
    Some(options.line("Helm", first.into(), second))
}

fn prospect(seen: &Seen<'_>, source: &Source) -> Line {
    let (Some(live), Some(container)) = (seen.live.as_ref(), seen.first_followed()) else {
        return Line::new();
    };
    let Some(forecast) = Forecast::of(source, live, container, seen.prefix()) else {
        return Line::new();
    };
    let (three, four) = (&forecast.three, &forecast.four);
    if three.is_good() && four.is_good() {
        let icon = Icon::Good;
        let good = format!("compatible {}", icon.as_str());
        return Line::new().with(icon.paint(), good).plain(why(seen, source));
    }
    if let Outcome::Unknown(why) = three {
        return Line::new().with(Paint::Warn, format!("unknown: {why}"));
    }
    let words = |outcome: &Outcome| match outcome {
        Outcome::Resets(Some(image)) => format!("resets it to {}", tag(image)),
        _ => outcome.words(&tag(&container.image)),
    };
    // The two Helms write in two ways, hence do not always do the same.
    let words = match (words(three), words(four)) {
        (three, four) if three == four => format!("helm upgrade {three}"),
        (three, four) => format!("Helm 3 {three}, Helm 4 {four}"),
    };
    let icon = Icon::Warn;
    Line::new()
        .with(icon.paint(), format!("{} {words}", icon.as_str()))
        .plain("  (use --post-renderer belay)")
}

/// Why the next upgrade leaves the image alone.
fn why(seen: &Seen<'_>, source: &Source) -> String {
    let (Some(live), Some(container), Some(record)) =
        (seen.live.as_ref(), seen.first_followed(), source.record())
    else {
        return String::new();
    };
    let list = container.name.list();
    let wanted =
        Container { kind: &live.kind, object: &live.name, list, name: &container.name.name };
    let field = format!("{}.image", container.name);
    match ChartImage::of(record, wanted) {
        ChartImage::Absent => format!("  (chart does not set {field})"),
        ChartImage::FollowsLive => format!("  (chart looks {field} up)"),
        ChartImage::Sets(_) => format!("  (chart sets {field} to the same)"),
        ChartImage::Hidden | ChartImage::Stripped => String::new(),
    }
}
