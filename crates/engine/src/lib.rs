//! Typed requests to heap profiles and heap snapshots, and their answers.
//!
//! A [`Request`] is a report of [`heapline_profile`] or [`heapline_heap`] with its options. The command line, the API,
//! report files and the viewer all use the same definition: clap parses it, [`Request::pairs`]
//! writes it, and [`Request::command_line`] shows the command that prints the same numbers.
//!
//! A [`Session`] holds loaded profiles and answers requests, a [`SnapshotSession`] heap snapshots. No HTTP, no files, no
//! threads.

mod answer;
mod ask;
mod cache;
mod cancel;
mod complete;
mod compute;
mod error;
mod filter;
mod reports;
mod request;
mod session;
mod shell;
mod snapshots;
mod sources;
mod untold;
mod utf16;

pub use answer::{Answer, Info};
pub use ask::Ask;
pub use cancel::{Cancel, CancelOnDrop};
pub use complete::{CompleteOptions, Completion};
pub use error::{EngineError, ErrorKind, Place};
pub use filter::Filter;
pub use reports::{Report, Request};
pub use request::Params;
pub use session::{FindHolders, LoadedTrace, Session, check_read};
pub use shell::{shell_path, shell_quote};
pub use snapshots::{LoadedRecording, LoadedSnapshot, SnapshotSession};
pub use sources::FindSource;
pub use untold::{check_lifetimes, check_summary, check_time};
