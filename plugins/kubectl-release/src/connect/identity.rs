//! Flags about credentials and impersonation, over what the kubeconfig says.

use std::collections::HashMap;

use kube::config::AuthInfo;

use crate::{cli::cluster::ClusterArgs, error::Error};

/// Applies the flags.
///
/// # Errors
/// They contradict each other.
pub(super) fn apply(args: &ClusterArgs, login: &mut AuthInfo) -> Result<(), Error> {
    if let Some(token) = args.token.as_ref().filter(|token| !token.expose().is_empty()) {
        without_other_logins(login);
        login.token = Some(token.expose().to_owned().into());
    }
    password(args, login)?;
    let file = |path: &std::path::Path| Some(path.to_string_lossy().into_owned());
    if let Some(path) = &args.client_certificate {
        login.client_certificate = file(path);
        login.client_certificate_data = None;
    }
    if let Some(path) = &args.client_key {
        login.client_key = file(path);
        login.client_key_data = None;
    }
    impersonate(args, login)
}

/// User and password, each over that of the kubeconfig.
fn password(args: &ClusterArgs, login: &mut AuthInfo) -> Result<(), Error> {
    let user = args.username.as_ref().filter(|user| !user.is_empty());
    let password = args.password.as_ref().filter(|password| !password.expose().is_empty());
    if user.is_none() && password.is_none() {
        return Ok(());
    }
    if args.token.as_ref().is_some_and(|token| !token.expose().is_empty()) {
        return Err(Error::usage("--token goes without --username and --password"));
    }
    let before = (login.username.take(), login.password.take());
    login.token = None;
    without_other_logins(login);
    login.username = user.cloned().or(before.0);
    login.password = password.map(|word| word.expose().to_owned().into()).or(before.1);
    Ok(())
}

/// As in client-go, the other ways to log in give way to a token.
fn without_other_logins(login: &mut AuthInfo) {
    login.token_file = None;
    login.exec = None;
    login.auth_provider = None;
    login.username = None;
    login.password = None;
}

fn impersonate(args: &ClusterArgs, login: &mut AuthInfo) -> Result<(), Error> {
    let told = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(user) = told(&args.as_user) {
        login.impersonate = Some(user);
    }
    if let Some(uid) = told(&args.as_uid) {
        login.impersonate_uid = Some(uid);
    }
    if !args.as_group.is_empty() {
        login.impersonate_groups = Some(args.as_group.clone());
    }
    if !args.as_user_extra.is_empty() {
        let mut extra: HashMap<String, Vec<String>> = HashMap::new();
        for pair in &args.as_user_extra {
            let (key, value) =
                pair.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                    Error::usage(format!("--as-user-extra {pair:?}: expected KEY=VALUE"))
                })?;
            extra.entry(key.to_owned()).or_default().push(value.to_owned());
        }
        login.impersonate_user_extra = Some(extra);
    }
    let has = |groups: &Option<Vec<String>>| groups.as_ref().is_some_and(|all| !all.is_empty());
    let has_more = login.impersonate_uid.is_some()
        || has(&login.impersonate_groups)
        || login.impersonate_user_extra.as_ref().is_some_and(|extra| !extra.is_empty());
    if login.impersonate.is_none() && has_more {
        return Err(Error::usage(
            "a UID, groups or extra values can only be impersonated together with a user",
        )
        .hint("name the user with --as"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn applied(flags: &[&str], mut login: AuthInfo) -> Result<AuthInfo, Error> {
        let words = ["kubectl-release", "version"].iter().chain(flags);
        let args = Cli::try_parse_from(words).unwrap().global.cluster;
        apply(&args, &mut login).map(|()| login)
    }

    #[test]
    fn impersonation_goes_over_the_kubeconfigs() {
        let flags = [
            "--as=alice",
            "--as-uid=7",
            "--as-group=a",
            "--as-group=b",
            "--as-user-extra=k=1",
            "--as-user-extra=k=2=3",
        ];
        let before = AuthInfo { impersonate: Some("bob".to_owned()), ..AuthInfo::default() };
        let login = applied(&flags, before).unwrap();
        assert_eq!(login.impersonate.as_deref(), Some("alice"));
        assert_eq!(login.impersonate_uid.as_deref(), Some("7"));
        assert_eq!(login.impersonate_groups.unwrap(), ["a", "b"]);
        assert_eq!(login.impersonate_user_extra.unwrap()["k"], ["1", "2=3"]);
    }

    #[rstest::rstest]
    #[case::group(&["--as-group=a"])]
    #[case::uid(&["--as-uid=7"])]
    #[case::extra(&["--as-user-extra=k=1"])]
    #[case::no_pair(&["--as=a", "--as-user-extra=k"])]
    fn half_an_impersonation_is_refused(#[case] flags: &[&str]) {
        let error = applied(flags, AuthInfo::default()).unwrap_err();
        assert_eq!(error.class, crate::Class::Usage);
    }

    #[test]
    fn groups_add_to_a_user_of_the_kubeconfig() {
        let before = AuthInfo { impersonate: Some("bob".to_owned()), ..AuthInfo::default() };
        let login = applied(&["--as-group=a"], before).unwrap();
        assert_eq!(login.impersonate.as_deref(), Some("bob"));
    }

    #[test]
    fn a_token_takes_the_place_of_other_logins() {
        let before = AuthInfo {
            token_file: Some("/t".to_owned()),
            username: Some("u".to_owned()),
            exec: Some(kube::config::ExecConfig::default()),
            ..AuthInfo::default()
        };
        let login = applied(&["--token=secret"], before).unwrap();
        assert!(login.token.is_some() && login.token_file.is_none());
        assert!(login.username.is_none() && login.exec.is_none());
    }

    #[test]
    fn user_and_password_take_the_place_of_other_logins() {
        let before = || AuthInfo {
            token: Some("t".to_owned().into()),
            password: Some("p".to_owned().into()),
            ..AuthInfo::default()
        };
        let login = applied(&["--username=ann"], before()).unwrap();
        assert_eq!(login.username.as_deref(), Some("ann"));
        assert!(login.password.is_some() && login.token.is_none());
        let error = applied(&["--username=ann", "--token=t"], before()).unwrap_err();
        assert_eq!(error.class, crate::Class::Usage);
    }
}
