//! All that the scripted GitHub knows, and how it changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use super::{
    account::{Account, AccountKind},
    app::{App, Installation},
    auth::{Token, random_hex},
    clock::{Clock, ScriptedClock},
    deployment::{Deployment, DeploymentState, DeploymentStatus},
    error::GitHubError,
    limits::Limits,
    log::Journal,
    repository::{
        Asset, Base, Branch, CommitState, MakeLatest, NewRelease, Release, ReleaseEdit, Repository,
    },
    script::Scripts,
};

/// Who publishes releases here.
const AUTHOR: &str = "release-bot";
/// The first id. One counter serves all kinds, so that no id of one kind fits another.
const FIRST_ID: u64 = 1_001;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) clock: ScriptedClock,
    next_id: u64,
    accounts: BTreeMap<String, Account>,
    repositories: BTreeMap<u64, Repository>,
    /// `owner/name` in lower case: GitHub's names ignore case.
    names: BTreeMap<String, u64>,
    moved: BTreeMap<String, u64>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) apps: Vec<App>,
    pub(crate) installations: Vec<Installation>,
    /// Owners, in lower case, whose repositories demand a SAML session of personal tokens.
    pub(crate) sso: BTreeSet<String>,
    pub(crate) limits: Limits,
    pub(crate) scripts: Scripts,
    pub(crate) journal: Journal,
    pub(crate) webhook_secret: String,
    pub(crate) hook: u64,
    served: u64,
}

/// What a name leads to.
pub(crate) enum Named {
    Here(u64),
    Moved(u64),
}

