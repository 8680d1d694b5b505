//! The integration tests in one binary, because each binary takes seconds to link.

mod fixtures;
mod long_run;
mod waiting;
