//! The layout of simulated runtimes.

use std::cell::RefCell;
use std::collections::HashMap;

use super::probe::{Found, Functions, State, find};
use super::*;

const VERSIONS: [Version; 3] = [Version::V5_3, Version::V5_4, Version::V5_5];

const SAMPLER: usize = 0x1000;
const THREAD: usize = 0x2000;

/// A runtime with offsets of its own.
struct Simulated {
    offsets: Offsets,
    /// The words of samplers are farther by so many.
    sampler_shift: usize,
    /// A second word that `caml_process_external_interrupt` reads.
    also_interrupted_by: Option<usize>,
    memory: RefCell<HashMap<usize, usize>>,
}

impl Simulated {
    fn new(offsets: Offsets) -> Self {
        Self {
            offsets,
            sampler_shift: 0,
            also_interrupted_by: None,
            memory: RefCell::default(),
        }
    }

    fn check(&self, version: Version) -> Result<Offsets, Refusal> {
        check(version, find(self))
    }
}

impl Functions for Simulated {
    fn set_action_pending(&self, state: &mut State) -> Option<()> {
        state.0[self.offsets.action_pending] = 1;
        Some(())
    }

    fn is_interrupted(&self, state: &mut State) -> Option<bool> {
        let words = [
            Some(self.offsets.external_interrupt),
            self.also_interrupted_by,
        ];
        Some(words.iter().flatten().any(|word| state.0[*word] != 0))
    }

    fn with_sampler<R>(&self, state: &mut State, f: impl FnOnce(&State) -> R) -> Option<R> {
        let shift = self.sampler_shift;
        let seed = state.0[self.offsets.id] & 0xffff_ffff;
        let mut memory = HashMap::new();
        let mut put = |at: usize, word: usize, value: usize| memory.insert(at + 8 * word, value);
        for word in 1..sampler::RANDOM.end + shift {
            put(SAMPLER, word, 0);
            put(THREAD, word, 0);
        }
        put(SAMPLER, 0, (&raw const *state).addr());
        put(SAMPLER, sampler::CONFIG + shift, sampler::NO_CONFIG);
        put(SAMPLER, sampler::THREADS + shift, THREAD);
        put(SAMPLER, sampler::CURRENT_THREAD + shift, THREAD);
        put(THREAD, sampler::THREAD_CONFIG, sampler::NO_CONFIG);
        put(THREAD, sampler::THREAD_DOMAIN, SAMPLER);
        for (word, n) in sampler::RANDOM.zip(1..) {
            put(SAMPLER, word + shift, (seed + 1).wrapping_mul(31 * n));
        }
        *self.memory.borrow_mut() = memory;
        state.0[self.offsets.memprof] = SAMPLER;
        let result = f(state);
        state.0[self.offsets.memprof] = 0;
        Some(result)
    }

    fn first_finaliser(&self, state: &mut State) -> Option<usize> {
        let info = state.0[self.offsets.final_info];
        // SAFETY: each word of the state points to a list, which begins with the address of a finaliser.
        unsafe {
            let table = *std::ptr::with_exposed_provenance::<*const usize>(info);
            Some(*table)
        }
    }

    fn word(&self, address: usize) -> usize {
        self.memory.borrow()[&address]
    }
}

/// Offsets after a word was inserted.
fn with_inserted_word(offsets: Offsets, place: usize) -> Offsets {
    let moved = |word: usize| word + usize::from(word >= place);
    Offsets {
        action_pending: moved(offsets.action_pending),
        ephe_info: moved(offsets.ephe_info),
        final_info: moved(offsets.final_info),
        external_interrupt: moved(offsets.external_interrupt),
        id: moved(offsets.id),
        unique_id: moved(offsets.unique_id),
        memprof: moved(offsets.memprof),
    }
}

#[test]
fn offsets_of_all_versions_are_found() {
    for version in VERSIONS {
        let offsets = version.offsets();
        let runtime = Simulated::new(offsets);
        assert_eq!(
            find(&runtime),
            Found {
                action_pending: Some(offsets.action_pending),
                external_interrupt: Some(offsets.external_interrupt),
                final_info: Some(offsets.final_info),
                id: Some(offsets.id),
                memprof: Some(offsets.memprof),
                has_known_sampler: true,
            }
        );
        assert_eq!(runtime.check(version), Ok(offsets));
        // The table has no other way to find these two.
        assert_eq!(offsets.ephe_info + 1, offsets.final_info);
        assert_eq!(offsets.id + 1, offsets.unique_id);
    }
}

