//! Changes by the control endpoint and the command: what tests in Rust do with methods of
//! [`GitHub`](super::GitHub).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    auth::Rights,
    deployment::DeploymentState,
    error::GitHubError,
    limits::LimitSettings,
    repository::{Base, CommitState, NewRelease, ReleaseEdit},
    script::{Matching, Reply, Times},
    state::{Named, State},
};

/// One change. In JSON its name, in kebab-case, is the last part of the control endpoint's path and
/// the fields are the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// Creates a repository.
    CreateRepository {
        /// `OWNER/NAME`
        repo: String,
        /// Whether it is private.
        #[serde(default)]
        private: bool,
    },
    /// Deletes a repository.
    DeleteRepository {
        /// `OWNER/NAME`
        repo: String,
    },
    /// Renames or transfers a repository; the old name redirects.
    Rename {
        /// `OWNER/NAME`
        repo: String,
        /// The new `OWNER/NAME`.
        to: String,
    },
    /// Gives a name to a new repository with another id.
    Recreate {
        /// `OWNER/NAME`
        repo: String,
    },
    /// Makes a repository private or public.
    Visibility {
        /// `OWNER/NAME`
        repo: String,
        /// Whether it is private.
        private: bool,
    },
    /// Publishes a release; a repository that is not there is created, public.
    Publish {
        /// `OWNER/NAME`
        repo: String,
        /// The release.
        release: NewRelease,
    },
    /// Edits a release.
    Edit {
        /// `OWNER/NAME`
        repo: String,
        /// Its tag.
        tag: String,
        /// What changes.
        edit: ReleaseEdit,
    },
    /// Deletes a release, or takes it back to a draft.
    Withdraw {
        /// `OWNER/NAME`
        repo: String,
        /// Its tag.
        tag: String,
        /// Whether a draft is left.
        #[serde(default)]
        to_draft: bool,
    },
    /// Creates a branch or changes how it stands to the default branch.
    Branch {
        /// `OWNER/NAME`
        repo: String,
        /// The branch.
        branch: String,
        /// How it stands.
        #[serde(default)]
        base: Base,
    },
    /// Sets a commit status.
    CommitStatus {
        /// `OWNER/NAME`
        repo: String,
        /// A branch, a tag or a commit.
        r#ref: String,
        /// The context.
        context: String,
        /// Its state.
        state: CommitState,
    },
    /// Adds a status to a deployment, as whoever carries it out does.
    DeploymentStatus {
        /// `OWNER/NAME`
        repo: String,
        /// The deployment's id.
        deployment: u64,
        /// The state.
        state: DeploymentState,
    },
    /// Sets the primary limits; fields that are left out have GitHub's values.
    Limits(LimitSettings),
    /// Uses up the quota of a credential.
    Exhaust {
        /// Its label: a token's, `installation-ID`, `app-SLUG` or `anonymous`.
        credential: String,
    },
    /// Moves the clock ahead.
    Advance {
        /// By so many seconds.
        seconds: u64,
    },
    /// Makes a personal access token.
    Token {
        /// Its label.
        label: String,
        /// What it may do.
        #[serde(default)]
        rights: Rights,
    },
    /// Makes the tokens of a label bad.
    Revoke {
        /// The label of a token, or `installation-ID`.
        label: String,
    },
    /// Creates an App.
    App {
        /// Its name.
        slug: String,
        /// Whose it is.
        owner: String,
    },
    /// Installs an App on an account.
    Install {
        /// The App.
        app: String,
        /// The account.
        account: String,
        /// What it may do there.
        #[serde(default)]
        rights: Rights,
    },
    /// Suspends an installation, or ends that.
    Suspend {
        /// The installation's id.
        installation: u64,
        /// Whether it is suspended.
        suspended: bool,
    },
    /// Demands single sign-on of personal access tokens, or ends that.
    SingleSignOn {
        /// The organisation.
        owner: String,
        /// Whether it is demanded.
        required: bool,
    },
    /// Sets the secret that webhooks are signed with.
    WebhookSecret {
        /// The secret.
        secret: String,
    },
    /// Scripts answers.
    Script {
        /// Which requests.
        #[serde(default)]
        matching: Matching,
        /// For how long.
        times: Times,
        /// The answer.
        reply: Reply,
    },
    /// Ends all scripts.
    ClearScripts {},
}

impl Change {
    /// The name, as in the control endpoint's path, and the fields.
    pub(crate) fn parts(&self) -> (String, Value) {
        let object = serde_json::to_value(self).ok().and_then(|value| match value {
            Value::Object(object) => object.into_iter().next(),
            _ => None,
        });
        object.unwrap_or_default()
    }

    /// The change of this name with these fields.
    pub(crate) fn from_parts(name: &str, fields: &Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(json!({ name: fields }))
    }

    /// Carries it out; the answer holds ids and secrets of what was made.
    pub(crate) fn apply(self, state: &mut State) -> Result<Value, GitHubError> {
        let done = |()| json!({});
        let id = |id: u64| json!({ "id": id });
        match self {
            Self::CreateRepository { repo, private } => {
                state.create_repository(&repo, private).map(id)
            }
            Self::DeleteRepository { repo } => state.delete_repository(&repo).map(done),
            Self::Rename { repo, to } => state.rename_repository(&repo, &to).map(done),
            Self::Recreate { repo } => state.recreate_repository(&repo).map(id),
            Self::Visibility { repo, private } => state.set_private(&repo, private).map(done),
            Self::Publish { repo, release } => {
                if !matches!(state.find(&repo), Some(Named::Here(_))) {
                    state.create_repository(&repo, false)?;
                }
                state.publish(&repo, release).map(id)
            }
            Self::Edit { repo, tag, edit } => state.edit(&repo, &tag, edit).map(id),
            Self::Withdraw { repo, tag, to_draft } => state.withdraw(&repo, &tag, to_draft).map(id),
            Self::Branch { repo, branch, base } => state.set_branch(&repo, &branch, base).map(done),
            Self::CommitStatus { repo, r#ref, context, state: it } => {
                state.set_commit_status(&repo, &r#ref, &context, it).map(done)
            }
            Self::DeploymentStatus { repo, deployment, state: it } => {
                state.report_deployment(&repo, deployment, it).map(id)
            }
            Self::Limits(settings) => {
                state.set_limits(settings)?;
                Ok(json!({}))
            }
            Self::Exhaust { credential } => {
                let now = state.now();
                state.limits.exhaust(&credential, now);
                Ok(json!({}))
            }
            Self::Advance { seconds } => {
                state.advance(Duration::from_secs(seconds));
                Ok(json!({ "now": state.now() }))
            }
            Self::Token { label, rights } => {
                state.create_token(&label, &rights).map(|token| json!({ "token": token }))
            }
            Self::Revoke { label } => state.revoke(&label).map(done),
            Self::App { slug, owner } => {
                state.create_app(&slug, &owner).map(|credentials| json!(credentials))
            }
            Self::Install { app, account, rights } => {
                state.install_app(&app, &account, &rights).map(id)
            }
            Self::Suspend { installation, suspended } => {
                state.suspend(installation, suspended).map(done)
            }
            Self::SingleSignOn { owner, required } => {
                state.set_single_sign_on(&owner, required);
                Ok(json!({}))
            }
            Self::WebhookSecret { secret } => {
                state.webhook_secret = secret;
                Ok(json!({}))
            }
            Self::Script { matching, times, reply } => {
                state.script(matching, times, reply).map(done)
            }
            Self::ClearScripts {} => {
                state.scripts.clear();
                Ok(json!({}))
            }
        }
    }
}
