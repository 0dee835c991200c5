//! What the next `helm upgrade` does to the image of one container, with the chart as it was rendered
//! last and without flags of its own. Each rule is a row of the lab report, named where it stands.

use belay_engine::image::ImageRef;
use belay_ownership::{Identity, Operation};

use super::{MANAGER, chart::ChartImage, record::ApplyMethod};

/// A major version of Helm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Major {
    /// Helm 3.
    Three,
    /// Helm 4.
    Four,
}

/// Whether Helm runs with the post-renderer `belay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renderer {
    /// Without.
    None,
    /// With `--post-renderer belay`.
    Belay,
}

/// What is known of one container.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// What the chart sets; why that is not known.
    pub chart: Result<ChartImage, String>,
    /// How the newest revision was applied; `None` where the records cannot be read.
    pub method: Option<ApplyMethod>,
    /// The live image.
    pub live: &'a str,
    /// Who owns the live image.
    pub owners: &'a [Identity],
    /// The manager of Belay's operator.
    pub operator: &'a str,
    /// The workload carries `repo`.
    pub has_repo: bool,
    /// The workload carries `release`.
    pub has_release: bool,
    /// The `image` annotation, which permits another repository.
    pub image_annotation: Option<&'a str>,
}

/// What becomes of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It stays, and Helm owns no more of it than before.
    Keeps,
    /// It stays, and Helm becomes an owner beside the others.
    Shares,
    /// Helm sets it to its chart's image, `None` where that is not known.
    Resets(Option<String>),
    /// Helm fails with a conflict with these managers; other objects may be changed by then.
    Conflicts(Vec<String>),
    /// The post-renderer refuses, and nothing is changed.
    Refuses(String),
    /// Nobody can say; why.
    Unknown(String),
}

impl Outcome {
    /// Whether the live image stays and the upgrade works.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Keeps | Self::Shares)
    }
}

/// What Helm does to an image that reaches it.
enum Incoming<'a> {
    /// An image, `None` for one that is not the live one but is not known.
    Image(Option<&'a str>),
    /// The live one.
    Live,
    /// None at all.
    Nothing,
}

/// Predicts the next `helm upgrade`.
pub fn predict(question: &Question<'_>, major: Major, renderer: Renderer) -> Outcome {
    if renderer == Renderer::Belay {
        return rendered(question, major);
    }
    plain(question, major)
}

fn plain(question: &Question<'_>, major: Major) -> Outcome {
    let incoming = match &question.chart {
        Err(why) => return Outcome::Unknown(why.clone()),
        Ok(ChartImage::Absent) => Incoming::Nothing,
        Ok(ChartImage::FollowsLive) => Incoming::Live,
        Ok(ChartImage::Sets(image)) if image == question.live => Incoming::Live,
        Ok(ChartImage::Sets(image)) => Incoming::Image(Some(image)),
        Ok(ChartImage::Hidden | ChartImage::Stripped) => Incoming::Image(None),
    };
    apply(question, major, &incoming)
}

/// Whether Helm applies on the server side. Helm 4 goes on as the newest record says (A15, B18), and
/// takes one that says nothing for client-side (D11).
fn is_server_side(question: &Question<'_>, major: Major) -> Result<bool, String> {
    match (major, question.method) {
        (Major::Three, _) => Ok(false),
        (Major::Four, Some(method)) => Ok(method == ApplyMethod::ServerSide),
        (Major::Four, None) => Err("how Helm 4 applies stands in its release records".to_owned()),
    }
}

fn apply(question: &Question<'_>, major: Major, incoming: &Incoming<'_>) -> Outcome {
    let server_side = match is_server_side(question, major) {
        Ok(server_side) => server_side,
        // Both ways keep it.
        Err(_) if matches!(incoming, Incoming::Nothing) => return Outcome::Keeps,
        Err(why) => return Outcome::Unknown(why),
    };
    let others = others(question);
    match (incoming, server_side) {
        // C1, C2: the same value changes nothing on the client side.
        (Incoming::Nothing, _) | (Incoming::Live, false) => Outcome::Keeps,
        // A10, C8.
        (Incoming::Live, true) => {
            let helm_applies = question
                .owners
                .iter()
                .any(|owner| owner.manager() == MANAGER && owner.operation() == Operation::Apply);
            if others.is_empty() || helm_applies { Outcome::Keeps } else { Outcome::Shares }
        }
        // A6 to A8.
        (Incoming::Image(_), true) if !others.is_empty() => Outcome::Conflicts(others),
        // A1 to A3, A14, A15: a three-way merge overwrites the live value, whoever owns it.
        (Incoming::Image(image), _) => Outcome::Resets(image.map(ToOwned::to_owned)),
    }
}

