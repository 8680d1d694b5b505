//! The counters of the runtime, read without allocating anything in its heap.
//!
//! Where the runtime has a function that reads a counter, that is called. The others are read in its data, and are
//! [verified](super::verify) before they are used.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use heapline_recorder::{CollectorCounters, Phase};

use super::forced;
use crate::layout::{self, CounterOffsets, Version, single::Statistics};
use crate::runtime::{Kind, Runtime, symbol};

/// Words of the structures that the runtime's functions fill: many more than they have.
const ROOM: usize = 64;

/// The largest number of words, and of anything else, that is believed.
const MOST: u64 = 1 << 56;

/// OCaml 5: what a slice is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceKind {
    /// The collector is to keep up with the program.
    Ordinary,
    /// The domain waits for others, and there may be something to do. There are up to a million in a second.
    Opportunistic,
    /// The program has asked for a whole collection. All domains do one slice after the other until that is finished, also
    /// those that have nothing left to do.
    Forced,
}

impl SliceKind {
    /// By the words that are to be marked or swept, at least. The program may ask for a slice of the same size, which is then taken
    /// for one of the others.
    pub(super) fn of_budget(budget: u64, version: Version) -> Self {
        match budget {
            // Major_slice_work_min, in minor collections.
            512 => Self::Opportunistic,
            // In caml_mark_roots_stw.
            1000 if version == Version::V5_5 => Self::Opportunistic,
            // In stw_finish_major_cycle.
            10_000_000 => Self::Forced,
            _ => Self::Ordinary,
        }
    }
}

/// The reason why counters are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The layout of domains is not known.
    Layout,
    /// The runtime lacks it.
    Missing(&'static CStr),
    /// The runtime's functions have other results.
    Differs(&'static str),
}

/// What the runtime has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Words allocated on the minor heap, as `Gc.minor_words` says.
    pub(super) minor_words: u64,
    /// Those of them that were allocated before the minor heap was last emptied.
    pub(super) emptied_words: u64,
    pub(super) promoted_words: u64,
    /// Words allocated on the major heap before its last slice.
    pub(super) sliced_words: u64,
    /// Those since.
    pub(super) allocated_words: u64,
    pub(super) heap_words: u64,
    pub(super) free_words: u64,
    pub(super) minor_collections: u64,
    pub(super) major_collections: u64,
    pub(super) compactions: u64,
    pub(super) forced_major_collections: u64,
    /// Sizes and numbers of blocks agree with each other.
    pub(super) has_plausible_heap: bool,
}

impl Counted {
    pub(super) fn major_words(&self) -> u64 {
        self.sliced_words.saturating_add(self.allocated_words)
    }

    pub(super) fn counters(&self) -> CollectorCounters {
        CollectorCounters {
            minor_words: self.minor_words,
            promoted_words: self.promoted_words,
            major_words: self.major_words(),
            heap_words: self.heap_words,
            free_words: self.free_words,
            minor_collections: self.minor_collections,
            major_collections: self.major_collections,
            compactions: self.compactions,
            forced_major_collections: self.forced_major_collections,
        }
    }
}

/// Where the counters of this runtime are.
#[derive(Debug)]
pub(super) enum Counters {
    Single(Single),
    Domains(Domains),
}

/// OCaml 4: addresses of variables.
#[derive(Debug)]
pub(super) struct Single {
    state: usize,
    statistics: Statistics,
    minor_words: extern "C" fn() -> f64,
    allocated_words: usize,
    free_words: usize,
}

/// OCaml 5.
#[derive(Debug)]
pub(super) struct Domains {
    version: Version,
    offsets: CounterOffsets,
    minor_words: extern "C" fn() -> f64,
    sample_words: SampleWords,
    sample_heap: SampleHeap,
    heap_size: extern "C" fn(usize) -> usize,
    minor_collections: usize,
    major_collections: usize,
    compactions: usize,
}

/// Fills `struct alloc_stats` with words of a domain's state: minor, promoted, major words, and major collections that were
/// asked for.
type SampleWords = unsafe extern "C" fn(usize, *mut [u64; ROOM]);
/// Fills `struct heap_stats` with words of a domain's heap: of pools, of pools at most, of live blocks in pools, the number of
/// those, of waste in pools, of large blocks, of those at most, and their number.
type SampleHeap = unsafe extern "C" fn(usize, *mut [u64; ROOM]);

fn needed(name: &'static CStr) -> Result<usize, Unknown> {
    symbol(name).ok_or(Unknown::Missing(name))
}

/// # Safety
///
/// `F` is the type of the function.
unsafe fn function<F: Copy>(name: &'static CStr) -> Result<F, Unknown> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = needed(name)?;
    // SAFETY: the caller promises the type, and it has the size of an address.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

/// # Safety
///
/// A word is there.
unsafe fn word(address: usize) -> u64 {
    // SAFETY: as the caller's. Others may write to it meanwhile, and write it whole.
    unsafe { std::ptr::with_exposed_provenance::<u64>(address).read_volatile() }
}

/// A count that is kept as a floating point number.
fn whole(number: f64) -> Option<u64> {
    /// All integers up to this one have a floating point number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let is_count = (0.0..=EXACT).contains(&number) && number.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is one of these integers"
    )]
    is_count.then_some(number as u64)
}

