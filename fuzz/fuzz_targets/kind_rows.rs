#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dueline_fuzz::kind_rows(data));
