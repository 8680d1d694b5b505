//! Finds offsets by calling functions of the runtime with a domain state of our own.
//!
//! A function that writes to a field shows where it is. For one that reads a field, the words of the state are
//! set to different values: its result shows which of them it has read.

use super::sampler::{self, RandomNumbers};

/// Words of a state: more than any version has.
pub(crate) const WORDS: usize = 256;

/// A domain state that no domain has.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub(super) struct State(pub(super) [usize; WORDS]);

impl State {
    pub(super) fn new(word: impl FnMut(usize) -> usize) -> Box<Self> {
        Box::new(Self(std::array::from_fn(word)))
    }
}

/// Functions of the runtime that take the state of a domain. `None`: the runtime does not have the function.
pub(super) trait Functions {
    /// Calls `caml_set_action_pending`.
    fn set_action_pending(&self, state: &mut State) -> Option<()>;

    /// Calls `caml_process_external_interrupt`. Returns true if that has called the hook.
    fn is_interrupted(&self, state: &mut State) -> Option<bool>;

    /// Calls `caml_memprof_new_domain`, the function that is given, and `caml_memprof_delete_domain`.
    fn with_sampler<R>(&self, state: &mut State, f: impl FnOnce(&State) -> R) -> Option<R>;

    /// Calls `caml_final_do_roots`. Returns the first value that it passes on.
    fn first_finaliser(&self, state: &mut State) -> Option<usize>;

    /// Reads a word of a structure that the runtime has made.
    fn word(&self, address: usize) -> usize;
}

/// The offsets that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) action_pending: Option<usize>,
    pub(super) external_interrupt: Option<usize>,
    pub(super) final_info: Option<usize>,
    pub(super) id: Option<usize>,
    pub(super) memprof: Option<usize>,
    /// The data of a sampler are as expected.
    pub(super) has_known_sampler: bool,
}

/// Looks for all offsets.
pub(super) fn find(functions: &impl Functions) -> Found {
    let memprof = memprof(functions);
    let id = memprof.and_then(|memprof| id(functions, memprof));
    Found {
        action_pending: action_pending(functions),
        external_interrupt: external_interrupt(functions),
        final_info: final_info(functions),
        id,
        memprof,
        has_known_sampler: id.zip(memprof).is_some_and(|(id, memprof)| {
            has_known_sampler(functions, memprof)
                && has_known_random_numbers(functions, id, memprof)
        }),
    }
}

/// The only word of a state that is not 0.
fn only_word(state: &State) -> Option<usize> {
    let mut words = (0..WORDS).filter(|n| state.0[*n] != 0);
    words.next().filter(|_| words.next().is_none())
}

/// The word that a function reads, which returns true for a state in which it is 1. One call for each bit of the offset.
fn word_read(mut is_set: impl FnMut(&mut State) -> Option<bool>) -> Option<usize> {
    let bits = WORDS.trailing_zeros();
    let mut word = 0;
    for bit in 0..bits {
        let mut state = State::new(|n| n >> bit & 1);
        word |= usize::from(is_set(&mut state)?) << bit;
    }
    // It was one word, and only that.
    let is_it = is_set(&mut State::new(|n| usize::from(n == word)))?;
    let is_other = is_set(&mut State::new(|n| usize::from(n != word)))?;
    (is_it && !is_other).then_some(word)
}

fn action_pending(functions: &impl Functions) -> Option<usize> {
    let mut state = State::new(|_| 0);
    functions.set_action_pending(&mut state)?;
    only_word(&state).filter(|word| state.0[*word] == 1)
}

fn external_interrupt(functions: &impl Functions) -> Option<usize> {
    word_read(|state| functions.is_interrupted(state))
}

/// A new sampler begins with a pointer back to the state of its domain.
fn memprof(functions: &impl Functions) -> Option<usize> {
    let mut state = State::new(|_| 0);
    let address = (&raw const *state).expose_provenance();
    functions.with_sampler(&mut state, |state| {
        let word = only_word(state)?;
        let sampler = state.0[word];
        (sampler.is_multiple_of(8) && functions.word(sampler) == address).then_some(word)
    })?
}

/// The random numbers of a new sampler.
fn random(functions: &impl Functions, memprof: usize, state: &mut State) -> Option<RandomNumbers> {
    functions.with_sampler(state, |state| {
        let sampler = state.0[memprof];
        std::array::from_fn(|n| functions.word(sampler + 8 * (sampler::RANDOM.start + n)))
    })
}

/// The random numbers of a sampler are seeded with the domain's number.
fn id(functions: &impl Functions, memprof: usize) -> Option<usize> {
    let of_zero = random(functions, memprof, &mut State::new(|_| 0))?;
    word_read(|state| Some(random(functions, memprof, state)? != of_zero))
}

/// The random numbers of a sampler with a seed.
pub(super) fn random_numbers(
    functions: &impl Functions,
    id: usize,
    memprof: usize,
    seed: i32,
) -> Option<RandomNumbers> {
    // The number of a domain has 32 bits.
    let seed = usize::try_from(seed).ok()?;
    let mut state = State::new(|n| if n == id { seed } else { 0 });
    random(functions, memprof, &mut state)
}

/// All of the random numbers are others if the seed is, and are the same with the same one; the word before them is none.
fn has_known_random_numbers(functions: &impl Functions, id: usize, memprof: usize) -> bool {
    let of = |seed| random_numbers(functions, id, memprof, seed);
    let (Some(one), Some(again), Some(other)) = (of(1), of(1), of(2)) else {
        return false;
    };
    let before = functions.with_sampler(&mut State::new(|_| 0), |state| {
        functions.word(state.0[memprof] + 8 * (sampler::RANDOM.start - 1))
    });
    one == again && one.iter().zip(&other).all(|(one, other)| one != other) && before == Some(0)
}

fn has_known_sampler(functions: &impl Functions, memprof: usize) -> bool {
    let mut state = State::new(|_| 0);
    let is_known = functions.with_sampler(&mut state, |state| {
        let sampler = state.0[memprof];
        let word = |at: usize, n: usize| functions.word(at + 8 * n);
        let threads = [sampler::THREADS, sampler::CURRENT_THREAD].map(|n| word(sampler, n));
        let [thread, current] = threads;
        // A new sampler has no configuration, and one thread, which points back.
        word(sampler, sampler::CONFIG) == sampler::NO_CONFIG
            && thread == current
            && thread != 0
            && thread.is_multiple_of(8)
            && word(thread, sampler::THREAD_DOMAIN) == sampler
            && word(thread, sampler::THREAD_CONFIG) == sampler::NO_CONFIG
    });
    is_known == Some(true)
}

/// Each word points to a list of one finaliser, whose function is the number of the word.
fn final_info(functions: &impl Functions) -> Option<usize> {
    /// Words of `struct caml_final_info`, more than there are.
    const INFO: usize = 32;
    /// Offset of the length of the list.
    const YOUNG: usize = 2;
    // struct final: fun, val, offset
    let finalisers: Vec<[usize; 3]> = (0..WORDS).map(|n| [n << 1 | 1, 1, 0]).collect();
    let infos: Vec<[usize; INFO]> = finalisers
        .iter()
        .map(|finaliser| {
            let mut info = [0; INFO];
            info[0] = finaliser.as_ptr().expose_provenance();
            info[YOUNG] = 1;
            info
        })
        .collect();
    let mut state = State::new(|n| infos[n].as_ptr().expose_provenance());
    let value = functions.first_finaliser(&mut state)?;
    (value & 1 == 1 && value >> 1 < WORDS).then_some(value >> 1)
}
