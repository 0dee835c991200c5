//! Response bodies that may end early.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tower::BoxError;

use super::{End, plan::Life};

/// The body of an answer that came through a [`super::FaultLayer`].
///
/// It falls silent when the process of its client ends.
pub struct FaultBody<C> {
    kind: Kind<C>,
    life: Life,
}

enum Kind<C> {
    /// Of an answer that did not come from the server.
    Own(Bytes),
    /// The server's.
    Whole(Pin<Box<C>>),
    /// The server's, as far as it goes.
    Cut { body: Pin<Box<C>>, left: u64, end: End },
    /// Its end has been reported.
    Done,
}

impl<C> FaultBody<C> {
    pub(crate) fn own(bytes: Bytes, life: Life) -> Self {
        Self { kind: if bytes.is_empty() { Kind::Done } else { Kind::Own(bytes) }, life }
    }

    pub(crate) fn whole(body: C, life: Life) -> Self {
        Self { kind: Kind::Whole(Box::pin(body)), life }
    }

    pub(crate) fn cut(body: C, left: u64, end: End, life: Life) -> Self {
        Self { kind: Kind::Cut { body: Box::pin(body), left, end }, life }
    }

    /// What there is instead of more bytes.
    fn finish<T>(&mut self, end: End) -> Poll<Option<Result<T, BoxError>>> {
        if end == End::Stall {
            return Poll::Pending;
        }
        self.kind = Kind::Done;
        let error = io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "connection closed before the message was complete",
        );
        Poll::Ready((end == End::Error).then(|| Err(error.into())))
    }
}

impl<C> Body for FaultBody<C>
where
    C: Body<Data = Bytes>,
    C::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.life.is_over() {
            return Poll::Pending;
        }
        match &mut self.kind {
            Kind::Own(bytes) => {
                let bytes = std::mem::take(bytes);
                self.kind = Kind::Done;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Whole(body) => body.as_mut().poll_frame(cx).map_err(Into::into),
            Kind::Cut { left: 0, end, .. } => {
                let end = *end;
                self.finish(end)
            }
            Kind::Cut { body, left, end } => {
                let end = *end;
                match body.as_mut().poll_frame(cx) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(Some(Ok(frame))) => {
                        let frame = frame.map_data(|mut data| {
                            data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                            *left -= data.len() as u64;
                            data
                        });
                        Poll::Ready(Some(Ok(frame)))
                    }
                    Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
                    Poll::Ready(None) => self.finish(end),
                }
            }
            Kind::Done => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Own(_) => false,
            Kind::Whole(body) => body.is_end_stream(),
            Kind::Cut { body, left, end } => {
                *end == End::Eof && (*left == 0 || body.is_end_stream())
            }
            Kind::Done => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Own(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Whole(body) => body.size_hint(),
            // An exact size would let a reader stop before it meets the end.
            Kind::Cut { .. } => SizeHint::default(),
            Kind::Done => SizeHint::with_exact(0),
        }
    }
}

impl<C> std::fmt::Debug for FaultBody<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultBody").finish_non_exhaustive()
    }
}
