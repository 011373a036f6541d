#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dueline_fuzz::row_keys(data));
