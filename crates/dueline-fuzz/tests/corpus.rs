//! Goal: no target breaks a promise, on what the fuzzer has kept and near it, with any compiler.
//! Method: every target over its corpus, then over mutations of it that follow from a fixed seed.
//! `DUELINE_FUZZ_INPUTS` asks for more of them, `DUELINE_FIRST_SEED` for others.
#![cfg(test)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use dueline_fuzz::{Near, TARGETS, Target, corpus};

fn number(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a whole number"),
        Err(_) => usual,
    }
}

/// Runs a target; a finding ends the test with its input.
fn run(target: Target, input: &[u8], origin: &str) {
    let ran = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    assert!(
        ran.is_ok(),
        "{}, {origin}: a finding, told above, on {}",
        target.name,
        input.escape_ascii()
    );
}

#[test]
fn no_target_finds_anything_in_its_corpus() {
    for target in TARGETS {
        for (place, input) in corpus(target).iter().enumerate() {
            run(target, input, &format!("corpus file {place}"));
        }
    }
}

#[test]
fn no_target_finds_anything_near_its_corpus() {
    let inputs = number("DUELINE_FUZZ_INPUTS", 1_500);
    let seed = number("DUELINE_FIRST_SEED", 1);
    for target in TARGETS {
        for (input, bytes) in (0..inputs).zip(Near::new(target, seed)) {
            run(target, &bytes, &format!("seed {seed}, input {input}"));
        }
    }
}

#[test]
fn the_fuzzer_knows_every_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for target in TARGETS {
        let name = target.name;
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        let program = folder.join(format!("fuzz_targets/{name}.rs"));
        let program = fs::read_to_string(program).unwrap();
        let call = format!("dueline_fuzz::{name}(data)");
        assert!(program.contains(&call), "{name} does not call its target");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
}