impl Counters {
    pub(super) fn find(runtime: &Runtime) -> Result<Self, Unknown> {
        match runtime.kind {
            Kind::Single => Single::find().map(Self::Single),
            Kind::Domains { .. } => Domains::find().map(Self::Domains),
        }
    }

    /// The state of the thread's domain, where its counters are; `None` if this thread runs none.
    pub(super) fn state(&self) -> Option<usize> {
        match self {
            Self::Single(single) => {
                // SAFETY: it is a variable.
                let state = unsafe { word(single.state) };
                usize::try_from(state).ok().filter(|state| *state != 0)
            }
            Self::Domains(_) => {
                // SAFETY: a thread that runs no domain has no state.
                let state = unsafe { layout::known()?.state() }?;
                Some(state.expose_provenance())
            }
        }
    }

    /// Reads all; `None` if what is there can be no counters.
    ///
    /// # Safety
    ///
    /// It is the [state](Self::state) of this thread's domain.
    pub(super) unsafe fn read(&self, state: usize) -> Option<Counted> {
        // SAFETY: as the caller's.
        let counted = unsafe {
            match self {
                Self::Single(single) => single.read(state),
                Self::Domains(domains) => domains.read(state),
            }
        }?;
        let words = [
            counted.minor_words,
            counted.promoted_words,
            counted.major_words(),
            counted.heap_words,
        ];
        words.iter().all(|words| *words < MOST).then_some(counted)
    }

    /// What the slice is for that begins now.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    pub(super) unsafe fn slice(&self, state: usize) -> SliceKind {
        match self {
            Self::Single(_) => SliceKind::Ordinary,
            Self::Domains(domains) => {
                // SAFETY: a state has that word.
                let budget = unsafe { word(state + 8 * domains.offsets.slice_budget) };
                SliceKind::of_budget(budget, domains.version)
            }
        }
    }
}

impl Single {
    fn find() -> Result<Self, Unknown> {
        // SAFETY: that is its type in all versions.
        let minor_words = unsafe { function(c"caml_gc_minor_words_unboxed") }?;
        Ok(Self {
            state: needed(c"Caml_state")?,
            statistics: Statistics::of(|name| symbol(name).is_some()),
            minor_words,
            allocated_words: needed(c"caml_allocated_words")?,
            free_words: needed(c"caml_fl_cur_wsz")?,
        })
    }

    /// # Safety
    ///
    /// As for [`Counters::read`].
    unsafe fn read(&self, state: usize) -> Option<Counted> {
        let statistics = state + 8 * self.statistics.minor_words;
        // SAFETY: a state has more words than these.
        let count = |n: usize| unsafe { word(statistics + 8 * n) };
        let words = |n| whole(f64::from_bits(count(n)));
        // SAFETY: these are variables.
        let (allocated_words, free_words) =
            unsafe { (word(self.allocated_words), word(self.free_words)) };
        let heap_words = count(Statistics::HEAP_WORDS);
        let most = count(Statistics::TOP_HEAP_WORDS);
        Some(Counted {
            minor_words: whole((self.minor_words)())?,
            emptied_words: words(0)?,
            promoted_words: words(Statistics::PROMOTED_WORDS)?,
            sliced_words: words(Statistics::MAJOR_WORDS)?,
            allocated_words,
            heap_words,
            free_words,
            minor_collections: count(Statistics::MINOR_COLLECTIONS),
            major_collections: count(Statistics::MAJOR_COLLECTIONS),
            compactions: count(Statistics::COMPACTIONS),
            forced_major_collections: if self.statistics.has_forced {
                count(Statistics::FORCED_MAJOR_COLLECTIONS)
            } else {
                forced::completed()
            },
            has_plausible_heap: free_words <= heap_words && 0 < heap_words && heap_words <= most,
        })
    }
}

impl Domains {
    fn find() -> Result<Self, Unknown> {
        let layout = layout::known().ok_or(Unknown::Layout)?;
        // SAFETY: these are their types in OCaml 5.3 to 5.5.
        let found = unsafe {
            Self {
                version: layout.version(),
                offsets: layout.version().counters(),
                minor_words: function(c"caml_gc_minor_words_unboxed")?,
                sample_words: function(c"caml_collect_alloc_stats_sample")?,
                sample_heap: function(c"caml_collect_heap_stats_sample")?,
                heap_size: function(c"caml_heap_size")?,
                minor_collections: needed(c"caml_minor_collections_count")?,
                major_collections: needed(c"caml_major_cycles_completed")?,
                compactions: needed(c"caml_compactions_count")?,
            }
        };
        // SAFETY: the function reads a few words of what is passed.
        let words = unsafe { words_of_sample(found.sample_words) };
        if words == Some(found.offsets.minor_words) {
            Ok(found)
        } else {
            Err(Unknown::Differs("stat_minor_words"))
        }
    }

