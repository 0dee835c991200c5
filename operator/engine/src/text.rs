//! Texts that must not be longer than the API server takes.

use belay_api::limits;

/// `text`, cut to `limit` code points. Hardly any is that long, and hardly any is copied.
pub(crate) fn clipped(text: String, limit: usize) -> String {
    // No text has more code points than bytes.
    if text.len() <= limit { text } else { limits::clip(&text, limit) }
}
