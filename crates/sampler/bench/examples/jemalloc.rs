//! With another allocator beneath: here jemalloc.

use std::collections::BTreeMap;

#[global_allocator]
static ALLOC: heapline::Alloc<tikv_jemallocator::Jemalloc> =
    heapline::Alloc::new(tikv_jemallocator::Jemalloc);

fn main() {
    heapline::trace_if_requested();
    let mut numbers = BTreeMap::new();
    for n in 0..300_000_u64 {
        numbers.insert(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n.to_string());
        if numbers.len() > 10_000 {
            numbers.pop_first();
        }
    }
    println!("{}", numbers.values().map(String::len).sum::<usize>());
}
