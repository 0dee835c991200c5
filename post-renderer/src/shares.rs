//! Work on many documents, shared among the cores.

use std::{num::NonZero, thread};

/// Below so many documents, starting a thread takes longer than it saves.
const WORTH_THREADS: usize = 16;

/// Calls `work` with all of `items`, or with a share of them on each core, and returns what each gave
/// in the order of the shares.
///
/// # Errors
/// The first error in that order.
pub(crate) fn in_shares<T: Sync, R: Send, E: Send>(
    items: &[T],
    work: impl Fn(&[T]) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    // To count the cores, files of the control groups are read: some 20 system calls.
    let threads = match items.len() {
        ..WORTH_THREADS => 1,
        _ => thread::available_parallelism().map_or(1, NonZero::get),
    };
    if threads < 2 {
        return Ok(vec![work(items)?]);
    }
    thread::scope(|scope| {
        let shares = items.chunks(items.len().div_ceil(threads));
        let running: Vec<_> = shares.map(|share| scope.spawn(|| work(share))).collect();
        let joined = running.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    fn what_the_shares_give_comes_in_order(#[values(0, 1, 15, 16, 1_000)] count: usize) {
        let items: Vec<usize> = (0..count).collect();
        let shares = in_shares(&items, |share| Ok::<_, ()>(share.to_vec())).unwrap();
        assert_eq!(shares.concat(), items);
    }

    #[test]
    fn the_first_error_in_order_is_told() {
        let items: Vec<usize> = (0..1_000).collect();
        let refused = |share: &[usize]| match share.iter().find(|item| **item >= 10) {
            Some(item) => Err(*item),
            None => Ok(()),
        };
        assert_eq!(in_shares(&items, refused), Err(10));
    }
}
