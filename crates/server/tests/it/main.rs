//! The integration tests in one binary, because each binary takes seconds to link.

mod golden;
mod http;
mod source;
