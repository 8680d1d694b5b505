//! Serves trees to Emacs with the protocol of `sturgeon.el`, as statmemprof-emacs did.
//!
//! Messages are s-expressions ([`Sexp`]), one per line. A [`Session`] answers those of one client: it
//! is a state machine without IO. [`Server`] has the socket and the clients.

mod outline;
mod patches;
#[cfg(unix)]
mod rendezvous;
#[cfg(unix)]
mod server;
mod session;
mod sexp;
mod view;

pub use outline::Outline;
#[cfg(unix)]
pub use rendezvous::{Rendezvous, RendezvousError};
#[cfg(unix)]
pub use server::Server;
pub use session::{Load, ProtocolError, Session};
pub use sexp::{ParseError, Sexp};

/// The longest message that a client may send, in bytes. What Emacs sends has less than a hundred.
pub const MAX_LINE: usize = 64 * 1024;
