//! Sends messages from a thread.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::delivery::{Delivered, attempt};
use crate::endpoint::Endpoint;
use crate::http::Client;
use crate::message::{Failure, Message};

/// Messages that wait at most, and their bytes.
const MAX_QUEUED: usize = 16;
const MAX_BYTES: usize = 64 << 20;

/// The numbers of messages, by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages that the server has taken.
    pub delivered: u64,
    /// Messages that the server has refused.
    pub refused: u64,
    /// Messages that were dropped because newer ones needed their place.
    pub dropped: u64,
    /// Messages that were still waiting at the end.
    pub unsent: u64,
    /// Profiles of delivered messages that the server has not taken.
    pub rejected_profiles: u64,
    /// The last error, or the last remark of the server.
    pub problem: Option<String>,
}

impl Tally {
    /// Messages that the server has not taken.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.refused + self.dropped + self.unsent
    }
}

/// Sends messages to a server from a thread, in order.
///
/// A message that cannot be delivered is tried again, with back-off, until newer ones need its place.
#[derive(Debug)]
pub struct Pusher {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Message>,
    /// True while a message that is not in the queue is being sent.
    is_sending: bool,
    /// True if no messages will be added.
    is_closing: bool,
    has_ended: bool,
    tally: Tally,
}

impl State {
    /// Drops the oldest messages until the others fit.
    fn shrink(&mut self) {
        let bytes = |queue: &VecDeque<Message>| queue.iter().map(Message::size).sum::<usize>();
        while self.queue.len() > MAX_QUEUED
            || self.queue.len() > 1 && bytes(&self.queue) > MAX_BYTES
        {
            self.queue.pop_front();
            self.tally.dropped += 1;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No invariant spans two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(
        &self,
        timeout: Option<Duration>,
        condition: impl Fn(&State) -> bool,
    ) -> MutexGuard<'_, State> {
        let state = self.lock();
        match timeout {
            Some(timeout) => {
                let waited = self
                    .changed
                    .wait_timeout_while(state, timeout, |state| condition(state));
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.changed.wait_while(state, |state| condition(state));
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        }
    }
}

impl Pusher {
    /// Starts a thread. `failed` is called there when a message is not delivered for the first time.
    ///
    /// # Errors
    ///
    /// The thread cannot be started, or there are no certificates for TLS.
    pub fn start(
        endpoint: Endpoint,
        failed: impl FnOnce(&Failure) + Send + 'static,
    ) -> io::Result<Self> {
        let client = Client::new(endpoint)?;
        let shared = Arc::new(Shared::default());
        let sending = Sending {
            client,
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new().name("heapline-push".to_owned());
        thread.spawn(move || sending.run(failed))?;
        Ok(Self { shared })
    }

    /// Adds a message. This does not wait: if there are too many, the oldest ones are dropped.
    pub fn push(&self, message: Message) {
        let mut state = self.shared.lock();
        state.queue.push_back(message);
        state.shrink();
        self.shared.changed.notify_all();
    }

    /// Waits until everything is sent, but not longer than this, and not for a server that was never reached.
    #[must_use]
    pub fn finish(self, patience: Duration) -> Tally {
        self.shared.lock().is_closing = true;
        self.shared.changed.notify_all();
        let state = self
            .shared
            .wait_while(Some(patience), |state| !state.has_ended);
        let mut tally = state.tally.clone();
        tally.unsent += (state.queue.len() + usize::from(state.is_sending)) as u64;
        if tally.unsent > 0 && tally.problem.is_none() {
            tally.problem = Some(format!("no answer within {} s", patience.as_secs()));
        }
        tally
    }
}

/// The thread.
struct Sending {
    client: Client,
    shared: Arc<Shared>,
}

impl Sending {
    fn run(self, failed: impl FnOnce(&Failure)) {
        let mut failed = Some(failed);
        let mut backoff = Backoff::default();
        while let Some(message) = self.next() {
            let result = attempt(&self.client, &message);
            let mut state = self.shared.lock();
            state.is_sending = false;
            match result {
                Ok(Delivered { rejected, remark }) => {
                    backoff.reset();
                    state.tally.delivered += 1;
                    state.tally.rejected_profiles += rejected;
                    state.tally.problem = remark;
                }
                Err(failure) => {
                    state.tally.problem = Some(failure.reason().to_owned());
                    let wait = if let Failure::Temporary { after, .. } = &failure {
                        state.queue.push_front(message);
                        state.shrink();
                        Some(backoff.next(*after))
                    } else {
                        state.tally.refused += 1;
                        None
                    };
                    drop(state);
                    if let Some(failed) = failed.take() {
                        failed(&failure);
                    }
                    if let Some(wait) = wait
                        && !self.pause(wait)
                    {
                        break;
                    }
                }
            }
        }
        self.shared.lock().has_ended = true;
        self.shared.changed.notify_all();
    }

    /// Waits for a message; `None` if there will be none.
    fn next(&self) -> Option<Message> {
        let waits = |state: &State| state.queue.is_empty() && !state.is_closing;
        let mut state = self.shared.wait_while(None, waits);
        let message = state.queue.pop_front();
        state.is_sending = message.is_some();
        message
    }

    /// Waits before another attempt. Returns false if there is none: at the end, nobody waits for a server that
    /// has never answered.
    fn pause(&self, time: Duration) -> bool {
        let is_over = |state: &State| state.is_closing && state.tally.delivered == 0;
        let state = self.shared.wait_while(Some(time), |state| !is_over(state));
        !is_over(&state)
    }
}
