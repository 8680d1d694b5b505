//! Seeds: two recordings of a program sample different blocks, unless they are given the same seed.
//!
//! OCaml's sampler always begins with the same random numbers. In OCaml 5 the numbers of a domain are made from the
//! number of its slot, which can be another one. OCaml 4 has no way in: so numbers are passed over.

use crate::gaps::split_mix;

/// The first sampler passes over fewer numbers than this, in some milliseconds. Recordings that use more numbers than
/// that each share most of them, at other blocks.
const FIRST: u64 = 1 << 20;
/// The numbers are made in blocks of so many, and a sampler begins with the next block.
const BLOCK: u64 = 64;

/// A seed that nobody can guess, short enough to be typed.
#[must_use]
pub fn random() -> u64 {
    let mut seed = [0; 4];
    // SAFETY: it has 4 bytes.
    unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    u32::from_ne_bytes(seed).into()
}

/// The seed of a part of a recording, such as a domain or a thread.
///
/// ```
/// use heapline_recorder::seed;
///
/// assert_eq!(seed::of_part(7, 1), seed::of_part(7, 1));
/// assert_ne!(seed::of_part(7, 1), seed::of_part(7, 2));
/// ```
#[must_use]
pub fn of_part(seed: u64, part: u64) -> u64 {
    let mut state = seed ^ part.wrapping_mul(0x2545_f491_4f6c_dd1d);
    split_mix(&mut state)
}

/// How many random numbers two samplers pass over: the first is stopped then, and the second samples.
#[must_use]
pub fn skips(seed: u64) -> [u64; 2] {
    let mut state = seed;
    let number = split_mix(&mut state);
    [number % FIRST, (number >> 32) % BLOCK]
}
