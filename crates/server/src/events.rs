//! The stream of server-sent events that says when the trace has grown.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use crate::loader::{Loading, Newest};
use crate::state::State;

/// A comment is sent after this time without events, so that proxies keep the connection, and to notice
/// that the client has gone.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Events that wait for a slow client at most. It does not need all of them: the next has the newest
/// state.
const WAITING: usize = 1;

/// The state of the trace: the data of an event.
#[derive(Debug, Serialize)]
struct News<'a> {
    epoch: u64,
    recording: bool,
    /// Seconds from the start to the last event.
    duration: f64,
    /// The reason why the trace is not followed any more, if that is not its end.
    error: Option<&'a str>,
}

/// The events as the body of a response.
#[derive(Debug)]
pub(crate) struct EventStream {
    events: mpsc::Receiver<Bytes>,
    /// Its place among those that are open.
    _place: OwnedSemaphorePermit,
}

impl EventStream {
    /// Starts a stream of the newest state and all that follow. While it is open, the state of the epoch
    /// that is to be held can be asked about.
    pub(crate) fn start(
        state: &Arc<State>,
        hold: Option<u64>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let (sender, events) = mpsc::channel(WAITING);
        let state = Arc::clone(state);
        tokio::spawn(async move {
            // It ends when the client has gone: then nobody receives.
            let _ = send_events(&state, hold, &sender).await;
        });
        Self {
            events,
            _place: place,
        }
    }
}

async fn send_events(
    state: &State,
    hold: Option<u64>,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), mpsc::error::SendError<Bytes>> {
    let mut loading = state.loading.clone();
    let mut session = None;
    loop {
        let (event, newest) = match &*loading.borrow_and_update() {
            Loading::Running => (None, None),
            Loading::Done(newest) => (Some(event(newest)), Some(newest.clone())),
            Loading::Failed(_) => return Ok(()),
        };
        if let (None, Some(epoch), Some(newest)) = (&session, hold, &newest) {
            let is_newest = newest.session.epoch() == epoch;
            session = if is_newest {
                Some(newest.session.clone())
            } else {
                state.earlier_session(epoch)
            };
        }
        if let Some(event) = event {
            sender.send(event).await?;
        }
        if newest.is_some_and(|newest| !newest.is_recording) && session.is_none() {
            // Nothing more will come.
            return Ok(());
        }
        loop {
            match timeout(HEARTBEAT, loading.changed()).await {
                Ok(Ok(())) => break,
                // The loader has ended, but the client may hold an earlier state.
                Ok(Err(_)) if session.is_some() => tokio::time::sleep(HEARTBEAT).await,
                Ok(Err(_)) => return Ok(()),
                Err(_) => {}
            }
            sender.send(Bytes::from_static(b":\n\n")).await?;
        }
    }
}

fn event(newest: &Newest) -> Bytes {
    let news = News {
        epoch: newest.session.epoch(),
        recording: newest.is_recording,
        duration: newest.session.duration(),
        error: newest.problem.as_deref(),
    };
    // Numbers and strings can always be serialised, and have no line feeds in JSON.
    let data = serde_json::to_string(&news).unwrap_or_default();
    format!("event: state\ndata: {data}\n\n").into()
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let received = self.events.poll_recv(context);
        received.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
