//! Ordered maps and sets: those of the standard library, and on `wasm32` sorted vectors.
//!
//! Each pair of types costs the standard library's tree some 6 KiB of code, and a module is loaded at every
//! cold start of an object; there the maps are small, and mostly filled in order.

#[cfg(any(test, target_arch = "wasm32"))]
mod sorted;

#[cfg(target_arch = "wasm32")]
pub use sorted::{SortedMap as OrderedMap, SortedSet as OrderedSet};
#[cfg(not(target_arch = "wasm32"))]
pub use std::collections::{BTreeMap as OrderedMap, BTreeSet as OrderedSet};