/// The owners that are not Helm. Helm 4 turns its own entry of client-side days into one that applies
/// before it applies, so that never conflicts with itself.
fn others(question: &Question<'_>) -> Vec<String> {
    let mut names: Vec<String> = question
        .owners
        .iter()
        .filter(|owner| owner.manager() != MANAGER)
        .map(|owner| owner.manager().to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The post-renderer's table (specification of the post-renderer, section 3).
fn rendered(question: &Question<'_>, major: Major) -> Outcome {
    let followed = question.has_repo && question.has_release;
    let listed = question.owners.iter().any(|owner| owner.manager() == question.operator);
    let once = question.has_release && !question.has_repo;
    if followed && let Some(why) = moves_repository(question) {
        return Outcome::Refuses(why);
    }
    if !followed && (once || !listed) {
        return plain(question, major);
    }
    // What is not known is preserved or stripped: the image stays.
    if matches!(question.chart, Ok(ChartImage::Absent) | Err(_)) {
        return Outcome::Keeps;
    }
    match is_server_side(question, major) {
        // Whether it is preserved or stripped, it stays.
        Err(_) => Outcome::Keeps,
        // B7, B10, B11: stripped, Helm lets go.
        Ok(true) if !others(question).is_empty() => Outcome::Keeps,
        // C1 to C5; B6 is why it is not stripped.
        Ok(_) => apply(question, major, &Incoming::Live),
    }
}

/// The chart's image is of another repository than the live one and the one that is annotated.
fn moves_repository(question: &Question<'_>) -> Option<String> {
    let Ok(ChartImage::Sets(wanted)) = &question.chart else { return None };
    let repository = |image: &str| match image.parse::<ImageRef>() {
        Ok(image) => image.repository().spelled().to_owned(),
        Err(_) => image.to_owned(),
    };
    let (to, from) = (repository(wanted), repository(question.live));
    let is_known = question.image_annotation.is_some_and(|image| repository(image) == to);
    (to != from && !is_known).then(|| format!("the chart moves the image from {from} to {to}"))
}

impl Outcome {
    /// What happens, as the end of a sentence that begins with `helm upgrade`.
    pub fn words(&self, live: &str) -> String {
        match self {
            Self::Keeps => format!("keeps {live}"),
            Self::Shares => format!("keeps {live}, and helm becomes an owner beside the others"),
            Self::Resets(Some(image)) => format!("resets it to {image}"),
            Self::Resets(None) => "resets it to the chart's image".to_owned(),
            Self::Conflicts(with) => format!("fails: conflict with {}", with.join(", ")),
            Self::Refuses(why) => format!("is refused by the post-renderer: {why}"),
            Self::Unknown(why) => format!("unknown: {why}"),
        }
    }

    /// One word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Keeps => "Keeps",
            Self::Shares => "Shares",
            Self::Resets(_) => "Resets",
            Self::Conflicts(_) => "Conflicts",
            Self::Refuses(_) => "Refuses",
            Self::Unknown(_) => "Unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const LIVE: &str = "acme/web:1.1.0";
    const OPERATOR: &str = "belay-operator";

    fn owner(text: &str) -> Identity {
        match text {
            "OP" => Identity::applier(OPERATOR),
            "h/A" => Identity::applier(MANAGER),
            "h/U" => Identity::new(MANAGER, Operation::Update, "", "apps/v1"),
            other => Identity::new(other, Operation::Update, "", "apps/v1"),
        }
    }

    fn sets(tag: &str) -> ChartImage {
        ChartImage::Sets(format!("acme/web:{tag}"))
    }

    fn resets() -> Outcome {
        Outcome::Resets(Some("acme/web:1.0.0".to_owned()))
    }

    fn conflict(with: &str) -> Outcome {
        Outcome::Conflicts(vec![with.to_owned()])
    }

    use ApplyMethod::{ClientSide, ServerSide, Unsaid};
    use Major::{Four, Three};
    use Outcome::{Keeps, Shares};
    use Renderer::{Belay, None as Plain};

    #[rstest]
    #[case::a1(sets("1.0.0"), Unsaid, &["OP"], Three, Plain, resets())]
    #[case::a4(sets("1.1.0"), Unsaid, &["OP"], Three, Plain, Keeps)]
    #[case::a6(sets("1.0.0"), ServerSide, &["OP"], Four, Plain, conflict(OPERATOR))]
    #[case::a10(sets("1.1.0"), ServerSide, &["OP"], Four, Plain, Shares)]
    #[case::a10_again(sets("1.1.0"), ServerSide, &["OP", "h/A"], Four, Plain, Keeps)]
    #[case::a14(sets("1.0.0"), ClientSide, &["OP"], Four, Plain, resets())]
    #[case::a15(sets("1.0.0"), Unsaid, &["OP"], Four, Plain, resets())]
    #[case::a17(sets("1.0.0"), ServerSide, &["OP"], Three, Plain, resets())]
    #[case::b7(sets("1.0.0"), ServerSide, &["OP"], Four, Belay, Keeps)]
    #[case::b10(sets("1.0.0"), ServerSide, &["OP", "h/A"], Four, Belay, Keeps)]
    #[case::b13(ChartImage::Stripped, ServerSide, &["OP"], Four, Plain, conflict(OPERATOR))]
    #[case::b16(sets("1.0.0"), Unsaid, &["OP"], Four, Belay, Keeps)]
    #[case::c1(sets("1.0.0"), Unsaid, &["h/U"], Three, Belay, Keeps)]
    #[case::c2(sets("1.0.0"), Unsaid, &["OP"], Three, Belay, Keeps)]
    #[case::c6(ChartImage::Hidden, Unsaid, &["OP"], Three, Plain, Outcome::Resets(None))]
    #[case::helm_alone(sets("1.0.0"), ServerSide, &["h/A"], Four, Belay, Keeps)]
    #[case::helm_alone_without(sets("1.0.0"), ServerSide, &["h/A"], Four, Plain, resets())]
    #[case::nobody(sets("1.0.0"), ServerSide, &[], Four, Plain, resets())]
    #[case::a_person(sets("1.0.0"), ServerSide, &["kubectl-edit"], Four, Plain, conflict("kubectl-edit"))]
    #[case::looked_up(ChartImage::FollowsLive, Unsaid, &["OP"], Three, Plain, Keeps)]
    #[case::not_in_the_chart(ChartImage::Absent, ServerSide, &["OP"], Four, Plain, Keeps)]
    fn the_next_upgrade_is_as_measured(
        #[case] chart: ChartImage,
        #[case] method: ApplyMethod,
        #[case] owners: &[&str],
        #[case] major: Major,
        #[case] renderer: Renderer,
        #[case] expected: Outcome,
    ) {
        let owners: Vec<Identity> = owners.iter().map(|name| owner(name)).collect();
        let question = Question {
            chart: Ok(chart),
            method: Some(method),
            live: LIVE,
            owners: &owners,
            operator: OPERATOR,
            has_repo: true,
            has_release: true,
            image_annotation: None,
        };
        assert_eq!(predict(&question, major, renderer), expected);
    }

    fn question(owners: &[Identity]) -> Question<'_> {
        Question {
            chart: Ok(sets("1.0.0")),
            method: Some(ServerSide),
            live: LIVE,
            owners,
            operator: OPERATOR,
            has_repo: true,
            has_release: true,
            image_annotation: None,
        }
    }

    #[test]
    fn what_belay_has_left_is_helms_to_conflict_with() {
        let owners = [owner("OP")];
        let left = Question { has_repo: false, ..question(&owners) };
        assert_eq!(predict(&left, Four, Belay), conflict(OPERATOR));
        let never = Question { has_release: false, ..left };
        assert_eq!(predict(&never, Four, Belay), Keeps, "a listed owner");
        let stranger = [owner("kubectl-edit")];
        let stranger = Question { owners: &stranger, ..never };
        assert_eq!(predict(&stranger, Four, Belay), conflict("kubectl-edit"));
    }

    #[test]
    fn a_chart_that_changes_the_repository_is_refused_unless_annotated() {
        let owners = [owner("OP")];
        let moved = ChartImage::Sets("acme/other:1.0.0".to_owned());
        let moved = Question { chart: Ok(moved), ..question(&owners) };
        assert!(matches!(predict(&moved, Four, Belay), Outcome::Refuses(_)));
        let annotated = Question { image_annotation: Some("acme/other"), ..moved };
        assert_eq!(predict(&annotated, Four, Belay), Keeps);
    }

    #[test]
    fn what_cannot_be_read_is_not_guessed() {
        let owners = [owner("OP")];
        let blind =
            Question { chart: Err("forbidden".to_owned()), method: None, ..question(&owners) };
        assert_eq!(predict(&blind, Three, Plain), Outcome::Unknown("forbidden".to_owned()));
        assert_eq!(predict(&blind, Four, Plain), Outcome::Unknown("forbidden".to_owned()));
        assert_eq!(predict(&blind, Four, Belay), Keeps);
    }
}
