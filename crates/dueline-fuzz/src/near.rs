use std::fs;
use std::path::{Path, PathBuf};

use dueline_testkit::model::Random;

use crate::Target;

/// Longest input that is drawn; libFuzzer's limit is the same.
const INPUT_BYTES_MAX: usize = 4_096;

/// What the repository keeps for a target, in the order of the files' names.
///
/// # Panics
/// If it cannot be read, or there is nothing.
pub fn corpus(target: Target) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = root.join(target.name);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry of the folder").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no corpus", target.name);
    let read = |path: PathBuf| fs::read(path).expect("a readable file");
    paths.into_iter().map(read).collect()
}

/// Inputs near the corpus of a target, without an end, that follow from a seed.
#[derive(Debug)]
pub struct Near {
    corpus: Vec<Vec<u8>>,
    random: Random,
}

impl Near {
    /// The inputs of this seed.
    ///
    /// # Panics
    /// If there is no corpus.
    pub fn new(target: Target, seed: u64) -> Self {
        Self {
            corpus: corpus(target),
            random: Random::new(seed),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.below(end as u64) as usize
    }

    fn any_of_corpus(&mut self) -> usize {
        self.below(self.corpus.len())
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.below(5) {
            0 => input.insert(at, self.random.next_u64() as u8),
            1 if at < input.len() => input[at] ^= 1 << self.below(8),
            2 if at < input.len() => {
                let bytes = [0, 1, 0x7f, 0x80, 0xff, b'"', b'{'];
                input[at] = self.random.pick(&bytes);
            }
            3 => {
                let end = (at + self.below(17)).min(input.len());
                input.drain(at..end);
            }
            _ => {
                let other = self.any_of_corpus();
                let bytes = self.corpus[other].len();
                let from = self.below(bytes + 1);
                let to = from + self.below(bytes - from + 1);
                input.splice(at..at, self.corpus[other][from..to].iter().copied());
            }
        }
    }
}

impl Iterator for Near {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let from = self.any_of_corpus();
        let mut input = self.corpus[from].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        input.truncate(INPUT_BYTES_MAX);
        Some(input)
    }
}
