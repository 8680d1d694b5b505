//! What is kept for each domain between two calls of hooks.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use heapline_recorder::{CollectionKind, CollectorWork};

use super::VERIFICATION;
use super::counters::{Counted, Counters};
use super::open::Opened;
use super::verify::State;
use crate::callbacks::{MAX_DOMAINS, Session};

/// Work that is held back in a domain at most until the counters are verified.
const HELD: usize = 16;

/// Each is made when it is needed, and never freed: domains that come later have the same numbers.
static DOMAINS: [AtomicPtr<Place>; MAX_DOMAINS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_DOMAINS];

/// The place of a domain, for one thread at a time: that which runs it, or one that ends the recording.
struct Place {
    is_taken: AtomicBool,
    domain: UnsafeCell<Domain>,
}

// SAFETY: `domain` is only reached by who has taken the place.
unsafe impl Sync for Place {}

impl Place {
    /// Does something with the domain, unless somebody else does.
    fn with<R>(&self, f: impl FnOnce(&mut Domain) -> R) -> Option<R> {
        /// Lets others take the place, after a panic too.
        struct Taken<'a>(&'a AtomicBool);
        impl Drop for Taken<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        if self.is_taken.swap(true, Ordering::Acquire) {
            return None;
        }
        let _taken = Taken(&self.is_taken);
        // SAFETY: nobody else has it until `_taken` is dropped.
        Some(f(unsafe { &mut *self.domain.get() }))
    }
}

/// What is kept for a domain.
#[derive(Debug, Default)]
pub(super) struct Domain {
    /// The address of its state, which all domains with this number have; 0 if it was not looked for.
    state: usize,
    /// The recording that the rest belongs to.
    recording: usize,
    pub(super) opened: Opened,
    /// The counters at the beginning of a minor collection by which they are verified.
    pub(super) before_minor: Option<Counted>,
    /// Slices of a collection that the program has asked for, one after the other.
    forced: Option<CollectorWork>,
    /// Work that is recorded when it is decided if its counters are right.
    held: Vec<CollectorWork>,
}

/// Does something with the domain that this thread runs, unless somebody ends its recording.
pub(super) fn with<R>(number: usize, f: impl FnOnce(&mut Domain) -> R) -> Option<R> {
    let place = DOMAINS.get(number)?;
    let mut existing = place.load(Ordering::Acquire);
    if existing.is_null() {
        existing = Box::into_raw(Box::new(Place {
            is_taken: AtomicBool::new(false),
            domain: UnsafeCell::default(),
        }));
        // Only the thread that runs the domain makes it.
        place.store(existing, Ordering::Release);
    }
    // SAFETY: it is never freed.
    unsafe { &*existing }.with(f)
}

/// Does something with all domains that there were.
pub(super) fn for_each(mut f: impl FnMut(usize, &mut Domain)) {
    for (number, place) in DOMAINS.iter().enumerate() {
        // SAFETY: it is never freed.
        if let Some(place) = unsafe { place.load(Ordering::Acquire).as_ref() } {
            place.with(|domain| f(number, domain));
        }
    }
}

/// In a process that was just forked: nobody else has a place.
pub(super) fn forked() {
    for place in &DOMAINS {
        // SAFETY: it is never freed.
        if let Some(place) = unsafe { place.load(Ordering::Acquire).as_ref() } {
            place.is_taken.store(false, Ordering::Release);
        }
    }
}

impl Domain {
    /// Forgets what belongs to another recording.
    pub(super) fn enter(&mut self, recording: usize) {
        if self.recording != recording {
            self.recording = recording;
            self.opened.clear();
            self.forced = None;
            self.held.clear();
        }
    }

    /// The address of the state of this domain, which this thread runs.
    pub(super) fn state(&mut self, counters: &Counters) -> Option<usize> {
        if let Counters::Domains(_) = counters
            && self.state != 0
        {
            return Some(self.state);
        }
        self.state = counters.state()?;
        Some(self.state)
    }

    /// Takes note of a slice of a collection that the program has asked for. Those that follow each other are recorded as one,
    /// before what comes then: a minor collection, before the next major one begins.
    pub(super) fn tell_forced(&mut self, slice: CollectorWork) {
        let began = self.forced.map_or(slice.began, |first| first.began);
        let phase = self.forced.map_or(slice.phase, |first| first.phase);
        self.forced = Some(CollectorWork {
            kind: CollectionKind::Forced,
            began,
            phase,
            ..slice
        });
    }

    /// Records work, or holds it back.
    pub(super) fn tell(&mut self, session: &Session, number: usize, work: CollectorWork) {
        if let Some(forced) = self.forced.take() {
            self.tell(session, number, forced);
        }
        if VERIFICATION.is_undecided() && self.held.len() < HELD {
            self.held.reserve(HELD);
            self.held.push(work);
            return;
        }
        self.release(session, number);
        record(session, number, work);
    }

    /// Records what was held back.
    pub(super) fn release(&mut self, session: &Session, number: usize) {
        for work in self.held.drain(..).chain(self.forced.take()) {
            record(session, number, work);
        }
    }
}

/// Records work, with counters only if these are verified.
fn record(session: &Session, number: usize, mut work: CollectorWork) {
    if VERIFICATION.state() != State::Verified {
        work.counters = None;
    }
    if work.kind != CollectionKind::Reading || work.counters.is_some() {
        session.recorder.collection(number, &work);
    }
}
