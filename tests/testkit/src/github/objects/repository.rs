use serde_json::{Map, Value, json};

use super::{HTML, Urls, account};
use crate::github::{
    clock::rfc3339,
    repository::{DEFAULT_BRANCH, Repository},
    state::State,
};

/// Addresses below a repository's own, with what follows its path in GitHub's templates.
const BELOW: [(&str, &str); 36] = [
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
];

/// What `full-repository`, `repository` and `repository-webhooks` have in common.
fn common(state: &State, it: &Repository, urls: &Urls) -> Map<String, Value> {
    let full_name = it.full_name();
    let base = urls.repository(&full_name);
    let identity = json!({
        "id": it.id,
        "node_id": format!("R_{}", it.id),
        "name": it.name,
        "full_name": full_name,
        "private": it.private,
        "owner": account(state, &it.owner, urls),
        "html_url": format!("{HTML}/{full_name}"),
        "description": Value::Null,
        "fork": false,
        "url": base,
    });
    let rest = json!({
        "created_at": rfc3339(it.created_at),
        "updated_at": rfc3339(it.pushed_at),
        "pushed_at": rfc3339(it.pushed_at),
        "git_url": format!("git://github.com/{full_name}.git"),
        "ssh_url": format!("git@github.com:{full_name}.git"),
        "clone_url": format!("{HTML}/{full_name}.git"),
        "svn_url": format!("{HTML}/{full_name}"),
        "homepage": Value::Null,
        "size": 1,
        "stargazers_count": 0,
        "watchers_count": 0,
        "language": Value::Null,
        "has_issues": true,
        "has_projects": true,
        "has_downloads": true,
        "has_wiki": true,
        "has_pages": false,
        "has_discussions": false,
        "forks_count": 0,
        "mirror_url": Value::Null,
        "archived": false,
        "disabled": false,
        "open_issues_count": 0,
        "license": Value::Null,
        "allow_forking": true,
        "is_template": false,
        "web_commit_signoff_required": false,
        "topics": [],
        "visibility": if it.private { "private" } else { "public" },
        "forks": 0,
        "open_issues": 0,
        "watchers": 0,
        "default_branch": DEFAULT_BRANCH,
    });
    let below = BELOW.iter().map(|(name, path)| ((*name).to_owned(), format!("{base}{path}")));
    let mut object = Map::new();
    object.extend(identity.as_object().cloned().unwrap_or_default());
    object.extend(below.map(|(name, url)| (name, Value::from(url))));
    object.extend(rest.as_object().cloned().unwrap_or_default());
    object
}

/// Schema `full-repository`. `push` is none for requests without a credential, which see no
/// permissions.
pub(crate) fn full_repository(
    state: &State,
    it: &Repository,
    push: Option<bool>,
    urls: &Urls,
) -> Value {
    let mut object = common(state, it, urls);
    if let Some(push) = push {
        let permissions = json!({
            "admin": false, "maintain": false, "push": push, "triage": push, "pull": true,
        });
        object.insert("permissions".to_owned(), permissions);
    }
    object.insert("temp_clone_token".to_owned(), Value::Null);
    object.insert("network_count".to_owned(), Value::from(0));
    object.insert("subscribers_count".to_owned(), Value::from(0));
    Value::Object(object)
}

/// Schemas `repository`, in answers about installations, and `repository-webhooks`, in payloads.
pub(crate) fn repository(state: &State, it: &Repository, urls: &Urls) -> Value {
    Value::Object(common(state, it, urls))
}