#[test]
fn a_state_with_one_more_word_is_refused_wherever_that_is() {
    for version in VERSIONS {
        let offsets = version.offsets();
        for place in 0..=offsets.memprof {
            let runtime = Simulated::new(with_inserted_word(offsets, place));
            let refusal = runtime.check(version).unwrap_err();
            assert!(
                matches!(refusal, Refusal::Moved { found, expected, .. } if found == expected + 1),
                "{version}, word {place}: {refusal:?}"
            );
        }
        let after = with_inserted_word(offsets, offsets.memprof + 1);
        assert_eq!(Simulated::new(after).check(version), Ok(offsets));
    }
}

#[test]
fn a_version_that_is_taken_for_another_is_refused() {
    for version in VERSIONS {
        for other in VERSIONS.into_iter().filter(|other| *other != version) {
            let runtime = Simulated::new(other.offsets());
            assert!(runtime.check(version).is_err(), "{other} as {version}");
        }
    }
}

#[test]
fn functions_that_read_more_than_one_word_find_nothing() {
    let version = Version::V5_5;
    let mut runtime = Simulated::new(version.offsets());
    runtime.also_interrupted_by = Some(100);
    assert_eq!(
        runtime.check(version),
        Err(Refusal::NotFound(version, "requested_external_interrupt"))
    );
}

#[test]
fn samplers_with_other_data_are_refused() {
    let version = Version::V5_4;
    let mut runtime = Simulated::new(version.offsets());
    runtime.sampler_shift = 1;
    assert_eq!(runtime.check(version), Err(Refusal::Sampler(version)));
}

#[test]
fn a_refusal_names_the_version_and_what_to_do() {
    let version = Version::V5_4;
    let moved = with_inserted_word(version.offsets(), 30);
    let refusal = Simulated::new(moved).check(version).unwrap_err();
    let message = refusal.to_string();
    assert_eq!(
        message,
        "the program's OCaml runtime (like that of 5.4) has memprof at word 63 of its domain state, not at 62: it was \
         changed, or is a newer one; `heapline record` works; attaching and snapshots need a newer heapline"
    );
    let unknown = Refusal::UnknownVersion("5.9.0".to_owned()).to_string();
    assert!(unknown.contains("OCaml 5.9.0") && unknown.contains("`heapline record` works"));
}

#[test]
fn the_state_of_a_domain_is_verified() {
    const STATE: usize = 0x8000;
    let offsets = Version::V5_4.offsets();
    let memory = |id: usize, unique_id: usize, back: usize| {
        HashMap::from([
            (STATE + 8 * offsets.id, id),
            (STATE + 8 * offsets.unique_id, unique_id),
            (STATE + 8 * offsets.memprof, SAMPLER),
            (SAMPLER, back),
        ])
    };
    let is_it = |memory: HashMap<usize, usize>| {
        is_state(&offsets, STATE, [3, 17], |address| memory[&address])
    };
    assert!(is_it(memory(3, 17, STATE)));
    // What follows a number of 32 bits in its word does not matter.
    assert!(is_it(memory(7 << 32 | 3, 17, STATE)));
    assert!(!is_it(memory(2, 17, STATE)));
    assert!(!is_it(memory(3, 18, STATE)));
    assert!(!is_it(memory(3, 17, STATE + 8)));
    // A state that was moved is told without following its words.
    let mut moved = memory(0, 0, STATE);
    moved.insert(STATE + 8 * offsets.memprof, 0xdead_beef);
    assert!(!is_it(moved));
}

#[test]
fn versions_are_known_by_their_functions_and_names() {
    let of = |names: &[&CStr]| Version::of(|name| names.contains(&name));
    assert_eq!(of(&[]), Version::V5_3);
    assert_eq!(of(&[c"caml_ml_gc_ramp_up"]), Version::V5_4);
    assert_eq!(
        of(&[c"caml_ml_gc_ramp_up", c"caml_memprof_is_sampling"]),
        Version::V5_5
    );
    assert_eq!(Version::named("5.3.0"), Some(Version::V5_3));
    assert_eq!(Version::named("5.4.1"), Some(Version::V5_4));
    assert_eq!(Version::named("5.5.0~rc1"), Some(Version::V5_5));
    assert_eq!(Version::named("5.6.0"), None);
    assert_eq!(Version::named("5.2.0+ox"), None);
}
