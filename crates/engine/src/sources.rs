//! Source files, which somebody else looks up.

use std::fmt;
use std::sync::Arc;

use heapline_profile::reports::{SourceFile, WantedSource};

/// Finds source files by the names that a trace has of them.
#[derive(Clone)]
pub struct FindSource {
    find: Arc<Lookup>,
    /// The folders that are searched, as the user named them, for commands.
    folders: Arc<[String]>,
}

type Lookup = dyn Fn(WantedSource<'_>) -> Result<SourceFile, String> + Send + Sync;

impl FindSource {
    /// Asks a function, which searches these folders. It fails with the reason for people, and with
    /// what to do.
    pub fn new(
        folders: Vec<String>,
        find: impl Fn(WantedSource<'_>) -> Result<SourceFile, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            find: Arc::new(find),
            folders: folders.into(),
        }
    }

    pub(crate) fn find(&self, wanted: WantedSource<'_>) -> Result<SourceFile, String> {
        (self.find)(wanted)
    }

    pub(crate) fn folders(&self) -> &[String] {
        &self.folders
    }
}

impl fmt::Debug for FindSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FindSource")
            .field("folders", &self.folders)
            .finish_non_exhaustive()
    }
}
