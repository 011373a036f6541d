//! What one run looks at, by target.

use super::message::decode;
use super::target::Item;
use crate::kinds::outcome_delivery::ROWS_LOOKED_AT_MAX;
use crate::kinds::outcome_delivery::rows::Pending;
use crate::kinds::outcome_delivery::run::Ran;
use crate::kinds::outcome_delivery::walk::Walk;
use crate::kinds::row::Row;
use crate::mutants::{Mutant, planted};
use crate::store::{Partition, StoreError, Value};
use crate::timers::TimerCtx;

/// Most targets that one run applies anything to.
const TARGETS_MAX: usize = 16;
/// Most bytes of rows that one run looks at.
const LOOKED_AT_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// The outcomes for one target, in their order.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) target: Partition,
    pub(super) items: Vec<Item>,
    /// What is wrong with the outcome behind them, if it holds its target up.
    pub(super) malformed: Option<&'static str>,
}

/// Where the looking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookEnd {
    /// At the end of the pass.
    PassOver,
    /// Behind this sequence, as the run may do no more.
    Behind(u64),
    /// At an outcome of which not even the target is known: nothing passes it.
    Stuck(u64),
}

/// Groups what waits between the cursor and the end of the pass, without what is for blocked targets.
pub(super) async fn look(
    ctx: &TimerCtx<'_>,
    ran: &mut Ran,
    (rows_max, now_ms): (usize, u64),
) -> Result<(Vec<Group>, LookEnd), StoreError> {
    let progress = ran.progress.clone();
    let first = progress.cursor.saturating_add(1);
    let mut walk = Walk::new(&ran.summary.outbox, first, progress.pass_end);
    let mut groups: Vec<Group> = Vec::new();
    let (mut rows, mut items, mut bytes) = (0, 0, 0);
    while let Some((sequence, value)) = walk.next(ctx).await? {
        let here = LookEnd::Behind(sequence.saturating_sub(1));
        if rows == ROWS_LOOKED_AT_MAX || items == rows_max || bytes > LOOKED_AT_BYTES_MAX {
            return Ok((groups, here));
        }
        rows += 1;
        bytes += value.len();
        let (target, item) = match read(sequence, &value, ran, now_ms) {
            Ok(read) => read,
            Err(error) => {
                warn_stuck(ctx, ran, sequence, error);
                return Ok((groups, LookEnd::Stuck(sequence)));
            }
        };
        if progress.blocked.contains(&target) && !planted(Mutant::RelayPassesFailure) {
            continue;
        }
        let group = match groups.iter().position(|group| group.target == target) {
            Some(place) => groups.get_mut(place),
            None if groups.len() == TARGETS_MAX => return Ok((groups, here)),
            None => {
                groups.push(Group {
                    target,
                    items: Vec::new(),
                    malformed: None,
                });
                groups.last_mut()
            }
        };
        match (group, item) {
            (Some(group), _) if group.malformed.is_some() => {}
            (Some(group), Ok(item)) => {
                group.items.push(item);
                items += 1;
            }
            (Some(group), Err(error)) => {
                group.malformed = Some(error);
                warn_stuck(ctx, ran, sequence, error);
            }
            (None, _) => {}
        }
    }
    Ok((groups, LookEnd::PassOver))
}

type Read = (Partition, Result<Item, &'static str>);

/// The target of a row and what is for it; an error if not even the target is known.
fn read(sequence: u64, value: &Value, ran: &mut Ran, now_ms: u64) -> Result<Read, &'static str> {
    let pending = Pending::decode(value).map_err(|malformed| malformed.0)?;
    ran.note_age(pending.written_at_ms, now_ms);
    let (target, writes) = decode(&pending.outcome.body).map_err(|malformed| malformed.0)?;
    let item = writes.map(|writes| Item {
        sequence,
        bytes: pending.outcome.bytes(),
        writes,
    });
    Ok((target, item.map_err(|malformed| malformed.0)))
}

fn warn_stuck(ctx: &TimerCtx<'_>, ran: &Ran, sequence: u64, error: &str) {
    tracing::warn!(
        partition = %ctx.partition(),
        outbox = %ran.summary.outbox,
        sequence,
        error,
        "an outcome of a relay does not decode; what is behind it waits until it is set aside by hand"
    );
}
