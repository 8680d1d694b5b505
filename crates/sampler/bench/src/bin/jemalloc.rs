//! jemalloc, with its own profiler if `_RJEM_MALLOC_CONF` says so.

#[global_allocator]
static ALLOC: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    heapline_allocators::run!();
}
