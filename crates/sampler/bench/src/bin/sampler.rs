//! heapline, around the system's allocator. A trace is written if `MEMTRACE` is set.

#[global_allocator]
static ALLOC: heapline::Alloc = heapline::Alloc::system();

fn main() {
    heapline::trace_if_requested();
    heapline_allocators::run!();
}
