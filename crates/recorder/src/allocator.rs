//! Settings of the C library's allocator, for programs that read large traces.

/// Blocks of this many bytes and more are mapped one by one, and unmapped when they are freed.
const MAPPED: libc::c_int = 1 << 20;

/// Makes the allocator return large blocks to the system as soon as they are freed.
///
/// By default, its threshold for that grows up to 32 MiB with the blocks that were freed, and each thread keeps tens of
/// megabytes of temporary memory. A program that answers requests for hours should not.
pub fn return_freed_blocks() {
    // SAFETY: mallopt only changes settings of the allocator, under the allocator's lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
    }
}
