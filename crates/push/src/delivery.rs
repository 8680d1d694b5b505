//! Delivers a message while the caller waits.

use std::thread;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::endpoint::Endpoint;
use crate::http::Client;
use crate::message::{Failure, Message, Rejection};

/// Attempts before a server is given up.
const MAX_ATTEMPTS: u32 = 5;

/// A message that a server has taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// The number of profiles that it has not taken.
    pub rejected: u64,
    /// Its reason, or a warning.
    pub remark: Option<String>,
}

impl From<Option<Rejection>> for Delivered {
    fn from(rejection: Option<Rejection>) -> Self {
        match rejection {
            Some(Rejection { profiles, reason }) => Self {
                rejected: profiles,
                remark: Some(reason),
            },
            None => Self::default(),
        }
    }
}

/// Makes one attempt.
pub(crate) fn attempt(client: &Client, message: &Message) -> Result<Delivered, Failure> {
    let answer = client.post(message)?;
    let rejection = answer.check(client.endpoint().protocol)?;
    Ok(rejection.into())
}

/// Sends a message, and tries again a few times if the server is busy or cannot be reached. `retrying` is told
/// the reason and the time until the next attempt.
///
/// # Errors
///
/// The server has refused the message, or was not reached.
pub fn deliver(
    endpoint: &Endpoint,
    message: &Message,
    mut retrying: impl FnMut(&str, Duration),
) -> Result<Delivered, Failure> {
    let client = Client::new(endpoint.clone()).map_err(|error| Failure::Permanent {
        reason: error.to_string(),
    })?;
    let mut backoff = Backoff::default();
    for _ in 1..MAX_ATTEMPTS {
        match attempt(&client, message) {
            Err(Failure::Temporary { reason, after }) => {
                let wait = backoff.next(after);
                retrying(&reason, wait);
                thread::sleep(wait);
            }
            result => return result,
        }
    }
    attempt(&client, message)
}
