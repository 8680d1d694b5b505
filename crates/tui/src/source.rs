//! Where profiles come from.

use std::sync::mpsc::Sender;

use heapline_profile::Profile;

use crate::worker::News;

/// The newest state of a trace.
#[derive(Debug)]
pub struct Newest {
    /// The profile; `None` if it is that of the last time, or if there is nothing yet.
    pub profile: Option<Profile>,
    /// The bytes of the file, if it is one.
    pub size: Option<u64>,
    /// True if the program is still being recorded.
    pub is_recording: bool,
}

/// Tells the screen how much of a large trace has been read.
#[derive(Clone, Debug)]
pub struct Progress(pub(crate) Sender<News>);

impl Progress {
    /// Reports the share that has been read.
    pub fn report(&self, share: f64) {
        // Nobody listens when the screen is left.
        let _ = self.0.send(News::Progress(share));
    }
}

/// A trace that may grow.
pub trait Source: Send {
    /// The trace as the user named it, for commands.
    fn path(&self) -> String;

    /// Looks for a newer state. An error is shown, and it is tried again.
    fn newest(&mut self, progress: &Progress) -> Result<Newest, String>;
}
