#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dueline_fuzz::damaged_kinds(data));
