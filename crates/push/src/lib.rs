//! Sends heap profiles to servers for continuous profiling.
//!
//! - [`Windows`] makes a [`HeapProfile`] of what was allocated since the last one, and of what is live.
//! - [`Endpoint`] is a server with its protocol: OTLP profiles over HTTP, Pyroscope's `/ingest`, or Parca's
//!   `WriteRaw` over gRPC-Web. [`Endpoint::encode`] makes the [`Message`] that it expects.
//! - [`deliver`] sends a message now, with a few retries.
//! - [`Pusher`] sends messages from a thread, and never makes the caller wait: if the server is down or slow,
//!   the oldest messages are dropped and counted.

mod backoff;
mod delivery;
mod endpoint;
mod headers;
mod heap_profile;
mod http;
mod identity;
mod message;
mod otlp;
mod parca;
mod pprof;
mod pusher;
mod pyroscope;
#[cfg(feature = "tls")]
mod tls;
mod windows;

pub use delivery::{Delivered, deliver};
pub use endpoint::{Endpoint, InvalidUrl, Protocol};
pub use headers::{Headers, InvalidHeader};
pub use heap_profile::{HeapProfile, SAMPLE_TYPES};
pub use identity::{Identity, InvalidLabel, Label};
pub use message::{Failure, Message};
pub use pusher::{Pusher, Tally};
pub use windows::Windows;
