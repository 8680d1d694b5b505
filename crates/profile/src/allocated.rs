//! Bytes allocated between two events.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::by_event::{ByEvent, index};
use crate::sampling::Estimator;
use crate::store::{ClassId, Id, IdVec, KindId, Profile, Storage, StoredNumbers, saturated};

/// Bytes allocated before each event.
pub(crate) struct Allocated<'a> {
    profile: &'a Profile,
    sums: Sums,
}

enum Sums {
    Memory(Vec<f64>),
    Stored(Pages),
}

impl<'a> Allocated<'a> {
    pub(crate) fn new(profile: &'a Profile, estimator: Estimator) -> Self {
        let sums = match profile.create_storage() {
            None => in_memory(profile, estimator),
            Some(Ok(storage)) => stored(profile, estimator, storage),
            Some(Err(error)) => {
                profile.fail(&error);
                Sums::Memory(Vec::new())
            }
        };
        Self { profile, sums }
    }

    /// Bytes allocated from an event to another one, or to the last one.
    #[inline]
    pub(crate) fn between(&self, start: u64, end: u64) -> f64 {
        let last = self.profile.events().saturating_sub(1);
        self.before(end.min(last)) - self.before(start)
    }

    #[inline]
    fn before(&self, event: u64) -> f64 {
        match &self.sums {
            Sums::Memory(sums) => sums.get(index(event)).copied().unwrap_or(0.0),
            Sums::Stored(pages) => pages.get(self.profile, event),
        }
    }
}

fn in_memory(profile: &Profile, estimator: Estimator) -> Sums {
    let weights = profile.weights(estimator);
    let classes = profile.classes().iter();
    let bytes: IdVec<ClassId, f64> = classes
        .map(|class| weights[class.kind].bytes.value)
        .collect();
    let mut sums = vec![0.0; index(profile.events())];
    for number in 0..profile.segment_count() {
        let segment = profile.segment(number);
        for (block, &class) in segment.class.iter().enumerate() {
            sums[index(segment.lives.birth(block))] = bytes[class];
        }
    }
    let mut total = 0.0;
    for sum in &mut sums {
        total += std::mem::replace(sum, total);
    }
    Sums::Memory(sums)
}

fn stored(profile: &Profile, estimator: Estimator, storage: Arc<dyn Storage>) -> Sums {
    let mut kinds = ByEvent::new(profile);
    for number in 0..profile.segment_count() {
        let segment = profile.segment(number);
        for (block, &class) in segment.class.iter().enumerate() {
            let kind = profile.classes()[class].kind;
            kinds.set(segment.lives.birth(block), saturated(kind.index()) + 1);
        }
    }
    let weights = profile.weights(estimator);
    let mut pages = Pages::new(storage);
    let mut total = 0.0;
    let mut next = 0;
    let mut push = |times: Range<u64>, total: f64| {
        for _ in times {
            if let Err(error) = pages.push(total) {
                profile.fail(&error);
            }
        }
    };
    kinds.for_each(0, profile.events(), |event, kind| {
        // The sum before the event.
        push(next..event + 1, total);
        next = event + 1;
        let kind = KindId::from_index(kind as usize - 1);
        total += weights[kind].bytes.value;
    });
    push(next..profile.events(), total);
    Sums::Stored(pages)
}

/// Sums of a page.
const PAGE: usize = 1 << 13;

/// Pages that are in memory at most: 64 MiB.
const KEPT: usize = 1 << 10;

/// A page that was read, and its number.
type Page = Mutex<Option<(usize, Arc<Vec<u64>>)>>;

/// Sums in a storage.
struct Pages {
    storage: Arc<dyn Storage>,
    written: Vec<StoredNumbers>,
    /// The bits of the sums of the last page.
    open: Vec<u64>,
    /// The pages that were read last, each in the only place that it can have.
    kept: Vec<Page>,
}

impl Pages {
    fn new(storage: Arc<dyn Storage>) -> Self {
        Self {
            storage,
            written: Vec::new(),
            open: Vec::new(),
            kept: (0..KEPT).map(|_| Mutex::default()).collect(),
        }
    }

    fn push(&mut self, sum: f64) -> io::Result<()> {
        self.open.push(sum.to_bits());
        if self.open.len() == PAGE {
            let page = StoredNumbers::write(&*self.storage, &self.open)?;
            self.written.push(page);
            self.open.clear();
        }
        Ok(())
    }

    fn get(&self, profile: &Profile, event: u64) -> f64 {
        let (number, place) = (index(event) / PAGE, index(event) % PAGE);
        let bits = match self.written.get(number) {
            Some(page) => {
                let mut kept = self.kept[number % KEPT]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                if kept.as_ref().is_none_or(|(found, _)| *found != number) {
                    let sums = page.read(&*self.storage).unwrap_or_else(|error| {
                        profile.fail(&error);
                        Vec::new()
                    });
                    *kept = Some((number, Arc::new(sums)));
                }
                kept.as_ref().and_then(|(_, sums)| sums.get(place).copied())
            }
            None => self.open.get(place).copied(),
        };
        f64::from_bits(bits.unwrap_or(0))
    }
}
