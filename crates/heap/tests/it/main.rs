//! The integration tests in one binary, because each binary takes seconds to link.

mod damage;
mod definition_names;
mod dominators;
mod reports;
mod samples;
