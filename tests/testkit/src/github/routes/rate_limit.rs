//! The quota.

use serde_json::json;

use super::{Answer, Call, Refusal};

/// `GET /rate_limit`, which is not charged to the primary limit. A server without limits has no
/// such page.
pub(super) fn show(call: &mut Call<'_>) -> Result<Answer, Refusal> {
    let quota = call.state.limits.quota(&call.identity.credential, call.now);
    let quota = quota.ok_or(Refusal::NotFound)?;
    let reset = quota.reset.as_second();
    let core = json!({
        "limit": quota.limit, "used": quota.used, "remaining": quota.remaining(), "reset": reset,
    });
    let search = json!({ "limit": 30, "used": 0, "remaining": 30, "reset": reset });
    Ok(Answer::ok(&json!({ "resources": { "core": core, "search": search }, "rate": core })))
}
