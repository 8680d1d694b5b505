#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heapline_fuzz_targets::spacetime::run(bytes));
