//! A number for each event, set in any order and read in order.

use std::io;
use std::sync::Arc;

use crate::store::{Profile, Storage, StoredNumbers};

/// Events that are in memory at once if they are not all: 64 MiB. Tests have smaller traces.
const PART: u64 = if cfg!(test) { 1 << 16 } else { 1 << 24 };

/// Numbers that are written at once.
const CHUNK: usize = 1 << 13;

/// A number for each event of a profile; 0 for those that were not set.
///
/// It is in memory if the profile is. If not, what was set goes to a storage, by parts of the run, of which one at a time is in
/// memory when they are read.
pub(crate) struct ByEvent<'a> {
    profile: &'a Profile,
    values: Values,
}

enum Values {
    Memory(Vec<u32>),
    Stored {
        storage: Arc<dyn Storage>,
        parts: Vec<Part>,
        /// The part that is in memory, and its number.
        loaded: Option<(u64, Vec<u32>)>,
    },
}

/// Numbers that were set: places of the events in the part, and the values.
#[derive(Default)]
struct Part {
    written: Vec<StoredNumbers>,
    events: Vec<u64>,
    values: Vec<u64>,
}

impl<'a> ByEvent<'a> {
    /// Zeros for all events.
    pub(crate) fn new(profile: &'a Profile) -> Self {
        let in_memory = || Values::Memory(vec![0; index(profile.events())]);
        let values = match profile.create_storage() {
            None => in_memory(),
            // A profile that is stored but small.
            Some(_) if profile.events() <= PART => in_memory(),
            Some(Ok(storage)) => Values::Stored {
                storage,
                parts: Vec::new(),
                loaded: None,
            },
            Some(Err(error)) => {
                profile.fail(&error);
                Values::Memory(Vec::new())
            }
        };
        Self { profile, values }
    }

    /// Sets the number of an event.
    #[inline]
    pub(crate) fn set(&mut self, event: u64, value: u32) {
        match &mut self.values {
            Values::Memory(values) => {
                if let Some(place) = values.get_mut(index(event)) {
                    *place = value;
                }
            }
            Values::Stored { storage, parts, .. } => {
                if let Err(error) = set(&**storage, parts, event, value) {
                    self.profile.fail(&error);
                }
            }
        }
    }

    /// Hands over the numbers of a range of events that are not 0, in order. Ranges must be asked for in order.
    #[inline]
    pub(crate) fn for_each(&mut self, from: u64, to: u64, mut f: impl FnMut(u64, u32)) {
        let to = to.min(self.profile.events());
        match &mut self.values {
            Values::Memory(values) => {
                let end = index(to).min(values.len());
                let start = index(from).min(end);
                for (event, &value) in (from..).zip(&values[start..end]) {
                    if value != 0 {
                        f(event, value);
                    }
                }
            }
            Values::Stored {
                storage,
                parts,
                loaded,
            } => {
                let mut next = from;
                while next < to {
                    let number = next / PART;
                    let first = number * PART;
                    let end = to.min(first + PART);
                    if loaded.as_ref().is_none_or(|(found, _)| *found != number) {
                        // Before the next one, to have one at a time.
                        *loaded = None;
                        let values = load(&**storage, parts, number).unwrap_or_else(|error| {
                            self.profile.fail(&error);
                            Vec::new()
                        });
                        *loaded = Some((number, values));
                    }
                    if let Some((_, values)) = loaded {
                        let end = index(end - first).min(values.len());
                        let start = index(next - first).min(end);
                        for (event, &value) in (next..).zip(&values[start..end]) {
                            if value != 0 {
                                f(event, value);
                            }
                        }
                    }
                    next = end;
                }
            }
        }
    }
}

fn set(storage: &dyn Storage, parts: &mut Vec<Part>, event: u64, value: u32) -> io::Result<()> {
    let number = index(event / PART);
    if parts.len() <= number {
        parts.resize_with(number + 1, Part::default);
    }
    let part = &mut parts[number];
    part.events.push(event % PART);
    part.values.push(value.into());
    if part.events.len() >= CHUNK {
        for column in [&mut part.events, &mut part.values] {
            part.written.push(StoredNumbers::write(storage, column)?);
            column.clear();
        }
    }
    Ok(())
}

/// The numbers of all events of a part.
fn load(storage: &dyn Storage, parts: &[Part], number: u64) -> io::Result<Vec<u32>> {
    let mut all = vec![0; index(PART)];
    let Some(part) = parts.get(index(number)) else {
        return Ok(all);
    };
    let mut put = |events: &[u64], values: &[u64]| {
        for (&event, &value) in events.iter().zip(values) {
            if let Some(place) = all.get_mut(index(event)) {
                *place = u32::try_from(value).unwrap_or(u32::MAX);
            }
        }
    };
    for columns in part.written.chunks_exact(2) {
        put(&columns[0].read(storage)?, &columns[1].read(storage)?);
    }
    put(&part.events, &part.values);
    Ok(all)
}

/// The number of an event as an index.
#[inline]
pub(crate) fn index(event: u64) -> usize {
    usize::try_from(event).unwrap_or(usize::MAX)
}