impl State {
    pub(crate) fn new(clock: Clock) -> Result<Self, GitHubError> {
        Ok(Self {
            clock: ScriptedClock::new(clock),
            next_id: FIRST_ID + 1,
            accounts: BTreeMap::new(),
            repositories: BTreeMap::new(),
            names: BTreeMap::new(),
            moved: BTreeMap::new(),
            tokens: Vec::new(),
            apps: Vec::new(),
            installations: Vec::new(),
            sso: BTreeSet::new(),
            limits: Limits::default(),
            scripts: Scripts::default(),
            journal: Journal::default(),
            webhook_secret: random_hex::<16>()?,
            hook: FIRST_ID,
            served: 0,
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
    }

    pub(crate) fn new_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Numbers the answers, for `x-github-request-id`.
    pub(crate) fn serve(&mut self) -> u64 {
        self.served += 1;
        self.served
    }

    // Accounts

    pub(crate) fn account(&self, login: &str) -> Option<&Account> {
        self.accounts.get(&login.to_ascii_lowercase())
    }

    pub(crate) fn ensure_account(&mut self, login: &str, kind: AccountKind) {
        let key = login.to_ascii_lowercase();
        if !self.accounts.contains_key(&key) {
            let account = Account { id: self.new_id(), login: login.to_owned(), kind };
            self.accounts.insert(key, account);
        }
    }

    // Repositories

    pub(crate) fn repositories(&self) -> impl Iterator<Item = &Repository> {
        self.repositories.values()
    }

    pub(crate) fn repository(&self, id: u64) -> Option<&Repository> {
        self.repositories.get(&id)
    }

    pub(crate) fn repository_mut(&mut self, id: u64) -> Option<&mut Repository> {
        self.repositories.get_mut(&id)
    }

    pub(crate) fn find(&self, slug: &str) -> Option<Named> {
        let key = slug.to_ascii_lowercase();
        let here = self.names.get(&key).copied().map(Named::Here);
        here.or_else(|| self.moved.get(&key).copied().map(Named::Moved))
    }

    /// The repository that has this name now.
    pub(crate) fn named(&self, slug: &str) -> Result<u64, GitHubError> {
        match self.find(slug) {
            Some(Named::Here(id)) => Ok(id),
            Some(Named::Moved(_)) | None => Err(GitHubError::missing("repository", slug)),
        }
    }

    fn named_mut(&mut self, slug: &str) -> Result<&mut Repository, GitHubError> {
        let id = self.named(slug)?;
        self.repository_mut(id).ok_or_else(|| GitHubError::missing("repository", slug))
    }

    pub(crate) fn create_repository(
        &mut self,
        slug: &str,
        private: bool,
    ) -> Result<u64, GitHubError> {
        let (owner, name) = split(slug)?;
        if self.named(slug).is_ok() {
            return Err(GitHubError::exists("repository", slug));
        }
        self.ensure_account(owner, AccountKind::Organization);
        let key = slug.to_ascii_lowercase();
        // A new repository takes the name over: redirects of a former one end.
        self.moved.remove(&key);
        let (id, now) = (self.new_id(), self.now());
        let repository = Repository::new(id, owner.to_owned(), name.to_owned(), private, now);
        self.names.insert(key, id);
        self.repositories.insert(id, repository);
        Ok(id)
    }

    pub(crate) fn delete_repository(&mut self, slug: &str) -> Result<(), GitHubError> {
        let id = self.named(slug)?;
        self.names.retain(|_, named| *named != id);
        self.moved.retain(|_, moved| *moved != id);
        self.repositories.remove(&id);
        Ok(())
    }

    /// Gives the name to a new repository, which has another id and nothing in it.
    pub(crate) fn recreate_repository(&mut self, slug: &str) -> Result<u64, GitHubError> {
        let private = match self.named(slug) {
            Ok(_) => {
                let private = self.named_mut(slug)?.private;
                self.delete_repository(slug)?;
                private
            }
            Err(_) => false,
        };
        self.create_repository(slug, private)
    }

    /// Renames or transfers; the old name redirects.
    pub(crate) fn rename_repository(&mut self, slug: &str, to: &str) -> Result<(), GitHubError> {
        let (owner, name) = split(to)?;
        let id = self.named(slug)?;
        let (old, new) = (slug.to_ascii_lowercase(), to.to_ascii_lowercase());
        if old != new && self.names.contains_key(&new) {
            return Err(GitHubError::exists("repository", to));
        }
        self.ensure_account(owner, AccountKind::Organization);
        self.names.remove(&old);
        self.moved.insert(old, id);
        self.moved.remove(&new);
        self.names.insert(new, id);
        if let Some(repository) = self.repository_mut(id) {
            owner.clone_into(&mut repository.owner);
            name.clone_into(&mut repository.name);
        }
        Ok(())
    }

    pub(crate) fn set_private(&mut self, slug: &str, private: bool) -> Result<(), GitHubError> {
        self.named_mut(slug)?.private = private;
        Ok(())
    }

    pub(crate) fn set_branch(
        &mut self,
        slug: &str,
        branch: &str,
        base: Base,
    ) -> Result<(), GitHubError> {
        self.named_mut(slug)?.branches.insert(branch.to_owned(), Branch { base });
        Ok(())
    }

    pub(crate) fn set_commit_status(
        &mut self,
        slug: &str,
        reference: &str,
        context: &str,
        state: CommitState,
    ) -> Result<(), GitHubError> {
        let repository = self.named_mut(slug)?;
        let sha = repository
            .commit(reference)
            .ok_or_else(|| GitHubError::missing("ref", format!("{reference} in {slug}")))?;
        repository.statuses.entry(sha).or_default().insert(context.to_owned(), state);
        Ok(())
    }

    // Releases

    pub(crate) fn publish(&mut self, slug: &str, new: NewRelease) -> Result<u64, GitHubError> {
        let taken = |release: &Release| release.tag == new.tag && !release.draft;
        if !new.draft && self.named_mut(slug)?.releases.iter().any(taken) {
            return Err(GitHubError::exists("release", format!("{} of {slug}", new.tag)));
        }
        if new.tag.is_empty() {
            return Err(GitHubError::Invalid {
                what: "a tag",
                value: new.tag,
                why: "it must not be empty",
            });
        }
        self.ensure_account(AUTHOR, AccountKind::User);
        let now = self.now();
        let assets = new.assets.into_iter().map(|name| Asset { id: self.new_id(), name }).collect();
        let release = Release {
            id: self.new_id(),
            name: new.name.unwrap_or_else(|| new.tag.clone()),
            tag: new.tag,
            notes: new.notes,
            draft: new.draft,
            prerelease: new.prerelease,
            author: AUTHOR.to_owned(),
            created_at: new.created_at.unwrap_or(now),
            updated_at: now,
            published_at: (!new.draft).then_some(now),
            assets,
        };
        let id = release.id;
        let repository = self.named_mut(slug)?;
        repository.pushed_at = now;
        if release.may_be_latest() {
            repository.settle_latest(id, new.make_latest);
        }
        repository.releases.push(release);
        Ok(id)
    }

    pub(crate) fn edit(
        &mut self,
        slug: &str,
        tag: &str,
        edit: ReleaseEdit,
    ) -> Result<u64, GitHubError> {
        let now = self.now();
        let repository = self.named_mut(slug)?;
        let release = release_mut(repository, slug, tag)?;
        let ReleaseEdit { tag, name, notes, draft, prerelease, make_latest } = edit;
        let was_draft = release.draft;
        release.tag = tag.unwrap_or_else(|| release.tag.clone());
        release.name = name.unwrap_or_else(|| release.name.clone());
        release.notes = notes.unwrap_or_else(|| release.notes.clone());
        release.draft = draft.unwrap_or(release.draft);
        release.prerelease = prerelease.unwrap_or(release.prerelease);
        release.updated_at = now;
        let newly_published = was_draft && !release.draft;
        if newly_published {
            release.published_at = Some(now);
        } else if release.draft {
            release.published_at = None;
        }
        let (id, fit) = (release.id, release.may_be_latest());
        match make_latest.or_else(|| newly_published.then(MakeLatest::default)) {
            Some(make_latest) if fit => repository.settle_latest(id, make_latest),
            _ if !fit && repository.latest == Some(id) => repository.latest = None,
            _ => {}
        }
        Ok(id)
    }

    /// Deletes a release, or takes it back to a draft.
    pub(crate) fn withdraw(
        &mut self,
        slug: &str,
        tag: &str,
        to_draft: bool,
    ) -> Result<u64, GitHubError> {
        if to_draft {
            return self.edit(slug, tag, ReleaseEdit { draft: Some(true), ..Default::default() });
        }
        let repository = self.named_mut(slug)?;
        let id = release_mut(repository, slug, tag)?.id;
        repository.releases.retain(|release| release.id != id);
        repository.latest = repository.latest.filter(|latest| *latest != id);
        Ok(id)
    }

    // Deployments

    pub(crate) fn add_deployment(
        &mut self,
        repository: u64,
        build: impl FnOnce(u64, Timestamp) -> Deployment,
    ) -> Option<u64> {
        let (id, now) = (self.new_id(), self.now());
        self.repository_mut(repository)?.deployments.push(build(id, now));
        Some(id)
    }

    /// Adds a status; with `auto_inactive` a success makes prior deployments inactive.
    pub(crate) fn add_status(
        &mut self,
        repository: u64,
        deployment: u64,
        auto_inactive: bool,
        build: impl FnOnce(u64, Timestamp, &Deployment) -> DeploymentStatus,
    ) -> Option<u64> {
        let (id, now) = (self.new_id(), self.now());
        let deployments = &mut self.repository_mut(repository)?.deployments;
        let at = deployments.iter().position(|candidate| candidate.id == deployment)?;
        let (prior, rest) = deployments.split_at_mut(at);
        let this = rest.first_mut()?;
        let status = build(id, now, this);
        let success = status.state == DeploymentState::Success;
        this.environment.clone_from(&status.environment);
        this.updated_at = now;
        this.statuses.push(status.clone());
        if success && auto_inactive {
            let environment = this.environment.clone();
            let mut superseded = Vec::new();
            for deployment in prior.iter().filter(|prior| prior.is_superseded_in(&environment)) {
                superseded.push(deployment.id);
            }
            for deployment in superseded {
                self.inactivate(repository, deployment, &status);
            }
        }
        Some(id)
    }

    fn inactivate(&mut self, repository: u64, deployment: u64, by: &DeploymentStatus) {
        let id = self.new_id();
        let deployments =
            self.repository_mut(repository).into_iter().flat_map(|it| &mut it.deployments);
        for deployment in deployments.filter(|candidate| candidate.id == deployment) {
            deployment.updated_at = by.created_at;
            deployment.statuses.push(DeploymentStatus {
                id,
                state: DeploymentState::Inactive,
                description: String::new(),
                log_url: String::new(),
                environment_url: String::new(),
                ..by.clone()
            });
        }
    }
}

fn release_mut<'a>(
    repository: &'a mut Repository,
    slug: &str,
    tag: &str,
) -> Result<&'a mut Release, GitHubError> {
    // Several drafts and one published release may share a tag: the published one is meant.
    let mut candidates: Vec<_> =
        repository.releases.iter_mut().filter(|release| release.tag == tag).collect();
    candidates.sort_by_key(|release| release.draft);
    let found = candidates.into_iter().next();
    found.ok_or_else(|| GitHubError::missing("release", format!("{tag} of {slug}")))
}

fn split(slug: &str) -> Result<(&str, &str), GitHubError> {
    let fits = |part: &str| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        !part.is_empty() && part.chars().all(plain)
    };
    slug.split_once('/').filter(|(owner, name)| fits(owner) && fits(name)).ok_or_else(|| {
        let why = "expected OWNER/NAME of letters, digits, '.', '_' and '-'";
        GitHubError::Invalid { what: "a repository", value: slug.to_owned(), why }
    })
}
