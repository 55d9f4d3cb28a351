//! Bodies of answers: whole, or events as they come.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
    task::{Context, Poll},
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use halite::CancelToken;
use hyper::{
    Response, StatusCode,
    body::{Frame, SizeHint},
    header,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::error::Refusal;

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Answers so far.
static ANSWERS: AtomicU64 = AtomicU64::new(0);

/// Ends work when nobody waits for it any more.
#[derive(Debug)]
pub(super) struct EndOnDrop(pub CancelToken);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Option<Bytes>),
    /// Events; work on them ends when the client is gone.
    Events {
        events: mpsc::Receiver<Bytes>,
        _until_gone: EndOnDrop,
    },
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Events { events, .. } => {
                events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Body::Events { .. } => SizeHint::default(),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }
}

fn answer(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut made = Response::new(body);
    *made.status_mut() = status;
    let headers = made.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    // What clients write to their logs.
    let number = format!("req-{:x}-{:x}", now(), ANSWERS.fetch_add(1, Ordering::Relaxed));
    if let Ok(number) = header::HeaderValue::try_from(number) {
        headers.insert("x-request-id", number);
    }
    made
}

/// An answer that is JSON.
pub(super) fn json(status: StatusCode, value: &Value) -> Response<Body> {
    answer(status, "application/json", Body::Whole(Some(value.to_string().into())))
}

/// An answer that is events.
pub(super) fn events(events: mpsc::Receiver<Bytes>, guard: EndOnDrop) -> Response<Body> {
    answer(StatusCode::OK, "text/event-stream", Body::Events { events, _until_gone: guard })
}

/// The answer to a request that gets none.
pub(super) fn refused(refusal: &Refusal) -> Response<Body> {
    let mut made = json(refusal.status, &refusal.json());
    if refusal.status == StatusCode::UNAUTHORIZED {
        made.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    made
}

/// An event.
pub(super) fn event(value: &Value) -> Bytes {
    format!("data: {value}\n\n").into()
}

/// An event that has a name.
pub(super) fn named_event(name: &str, value: &Value) -> Bytes {
    format!("event: {name}\ndata: {value}\n\n").into()
}

/// What ends a stream of events.
pub(super) fn last_event() -> Bytes {
    Bytes::from_static(b"data: [DONE]\n\n")
}
