//! The integration tests in one binary, because each binary takes seconds to link.

mod findings;
mod requests;
mod session;
mod typescript;
