//! What else is read and told: CRDs, pull secrets, events, the server's time.

use anyhow::{Result, bail};
use belay_adapters::{
    cluster::{self, Events, SchemaProblem, SecretsError, ServerClock, check_crds, keyring},
    registry::{Image, PullCredential},
};
use belay_api::{AnnotationPrefix, events::EventReason};
use belay_engine::plan::Notice;
use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{Secret, ServiceAccount},
        events::v1::Event,
    },
};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::bed::{Bed, client, web};

#[tokio::test]
async fn the_crds_of_this_version_are_found() -> Result<()> {
    let bed = Bed::new().await?;
    check_crds(&bed.client, &AnnotationPrefix::default()).await?;
    // Under another prefix they do not say their version.
    let problem = check_crds(&bed.client, &"other.example".parse()?).await.err();
    let Some(SchemaProblem::Older { found: None, .. }) = problem else { bail!("{problem:?}") };
    let access = bed.with_rights(&[]).await?;
    let problem = check_crds(&client(&access)?, &AnnotationPrefix::default()).await.err();
    let Some(SchemaProblem::Unread { .. }) = problem else { bail!("{problem:?}") };
    Ok(())
}

async fn pull_secret(bed: &Bed, name: &str) -> Result<()> {
    let config = json!({ "auths": { "r.example": { "username": name, "password": "p" } } });
    let data = ByteString(config.to_string().into_bytes());
    let secret = json!({
        "metadata": { "name": name }, "type": "kubernetes.io/dockerconfigjson",
        "data": { ".dockerconfigjson": serde_json::to_value(data)? },
    });
    bed.create::<Secret>("test", &secret).await?;
    Ok(())
}

#[tokio::test]
async fn pull_secrets_are_read_by_the_kubelets_rules() -> Result<()> {
    let bed = Bed::new().await?;
    for name in ["one", "two", "three"] {
        pull_secret(&bed, name).await?;
    }
    let patch = json!({ "imagePullSecrets": [{ "name": "three" }] });
    let accounts = bed.api::<ServiceAccount>();
    accounts.patch("default", &PatchParams::default(), &Patch::Merge(patch)).await?;
    let image = Image::parse("r.example/web:1")?;
    let of_pod = ["two".to_owned(), "missing".to_owned(), "one".to_owned()];
    for (named, expected) in [(&of_pod[..], &["two", "one"][..]), (&[][..], &["three"][..])] {
        let keyring = keyring(&bed.client, &bed.namespace, named, "").await?;
        let found = keyring.lookup(&image);
        let found: Vec<_> = found.iter().map(PullCredential::secret).collect();
        assert_eq!(found, expected);
    }
    Ok(())
}

#[tokio::test]
async fn a_secret_that_may_not_be_read_is_named() -> Result<()> {
    let bed = Bed::new().await?;
    pull_secret(&bed, "one").await?;
    let robot = client(&bed.with_rights(&[("get", "/serviceaccounts")]).await?)?;
    let error = keyring(&robot, &bed.namespace, &["one".to_owned()], "").await.err();
    let Some(SecretsError::Denied { name, .. }) = &error else { bail!("{error:?}") };
    assert_eq!(name, "one");
    // A right to nothing at all, and a pod that names none.
    keyring(&robot, &bed.namespace, &[], "").await?;
    Ok(())
}

#[tokio::test]
async fn notices_become_events_of_the_workload() -> Result<()> {
    let bed = Bed::new().await?;
    bed.deploy(&web()).await?;
    let workload = bed.facts().await?;
    let access = bed.with_rights(&[("create,patch", "events.k8s.io/events")]).await?;
    let events = Events::new(client(&access)?, "belay-operator", "pod-1");
    let moving = || Notice::of(EventReason::Applying, "to v2");
    let notices = [moving(), moving(), Notice::of(EventReason::Failed, "to v3")];
    events.send(&bed.namespace, &workload, &notices).await;
    let params = ListParams::default().fields("reportingController=belay-operator");
    let mut found: Vec<_> = bed
        .api::<Event>()
        .list(&params)
        .await?
        .into_iter()
        .map(|event| {
            let count = event.series.map_or(1, |series| series.count);
            let uid = event.regarding.and_then(|it| it.uid).unwrap_or_default();
            (event.note.unwrap_or_default(), event.type_.unwrap_or_default(), count, uid)
        })
        .collect();
    found.sort();
    let uid = || workload.uid.clone();
    let expected = [
        ("to v2".to_owned(), "Normal".to_owned(), 2, uid()),
        ("to v3".to_owned(), "Warning".to_owned(), 1, uid()),
    ];
    assert_eq!(found, expected);
    Ok(())
}

#[tokio::test]
async fn the_clock_follows_the_answers_of_the_server() -> Result<()> {
    let bed = Bed::new().await?;
    let clock = ServerClock::new();
    // Far ahead: what is known until the server itself is heard.
    clock.note("2031-01-01T00:00:00Z".parse()?, std::time::Instant::now());
    let config = belay_testkit::cluster::config(bed.cluster.admin_access())?;
    let client = cluster::client(&config, &clock)?;
    client.apiserver_version().await?;
    // The server is on this machine.
    let apart = clock.now().duration_since(jiff::Timestamp::now()).abs();
    assert!(apart < jiff::SignedDuration::from_mins(5), "{apart}");
    Ok(())
}
