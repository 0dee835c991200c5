//! Making tokens, Apps and installations.

use std::time::Duration;

use super::{
    account::AccountKind,
    app::{App, AppCredentials, Installation, key_pair},
    auth::{Credential, Grants, Rights, Token, random_hex},
    error::GitHubError,
    state::State,
};

/// How long an installation token lives.
pub const INSTALLATION_TOKEN_LIFE: Duration = Duration::from_hours(1);

impl State {
    /// Makes a personal access token of a user of its own, named like the label.
    pub(crate) fn create_token(
        &mut self,
        label: &str,
        rights: &Rights,
    ) -> Result<String, GitHubError> {
        if self.token_labels().any(|taken| taken == label) || label == "anonymous" {
            return Err(GitHubError::exists("token", label));
        }
        let grants = self.grants(rights, None)?;
        self.ensure_account(label, AccountKind::User);
        let credential = Credential::Token { label: label.to_owned() };
        let token = Token::new("ghp_", credential, label.to_owned(), grants, None)?;
        let secret = token.secret().to_owned();
        self.tokens.push(token);
        Ok(secret)
    }

    /// Makes every token of a bucket (a label, or `installation-ID`) bad.
    pub(crate) fn revoke(&mut self, label: &str) -> Result<(), GitHubError> {
        let before = self.tokens.len();
        self.tokens.retain(|token| token.credential.bucket() != label);
        if self.tokens.len() == before {
            return Err(GitHubError::missing("token", label));
        }
        Ok(())
    }

    pub(crate) fn token_labels(&self) -> impl Iterator<Item = String> {
        self.tokens.iter().map(|token| token.credential.bucket())
    }

    pub(crate) fn create_app(
        &mut self,
        slug: &str,
        owner: &str,
    ) -> Result<AppCredentials, GitHubError> {
        if self.apps.iter().any(|app| app.slug == slug) {
            return Err(GitHubError::exists("app", slug));
        }
        let (private_key, public_key) = key_pair(slug)?;
        self.ensure_account(owner, AccountKind::Organization);
        // A bot account acts for the App's installations.
        self.ensure_account(&bot(slug), AccountKind::User);
        let app = App {
            id: self.new_id(),
            slug: slug.to_owned(),
            client_id: format!("Iv23{}", random_hex::<8>()?),
            owner: owner.to_owned(),
            public_key,
            created_at: self.now(),
        };
        let credentials = AppCredentials {
            id: app.id,
            slug: app.slug.clone(),
            client_id: app.client_id.clone(),
            private_key,
        };
        self.apps.push(app);
        Ok(credentials)
    }

    /// Installs an App on an account.
    pub(crate) fn install_app(
        &mut self,
        slug: &str,
        account: &str,
        rights: &Rights,
    ) -> Result<u64, GitHubError> {
        let app = self.app(slug)?.id;
        self.ensure_account(account, AccountKind::Organization);
        let grants = self.grants(rights, Some(account))?;
        let id = self.new_id();
        let created_at = self.now();
        self.installations.push(Installation {
            id,
            app,
            account: account.to_owned(),
            grants,
            created_at,
            suspended_at: None,
            tokens: 0,
        });
        Ok(id)
    }

    pub(crate) fn suspend(&mut self, id: u64, suspended: bool) -> Result<(), GitHubError> {
        let now = self.now();
        let installation = self.installation_mut(id)?;
        installation.suspended_at = suspended.then_some(now);
        Ok(())
    }

    /// Makes a token of an installation, with at most the installation's grants.
    pub(crate) fn create_installation_token(
        &mut self,
        id: u64,
        grants: Grants,
    ) -> Result<&Token, GitHubError> {
        let expires = self.now().saturating_add(INSTALLATION_TOKEN_LIFE).ok();
        let app = self.installation_mut(id)?.app;
        let slug = self.apps.iter().find(|candidate| candidate.id == app);
        let actor = bot(&slug.ok_or_else(|| GitHubError::missing("app", app.to_string()))?.slug);
        let installation = self.installation_mut(id)?;
        installation.tokens += 1;
        let credential = Credential::Installation { id, serial: installation.tokens };
        let token = Token::new("ghs_", credential, actor, grants, expires)?;
        self.tokens.push(token);
        self.tokens.last().ok_or_else(|| GitHubError::missing("token", id.to_string()))
    }

    pub(crate) fn installation_mut(&mut self, id: u64) -> Result<&mut Installation, GitHubError> {
        let found = self.installations.iter_mut().find(|installation| installation.id == id);
        found.ok_or_else(|| GitHubError::missing("installation", id.to_string()))
    }

    pub(crate) fn app(&self, slug: &str) -> Result<&App, GitHubError> {
        let found = self.apps.iter().find(|app| app.slug == slug);
        found.ok_or_else(|| GitHubError::missing("app", slug))
    }

    fn grants(&self, rights: &Rights, account: Option<&str>) -> Result<Grants, GitHubError> {
        let ids = |slugs: &Vec<String>| slugs.iter().map(|slug| self.named(slug)).collect();
        Ok(Grants {
            repositories: rights.repositories.as_ref().map(ids).transpose()?,
            account: account.map(str::to_ascii_lowercase),
            permissions: rights.permissions.clone(),
        })
    }
}

fn bot(slug: &str) -> String {
    format!("{slug}[bot]")
}
