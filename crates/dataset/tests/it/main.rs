//! The integration tests in one binary, because each binary takes seconds to link.

mod adds;
mod common;
mod tables;
