//! A profile that follows a recording.

use std::fmt;

use heapline_model::{Error, GrowingSource};

use super::growing::{Store, StoreOptions};
use super::profile::Profile;

/// The profile of a source that grows.
///
/// ```
/// use heapline_formats::{Follower, Options};
/// use heapline_profile::{LiveProfile, StoreOptions};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mix-ocaml53/trace.ctf");
/// let source = Follower::open(path, Options::default())?;
/// let mut live = LiveProfile::new(source, StoreOptions::default());
/// loop {
///     if let Some(profile) = live.refresh()? {
///         println!("{} events", profile.events());
///     }
///     if live.has_ended() {
///         break;
///     }
///     std::thread::sleep(std::time::Duration::from_secs(1));
/// }
/// # Ok::<(), heapline_model::Error>(())
/// ```
pub struct LiveProfile {
    source: Box<dyn GrowingSource>,
    store: Store,
    /// True once there was a profile.
    has_profile: bool,
    had_ended: bool,
}

impl fmt::Debug for LiveProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveProfile")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl LiveProfile {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(source: impl GrowingSource + 'static, options: StoreOptions) -> Self {
        Self {
            store: Store::new(source.header().clone(), options),
            source: Box::new(source),
            has_profile: false,
            had_ended: false,
        }
    }

    /// Reads everything up to now. Returns the profile if something has changed, and the first time;
    /// each has a larger [epoch](Profile::epoch).
    ///
    /// After an error the profile that was returned last is still right, but no more will come.
    pub fn refresh(&mut self) -> Result<Option<Profile>, Error> {
        self.source.refresh()?;
        let is_changed = self.store.extend(&mut *self.source)?;
        // How a recording ended may be known only now.
        let has_just_ended = self.has_ended() && !std::mem::replace(&mut self.had_ended, true);
        if !is_changed && self.has_profile && !has_just_ended {
            return Ok(None);
        }
        self.has_profile = true;
        let (damage, size) = (self.source.damage(), self.source.size());
        Ok(Some(self.store.snapshot(damage, size)))
    }

    /// Returns true if the recording has ended: the profile that was returned last is complete.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.source.has_ended()
    }
}
