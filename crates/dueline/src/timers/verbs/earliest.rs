use crate::mutants::{Mutant, planted};
use crate::rows::{class, is_of_class, lane_head};
use crate::store::{Batch, Write};

/// How early a batch makes its partition wake: the earliest due among the timers it puts, in
/// milliseconds since 1970, or 0 if it resumes a kind. `None` if it makes nothing due.
///
/// For drivers that set an alarm before they commit. It may be earlier than needed, never later.
///
/// ```
/// use dueline::store::Batch;
/// use dueline::timers::earliest_timer_put;
///
/// assert_eq!(earliest_timer_put(&Batch::new().put("order/42", "paid")), None);
/// ```
pub fn earliest_timer_put(batch: &Batch) -> Option<u64> {
    batch
        .writes
        .iter()
        .filter_map(|write| match write {
            Write::Put(key, _) => lane_head(key).map(|head| head.due_ms),
            Write::Delete(_) if planted(Mutant::EarliestMissesResume) => None,
            Write::Delete(key) => is_of_class(key, class::PAUSE).then_some(0),
        })
        .min()
}
