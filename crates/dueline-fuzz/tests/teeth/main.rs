//! Goal: every target finds what it is there to find. A target that can find nothing says nothing by
//! finding nothing.
//! Method: the code under a target is replaced by one with a planted fault, as a bug would be; on the kept
//! corpus, or within a bounded number of inputs near it, the target must panic. That no target panics without
//! a fault is what `corpus.rs` tests.
#![cfg(test)]

mod histories;
mod kinds;
mod requests;
mod rows;
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind};

use dueline_fuzz::{Near, Target, corpus};

/// Runs a target with a fault in it until it is found.
fn is_found(fault: &str, target: &str, inputs_max: usize, run: impl Fn(&[u8])) {
    let it = Target::named(target);
    let kept = corpus(it).into_iter();
    let inputs = kept.chain(Near::new(it, 1).take(inputs_max));
    for (count, input) in inputs.enumerate() {
        if catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
            println!("{target}: {fault}: found by input {count}");
            return;
        }
    }
    panic!("{target} does not find in {inputs_max} inputs: {fault}");
}
