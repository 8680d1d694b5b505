//! What the garbage collector does, and its counters.
//!
//! The runtime has hooks for the beginning and the end of minor collections, slices of major collections, and finalisers. They
//! are called in each domain, in OCaml 5 in all of them at once. At each end the counters are read, too; a recording and a domain
//! begin and end with a reading of them ([`CollectionKind::Reading`]). OCaml 4 has no hooks for a whole major collection that the
//! program asks for: see [`forced`].
//!
//! Nothing here allocates in OCaml's heap or waits.

mod counters;
mod domain;
pub(crate) mod forced;
mod open;
#[cfg(test)]
mod tests;
mod verify;

use std::sync::{Once, OnceLock};

use heapline_recorder::{CollectionKind, CollectorWork, Reading, contained};

use crate::callbacks::{self, Session};
use crate::hook::{Chain, Hook};
use crate::runtime::{Kind, Runtime, UNIT, Value, symbol};
use counters::{Counted, Counters, PhaseVariable, SliceKind};
use domain::Domain;
use open::Open;
use verify::{Answer, State, Verification};

static MINOR_BEGIN: Chain = Chain::new();
static MINOR_END: Chain = Chain::new();
static SLICE_BEGIN: Chain = Chain::new();
static SLICE_END: Chain = Chain::new();
static FINALISERS_BEGIN: Chain = Chain::new();
static FINALISERS_END: Chain = Chain::new();
static DOMAIN_TERMINATED: Chain = Chain::new();

static WATCH: OnceLock<Watch> = OnceLock::new();
static VERIFICATION: Verification = Verification::new();

/// A runtime whose collector is watched.
struct Watch {
    runtime: &'static Runtime,
    /// Where its counters are, if that is known.
    counters: Option<Counters>,
    phase: Option<PhaseVariable>,
}

/// Looks for the counters. The layout of the runtime's data was looked for.
pub(crate) fn find(runtime: &'static Runtime) {
    WATCH.get_or_init(|| Watch {
        runtime,
        counters: Counters::find(runtime)
            .map_err(|unknown| VERIFICATION.refuse(unknown))
            .ok(),
        phase: PhaseVariable::find(runtime),
    });
}

/// From now on, the work of the collector is recorded while there is a session. The layout of the runtime's data was looked for.
pub(crate) fn watch(runtime: &'static Runtime) {
    static HOOKED: Once = Once::new();
    find(runtime);
    let hooks: [(&Chain, _, Hook); 6] = [
        (&MINOR_BEGIN, c"caml_minor_gc_begin_hook", minor_began),
        (&MINOR_END, c"caml_minor_gc_end_hook", minor_ended),
        (&SLICE_BEGIN, c"caml_major_slice_begin_hook", slice_began),
        (&SLICE_END, c"caml_major_slice_end_hook", slice_ended),
        (
            &FINALISERS_BEGIN,
            c"caml_finalise_begin_hook",
            finalisers_began,
        ),
        (&FINALISERS_END, c"caml_finalise_end_hook", finalisers_ended),
    ];
    HOOKED.call_once(|| {
        for (chain, name, hook) in hooks {
            chain.set(name, hook);
        }
        if let Kind::Domains { .. } = runtime.kind {
            DOMAIN_TERMINATED.set(c"caml_domain_terminated_hook", domain_terminated);
        }
    });
}

extern "C" fn minor_began() {
    MINOR_BEGIN.call_previous();
    began(CollectionKind::Minor);
}

extern "C" fn minor_ended() {
    ended(CollectionKind::Minor);
    MINOR_END.call_previous();
}

extern "C" fn slice_began() {
    SLICE_BEGIN.call_previous();
    began(CollectionKind::Slice);
}

extern "C" fn slice_ended() {
    ended(CollectionKind::Slice);
    SLICE_END.call_previous();
}

extern "C" fn finalisers_began() {
    FINALISERS_BEGIN.call_previous();
    began(CollectionKind::Finalisers);
}

extern "C" fn finalisers_ended() {
    ended(CollectionKind::Finalisers);
    FINALISERS_END.call_previous();
}

/// No OCaml code runs in the domain any more, but its minor heap is still to be emptied.
extern "C" fn domain_terminated() {
    read_counters();
    DOMAIN_TERMINATED.call_previous();
}

