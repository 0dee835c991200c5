//! A scripted GitHub: the part of its REST API that Belay speaks, over HTTP on loopback.
//!
//! It keeps to what GitHub documents: shapes (checked against its published OpenAPI description),
//! entity tags tied to the token, primary and secondary limits, redirects of renamed repositories,
//! Apps with JWTs and installation tokens, deployments, signed webhooks. Time is a clock that tests
//! move ahead, and any answer can be scripted.
//!
//! ```
//! use belay_testkit::github::{GitHub, NewRelease, Rights};
//!
//! let github = GitHub::builder().start()?;
//! github.create_repository("acme/web")?;
//! github.publish("acme/web", NewRelease::new("v1.2.0"))?;
//! let token = github.create_token("ci", &Rights::read(["acme/web"]))?;
//! // … a client asks `github.base_url()` …
//! assert_eq!(github.log().count(|request| request.status == Some(304)), 0);
//! # let _ = token;
//! # Ok::<(), belay_testkit::github::GitHubError>(())
//! ```

mod account;
mod answer;
mod app;
mod auth;
mod change;
mod clock;
pub mod command;
mod control;
mod credentials;
mod deployment;
mod error;
mod exchange;
mod jwt;
mod limits;
mod log;
mod objects;
pub mod openapi;
mod repository;
mod routes;
mod script;
mod server;
mod settings;
mod state;
mod webhook;

use std::time::Duration;

use jiff::Timestamp;

pub use self::{
    app::{AppCredentials, PrivateKey},
    auth::{Credential, Level, Rights},
    change::Change,
    clock::Clock,
    credentials::INSTALLATION_TOKEN_LIFE,
    deployment::DeploymentState,
    error::GitHubError,
    jwt::{CLOCK_SKEW, LONGEST_LIFE},
    limits::{LimitSettings, WINDOW},
    log::{Log, Mark, Request},
    repository::{Base, CommitState, DEFAULT_BRANCH, MakeLatest, NewRelease, ReleaseEdit},
    routes::{ROUTES, Route, RouteInfo},
    script::{Matching, Reply, Times},
    webhook::{Event, ReleaseAction, Signature, Webhook},
};
use self::{server::Server, state::State};

/// A running scripted GitHub. Dropping it stops it.
#[derive(Debug)]
pub struct GitHub {
    server: Server,
    enterprise: String,
}

/// How a [`GitHub`] is to start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Builder {
    port: u16,
    clock: Clock,
}

impl Builder {
    /// On this port instead of a free one.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// With another clock than the machine's.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Starts it; it serves when this returns.
    ///
    /// # Errors
    /// [`GitHubError::Listen`] when the port is taken, [`GitHubError::Thread`] when the machine
    /// gives no thread.
    pub fn start(self) -> Result<GitHub, GitHubError> {
        let server = Server::start(self.port, State::new(self.clock)?)?;
        let enterprise = exchange::base(&server.shared.origin, true);
        Ok(GitHub { server, enterprise })
    }
}

/// Starting it, and where it is.
impl GitHub {
    /// Starts it on a free port with the machine's clock.
    ///
    /// Async like the other servers' `start`; [`Builder::start`] needs no runtime.
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub async fn start() -> Result<Self, GitHubError> {
        std::future::ready(Self::builder().start()).await
    }

    /// Says first how it is to start.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The base of the API as on github.com, `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> &str {
        &self.server.shared.origin
    }

    /// The base of the same API as on GitHub Enterprise Server, `http://127.0.0.1:PORT/api/v3`.
    pub fn enterprise_url(&self) -> &str {
        &self.enterprise
    }

    /// Carries out a change as the control endpoint does and returns what it answers.
    ///
    /// # Errors
    /// What does not fit.
    pub fn apply(&self, change: Change) -> Result<serde_json::Value, GitHubError> {
        change.apply(&mut self.state())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.server.shared.state()
    }
}

