//! The integration tests in one binary, because each binary takes seconds to link.

mod common;
mod cut;
mod firefox;
mod folded;
mod golden;
mod heap;
mod keep;
mod perfetto;
mod pprof;
mod structured;
mod table;
mod tables;
