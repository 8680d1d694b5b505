//! Short-lived peaks. `heapline series` shows them, `heapline summary` what was alive at the highest.
#![allow(clippy::print_stdout, reason = "it is a program that prints")]

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

/// Reads a request, which takes a lot of memory for a moment.
fn parse(request: usize) -> usize {
    let words: Vec<String> = (0..20_000)
        .map(|n| format!("word {n} of {request}"))
        .collect();
    words.iter().map(String::len).sum()
}

/// The continuous background work.
fn wait(rounds: usize) -> usize {
    (0..rounds).map(|n| vec![n; 100].len()).sum()
}

fn main() {
    heapline::trace_if_requested();
    println!(
        "{}",
        (0..10).map(|n| wait(30_000) + parse(n)).sum::<usize>()
    );
}
