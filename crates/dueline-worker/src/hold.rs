//! Partitions that are left alone for a while, because the store refused them or their turns found
//! nothing to do. Kept in memory: a new instance of the object simply tries again.

use std::time::Duration;

use dueline::ordered::OrderedMap;
use dueline::store::Partition;

/// How long after its end a hold is forgotten, with the number of times it has been doubled.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(120);

/// How a partition's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// It may be looked at whenever it has a wake.
    Well,
    /// The store refused a read or a write.
    Refused,
    /// The store had no room; room may come at any moment.
    Full,
    /// It did nothing and left a wake that is due.
    Fruitless,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Duration,
    times: u32,
}

/// The partitions that are held back, each until a time of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Holds(OrderedMap<Partition, Hold>);

impl Holds {
    /// Takes note of a turn.
    pub(crate) fn ended(&mut self, partition: &Partition, end: TurnEnd, now: Duration) {
        if end == TurnEnd::Well {
            self.end(partition);
            return;
        }
        // A partition whose timers were all cancelled has no further turn that would end its hold.
        self.0
            .retain(|_, hold| hold.until.saturating_add(FORGOTTEN_AFTER) > now);
        let hold = self.0.entry(partition.clone()).or_insert(Hold {
            until: Duration::ZERO,
            times: 0,
        });
        hold.times = hold.times.saturating_add(1);
        hold.until = now.saturating_add(length(end, hold.times));
    }

    /// The partition is left alone no longer.
    pub(crate) fn end(&mut self, partition: &Partition) {
        self.0.remove(partition);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is left of a partition's hold.
    pub(crate) fn left(&self, partition: &Partition, now: Duration) -> Duration {
        self.0
            .get(partition)
            .map_or(Duration::ZERO, |hold| hold.until.saturating_sub(now))
    }
}

/// 1 s, doubling to 60 s, or to 5 s for want of room; what was fruitless waits from its second time on,
/// 10 ms, doubling to 1 s.
fn length(end: TurnEnd, times: u32) -> Duration {
    let (first, most, doublings) = match end {
        TurnEnd::Well => return Duration::ZERO,
        TurnEnd::Refused => (1_000_u64, 60_000, times.saturating_sub(1)),
        TurnEnd::Full => (1_000, 5_000, times.saturating_sub(1)),
        TurnEnd::Fruitless if times < 2 => return Duration::ZERO,
        TurnEnd::Fruitless => (10, 1_000, times.saturating_sub(2)),
    };
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    Duration::from_millis(first.saturating_mul(factor.max(1)).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_double_up_to_their_limit_and_end_with_a_turn_that_went_well() {
        let partition = Partition::new("p").unwrap();
        let mut holds = Holds::default();
        let mut lengths = |end, turns: usize| -> Vec<u128> {
            holds.ended(&partition, TurnEnd::Well, Duration::ZERO);
            let each = (0..turns).map(|_| {
                holds.ended(&partition, end, Duration::ZERO);
                holds.left(&partition, Duration::ZERO).as_millis()
            });
            each.collect()
        };
        let refused = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
        assert_eq!(lengths(TurnEnd::Refused, 8), refused);
        assert_eq!(lengths(TurnEnd::Full, 4), [1_000, 2_000, 4_000, 5_000]);
        assert_eq!(lengths(TurnEnd::Fruitless, 4), [0, 10, 20, 40]);
        assert_eq!(lengths(TurnEnd::Fruitless, 80).last(), Some(&1_000));
        holds.ended(&partition, TurnEnd::Well, Duration::ZERO);
        assert!(holds.is_empty());
    }

    #[test]
    fn a_hold_that_nobody_ends_is_forgotten() {
        let [gone, other] = ["gone", "other"].map(|name| Partition::new(name).unwrap());
        let mut holds = Holds::default();
        holds.ended(&gone, TurnEnd::Refused, Duration::ZERO);
        holds.ended(&other, TurnEnd::Refused, Duration::from_secs(120));
        assert_eq!(holds.0.len(), 2);
        holds.ended(&other, TurnEnd::Refused, Duration::from_secs(121));
        assert_eq!(holds.0.len(), 1);
    }
}
