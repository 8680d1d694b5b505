//! The web viewer of Heapline: the requests of [`heapline_engine`] over HTTP, and the page that
//! sends them.
//!
//! - [`Server`] answers requests and serves the embedded page.
//! - [`write_report`] writes the page as a single file, with precomputed answers.
//!
//! The API is described in `docs/api.md`: a request has the name and the options of a command, and
//! the answer is what that command prints with `--json`.

mod assets;
mod dropped;
mod error;
mod events;
mod files;
mod fleet;
mod guard;
mod http;
mod loader;
mod overwritten;
mod peer;
mod report;
mod snapshot;
mod source;
mod state;
mod trace;

pub use assets::missing_page;
pub use error::ApiError;
pub use fleet::Fleet;
pub use http::{ServeError, Server};
pub use report::{ReportError, ReportOptions, write_report, write_snapshot_report};
pub use snapshot::{
    FindRecording, ListedSnapshot, SiteSource, SnapshotFolder, find_holders, load_snapshots,
};
pub use source::{EditorLink, SourceFolderError, SourceFolders};
pub use trace::{Opener, Progress, Recording, Subjects, Trace, load};