/// Repositories and releases.
impl GitHub {
    /// Creates a public repository and returns its id.
    ///
    /// # Errors
    /// When it is there already or `OWNER/NAME` is malformed.
    pub fn create_repository(&self, repo: &str) -> Result<u64, GitHubError> {
        self.state().create_repository(repo, false)
    }

    /// Creates a private repository and returns its id.
    ///
    /// # Errors
    /// As [`GitHub::create_repository`].
    pub fn create_private_repository(&self, repo: &str) -> Result<u64, GitHubError> {
        self.state().create_repository(repo, true)
    }

    /// The id of the repository that has this name now.
    ///
    /// # Errors
    /// When there is none.
    pub fn repository_id(&self, repo: &str) -> Result<u64, GitHubError> {
        self.state().named(repo)
    }

    /// Deletes a repository.
    ///
    /// # Errors
    /// When it is not there.
    pub fn delete_repository(&self, repo: &str) -> Result<(), GitHubError> {
        self.state().delete_repository(repo)
    }

    /// Renames or transfers a repository. Its old name answers 301 from now on.
    ///
    /// # Errors
    /// When it is not there or the new name is taken.
    pub fn rename_repository(&self, repo: &str, to: &str) -> Result<(), GitHubError> {
        self.state().rename_repository(repo, to)
    }

    /// Gives the name to a new, empty repository and returns its id, which differs from the former
    /// one's. What had the name is deleted, or no longer redirected to.
    ///
    /// # Errors
    /// When `OWNER/NAME` is malformed.
    pub fn recreate_repository(&self, repo: &str) -> Result<u64, GitHubError> {
        self.state().recreate_repository(repo)
    }

    /// Makes a repository private or public.
    ///
    /// # Errors
    /// When it is not there.
    pub fn set_private(&self, repo: &str, private: bool) -> Result<(), GitHubError> {
        self.state().set_private(repo, private)
    }

    /// Publishes a release and returns its id.
    ///
    /// # Errors
    /// When the repository is not there or has a published release of this tag.
    pub fn publish(&self, repo: &str, release: NewRelease) -> Result<u64, GitHubError> {
        self.state().publish(repo, release)
    }

    /// Edits the release of a tag and returns its id.
    ///
    /// # Errors
    /// When it is not there.
    pub fn edit(&self, repo: &str, tag: &str, edit: ReleaseEdit) -> Result<u64, GitHubError> {
        self.state().edit(repo, tag, edit)
    }

    /// Deletes the release of a tag.
    ///
    /// # Errors
    /// When it is not there.
    pub fn withdraw(&self, repo: &str, tag: &str) -> Result<(), GitHubError> {
        self.state().withdraw(repo, tag, false).map(|_| ())
    }

    /// Takes the release of a tag back to a draft.
    ///
    /// # Errors
    /// When it is not there.
    pub fn withdraw_to_draft(&self, repo: &str, tag: &str) -> Result<(), GitHubError> {
        self.state().withdraw(repo, tag, true).map(|_| ())
    }
}

/// Deployments.
impl GitHub {
    /// Creates a branch or changes how it stands to the default branch.
    ///
    /// # Errors
    /// When the repository is not there.
    pub fn set_branch(&self, repo: &str, branch: &str, base: Base) -> Result<(), GitHubError> {
        self.state().set_branch(repo, branch, base)
    }

    /// Sets a commit status, without which deployments that require it are refused (409).
    ///
    /// # Errors
    /// When the repository or the ref is not there.
    pub fn set_commit_status(
        &self,
        repo: &str,
        reference: &str,
        context: &str,
        state: CommitState,
    ) -> Result<(), GitHubError> {
        self.state().set_commit_status(repo, reference, context, state)
    }

    /// Adds a status to a deployment, as whoever carries it out does, and returns its id.
    ///
    /// # Errors
    /// When the deployment is not there.
    pub fn report_deployment(
        &self,
        repo: &str,
        deployment: u64,
        state: DeploymentState,
    ) -> Result<u64, GitHubError> {
        self.state().report_deployment(repo, deployment, state)
    }
}

