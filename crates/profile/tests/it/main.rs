//! The integration tests in one binary, because each binary takes seconds to link.

mod alloc_stats;
mod blocks;
mod branches;
mod diff_tree;
mod estimates;
mod findings;
mod flame;
mod odd_traces;
mod overview;
mod own_code;
mod peak;
mod peak_intervals;
mod queries;
mod source;
mod spacetime;
mod trend;
mod viewer;
mod views;
