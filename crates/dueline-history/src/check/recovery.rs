//! I17, recovery is idempotent: what was recovered twice is what was recovered once.

use super::{Checker, Findings, Invariant, Seen};
use crate::What;

#[derive(Debug, Default)]
pub(super) struct Recovery;

impl Checker for Recovery {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        if let What::Recovered { once, twice } = &seen.event.what
            && once != twice
        {
            let text = format!("one recovery left {once:016x}, two left {twice:016x}");
            broken.add(Invariant::I17, seen.index, text);
        }
    }
}
