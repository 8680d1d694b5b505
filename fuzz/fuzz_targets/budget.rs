#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = heapline_fuzz_targets::budget::run(bytes);
});
