//! The system's allocator alone.

#[global_allocator]
static ALLOC: std::alloc::System = std::alloc::System;

fn main() {
    heapline_allocators::run!();
}
