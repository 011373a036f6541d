//! Drawing generations: growing within a process, apart between processes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use dueline::runtime::Runtime;
use dueline_testkit::{ManualClock, SequenceEntropy, test_runtime};

fn runtime(clock: &ManualClock, seed: u64) -> Runtime {
    Runtime::new(
        Arc::new(clock.clone()),
        Arc::new(clock.clone()),
        Arc::new(SequenceEntropy::new(seed)),
    )
}

#[test]
fn generations_of_one_process_only_grow_whatever_the_clock_does() {
    let clock = ManualClock::new(1_700_000_000_000);
    let runtime = test_runtime(&clock);
    let mut last = 0;
    for n in 0..10_000 {
        let generation = runtime.draw_generation();
        assert!(generation > last);
        last = generation;
        match n % 50 {
            0 => clock.advance_ms(1),
            25 => clock.jump_wall_ms(-3),
            _ => {}
        }
    }
}

#[test]
fn generations_hold_the_millisecond_above_20_bits_and_18_of_them_are_random() {
    let clock = ManualClock::new(1_700_000_000_000);
    let mut low_bits = BTreeSet::new();
    for seed in 0..2_000 {
        let generation = runtime(&clock, seed * 7_919).draw_generation();
        assert_eq!(generation >> 20, 1_700_000_000_000);
        let random = generation & ((1 << 20) - 1);
        assert!(random < 1 << 18, "the room above is for a burst");
        low_bits.insert(random);
    }
    assert!(
        low_bits.len() > 1_950,
        "{} of 2,000 processes are apart",
        low_bits.len()
    );
    assert!(
        low_bits.last().unwrap() > &(1 << 17),
        "all 18 bits are used"
    );
}

#[test]
fn a_burst_of_one_millisecond_does_not_reach_the_next() {
    let clock = ManualClock::new(1_700_000_000_000);
    let runtime = test_runtime(&clock);
    for _ in 0..10_000 {
        runtime.draw_generation();
    }
    clock.advance_ms(1);
    assert_eq!(runtime.draw_generation() >> 20, 1_700_000_000_001);
}

#[test]
fn a_clock_before_1970_or_beyond_44_bits_still_draws_growing_generations() {
    for wall_ms in [-5, i64::MAX] {
        let runtime = test_runtime(&ManualClock::new(wall_ms));
        let first = runtime.draw_generation();
        let second = runtime.draw_generation();
        assert!(second > first);
        assert!(first >> 20 < 1 << 44);
    }
}

#[test]
fn threads_and_clones_of_one_runtime_draw_no_generation_twice() {
    let runtime = test_runtime(&ManualClock::new(1_000));
    let drawn: Vec<u64> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let runtime = runtime.clone();
                scope.spawn(move || -> Vec<u64> {
                    (0..2_000).map(|_| runtime.draw_generation()).collect()
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 8_000);
}
