//! Whose turn it is: a test that measures times has this process and its control plane for itself.

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static TURN: RwLock<()> = RwLock::const_new(());

/// Waits for the turn of those that do not mind others beside them. It lasts as long as what is
/// returned.
pub(crate) async fn with_others() -> RwLockReadGuard<'static, ()> {
    TURN.read().await
}

/// Waits until nobody else has a turn.
pub(crate) async fn alone() -> RwLockWriteGuard<'static, ()> {
    TURN.write().await
}
