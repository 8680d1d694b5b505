//! The integration tests in one binary, because each binary takes seconds to link.
//!
//! Apart are `record`, which needs OCaml compilers, and those that record their own process: a process
//! has one recording.

mod agent_directory;
mod api;
mod cmd;
mod combinations;
mod completions;
mod dataset;
mod emacs;
mod examples;
mod files;
mod hostile_names;
mod index;
mod odd_runs;
mod push;
mod push_live;
mod refusals;
mod rust_programs;
mod screens;
mod several_traces;
mod suggestions;
mod whose_code;

#[cfg(recording)]
#[path = "../common/pushed.rs"]
mod pushed;
#[path = "../common/report_file.rs"]
mod report_file;
#[cfg(recording)]
#[path = "../common/setuid.rs"]
mod setuid;
