#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dueline_fuzz::times_and_spans(data));
