//! heapline, around jemalloc. A trace is written if `MEMTRACE` is set.

#[global_allocator]
static ALLOC: heapline::Alloc<tikv_jemallocator::Jemalloc> =
    heapline::Alloc::new(tikv_jemallocator::Jemalloc);

fn main() {
    heapline::trace_if_requested();
    heapline_allocators::run!();
}
