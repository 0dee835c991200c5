//! Signed webhooks, right ones and wrong ones.

use std::fmt;

use aws_lc_rs::hmac;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    auth::{hex, random_hex},
    error::GitHubError,
    exchange::base,
    objects::{self, Urls},
    repository::Repository,
    state::State,
};

/// What has happened to a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseAction {
    /// Saved as a draft, or published without one.
    Created,
    /// Deleted.
    Deleted,
    /// Edited.
    Edited,
    /// Published as a prerelease.
    Prereleased,
    /// Published, in any way.
    Published,
    /// Published as a full release.
    Released,
    /// Taken back.
    Unpublished,
}

impl ReleaseAction {
    /// Every action.
    pub const ALL: [Self; 7] = [
        Self::Created,
        Self::Deleted,
        Self::Edited,
        Self::Prereleased,
        Self::Published,
        Self::Released,
        Self::Unpublished,
    ];

    /// As in the payload.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Deleted => "deleted",
            Self::Edited => "edited",
            Self::Prereleased => "prereleased",
            Self::Published => "published",
            Self::Released => "released",
            Self::Unpublished => "unpublished",
        }
    }
}

/// What a webhook tells of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// The webhook was set up.
    Ping {
        /// `OWNER/NAME`
        repo: String,
    },
    /// A release changed.
    Release {
        /// `OWNER/NAME`
        repo: String,
        /// Its tag.
        tag: String,
        /// How it changed.
        action: ReleaseAction,
    },
    /// The last status of a deployment was added.
    DeploymentStatus {
        /// `OWNER/NAME`
        repo: String,
        /// The deployment's id.
        deployment: u64,
    },
}

impl Event {
    /// As in `X-GitHub-Event`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ping { .. } => "ping",
            Self::Release { .. } => "release",
            Self::DeploymentStatus { .. } => "deployment_status",
        }
    }

    fn repository(&self) -> &str {
        match self {
            Self::Ping { repo }
            | Self::Release { repo, .. }
            | Self::DeploymentStatus { repo, .. } => repo,
        }
    }
}

/// How a webhook is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Signature {
    /// As GitHub does.
    #[default]
    Valid,
    /// No header, as GitHub sends it when no secret is set.
    Missing,
    /// An empty header.
    Empty,
    /// With another secret.
    WrongSecret,
    /// Over another body.
    WrongBody,
    /// The first half of the right one.
    Short,
    /// The right one and two digits more.
    Long,
    /// As long as a right one, of letters that are no digits.
    NotHex,
    /// The right digits without `sha256=`.
    NoPrefix,
    /// The right digits, called `sha1=`.
    WrongAlgorithm,
}

impl Signature {
    /// Every way but the right one.
    pub const WRONG: [Self; 9] = [
        Self::Missing,
        Self::Empty,
        Self::WrongSecret,
        Self::WrongBody,
        Self::Short,
        Self::Long,
        Self::NotHex,
        Self::NoPrefix,
        Self::WrongAlgorithm,
    ];
}

/// A webhook, ready to be sent as often as a test likes: each time it is the same delivery.
#[derive(Clone)]
pub struct Webhook {
    event: &'static str,
    delivery: String,
    hook: u64,
    target: u64,
    body: Bytes,
    secret: String,
    signature: Signature,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("event", &self.event)
            .field("delivery", &self.delivery)
            .field("signature", &self.signature)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    /// Signed with the server's secret. Fails when what the event tells of is not there.
    pub(crate) fn of(state: &State, origin: &str, event: &Event) -> Result<Self, GitHubError> {
        let urls = Urls { api: base(origin, false) };
        let slug = event.repository();
        let id = state.named(slug)?;
        let missing = || GitHubError::missing("repository", slug);
        let repository = state.repository(id).ok_or_else(missing)?;
        let mut payload = payload(state, repository, event, &urls)?;
        payload["repository"] = objects::repository(state, repository, &urls);
        payload["sender"] = objects::account(state, &repository.owner, &urls);
        Ok(Self {
            event: event.name(),
            delivery: uuid()?,
            hook: state.hook,
            target: id,
            body: Bytes::from(payload.to_string()),
            secret: state.webhook_secret.clone(),
            signature: Signature::Valid,
        })
    }

    /// Signed in another way.
    #[must_use]
    pub fn signed(self, signature: Signature) -> Self {
        Self { signature, ..self }
    }

    /// Signed with another secret.
    #[must_use]
    pub fn secret(self, secret: impl Into<String>) -> Self {
        Self { secret: secret.into(), ..self }
    }

