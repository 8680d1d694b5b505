//! The web viewer of Heapline: a JSON API over the reports of
//! [`heapline_profile`], and the page that uses it.
//!
//! - [`Engine`] answers [`Request`]s about loaded traces; no network is needed for that.
//! - [`Server`] does it over HTTP, and serves the page, which is part of the program.
//! - [`write_report`] writes the page as one file, with answers in it.
//!
//! The API is described in `docs/api.md`: a request has the name and the options of a command, and
//! the answer is what that command prints with `--json`.

mod answer;
mod assets;
mod engine;
mod error;
mod guard;
mod http;
mod params;
mod report;
mod request;
mod state;

pub use assets::missing_page;
pub use engine::{Engine, Opener, Progress, Subjects, Trace};
pub use error::{ApiError, Place};
pub use http::Server;
pub use report::{ReportError, write_report};
pub use request::Request;
