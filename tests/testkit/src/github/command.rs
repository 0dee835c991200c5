//! `github …`: serves a scripted GitHub, and publishes, edits and withdraws releases on one that
//! runs.

use std::{io::Write as _, path::PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    Base, Change, DeploymentState, Event, GitHub, LimitSettings, MakeLatest, NewRelease,
    ReleaseAction, ReleaseEdit, Rights, Signature, control::Deliver,
};
use crate::wait;

/// The environment variable that names a running server.
pub const URL_VARIABLE: &str = "BELAY_GITHUB_URL";

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum GithubCommand {
    /// Serve until the command is interrupted or terminated
    Serve(Serve),
    /// Publish a release; the repository is created where it is missing
    Publish(Publish),
    /// Edit the release of a tag
    Edit(Edit),
    /// Delete the release of a tag, or take it back to a draft
    Withdraw(Withdraw),
    /// Create a repository
    Create {
        /// OWNER/NAME
        repo: String,
        /// Make it private
        #[arg(long)]
        private: bool,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Rename or transfer a repository; the old name redirects
    Rename {
        /// OWNER/NAME
        repo: String,
        /// The new OWNER/NAME
        to: String,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Give a name to a new repository with another id
    Recreate {
        /// OWNER/NAME
        repo: String,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Set the primary limits, or use up a quota
    Limits(Limits),
    /// Move the server's clock ahead
    Advance {
        /// By so many seconds
        seconds: u64,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Make a personal access token and print it
    Token {
        /// Its label
        label: String,
        /// OWNER/NAME of a repository it may read; repeatable. Without any: what is public
        #[arg(long)]
        repo: Vec<String>,
        /// Let it write there as well
        #[arg(long)]
        write: bool,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Create an App, install it on its owner and print the ids
    App {
        /// Its name
        slug: String,
        /// The organisation that owns it
        owner: String,
        /// Where to write the private key (PEM)
        #[arg(long)]
        key: PathBuf,
        /// Let it write deployments
        #[arg(long)]
        write: bool,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Add a status to a deployment, as whoever carries it out does
    Report {
        /// OWNER/NAME
        repo: String,
        /// The deployment's id
        deployment: u64,
        /// error, failure, inactive, in_progress, queued, pending or success
        #[arg(value_parser = state)]
        state: DeploymentState,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Set a branch up for deployments
    Branch {
        /// OWNER/NAME
        repo: String,
        /// The branch
        branch: String,
        /// How it stands to the default branch
        #[arg(long, value_enum, default_value = "current")]
        base: Base,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Have the server send a signed webhook about a release
    Deliver(Webhook),
    /// Make any other change: its name and its fields as JSON
    Change {
        /// Its name, such as `script` or `suspend`
        name: String,
        /// Its fields
        #[arg(default_value = "{}")]
        fields: String,
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Print what there is, as JSON
    State {
        /// The server.
        #[command(flatten)]
        server: Running,
    },
    /// Print the requests so far, as JSON
    Log {
        /// The server.
        #[command(flatten)]
        server: Running,
    },
}

/// Which server is meant.
#[derive(Debug, Clone, Args)]
pub struct Running {
    /// The server's address, as `serve` prints it
    #[arg(long = "url", env = URL_VARIABLE)]
    url: String,
}

/// Options of `serve`.
#[derive(Debug, Clone, Args)]
pub struct Serve {
    /// The port, 0 for a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// OWNER/NAME of a repository to start with; repeatable
    #[arg(long)]
    repo: Vec<String>,
    /// The secret that webhooks are signed with; a random one without it
    #[arg(long)]
    webhook_secret: Option<String>,
}

/// Options of `publish`.
#[derive(Debug, Clone, Args)]
pub struct Publish {
    /// OWNER/NAME
    repo: String,
    /// The tag
    tag: String,
    /// The title
    #[arg(long)]
    name: Option<String>,
    /// The release notes
    #[arg(long, default_value = "")]
    notes: String,
    /// Save it as a draft
    #[arg(long)]
    draft: bool,
    /// Mark it as a prerelease
    #[arg(long)]
    prerelease: bool,
    /// Whether it becomes the latest
    #[arg(long, value_enum, default_value = "true")]
    make_latest: MakeLatest,
    /// The date of the commit (RFC 3339), by which GitHub sorts
    #[arg(long)]
    created_at: Option<Timestamp>,
    /// A file name of an asset; repeatable
    #[arg(long)]
    asset: Vec<String>,
    /// The server.
    #[command(flatten)]
    server: Running,
}

/// Options of `edit`.
#[derive(Debug, Clone, Args)]
pub struct Edit {
    /// OWNER/NAME
    repo: String,
    /// The tag
    tag: String,
    /// Another tag
    #[arg(long)]
    new_tag: Option<String>,
    /// Another title
    #[arg(long)]
    name: Option<String>,
    /// Other release notes
    #[arg(long)]
    notes: Option<String>,
    /// Publish it (false) or take it back (true)
    #[arg(long)]
    draft: Option<bool>,
    /// Promote it (false) or demote it (true)
    #[arg(long)]
    prerelease: Option<bool>,
    /// Whether it becomes the latest
    #[arg(long, value_enum)]
    make_latest: Option<MakeLatest>,
    /// The server.
    #[command(flatten)]
    server: Running,
}

/// Options of `withdraw`.
#[derive(Debug, Clone, Args)]
pub struct Withdraw {
    /// OWNER/NAME
    repo: String,
    /// The tag
    tag: String,
    /// Leave a draft instead of deleting it
    #[arg(long)]
    to_draft: bool,
    /// The server.
    #[command(flatten)]
    server: Running,
}

/// Options of `limits`.
#[derive(Debug, Clone, Args)]
pub struct Limits {
    /// No limits at all, as GitHub Enterprise Server comes
    #[arg(long)]
    off: bool,
    /// Requests an hour without a credential
    #[arg(long, default_value_t = 60)]
    anonymous: u32,
    /// Requests an hour for each credential
    #[arg(long, default_value_t = 5_000)]
    authenticated: u32,
    /// The status above the limit: 403 or 429
    #[arg(long, default_value_t = 403)]
    status: u16,
    /// Use up the quota of this credential: a token's label, installation-ID, app-SLUG, anonymous
    #[arg(long)]
    exhaust: Option<String>,
    /// The server.
    #[command(flatten)]
    server: Running,
}

/// Options of `deliver`.
#[derive(Debug, Clone, Args)]
pub struct Webhook {
    /// Where to send it
    target: String,
    /// OWNER/NAME
    repo: String,
    /// The release's tag; without one a ping is sent
    #[arg(long)]
    tag: Option<String>,
    /// What has happened to the release
    #[arg(long, value_enum, default_value = "published")]
    action: ReleaseAction,
    /// How it is signed
    #[arg(long, value_enum, default_value = "valid")]
    signature: Signature,
    /// The server.
    #[command(flatten)]
    server: Running,
}

fn state(text: &str) -> Result<DeploymentState, String> {
    let found = DeploymentState::ALL.into_iter().find(|state| state.name() == text);
    found.ok_or_else(|| format!("{text:?} is no state of a deployment"))
}

/// Runs a command to its end.
///
/// # Errors
/// What it could not do, and why.
pub fn run(command: GithubCommand) -> anyhow::Result<()> {
    match command {
        GithubCommand::Serve(options) => serve(&options),
        GithubCommand::Publish(it) => {
            let release = NewRelease {
                tag: it.tag,
                name: it.name,
                notes: it.notes,
                draft: it.draft,
                prerelease: it.prerelease,
                make_latest: it.make_latest,
                created_at: it.created_at,
                assets: it.asset,
            };
            it.server.print(&Change::Publish { repo: it.repo, release })
        }
        GithubCommand::Edit(it) => {
            let edit = ReleaseEdit {
                tag: it.new_tag,
                name: it.name,
                notes: it.notes,
                draft: it.draft,
                prerelease: it.prerelease,
                make_latest: it.make_latest,
            };
            it.server.print(&Change::Edit { repo: it.repo, tag: it.tag, edit })
        }
        GithubCommand::Withdraw(it) => {
            let Withdraw { repo, tag, to_draft, server } = it;
            server.print(&Change::Withdraw { repo, tag, to_draft })
        }
        GithubCommand::Create { repo, private, server } => {
            server.print(&Change::CreateRepository { repo, private })
        }
        GithubCommand::Rename { repo, to, server } => server.print(&Change::Rename { repo, to }),
        GithubCommand::Recreate { repo, server } => server.print(&Change::Recreate { repo }),
        GithubCommand::Limits(it) => limits(&it),
        GithubCommand::Advance { seconds, server } => server.print(&Change::Advance { seconds }),
        GithubCommand::Token { label, repo, write, server } => {
            let rights = if write { Rights::write(repo) } else { Rights::read(repo) };
            let answer = server.change(&Change::Token { label, rights })?;
            print(answer.get("token").and_then(Value::as_str).unwrap_or_default())
        }
        GithubCommand::App { slug, owner, key, write, server } => {
            app(&server, slug, owner, &key, write)
        }
        GithubCommand::Report { repo, deployment, state, server } => {
            server.print(&Change::DeploymentStatus { repo, deployment, state })
        }
        GithubCommand::Branch { repo, branch, base, server } => {
            server.print(&Change::Branch { repo, branch, base })
        }
        GithubCommand::Deliver(it) => {
            let event = match it.tag {
                Some(tag) => Event::Release { repo: it.repo, tag, action: it.action },
                None => Event::Ping { repo: it.repo },
            };
            let deliver = Deliver { url: it.target, event, signature: it.signature };
            let body = serde_json::to_value(&deliver).context("could not write the webhook")?;
            print(&pretty(&it.server.send("deliver", Some(&body))?))
        }
        GithubCommand::Change { name, fields, server } => {
            let fields = serde_json::from_str(&fields).context("the fields are no JSON")?;
            print(&pretty(&server.send(&name, Some(&fields))?))
        }
        GithubCommand::State { server } => print(&pretty(&server.send("state", None)?)),
        GithubCommand::Log { server } => print(&pretty(&server.send("log", None)?)),
    }
}

fn serve(options: &Serve) -> anyhow::Result<()> {
    let github = GitHub::builder().port(options.port).start()?;
    for repo in &options.repo {
        github.create_repository(repo)?;
    }
    if let Some(secret) = &options.webhook_secret {
        github.set_webhook_secret(secret);
    }
    print(&format!("export {URL_VARIABLE}={}", github.base_url()))?;
    wait::block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result,
            _ = terminate.recv() => Ok(()),
        }
    })
    .and_then(|result| result)
    .context("could not wait for a signal")
}

fn limits(it: &Limits) -> anyhow::Result<()> {
    if let Some(credential) = it.exhaust.clone() {
        return it.server.print(&Change::Exhaust { credential });
    }
    it.server.print(&Change::Limits(LimitSettings {
        enabled: !it.off,
        anonymous: it.anonymous,
        authenticated: it.authenticated,
        exceeded_status: it.status,
    }))
}

fn app(
    server: &Running,
    slug: String,
    owner: String,
    key: &PathBuf,
    write: bool,
) -> anyhow::Result<()> {
    let app = server.change(&Change::App { slug: slug.clone(), owner: owner.clone() })?;
    let pem = app.get("private_key").and_then(Value::as_str).unwrap_or_default();
    std::fs::write(key, pem).with_context(|| format!("could not write {}", key.display()))?;
    let none = Vec::<String>::new();
    let rights = if write { Rights::write(none) } else { Rights::read(none) };
    let install = Change::Install { app: slug, account: owner, rights: rights.everywhere() };
    let installation = server.change(&install)?;
    print(&pretty(&serde_json::json!({
        "app_id": app.get("id"),
        "client_id": app.get("client_id"),
        "installation_id": installation.get("id"),
    })))
}

impl Running {
    fn print(&self, change: &Change) -> anyhow::Result<()> {
        print(&pretty(&self.change(change)?))
    }

    fn change(&self, change: &Change) -> anyhow::Result<Value> {
        let (name, fields) = change.parts();
        self.send(&name, Some(&fields))
    }

    /// Posts a body to the control endpoint, or reads from it.
    fn send(&self, name: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let url = format!("{}/_belay/{name}", self.url.trim_end_matches('/'));
        let exchange = async {
            let client = reqwest::Client::new();
            let request = match body {
                Some(body) => client.post(&url).json(body),
                None => client.get(&url),
            };
            let answer = request.send().await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, answer.text().await?))
        };
        let (status, text) = wait::block_on(exchange)
            .context("could not start a runtime")?
            .with_context(|| format!("could not reach the scripted GitHub at {url}"))?;
        let value: Value = serde_json::from_str(&text)
            .with_context(|| format!("{url} is no scripted GitHub: it answered {status}"))?;
        if !status.is_success() {
            let why = value.get("error").and_then(Value::as_str).unwrap_or(&text);
            bail!("the scripted GitHub refused {name} ({}): {why}", status.as_u16());
        }
        Ok(value)
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("could not write to stdout")
}