    /// With other bytes, signed in the same way: a payload GitHub would not send.
    #[must_use]
    pub fn body_of(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// The id of the delivery, which stays the same when it is sent again.
    pub fn delivery(&self) -> &str {
        &self.delivery
    }

    /// The raw body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The headers as GitHub sends them.
    pub fn headers(&self) -> HeaderMap {
        let texts = [
            ("user-agent", Some("GitHub-Hookshot/be1a7e5".to_owned())),
            ("content-type", Some("application/json".to_owned())),
            ("x-github-event", Some(self.event.to_owned())),
            ("x-github-delivery", Some(self.delivery.clone())),
            ("x-github-hook-id", Some(self.hook.to_string())),
            ("x-github-hook-installation-target-type", Some("repository".to_owned())),
            ("x-github-hook-installation-target-id", Some(self.target.to_string())),
            ("x-hub-signature-256", self.signature_header()),
        ];
        let entry = |(name, text): (&'static str, Option<String>)| {
            let value = HeaderValue::from_str(&text?).ok()?;
            Some((HeaderName::from_static(name), value))
        };
        texts.into_iter().filter_map(entry).collect()
    }

    /// Sends it and returns the status it was answered with.
    ///
    /// # Errors
    /// [`GitHubError::Send`] when nothing answers.
    pub async fn deliver(&self, url: &str) -> Result<u16, GitHubError> {
        let what = format!("the {} webhook", self.event);
        let failed = |source| GitHubError::Send { what, url: url.to_owned(), source };
        // GitHub does not follow redirects either.
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let request = match client.build() {
            Ok(client) => client.post(url).headers(self.headers()).body(self.body.clone()).send(),
            Err(error) => return Err(failed(error)),
        };
        request.await.map(|answer| answer.status().as_u16()).map_err(failed)
    }

    fn signature_header(&self) -> Option<String> {
        let right = sign(&self.secret, &self.body);
        Some(match self.signature {
            Signature::Valid => format!("sha256={right}"),
            Signature::Missing => return None,
            Signature::Empty => String::new(),
            Signature::WrongSecret => {
                format!("sha256={}", sign(&format!("not {}", self.secret), &self.body))
            }
            Signature::WrongBody => format!("sha256={}", sign(&self.secret, b"{}")),
            Signature::Short => format!("sha256={}", &right[..right.len() / 2]),
            Signature::Long => format!("sha256={right}00"),
            Signature::NotHex => format!("sha256={}", "z".repeat(right.len())),
            Signature::NoPrefix => right,
            Signature::WrongAlgorithm => format!("sha1={right}"),
        })
    }
}

fn sign(secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hex(hmac::sign(&key, body).as_ref())
}

fn payload(
    state: &State,
    repository: &Repository,
    event: &Event,
    urls: &Urls,
) -> Result<Value, GitHubError> {
    Ok(match event {
        Event::Ping { .. } => {
            let url = format!("{}/hooks/{}", urls.repository(&repository.full_name()), state.hook);
            let at = super::clock::rfc3339(repository.created_at);
            json!({
                "zen": "Keep it logically awesome.",
                "hook_id": state.hook,
                "hook": {
                    "type": "Repository",
                    "id": state.hook,
                    "name": "web",
                    "active": true,
                    "events": ["release", "deployment_status"],
                    "config": {
                        "content_type": "json",
                        "insecure_ssl": "0",
                        "url": "https://example.com/webhook",
                    },
                    "created_at": at,
                    "updated_at": at,
                    "url": url,
                    "test_url": format!("{url}/test"),
                    "ping_url": format!("{url}/pings"),
                    "deliveries_url": format!("{url}/deliveries"),
                    "last_response": { "code": null, "status": "unused", "message": null },
                },
            })
        }
        Event::Release { tag, action, repo } => {
            let release = repository.releases.iter().find(|release| release.tag == *tag);
            let missing = || GitHubError::missing("release", format!("{tag} of {repo}"));
            let release = release.ok_or_else(missing)?;
            let mut payload = json!({
                "action": action.name(),
                "release": objects::release(state, repository, release, urls),
            });
            if *action == ReleaseAction::Edited {
                payload["changes"] = json!({});
            }
            payload
        }
        Event::DeploymentStatus { deployment, repo } => {
            let found = repository.deployments.iter().find(|it| it.id == *deployment);
            let status = found.and_then(|it| Some((it, it.statuses.last()?)));
            let name = format!("{deployment} of {repo} with a status");
            let (deployment, status) =
                status.ok_or_else(|| GitHubError::missing("deployment", name))?;
            json!({
                "action": "created",
                "deployment_status":
                    objects::deployment_status(state, repository, deployment, status, urls),
                "deployment": objects::deployment(state, repository, deployment, urls),
            })
        }
    })
}

/// A random UUID (version 4), as deliveries have.
fn uuid() -> Result<String, GitHubError> {
    let digits = random_hex::<16>()?;
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    Ok(format!(
        "{}-{}-4{}-a{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_githubs_own_example() {
        // From GitHub's documentation on validating webhook deliveries.
        assert_eq!(
            sign("It's a Secret to Everybody", b"Hello, World!"),
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        );
    }
}
