//! Releases.

use super::{Answer, Call, Refusal};
use crate::github::{
    objects,
    repository::{Release, Repository},
};

/// `GET …/releases`
pub(super) fn list(call: &Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.readable("contents")?;
    let releases = repository.newest_first(call.may_push(repository));
    let url = format!("{}/releases", call.by_id(repository));
    Ok(call.page().answer(&releases, &url, call.query, |release| {
        objects::release(call.state, repository, release, call.urls)
    }))
}

/// `GET …/releases/latest`
pub(super) fn latest(call: &Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.readable("contents")?;
    show(call, repository, repository.latest())
}

/// `GET …/releases/tags/{tag}`: published releases only, whoever asks.
pub(super) fn by_tag(call: &Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.readable("contents")?;
    let tag = call.matched.text("tag").unwrap_or_default();
    show(call, repository, repository.releases.iter().find(|it| !it.draft && it.tag == tag))
}

/// `GET …/releases/{release_id}`
pub(super) fn by_id(call: &Call<'_>) -> Result<Answer, Refusal> {
    let repository = call.readable("contents")?;
    let id = call.matched.number("release_id").ok_or(Refusal::NotFound)?;
    let drafts = call.may_push(repository);
    let seen = |release: &&Release| release.id == id && (drafts || !release.draft);
    show(call, repository, repository.releases.iter().find(seen))
}

fn show(
    call: &Call<'_>,
    repository: &Repository,
    release: Option<&Release>,
) -> Result<Answer, Refusal> {
    let release = release.ok_or(Refusal::NotFound)?;
    Ok(Answer::ok(&objects::release(call.state, repository, release, call.urls)))
}
