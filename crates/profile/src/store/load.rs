//! Loads whole sources.

use heapline_model::{Error, Source};

use super::growing::{Store, StoreOptions};
use super::profile::Profile;
use super::sealed::MemoryLimit;

impl Profile {
    /// Loads everything that a source has.
    pub fn load(source: &mut dyn Source, options: StoreOptions) -> Result<Self, Error> {
        let mut store = Store::new(source.header().clone(), options);
        store.extend(source)?;
        Ok(store.finish(source.damage(), source.size()))
    }

    /// Loads everything that a source has, into storages if it does not fit in memory.
    pub fn load_within(
        limit: MemoryLimit,
        source: &mut dyn Source,
        options: StoreOptions,
    ) -> Result<Self, Error> {
        let mut store = Store::limited(source.header().clone(), options, limit);
        store.extend(source)?;
        Ok(store.finish_limited(source.damage(), source.size())?)
    }
}