    /// # Safety
    ///
    /// As for [`Counters::read`].
    unsafe fn read(&self, state: usize) -> Option<Counted> {
        let mut sample = MaybeUninit::<[u64; ROOM]>::uninit();
        let first = sample.as_mut_ptr().cast::<u64>();
        // SAFETY: there is room for what the functions write, which was seen to be so many words.
        let [minor, promoted, major, forced] = unsafe {
            (self.sample_words)(state, sample.as_mut_ptr());
            first.cast::<[u64; 4]>().read()
        };
        // SAFETY: the state has these words.
        let [allocated_words, heap] = unsafe {
            [self.offsets.allocated_words, self.offsets.shared_heap]
                .map(|index| word(state + 8 * index))
        };
        let heap = usize::try_from(heap).ok();
        let heap = heap.filter(|heap| *heap != 0 && heap.is_multiple_of(8))?;
        // SAFETY: the word before the domain's number is the address of its heap, and all of the structure is written.
        let [pools, _, live, live_blocks, waste, large, _, large_blocks] = unsafe {
            (self.sample_heap)(heap, sample.as_mut_ptr());
            first.cast::<[u64; 8]>().read()
        };
        let heap_words = pools.checked_add(large)?;
        let free_words = live
            .checked_add(waste)
            .and_then(|used| pools.checked_sub(used));
        let size = (self.heap_size)(heap) as u64;
        // SAFETY: these are variables.
        let [minor_collections, major_collections, compactions] = unsafe {
            [
                self.minor_collections,
                self.major_collections,
                self.compactions,
            ]
            .map(|variable| word(variable))
        };
        Some(Counted {
            minor_words: whole((self.minor_words)())?,
            emptied_words: minor,
            promoted_words: promoted,
            sliced_words: major,
            allocated_words,
            heap_words,
            free_words: free_words.unwrap_or(0),
            minor_collections,
            major_collections,
            compactions,
            forced_major_collections: forced,
            has_plausible_heap: free_words.is_some()
                && live_blocks <= live
                && large_blocks <= large
                && size / 8 == pools + large,
        })
    }
}

/// The first of four words of a state that the function copies, if they follow each other and it writes nothing else.
///
/// # Safety
///
/// It is a function that reads words of a domain's state.
unsafe fn words_of_sample(sample_words: SampleWords) -> Option<usize> {
    /// In no state.
    const NOTHING: u64 = u64::MAX;
    let state: [u64; layout::STATE_WORDS] = std::array::from_fn(|n| n as u64);
    let mut sample = [NOTHING; ROOM];
    // SAFETY: there are as many words as in the largest state, and more than are written.
    unsafe { sample_words(state.as_ptr().expose_provenance(), &raw mut sample) };
    let first = sample[0];
    let follow = (first..).zip(&sample).take(4).all(|(n, found)| n == *found);
    let is_all = sample[4..].iter().all(|word| *word == NOTHING);
    usize::try_from(first).ok().filter(|_| follow && is_all)
}

/// The phases of the major collector, by their numbers.
pub(super) fn phases(version: Option<Version>) -> &'static [Phase] {
    match version {
        // Phase_mark, Phase_clean, Phase_sweep, Phase_idle
        None => &[Phase::Mark, Phase::Clean, Phase::Sweep, Phase::Idle],
        // Phase_sweep_and_mark_main, Phase_mark_final, Phase_sweep_ephe
        Some(Version::V5_3 | Version::V5_4) => &[Phase::Mark, Phase::Clean, Phase::Sweep],
        // Phase_sweep_main comes first.
        Some(Version::V5_5) => &[Phase::Sweep, Phase::Mark, Phase::Clean, Phase::Sweep],
    }
}

/// The variable with the number of the phase, and what the numbers mean.
#[derive(Debug)]
pub(super) struct PhaseVariable {
    address: usize,
    phases: &'static [Phase],
}

impl PhaseVariable {
    pub(super) fn find(runtime: &Runtime) -> Option<Self> {
        let version = match runtime.kind {
            Kind::Single => None,
            Kind::Domains { .. } => Some(layout::known()?.version()),
        };
        Some(Self {
            address: symbol(c"caml_gc_phase")?,
            phases: phases(version),
        })
    }

    pub(super) fn get(&self) -> Option<Phase> {
        // SAFETY: it is a variable of this type. In OCaml 5 it changes while the domains stand still, or in the middle of an
        // opportunistic slice, and is written whole.
        let number =
            unsafe { std::ptr::with_exposed_provenance::<u32>(self.address).read_volatile() };
        self.phases.get(usize::try_from(number).ok()?).copied()
    }
}
