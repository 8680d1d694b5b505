//! heapline, around `System` as around any other allocator: without what it knows of the system's.

#[global_allocator]
static ALLOC: heapline::Alloc<std::alloc::System> = heapline::Alloc::new(std::alloc::System);

fn main() {
    heapline::trace_if_requested();
    heapline_allocators::run!();
}
