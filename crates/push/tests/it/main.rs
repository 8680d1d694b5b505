//! The integration tests in one binary, because each binary takes seconds to link.

mod common;
mod delivery;
mod protocols;
mod tls;
mod windows;
