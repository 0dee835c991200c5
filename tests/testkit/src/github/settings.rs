//! Limits, single sign-on and scripts.

use http::{HeaderName, HeaderValue, StatusCode};

use super::{
    deployment::{DeploymentState, DeploymentStatus},
    error::GitHubError,
    limits::LimitSettings,
    script::{Matching, Reply, Times},
    state::State,
};

impl State {
    pub(crate) fn set_limits(&mut self, settings: LimitSettings) -> Result<(), GitHubError> {
        throttling("the status above the limit", settings.exceeded_status)?;
        self.limits.settings = settings;
        Ok(())
    }

    pub(crate) fn set_single_sign_on(&mut self, owner: &str, required: bool) {
        let owner = owner.to_ascii_lowercase();
        if required {
            self.sso.insert(owner);
        } else {
            self.sso.remove(&owner);
        }
    }

    pub(crate) fn script(
        &mut self,
        matching: Matching,
        times: Times,
        reply: Reply,
    ) -> Result<(), GitHubError> {
        match &reply {
            Reply::SecondaryLimit { status, .. } => {
                throttling("the status of a secondary limit", *status)?;
            }
            Reply::Answer { status, headers, .. } => {
                let invalid = |what, value: &dyn ToString, why| GitHubError::Invalid {
                    what,
                    value: value.to_string(),
                    why,
                };
                // Informational answers are not final: a client would wait for another.
                if !(200..600).contains(status) || StatusCode::from_u16(*status).is_err() {
                    return Err(invalid("a scripted status", status, "expected 200 to 599"));
                }
                for (name, value) in headers {
                    if HeaderName::try_from(name).is_err() {
                        return Err(invalid("a header's name", name, "expected a token"));
                    }
                    if HeaderValue::try_from(value).is_err() {
                        return Err(invalid("a header's value", value, "expected visible ASCII"));
                    }
                }
            }
            _ => {}
        }
        let now = self.now();
        self.scripts.add(matching, times, reply, now);
        Ok(())
    }

    /// Adds a status to a deployment as whoever carries it out does.
    pub(crate) fn report_deployment(
        &mut self,
        slug: &str,
        deployment: u64,
        state: DeploymentState,
    ) -> Result<u64, GitHubError> {
        let repository = self.named(slug)?;
        let added = self.add_status(repository, deployment, true, |id, now, of| DeploymentStatus {
            id,
            state,
            creator: of.creator.clone(),
            description: String::new(),
            environment: of.environment.clone(),
            environment_url: String::new(),
            log_url: String::new(),
            created_at: now,
        });
        added.ok_or_else(|| GitHubError::missing("deployment", format!("{deployment} of {slug}")))
    }
}

fn throttling(what: &'static str, status: u16) -> Result<(), GitHubError> {
    if matches!(status, 403 | 429) {
        return Ok(());
    }
    Err(GitHubError::Invalid { what, value: status.to_string(), why: "expected 403 or 429" })
}
