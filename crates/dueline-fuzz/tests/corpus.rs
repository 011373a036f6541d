//! Goal: no target breaks a promise, on what the fuzzer has kept and near it, with any compiler.
//! Method: every target over its corpus, then over mutations of it that follow from a fixed seed.
//! `DUELINE_FUZZ_INPUTS` asks for more of them, `DUELINE_FIRST_SEED` for others.
#![cfg(test)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use dueline_fuzz::{TARGETS, Target};
use dueline_testkit::model::Random;

const INPUT_BYTES_MAX: usize = 4_096;

fn number(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a whole number"),
        Err(_) => usual,
    }
}

fn corpus(target: Target) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = root.join(target.name);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| fs::read(path).unwrap())
        .collect()
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

fn mutated(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let any = |random: &mut Random, below: usize| random.below(below as u64 + 1) as usize;
    let mut input = corpus[random.below(corpus.len() as u64) as usize].clone();
    for _ in 0..random.below(6) + 1 {
        let at = any(random, input.len());
        match random.below(5) {
            0 => input.insert(at, random.next_u64() as u8),
            1 if at < input.len() => input[at] ^= 1 << random.below(8),
            2 if at < input.len() => input[at] = random.pick(&[0, 1, 0x7f, 0x80, 0xff, b'"', b'{']),
            3 => {
                let end = (at + any(random, 16)).min(input.len());
                input.drain(at..end);
            }
            _ => {
                let other = &corpus[random.below(corpus.len() as u64) as usize];
                let from = any(random, other.len());
                let to = from + any(random, other.len() - from);
                input.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

#[test]
fn no_target_finds_anything_in_its_corpus() {
    for target in TARGETS {
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "{} has no corpus", target.name);
        for (place, input) in corpus.iter().enumerate() {
            run(target, input, &format!("corpus file {place}"));
        }
    }
}

#[test]
fn no_target_finds_anything_near_its_corpus() {
    let inputs = number("DUELINE_FUZZ_INPUTS", 1_500);
    let seed = number("DUELINE_FIRST_SEED", 1);
    for target in TARGETS {
        let corpus = corpus(target);
        let mut random = Random::new(seed);
        for input in 0..inputs {
            let bytes = mutated(&mut random, &corpus);
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
