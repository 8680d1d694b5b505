//! Messages to servers, and their answers.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, StatusCode};

use crate::endpoint::Protocol;
use crate::{otlp, parca};

/// A profile that is encoded for a server.
#[derive(Clone, Debug)]
pub struct Message {
    /// The path of the request, with its query.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    /// True if the body is compressed with gzip as a whole.
    pub(crate) is_compressed: bool,
    pub(crate) body: Bytes,
    pub(crate) profiles: u64,
}

impl Message {
    /// Bytes of the body.
    #[must_use]
    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// The number of profiles as the server counts them: in OTLP, each type of samples is a profile.
    #[must_use]
    pub fn profiles(&self) -> u64 {
        self.profiles
    }
}

/// The answer of a server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Part of a message that a server has not taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) profiles: u64,
    /// The reason, or a warning if nothing was rejected.
    pub(crate) reason: String,
}

/// The reason why a message was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It may be delivered later.
    Temporary {
        /// The reason.
        reason: String,
        /// The time after which the server wants to be asked again, if it says so.
        after: Option<Duration>,
    },
    /// It will not be delivered, however often it is tried.
    Permanent {
        /// The reason.
        reason: String,
    },
}

impl Failure {
    /// The reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Temporary { reason, .. } | Self::Permanent { reason } => reason,
        }
    }

    pub(crate) fn temporary(reason: impl Into<String>) -> Self {
        Self::Temporary {
            reason: reason.into(),
            after: None,
        }
    }
}

/// Characters of an error message of a server that are repeated.
const MAX_TEXT: usize = 300;

impl Answer {
    /// Checks whether the server has taken a message; returns the part that it has not.
    pub(crate) fn check(&self, protocol: Protocol) -> Result<Option<Rejection>, Failure> {
        if !self.status.is_success() {
            let reason = format!("{}{}", self.status, self.described(protocol));
            return Err(match self.status {
                StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => Failure::Temporary {
                    reason,
                    after: self.retry_after(SystemTime::now()),
                },
                _ => Failure::Permanent { reason },
            });
        }
        match protocol {
            Protocol::Otlp => otlp::check(&self.body),
            Protocol::Pyroscope => Ok(None),
            Protocol::Parca => parca::check(&self.headers, &self.body),
        }
    }

    /// The server's own words, or where it wants to be asked.
    fn described(&self, protocol: Protocol) -> String {
        if self.status.is_redirection() {
            let location = self.headers.get(hyper::header::LOCATION);
            let location = location.and_then(|value| value.to_str().ok());
            return location.map_or(String::new(), |to| {
                format!("; give this URL: {}", shortened(to))
            });
        }
        let text = match protocol {
            Protocol::Otlp => otlp::error_text(&self.headers, &self.body),
            Protocol::Pyroscope | Protocol::Parca => None,
        };
        let text = text.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        let text = shortened(text.trim());
        if text.is_empty() {
            text
        } else {
            format!(": {text}")
        }
    }

    /// The time to wait, which is given in seconds or as a date.
    fn retry_after(&self, now: SystemTime) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        match text.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => {
                let date = httpdate::parse_http_date(text).ok()?;
                Some(date.duration_since(now).unwrap_or_default())
            }
        }
    }
}

/// The beginning of a text that a server sent.
pub(crate) fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_TEXT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn answer(status: u16, retry_after: &str, body: &'static str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn servers_say_when_to_try_again() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expected) in [
            ("7", Some(7)),
            ("Sun, 06 Nov 1994 08:49:40 GMT", Some(3)),
            ("Sun, 06 Nov 1994 08:49:30 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            let after = answer(503, text, "").retry_after(now);
            assert_eq!(after, expected.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for status in [408, 429, 502, 503, 504] {
            let failure = answer(status, "2", "busy").check(Protocol::Pyroscope);
            let Err(Failure::Temporary { reason, after }) = failure else {
                panic!("{status}: {failure:?}")
            };
            assert!(reason.ends_with(": busy"), "{reason}");
            assert_eq!(after, Some(Duration::from_secs(2)));
        }
        for status in [301, 400, 401, 404, 413, 422, 500] {
            let failure = answer(status, "2", "no").check(Protocol::Pyroscope);
            assert!(
                matches!(failure, Err(Failure::Permanent { .. })),
                "{status}"
            );
        }
        assert_eq!(answer(204, "2", "").check(Protocol::Pyroscope), Ok(None));
    }

    #[test]
    fn long_answers_are_cut() {
        assert_eq!(shortened(&"é".repeat(400)).chars().count(), MAX_TEXT + 1);
        assert_eq!(shortened("short"), "short");
    }
}
