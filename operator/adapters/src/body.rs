//! Bodies of answers, read whole but never without a bound.

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError<E> {
    /// It is larger than the bound; the rest was not read.
    TooLarge,
    /// The connection ended before the body did.
    Broken(E),
}

/// Reads a body of at most `limit` bytes.
///
/// A length that is announced and too large is refused before anything is read.
pub(crate) async fn read<B>(body: B, limit: usize) -> Result<Bytes, BodyError<B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(BodyError::TooLarge);
    }
    let mut whole = BytesMut::with_capacity(announced);
    let mut body = body;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
        if whole.len().saturating_add(data.len()) > limit {
            return Err(BodyError::TooLarge);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body::Frame;
    use http_body_util::{Full, StreamBody};
    use rstest::rstest;

    use super::*;

    fn parts(sizes: &[usize]) -> impl Body<Data = Bytes, Error = Infallible> + Unpin + use<> {
        let frames: Vec<_> =
            sizes.iter().map(|size| Ok(Frame::data(Bytes::from(vec![0; *size])))).collect();
        StreamBody::new(futures::stream::iter(frames))
    }

    #[rstest]
    #[case(&[], Some(0))]
    #[case(&[10], Some(10))]
    #[case(&[4, 6], Some(10))]
    #[case(&[11], None)]
    #[case(&[4, 6, 1], None)]
    #[tokio::test]
    async fn a_body_is_read_up_to_the_limit(
        #[case] sizes: &[usize],
        #[case] expected: Option<usize>,
    ) {
        let found = read(parts(sizes), 10).await;
        assert_eq!(found.ok().map(|bytes| bytes.len()), expected);
    }

    #[tokio::test]
    async fn a_length_that_is_announced_is_believed_at_once() {
        let body = Full::new(Bytes::from(vec![0; 11]));
        assert!(matches!(read(body, 10).await, Err(BodyError::TooLarge)));
    }
}
