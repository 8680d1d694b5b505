//! An index with bytes changed at will, checksums ignored: it is refused, or reports on it return.
//!
//! The first byte is the number of changes, four bytes each follow: the place, from the end, and what to flip there. The
//! rest is the trace.

use std::io;
use std::sync::{Arc, Mutex};

use heapline_formats::{Options, Reader};
use heapline_profile::reports::{
    self, HotspotOptions, SeriesOptions, StatsOptions, SummaryOptions,
};
use heapline_profile::{
    Estimator, Index, MemoryLimit, Profile, Query, Scope, Storage, StoreOptions,
};

#[derive(Debug, Default)]
struct Memory(Mutex<Vec<u8>>);

impl Storage for Memory {
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut all = self.0.lock().unwrap();
        all.extend_from_slice(bytes);
        Ok((all.len() - bytes.len()) as u64)
    }

    fn read_at(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        let all = self.0.lock().unwrap();
        let start = usize::try_from(place).unwrap_or(usize::MAX);
        let found = all.get(start..).and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fn limit() -> MemoryLimit {
    MemoryLimit {
        bytes: 1 << 20,
        create: Arc::new(|| Ok(Arc::new(Memory::default()))),
    }
}

/// Runs the target on an input.
pub fn run(bytes: &[u8]) {
    let Some((&changes, rest)) = bytes.split_first() else {
        return;
    };
    let Some((changes, trace)) = rest.split_at_checked(4 * usize::from(changes)) else {
        return;
    };
    let Ok(mut reader) = Reader::new(io::Cursor::new(trace.to_vec()), Options::default()) else {
        return;
    };
    let Ok(profile) = Profile::load(&mut reader, StoreOptions::default()) else {
        return;
    };
    if !profile.is_indexable() {
        return;
    }
    let memory = Arc::new(Memory::default());
    let storage: Arc<dyn Storage> = Arc::clone(&memory) as _;
    profile.write_index(b"", &[], || Ok(storage)).unwrap();
    let len = {
        let mut index = memory.0.lock().unwrap();
        let len = index.len();
        for change in changes.chunks_exact(4) {
            let place =
                usize::from(change[0]) << 16 | usize::from(change[1]) << 8 | usize::from(change[2]);
            index[len - 1 - place % len] ^= change[3];
        }
        len as u64
    };
    let Ok(indexed) = Index::open(memory, len).and_then(|index| index.profile(limit())) else {
        return;
    };
    let scope = Scope::new(&indexed, &Query::default(), Estimator::default());
    drop(reports::summary(&scope, &SummaryOptions::default()));
    drop(reports::hotspots(&scope, &HotspotOptions::default()));
    drop(reports::series(&scope, &SeriesOptions::default()));
    drop(reports::stats(&scope, &StatsOptions::default()));
    drop(reports::info(&indexed));
}
