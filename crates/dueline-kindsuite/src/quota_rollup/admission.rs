//! Admitting within limits.

use dueline::kinds::quota_rollup::{Admission, Basis, Limits};
use dueline_testkit::block_on;

use super::{COORDINATOR, HOUR_MS, PERIOD_MS, Rig};
use crate::Make;

impl Rig {
    #[track_caller]
    fn ask<const N: usize>(
        &self,
        shard: &'static str,
        amounts: [u64; N],
        limits: &Limits,
    ) -> Admission {
        block_on(
            self.quotas
                .admit(&self.at(shard).partition, amounts, limits),
        )
        .unwrap()
    }

    #[track_caller]
    fn take<const N: usize>(
        &self,
        shard: &'static str,
        amounts: [u64; N],
        limits: &Limits,
    ) -> bool {
        let shard = self.at(shard).partition;
        block_on(self.quotas.charge_within(&shard, amounts, limits))
            .unwrap()
            .is_admitted()
    }
}

pub fn the_coordinator_admits_exactly(make: Make<'_>) {
    let rig = Rig::new(make);
    let limits = Limits::new([10, 100], [1]);
    rig.charge("s1", [4]);
    rig.run_for(&["s1"], PERIOD_MS);
    assert!(rig.take(COORDINATOR, [6, 100], &limits));
    let refused = rig.ask(COORDINATOR, [0, 1], &limits);
    let Admission::Refused {
        counter: 1,
        basis: Basis::Exact,
        window_ends_at_ms,
    } = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(window_ends_at_ms, rig.window().end_ms());
    assert!(!rig.take(COORDINATOR, [1], &limits));
    assert!(rig.take(COORDINATOR, [0, 0], &limits));
    rig.world.advance_ms(HOUR_MS);
    assert!(
        rig.take(COORDINATOR, [10], &limits),
        "the next window is new"
    );
}

pub fn a_shard_without_a_view_admits_under_its_own_limit(make: Make<'_>) {
    let rig = Rig::new(make);
    let limits = Limits::new([100], [5]);
    assert!(rig.take("s1", [5], &limits));
    let refused = rig.ask("s1", [1], &limits);
    assert!(
        matches!(
            refused,
            Admission::Refused {
                counter: 0,
                basis: Basis::Local,
                ..
            }
        ),
        "{refused:?}"
    );
    rig.run_for(&["s1"], PERIOD_MS);
    assert!(rig.take("s1", [95], &limits), "the view says what is left");
    assert!(!rig.take("s1", [1], &limits));
}

pub fn a_view_counts_what_the_others_had_charged(make: Make<'_>) {
    let rig = Rig::new(make);
    let limits = Limits::new([100], [5]);
    rig.charge("s1", [30]);
    rig.charge("s2", [50]);
    rig.run_for(&["s1", "s2"], 2 * PERIOD_MS);
    assert!(!rig.take("s1", [21], &limits));
    assert!(rig.take("s1", [15], &limits), "charged since it was pushed");
    assert!(!rig.take("s1", [6], &limits));
    assert!(rig.take("s1", [5], &limits));
    let usage = block_on(rig.quotas.usage(&rig.at("s1").partition)).unwrap();
    assert_eq!(usage.total.as_array(), [100, 0, 0, 0]);
}

pub fn a_view_of_more_than_two_periods_ago_admits_under_the_local_limit(make: Make<'_>) {
    let rig = Rig::new(make);
    let limits = Limits::new([100], [5]);
    rig.charge("s1", [4]);
    rig.run_for(&["s1"], PERIOD_MS);
    rig.world.advance_ms(2 * PERIOD_MS);
    assert!(matches!(
        rig.ask("s1", [2], &limits),
        Admission::Admitted {
            basis: Basis::View { .. }
        }
    ));
    rig.world.advance_ms(1);
    assert!(matches!(
        rig.ask("s1", [2], &limits),
        Admission::Refused {
            basis: Basis::Stale { .. },
            ..
        }
    ));
    assert!(rig.take("s1", [1], &limits), "under the local limit");
    assert!(!rig.take("s1", [1], &limits));
}

/// What a view knows to be used stays used, though it is old and the local limit has room.
pub fn a_stale_view_still_refuses_what_was_used_up(make: Make<'_>) {
    let rig = Rig::new(make);
    let limits = Limits::new([100], [50]);
    rig.charge("s1", [1]);
    rig.charge("s2", [99]);
    rig.run_for(&["s1", "s2"], 2 * PERIOD_MS);
    rig.world.advance_ms(10 * PERIOD_MS);
    assert!(!rig.take("s1", [1], &limits));
}

pub fn a_refusal_writes_nothing(make: Make<'_>) {
    let rig = Rig::new(make);
    assert!(!rig.take("s1", [2], &Limits::new([1], [1])));
    rig.assert_gone(&["s1", COORDINATOR]);
}

/// The bound that is promised: a total exceeds its limit at most by what the other shards admit in three
/// periods.
pub fn the_overshoot_is_what_the_others_admit_in_three_periods(make: Make<'_>) {
    let rig = Rig::new(make);
    let shards = ["s1", "s2", "s3"];
    let limits = Limits::new([3_000], [20]);
    let (mut total, mut admitted) = (0_u64, Vec::new());
    for second in 0..3_000_u64 {
        rig.world.advance_ms(1_000);
        for (number, shard) in shards.into_iter().enumerate() {
            // Roll-ups at most a few seconds late, each shard at its own time.
            if second % 4 == number as u64 {
                rig.tick(shard);
            }
            let want = 1 + (second + number as u64) % 2;
            if rig.take(shard, [want], &limits) {
                total += want;
                admitted.push((second, shard, want));
            }
        }
    }
    let (last, by, _) = *admitted.last().unwrap();
    assert!(last < 2_900, "the limit was never reached: {total}");
    let bound: u64 = admitted
        .iter()
        .filter(|(second, shard, _)| *shard != by && second + 3 * PERIOD_MS / 1_000 >= last)
        .map(|(_, _, amount)| amount)
        .sum();
    assert!(
        total > 3_000 && total <= 3_000 + bound,
        "{total} of 3,000, with at most {bound} more"
    );
}
