//! A scripted GitHub with one repository, and clients for it.

use std::time::Duration;

use belay_adapters::forge::{
    Answer, Client, Credential, Forge, ForgeError, Release, RepoSlug, Settings, http_client,
};
use belay_testkit::github::{GitHub, NewRelease, Request};

pub(crate) const REPO: &str = "acme/web";
pub(crate) const LATEST: &str = "/repos/acme/web/releases/latest";

/// A GitHub that has `acme/web` with the release `v1.0.0`.
pub(crate) fn github() -> GitHub {
    let github = GitHub::builder().start().unwrap();
    github.create_repository(REPO).unwrap();
    github.publish(REPO, NewRelease::new("v1.0.0")).unwrap();
    github
}

pub(crate) fn settings(github: &GitHub, credential: Credential) -> Settings {
    let base = github.base_url().parse().unwrap();
    Settings::new(base, credential, http_client([]).unwrap())
}

pub(crate) fn anonymous(github: &GitHub) -> Client {
    Client::new(settings(github, Credential::Anonymous)).unwrap()
}

/// A client that gives up on an answer before a test does.
pub(crate) fn hurried(github: &GitHub) -> Client {
    let settings = settings(github, Credential::Anonymous);
    Client::new(Settings { within: Duration::from_millis(300), ..settings }).unwrap()
}

pub(crate) fn forge(github: &GitHub) -> Forge {
    Forge::new(anonymous(github))
}

pub(crate) fn slug(text: &str) -> RepoSlug {
    text.parse().unwrap()
}

/// A token in a file that a test may change.
pub(crate) struct TokenFile {
    pub(crate) folder: tempfile::TempDir,
}

impl TokenFile {
    pub(crate) fn new(token: &str) -> Self {
        let file = Self { folder: tempfile::tempdir().unwrap() };
        file.write(token);
        file
    }

    pub(crate) fn write(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("token")
    }

    pub(crate) fn credential(&self) -> Credential {
        Credential::TokenFile(self.path())
    }
}

pub(crate) async fn latest(client: &Client) -> Result<Answer<Release>, ForgeError> {
    client.get(LATEST).await
}

/// What an answer is, in one word and number, with the tag of what it carries.
pub(crate) fn word<T: Tag>(answer: &Result<Answer<T>, ForgeError>) -> String {
    match answer {
        Ok(Answer::Fresh(page)) => format!("fresh {}", page.value.tag()),
        Ok(Answer::NotModified(page)) => format!("unchanged {}", page.value.tag()),
        Ok(Answer::Missing) => "missing".to_owned(),
        Ok(Answer::Moved { id }) => format!("moved {id:?}"),
        Ok(Answer::Throttled { asked, .. }) => format!("throttled {asked}"),
        Ok(Answer::Denied { status }) => format!("denied {status}"),
        Ok(Answer::Upstream { status }) => format!("upstream {status}"),
        Err(error) => error.category().to_owned(),
    }
}

pub(crate) trait Tag {
    fn tag(&self) -> String;
}

impl Tag for Release {
    fn tag(&self) -> String {
        self.tag.clone()
    }
}

impl Tag for Vec<Release> {
    fn tag(&self) -> String {
        self.iter().map(|it| it.tag.as_str()).collect::<Vec<_>>().join(" ")
    }
}

pub(crate) fn values<'a>(request: &'a Request, name: &str) -> Vec<&'a str> {
    let headers = request.headers.iter().filter(|(key, _)| key == name);
    headers.map(|(_, value)| value.as_str()).collect()
}
