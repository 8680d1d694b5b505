//! `heapline record` on real programs: those of `tests/ocaml/programs`, compiled by each OCaml
//! that is there, and some that Debian has.
//!
//! `cargo xtask test` sets up what they need. Without it they say so and are skipped; where
//! `HEAPLINE_REQUIRE` is set, as there, they fail.
#![cfg(recording)]

mod arm64;
mod attach;
mod attach_push;
mod attach_refusals;
mod attach_watch;
mod behaviour;
mod collector;
mod debian;
mod domains;
mod dormant;
mod estimates;
mod keep;
mod keep_same_run;
mod killed;
mod layout;
mod library;
mod messages;
mod names;
mod namespaces;
mod output;
mod own_sampler;
mod processes;
#[path = "../common/pushed.rs"]
mod pushed;
mod refusals;
mod replaced_sampler;
mod run;
mod runtime_events;
mod seeds;
#[path = "../common/setuid.rs"]
mod setuid;
mod snapshot;
mod stacks;
mod stress;
mod support_table;
#[path = "../common/terminal.rs"]
mod terminal;
mod toolchain;
mod trace;
#[path = "../common/unshare.rs"]
mod unshare;
mod view;
