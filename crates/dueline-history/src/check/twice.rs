//! I2, no effect twice: an occurrence takes effect in the commit that removes its row, and never comes
//! back.

use super::{Checker, Findings, Invariant, Seen};
use crate::book::Change;

#[derive(Debug, Default)]
pub(super) struct Twice;

impl Checker for Twice {
    fn take(&mut self, seen: &Seen<'_>, broken: &mut Findings) {
        let Some((commit, partition)) = seen.commit() else {
            return;
        };
        let mut broke = |text: String| broken.add(Invariant::I2, seen.index, text);
        for (occurrence, gone) in &seen.applied.after_the_end {
            if gone.had_effect {
                broke(format!("took effect twice: {occurrence:?}"));
            } else if !super::cancelled::is_final(seen, gone) {
                broke(format!("took effect when it was gone: {occurrence:?}"));
            }
        }
        for (place, mark) in commit.effects.iter().enumerate() {
            let of = &mark.occurrence;
            let earlier = commit.effects.get(..place).unwrap_or_default();
            if earlier.iter().any(|it| it.occurrence == *of) {
                broke(format!("took effect twice in one commit: {of:?}"));
            }
            let is_gone_now =
                |change: &Change| matches!(change, Change::Gone { from } if from.occurrence == *of);
            let was_gone = seen.applied.after_the_end.iter().any(|(it, _)| it == of);
            if !was_gone && !seen.applied.changes.iter().any(is_gone_now) {
                broke(format!("took effect, and its timer does not end: {of:?}"));
            }
        }
        for change in &seen.applied.changes {
            match change {
                Change::Twice { occurrence } => broke(format!("has two rows: {occurrence:?}")),
                Change::New { to } if partition.gone.contains_key(&to.occurrence) => {
                    broke(format!("came back from the gone: {:?}", to.occurrence));
                }
                Change::New { .. } | Change::Gone { .. } | Change::Moved { .. } => {}
            }
        }
    }
}