/// Credentials.
impl GitHub {
    /// Makes a personal access token and returns the secret. The label is its user's login and its
    /// bucket.
    ///
    /// # Errors
    /// When the label is taken or a repository is not there.
    pub fn create_token(&self, label: &str, rights: &Rights) -> Result<String, GitHubError> {
        self.state().create_token(label, rights)
    }

    /// Makes the tokens of a bucket bad: a token's label, or `installation-ID`.
    ///
    /// # Errors
    /// When there is none.
    pub fn revoke(&self, label: &str) -> Result<(), GitHubError> {
        self.state().revoke(label)
    }

    /// Creates an App with a new key pair.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn create_app(&self, slug: &str, owner: &str) -> Result<AppCredentials, GitHubError> {
        self.state().create_app(slug, owner)
    }

    /// Installs an App on an account and returns the installation's id.
    ///
    /// # Errors
    /// When the App or a repository is not there.
    pub fn install_app(
        &self,
        slug: &str,
        account: &str,
        rights: &Rights,
    ) -> Result<u64, GitHubError> {
        self.state().install_app(slug, account, rights)
    }

    /// Suspends an installation, or ends that.
    ///
    /// # Errors
    /// When it is not there.
    pub fn suspend_installation(&self, id: u64, suspended: bool) -> Result<(), GitHubError> {
        self.state().suspend(id, suspended)
    }

    /// Demands single sign-on of personal access tokens for an organisation's repositories, or ends
    /// that: a bare 403.
    pub fn require_single_sign_on(&self, owner: &str, required: bool) {
        self.state().set_single_sign_on(owner, required);
    }
}

/// Limits, the clock and scripts.
impl GitHub {
    /// Sets the primary limits.
    ///
    /// # Errors
    /// When the status above the limit is neither 403 nor 429.
    pub fn set_limits(&self, settings: LimitSettings) -> Result<(), GitHubError> {
        self.state().set_limits(settings)
    }

    /// Uses up the quota of a bucket: a token's label, `installation-ID`, `app-SLUG`, `anonymous`.
    pub fn exhaust(&self, bucket: &str) {
        let mut state = self.state();
        let now = state.now();
        state.limits.exhaust(bucket, now);
    }

    /// Moves the clock ahead: windows end, tokens expire.
    pub fn advance(&self, by: Duration) {
        self.state().advance(by);
    }

    /// The scripted time.
    pub fn now(&self) -> Timestamp {
        self.state().now()
    }

    /// Scripts answers: requests that match get `reply` for so many times. Of several scripts that
    /// match, the first that is not used up answers.
    ///
    /// # Errors
    /// When the answer has a status or a header that HTTP does not have.
    pub fn script(
        &self,
        matching: Matching,
        times: Times,
        reply: Reply,
    ) -> Result<(), GitHubError> {
        self.state().script(matching, times, reply)
    }

    /// Ends all scripts.
    pub fn clear_scripts(&self) {
        self.state().scripts.clear();
    }

    /// Every request so far.
    pub fn log(&self) -> Log {
        self.state().journal.snapshot()
    }

    /// This moment, for [`Log::since`].
    pub fn mark(&self) -> Mark {
        self.state().journal.mark()
    }
}

/// Webhooks.
impl GitHub {
    /// The secret that webhooks are signed with.
    pub fn webhook_secret(&self) -> String {
        self.state().webhook_secret.clone()
    }

    /// Sets it.
    pub fn set_webhook_secret(&self, secret: impl Into<String>) {
        self.state().webhook_secret = secret.into();
    }

    /// Builds a webhook, signed as GitHub does.
    ///
    /// # Errors
    /// When what it tells of is not there.
    pub fn webhook(&self, event: &Event) -> Result<Webhook, GitHubError> {
        Webhook::of(&self.state(), &self.server.shared.origin, event)
    }

    /// Builds a webhook and sends it; returns the status it was answered with.
    ///
    /// # Errors
    /// As [`GitHub::webhook`], and when nothing answers.
    pub async fn deliver(&self, url: &str, event: &Event) -> Result<u16, GitHubError> {
        self.webhook(event)?.deliver(url).await
    }
}
