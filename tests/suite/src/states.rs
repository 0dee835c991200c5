//! All states that objects go through: the API server leaves nothing out of a watch, and all kinds share
//! etcd's one count of revisions, so that what several watches show can be put in order.

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use kube::{
    Api, ResourceExt as _,
    api::{DynamicObject, WatchEvent, WatchParams},
};

/// The API server ends a watch after so long; the next one goes on where it ended.
const WATCH_SECONDS: u32 = 290;

/// Shows `see` every state after the revision `from`, and whether it is the object's end. It comes back
/// only with an error.
pub(crate) async fn follow(
    api: &Api<DynamicObject>,
    mut from: String,
    mut see: impl FnMut(bool, DynamicObject) -> Result<()>,
) -> Result<()> {
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    loop {
        let mut events = api.watch(&params, &from).await.context("begin a watch")?.boxed();
        while let Some(event) = events.next().await {
            let (gone, object) = match event.context("read an event")? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (false, object),
                WatchEvent::Deleted(object) => (true, object),
                WatchEvent::Bookmark(bookmark) => {
                    from = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => bail!("the API server says {status:?}"),
            };
            from = object.resource_version().unwrap_or_default();
            see(gone, object)?;
        }
    }
}