/// Takes note that work has begun in the domain of this thread.
fn began(kind: CollectionKind) {
    contained((), || {
        let Some(watch) = WATCH.get() else {
            return;
        };
        // Counters are verified before there is a session, too.
        if callbacks::session().is_none() && !VERIFICATION.is_undecided() {
            return;
        }
        let recording = callbacks::recordings();
        domain::with(watch.runtime.domain(), |domain| {
            domain.enter(recording);
            if kind == CollectionKind::Minor && VERIFICATION.is_undecided() {
                domain.before_minor = watch.count(domain);
            }
            let slice = match kind {
                CollectionKind::Slice => watch.slice(domain),
                _ => SliceKind::Ordinary,
            };
            domain.opened.begin(Open {
                kind,
                slice,
                phase: watch.phase.as_ref().and_then(PhaseVariable::get),
                // Last: what is before is not the collector's.
                began: Reading::now(),
            });
        });
    });
}

/// Takes note that work has ended in the domain of this thread.
fn ended(kind: CollectionKind) {
    let ended = Reading::now();
    contained((), || {
        let Some(watch) = WATCH.get() else {
            return;
        };
        let session = callbacks::session();
        if session.is_none() && !VERIFICATION.is_undecided() {
            return;
        }
        let recording = callbacks::recordings();
        let number = watch.runtime.domain();
        domain::with(number, |domain| {
            domain.enter(recording);
            let open = domain.opened.take(kind);
            if open.is_some_and(|open| open.slice == SliceKind::Opportunistic) {
                return;
            }
            let counted = watch.count(domain);
            if kind == CollectionKind::Minor
                && let (Some(before), Some(after)) = (domain.before_minor.take(), &counted)
            {
                VERIFICATION.decide(verify::across_minor(&before, after));
            }
            let (Some(open), Some(session)) = (open, session) else {
                return;
            };
            let work = CollectorWork {
                kind,
                began: open.began,
                ended,
                phase: open.phase,
                counters: counted.as_ref().map(Counted::counters),
            };
            match open.slice {
                SliceKind::Forced => domain.tell_forced(work),
                _ => domain.tell(session, number, work),
            }
        });
    });
}

/// Records the counters of the domain of this thread, if it runs one: when it begins or ends, or a recording does.
pub(crate) fn read_counters() {
    contained((), || {
        if let (Some(watch), Some(session)) = (WATCH.get(), callbacks::session()) {
            watch.read_counters(session);
        }
    });
}

/// A recording begins in the domain of this thread, or this one joins it.
///
/// # Safety
///
/// This thread may run OCaml code, and does not.
pub(crate) unsafe fn recording_began() {
    contained((), || {
        if let (Some(watch), Some(session)) = (WATCH.get(), callbacks::session()) {
            if VERIFICATION.is_undecided() {
                // SAFETY: as the caller's.
                unsafe { watch.ask_runtime() };
            }
            watch.read_counters(session);
        }
    });
}

/// The program ends in this thread, which may run OCaml code, and does not.
///
/// # Safety
///
/// That is so, if it runs a domain.
pub(crate) unsafe fn verify_at_end() {
    contained((), || {
        if let Some(watch) = WATCH.get()
            && callbacks::session().is_some()
            && VERIFICATION.is_undecided()
        {
            // SAFETY: as the caller's.
            let is_answered = unsafe { watch.ask_runtime() };
            if is_answered {
                // There was no collection that could tell more.
                VERIFICATION.decide(verify::Verdict::Agrees);
            }
        }
    });
}

/// The session ends: records what was held back in any domain.
pub(crate) fn session_ends(session: &Session) {
    contained((), || {
        domain::for_each(|number, domain| domain.release(session, number));
    });
}

/// In a process that was just forked, of which there is one thread.
pub(crate) fn forked() {
    domain::forked();
}

/// Says what is known of the counters.
pub(crate) fn explain() -> String {
    VERIFICATION.to_string()
}

impl Watch {
    /// Reads the counters of the domain of this thread.
    fn count(&self, domain: &mut Domain) -> Option<Counted> {
        if VERIFICATION.state() == State::Refused {
            return None;
        }
        let counters = self.counters.as_ref()?;
        let Some(state) = domain.state(counters) else {
            VERIFICATION.refuse(counters::Unknown::Layout);
            return None;
        };
        // SAFETY: it is that of this thread's domain.
        let counted = unsafe { counters.read(state) };
        if counted.is_none() {
            VERIFICATION.refuse(counters::Unknown::Differs("a counter"));
        }
        counted
    }

