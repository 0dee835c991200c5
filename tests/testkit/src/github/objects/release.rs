use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{HTML, Urls, account};
use crate::github::{
    auth::hex,
    clock::rfc3339,
    repository::{Asset, DEFAULT_BRANCH, Release, Repository},
    state::State,
};

/// What stands for itself in a path (RFC 3986, section 2.3): `v1.2.3` is not written `v1%2E2%2E3`.
const PATH_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Schema `release`.
pub(crate) fn release(state: &State, repository: &Repository, it: &Release, urls: &Urls) -> Value {
    let full_name = repository.full_name();
    let base = urls.repository(&full_name);
    let url = format!("{base}/releases/{}", it.id);
    let tag = utf8_percent_encode(&it.tag, PATH_SEGMENT).to_string();
    // A draft has no tag yet as far as the web pages go.
    let page = if it.draft { format!("untagged-{}", it.id) } else { tag.clone() };
    let archive = |kind: &str| (!it.draft).then(|| format!("{base}/{kind}/{tag}"));
    let assets: Vec<_> =
        it.assets.iter().map(|asset| self::asset(state, &full_name, it, asset, urls)).collect();
    json!({
        "url": url,
        "assets_url": format!("{url}/assets"),
        "upload_url": format!("{url}/assets{{?name,label}}"),
        "html_url": format!("{HTML}/{full_name}/releases/tag/{page}"),
        "id": it.id,
        "author": account(state, &it.author, urls),
        "node_id": format!("RE_{}", it.id),
        "tag_name": it.tag,
        "target_commitish": DEFAULT_BRANCH,
        "name": it.name,
        "draft": it.draft,
        "immutable": false,
        "prerelease": it.prerelease,
        "created_at": rfc3339(it.created_at),
        "updated_at": rfc3339(it.updated_at),
        "published_at": it.published_at.map(rfc3339),
        "assets": assets,
        "tarball_url": archive("tarball"),
        "zipball_url": archive("zipball"),
        "body": it.notes,
    })
}

/// Schema `release-asset`.
fn asset(state: &State, full_name: &str, of: &Release, asset: &Asset, urls: &Urls) -> Value {
    let Asset { id, name } = asset;
    json!({
        "url": format!("{}/releases/assets/{id}", urls.repository(full_name)),
        "id": id,
        "node_id": format!("RA_{id}"),
        "name": name,
        "label": "",
        "uploader": account(state, &of.author, urls),
        "content_type": "application/octet-stream",
        "state": "uploaded",
        "size": name.len(),
        "digest": format!("sha256:{}", hex(&Sha256::digest(name))),
        "download_count": 0,
        "created_at": rfc3339(of.created_at),
        "updated_at": rfc3339(of.updated_at),
        "browser_download_url":
            format!("{HTML}/{full_name}/releases/download/{}/{name}", of.tag),
    })
}
