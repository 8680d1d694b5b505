//! Many blocks of a single byte. `heapline summary` tells their size as it is, not in words.
#![allow(clippy::print_stdout, reason = "it is a program that prints")]

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

/// A block of one byte.
#[expect(
    clippy::unnecessary_box_returns,
    reason = "the block is what this is about"
)]
#[inline(never)]
fn flag(n: u32) -> Box<bool> {
    std::hint::black_box(Box::new(n.is_multiple_of(3)))
}

fn main() {
    heapline::trace_if_requested();
    let flags: Vec<Box<bool>> = (0..10_000).map(flag).collect();
    println!("{}", flags.iter().filter(|flag| ***flag).count());
}
