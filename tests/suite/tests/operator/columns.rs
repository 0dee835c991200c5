//! What `kubectl get rt,rel,rb` shows: the columns at a glance, with the real kubectl.

use anyhow::{Context as _, Result};
use belay_api::reasons::StalledReason;
use belay_suite::operator::{Bed, Wiring};
use serde_json::json;

use crate::support::{
    ask_for, ended, following_to, kubectl, release_name, rollback, stalled, wait_for_activation,
    wait_for_release, wait_for_target,
};

/// The cells of a table, without names that differ from run to run.
async fn table(bed: &Bed, what: &str, wide: bool) -> Result<Vec<Vec<String>>> {
    let mut words = vec!["get", what];
    words.extend(wide.then_some("-owide"));
    let text = kubectl(bed, &words).await?;
    let header = text.lines().next().context("an empty table")?;
    // A column begins where its name does.
    let mut starts = Vec::new();
    let mut before = ' ';
    for (at, c) in header.char_indices() {
        if c != ' ' && before == ' ' {
            starts.push(at);
        }
        before = c;
    }
    let cells = |line: &str| {
        let mut cells = Vec::new();
        for (number, start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(line.len());
            let cell = line.get(*start..end.min(line.len())).unwrap_or_default();
            cells.push(cell.trim().to_owned());
        }
        cells
    };
    Ok(text.lines().map(cells).collect())
}

/// The cells of a row, without the last one, which is an age.
fn row<'t>(table: &'t [Vec<String>], name: &str) -> Result<Vec<&'t str>> {
    let row = table.iter().find(|row| row.first().is_some_and(|cell| cell == name));
    let row = row.with_context(|| format!("no {name} in {table:?}"))?;
    let (_, cells) = row.split_last().context("an empty row")?;
    Ok(cells.iter().map(String::as_str).collect())
}

#[tokio::test]
async fn kubectl_shows_at_a_glance_what_runs_and_why_nothing_moves() -> Result<()> {
    let bed = Bed::new("glance").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    wait_for_target(&bed, "web", "at rest", |status| {
        let ready = belay_suite::operator::reason(&status.conditions, "Ready");
        (ready == "Ready" && status.current.as_ref()?.tag.as_deref() == Some("1.1.0")).then_some(())
    })
    .await?;
    let targets = table(&bed, "rt", false).await?;
    let header = ["NAME", "STATUS", "CURRENT", "WANTED", "REASON", "DOING", "HOLD"];
    assert_eq!(row(&targets, "NAME")?, header);
    assert_eq!(row(&targets, "web")?, ["web", "Ready", "1.1.0", "1.1.0", "", "Idle", ""]);
    let (old, new) =
        (release_name(&bed, "web", "v1.0.0").await?, release_name(&bed, "web", "v1.1.0").await?);
    let releases = table(&bed, "rel", false).await?;
    assert_eq!(
        row(&releases, "NAME")?,
        ["NAME", "TARGET", "ACTIVE", "HEALTHY", "READY", "STARTED"]
    );
    let first = row(&releases, &old)?;
    assert_eq!(first.get(..5), Some(&[&*old, "web", "False", "True", "Healthy"][..]));
    let second = row(&releases, &new)?;
    assert_eq!(second.get(..5), Some(&[&*new, "web", "True", "True", "Healthy"][..]));
    ask_for(&bed, rollback("web-back", &old), |_| {}).await?;
    ended(&bed, "web-back", "DeploymentSucceeded").await?;
    ask_for(&bed, rollback("web-odd", "web-0000000"), |_| {}).await?;
    ended(&bed, "web-odd", "Rejected").await?;
    let rollbacks = table(&bed, "rb", false).await?;
    let header = ["NAME", "TARGET", "FROM", "TO", "STATE", "OUTCOME", "BY"];
    assert_eq!(row(&rollbacks, "NAME")?, header);
    let done = ["web-back", "web", &*new, &*old, "Completed", "DeploymentSucceeded", "alice"];
    assert_eq!(row(&rollbacks, "web-back")?, done);
    let odd = ["web-odd", "web", "", "", "Failed", "Rejected", "alice"];
    assert_eq!(row(&rollbacks, "web-odd")?, odd);
    let wide = table(&bed, "rb", true).await?;
    let odd = row(&wide, "web-odd")?;
    assert_eq!(
        odd.get(7..),
        Some(&["native", "", "The named Release does not exist."][..]),
        "{odd:?}"
    );
    operator.stop().await
}

#[tokio::test]
async fn kubectl_shows_what_stalls_and_holds_a_target() -> Result<()> {
    let bed = Bed::new("glances").await?;
    let operator = following_to(&bed, Wiring::default(), &["v1.1.0"]).await?;
    bed.annotate("web", "hold", json!("true")).await?;
    wait_for_target(&bed, "web", "held", |status| status.hold.as_ref().map(|_| ())).await?;
    let targets = table(&bed, "rt", false).await?;
    assert_eq!(row(&targets, "web")?, ["web", "Held", "1.1.0", "1.1.0", "", "Idle", "true"]);
    bed.annotate("web", "hold", json!(null)).await?;
    bed.release("v1.2.0+no-pull").await?;
    wait_for_activation(&bed, "web", "v1.1.0", 2).await?;
    wait_for_release(&bed, "web", "v1.1.0", ("Healthy", "True", "Baked")).await?;
    wait_for_target(&bed, "web", "rolled back", |status| {
        let ready = belay_suite::operator::reason(&status.conditions, "Ready");
        (ready == "RolledBack").then_some(())
    })
    .await?;
    let targets = table(&bed, "rt", false).await?;
    assert_eq!(row(&targets, "web")?, ["web", "RolledBack", "1.1.0", "1.1.0", "", "Idle", ""]);
    let failed = release_name(&bed, "web", "v1.2.0+no-pull").await?;
    let releases = table(&bed, "rel", true).await?;
    let image = bed.image("1.2.0_no-pull");
    let cells = row(&releases, &failed)?;
    assert_eq!(cells.get(..6), Some(&[&*failed, "web", "False", "False", "Failed", &*image][..]));
    bed.set_image("web", &bed.image("1.0.5"), "kubectl-edit").await?;
    stalled(&bed, "web", StalledReason::ChangedByPerson).await?;
    let targets = table(&bed, "rt", false).await?;
    let cells = row(&targets, "web")?;
    assert_eq!(cells.get(1..3), Some(&["Stalled", "1.0.5"][..]), "{cells:?}");
    assert_eq!(cells.get(4), Some(&"ChangedByPerson"), "{cells:?}");
    operator.stop().await
}
