use serde_json::{Value, json};

use super::{HTML, Urls};
use crate::github::{
    account::{Account, AccountKind},
    state::State,
};

/// Schema `simple-user`.
fn simple_user(account: &Account, urls: &Urls) -> Value {
    let Account { id, login, kind } = account;
    let url = format!("{}/users/{login}", urls.api);
    json!({
        "login": login,
        "id": id,
        "node_id": format!("U_{id}"),
        "avatar_url": format!("https://avatars.githubusercontent.com/u/{id}?v=4"),
        "gravatar_id": "",
        "url": url,
        "html_url": format!("{HTML}/{login}"),
        "followers_url": format!("{url}/followers"),
        "following_url": format!("{url}/following{{/other_user}}"),
        "gists_url": format!("{url}/gists{{/gist_id}}"),
        "starred_url": format!("{url}/starred{{/owner}}{{/repo}}"),
        "subscriptions_url": format!("{url}/subscriptions"),
        "organizations_url": format!("{url}/orgs"),
        "repos_url": format!("{url}/repos"),
        "events_url": format!("{url}/events{{/privacy}}"),
        "received_events_url": format!("{url}/received_events"),
        "type": kind.name(),
        "site_admin": false,
    })
}

/// The account with this login; every login that objects hold was made an account before.
pub(crate) fn account(state: &State, login: &str, urls: &Urls) -> Value {
    let unknown = || Account { id: 0, login: login.to_owned(), kind: AccountKind::User };
    let account = state.account(login).cloned().unwrap_or_else(unknown);
    simple_user(&Account { login: login.to_owned(), ..account }, urls)
}