    /// What the slice is for that begins now. In OCaml 5, where that cannot be told, slices are not recorded: there might be too
    /// many.
    fn slice(&self, domain: &mut Domain) -> SliceKind {
        let known = self.counters.as_ref().and_then(|counters| {
            let state = domain.state(counters)?;
            // SAFETY: it is that of this thread's domain.
            Some(unsafe { counters.slice(state) })
        });
        let unknown = match self.runtime.kind {
            Kind::Single => SliceKind::Ordinary,
            Kind::Domains { .. } => SliceKind::Opportunistic,
        };
        known.unwrap_or(unknown)
    }

    /// Returns true if this thread runs a domain.
    fn has_domain(&self) -> bool {
        match self.runtime.kind {
            Kind::Single => true,
            Kind::Domains { .. } => symbol(c"caml_state").is_some_and(|variable| {
                // SAFETY: it is a variable of this thread that holds an address.
                unsafe { *std::ptr::with_exposed_provenance::<usize>(variable) != 0 }
            }),
        }
    }

    /// Records the counters of the domain of this thread, if it runs one.
    fn read_counters(&self, session: &Session) {
        if !self.has_domain() {
            return;
        }
        let recording = callbacks::recordings();
        let number = self.runtime.domain();
        domain::with(number, |domain| {
            domain.enter(recording);
            let Some(counted) = self.count(domain) else {
                return;
            };
            let now = Reading::now();
            let work = CollectorWork {
                kind: CollectionKind::Reading,
                began: now,
                ended: now,
                phase: None,
                counters: Some(counted.counters()),
            };
            domain.tell(session, number, work);
        });
    }

    /// Compares the counters with what the runtime says, which allocates a few words. Returns true if it was asked.
    ///
    /// # Safety
    ///
    /// This thread may run OCaml code, and does not, if it runs a domain.
    unsafe fn ask_runtime(&self) -> bool {
        let name = match self.runtime.kind {
            Kind::Single => c"caml_gc_quick_stat",
            Kind::Domains { .. } => c"caml_gc_counters",
        };
        let Some(function) = symbol(name).filter(|_| self.has_domain()) else {
            return false;
        };
        // SAFETY: that is its type.
        let function: extern "C" fn(Value) -> Value = unsafe { std::mem::transmute(function) };
        let counted = domain::with(self.runtime.domain(), |domain| self.count(domain));
        let Some(counted) = counted.flatten() else {
            return false;
        };
        let answer = function(UNIT);
        // SAFETY: it is what the function returns, and nothing is allocated meanwhile.
        let answer = unsafe { answer_in(answer, &counted) };
        VERIFICATION.decide(verify::compare(&counted, &answer));
        true
    }
}

/// What the runtime has answered: a block with three numbers, and in OCaml 4 integers after them.
///
/// # Safety
///
/// It is a block that `caml_gc_counters` or `caml_gc_quick_stat` of OCaml 4 has returned.
unsafe fn answer_in(block: Value, counted: &Counted) -> Answer {
    /// # Safety
    ///
    /// There is a word.
    unsafe fn word(address: usize) -> usize {
        // SAFETY: as the caller's.
        unsafe { *std::ptr::with_exposed_provenance(address) }
    }
    // SAFETY: a block has a header before it, with its length. The first fields are blocks with a floating point number.
    let (len, words) = unsafe {
        let len = word(block - 8) >> 10;
        let words = [0, 1, 2].map(|n| f64::from_bits(word(word(block + 8 * n)) as u64));
        (len, words)
    };
    let fields = [
        (3, "minor collections", counted.minor_collections),
        (4, "major collections", counted.major_collections),
        (5, "heap words", counted.heap_words),
        (13, "compactions", counted.compactions),
        (
            16,
            "forced major collections",
            counted.forced_major_collections,
        ),
    ];
    let others = fields.into_iter().filter(|(field, ..)| *field < len);
    // SAFETY: the block has these fields, which are integers.
    let integer = |field: usize| unsafe { word(block + 8 * field) } as u64 >> 1;
    Answer {
        words,
        others: others
            .map(|(field, name, ours)| (name, ours, integer(field)))
            .collect(),
    }
}
