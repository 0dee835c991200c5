//! What the shared readings of GitHub say about one target.

use belay_adapters::forge::{Reading, Release, Unknown, View, Wants};
use belay_engine::{
    Timestamp,
    observed::{Fact, Forge},
    selection::{ForgeAsk, GithubRelease, GithubReleases},
};

/// What the poller must read for a target.
pub(crate) fn wants(ask: &ForgeAsk) -> Wants {
    Wants { latest: ask.latest, list: ask.list, tags: ask.tags.clone() }
}

/// Who may see what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    /// Whether the configuration permits this repository, if it is public.
    pub(crate) public: bool,
    /// Whether it does, if it is private.
    pub(crate) private: bool,
    /// Whether GitHub is asked without a credential.
    pub(crate) is_anonymous: bool,
}

/// The fact for one target of a repository.
pub(crate) fn fact(
    view: Option<&View>,
    ask: &ForgeAsk,
    sight: Sight,
    now: Timestamp,
) -> Fact<Forge> {
    if !sight.public && !sight.private {
        return Fact::known(Forge::NotAllowed, now);
    }
    let Some(view) = view else {
        let why = format!("GitHub was not asked for {} yet", ask.repo);
        return Fact::Unknown { why, read: now };
    };
    let read = view.reading.at;
    match read_of(&view.reading, ask, sight) {
        Ok(Forge::Found { repository_id, releases, is_anonymous, .. }) => {
            let is_low = view.is_low;
            Fact::known(Forge::Found { repository_id, releases, is_anonymous, is_low }, read)
        }
        Ok(forge) => Fact::known(forge, read),
        Err(Unknown::Hidden) => Fact::known(Forge::NotFound, read),
        Err(Unknown::Throttled { until }) => Fact::known(Forge::Throttled { until: *until }, read),
        Err(Unknown::Denied { status }) => {
            let why = format!("GitHub refuses the credential for {} ({status})", ask.repo);
            Fact::Unknown { why, read }
        }
        Err(Unknown::Failed { why, .. }) => Fact::Unknown { why: why.clone(), read },
    }
}

/// Whether the answer to this is still under way: GitHub was not asked yet, or not for all of it.
pub(crate) fn is_under_way(view: Option<&View>, ask: &ForgeAsk, sight: Sight) -> bool {
    if !sight.public && !sight.private {
        return false;
    }
    let Some(view) = view else { return true };
    let answer = read_of(&view.reading, ask, sight);
    matches!(answer, Err(Unknown::Failed { category: UNDER_WAY, .. }))
}

fn read_of<'r>(reading: &'r Reading, ask: &ForgeAsk, sight: Sight) -> Result<Forge, &'r Unknown> {
    let identity = reading.identity.as_ref()?;
    let is_allowed = if identity.private { sight.private } else { sight.public };
    if !is_allowed {
        return Ok(Forge::NotAllowed);
    }
    let mut releases = GithubReleases::default();
    if ask.latest {
        match &reading.latest {
            Some(latest) => {
                let latest = latest.as_ref()?;
                releases.latest = latest.as_ref().map(|release| release.tag.clone());
                releases.items.extend(latest.as_ref().map(release));
            }
            None => return Err(&NOT_READ),
        }
    }
    if ask.list {
        let Some(list) = &reading.list else { return Err(&NOT_READ) };
        let list = list.as_ref()?;
        releases.items.extend(list.releases.iter().map(release));
        releases.truncated = list.truncated;
    }
    for tag in &ask.tags {
        match reading.tags.get(tag) {
            Some(found) => releases.items.extend(found.as_ref()?.as_ref().map(release)),
            None => return Err(&NOT_READ),
        }
    }
    let mut known = std::collections::HashSet::new();
    releases.items.retain(|release| known.insert(release.tag.clone()));
    let repository_id = i64::try_from(identity.id).unwrap_or(i64::MAX);
    let is_anonymous = sight.is_anonymous;
    Ok(Forge::Found { repository_id, releases, is_anonymous, is_low: false })
}

/// The category of a reading that is under way.
const UNDER_WAY: &str = "not-read";

/// The last reading was made before this target asked for more; the next one is under way.
static NOT_READ: std::sync::LazyLock<Unknown> = std::sync::LazyLock::new(|| Unknown::Failed {
    why: "GitHub was not asked for all of it yet".to_owned(),
    category: UNDER_WAY,
});

fn release(release: &Release) -> GithubRelease {
    GithubRelease {
        tag: release.tag.clone(),
        draft: release.draft,
        prerelease: release.prerelease,
        published: release.published,
        author: release.author.clone(),
        url: release.url.clone(),
    }
}
