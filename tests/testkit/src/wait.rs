//! Waiting for a condition with a deadline: the only place where the test bed lets time pass.

use std::{
    fmt::Display,
    time::{Duration, Instant},
};

use crate::TestbedError;

/// How long a test waits for something that normally takes less than a second, on a busy machine.
pub const SOON: Duration = Duration::from_mins(1);

const INTERVAL: Duration = Duration::from_millis(25);

/// Looks again and again until `look` answers `Ok`, and returns that.
///
/// `look` says with `Err` what it saw instead; the last of these is in the error.
///
/// # Errors
/// [`TestbedError::Timeout`] after `within`.
pub async fn until<T, W: Display, F>(
    what: &str,
    within: Duration,
    mut look: impl FnMut() -> F,
) -> Result<T, TestbedError>
where
    F: Future<Output = Result<T, W>>,
{
    let start = Instant::now();
    loop {
        let last = match look().await {
            Ok(found) => return Ok(found),
            Err(last) => last.to_string(),
        };
        if start.elapsed() >= within {
            return Err(TestbedError::Timeout { what: what.to_owned(), within, last });
        }
        pause().await;
    }
}

/// One interval between two looks.
#[expect(clippy::disallowed_methods, reason = "the one wait everything else is built on")]
pub(crate) async fn pause() {
    tokio::time::sleep(INTERVAL).await;
}

/// Runs a future to its end from code that may or may not be inside a runtime.
///
/// It runs on a thread of its own, so a test's runtime is neither needed nor blocked by another.
pub fn block_on<T: Send>(future: impl Future<Output = T> + Send) -> std::io::Result<T> {
    let run = || -> std::io::Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(future))
    };
    // The runtime is also dropped on that thread: no runtime may be dropped inside another.
    std::thread::scope(|scope| match scope.spawn(run).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_error_says_what_was_there_instead() {
        let mut looks = 0;
        let error = until("three looks", Duration::ZERO, || {
            looks += 1;
            std::future::ready(Err::<(), _>(format!("look {looks}")))
        })
        .await
        .unwrap_err();
        assert_eq!(error.to_string(), "waited 0 s for three looks; last seen: look 1");
    }

    #[tokio::test]
    async fn it_returns_what_was_found() {
        let mut looks = 0;
        let found = until("the third look", SOON, || {
            looks += 1;
            std::future::ready(if looks == 3 { Ok(looks) } else { Err("not yet") })
        })
        .await;
        assert_eq!(found.unwrap(), 3);
    }
}
