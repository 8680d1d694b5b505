//! Loops on all cores.

use std::sync::{Mutex, PoisonError};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Calls a function with each number below `count`, on all cores, and returns the results in order.
pub(crate) fn map<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    for_each(count, &|number| {
        let result = f(number);
        *results[number]
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(result);
    });
    results
        .into_iter()
        .filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

/// Not generic: the compiler makes some ten copies of a loop out of each closure that it hands to rayon, which was half
/// of the time that this crate takes to compile. A call by pointer per part of a loop costs nothing.
fn for_each(count: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(f);
}
