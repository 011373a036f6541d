//! Each difference that is meant, shown: both engines do the same work and really differ.
//!
//! Method: the smallest case of each, one or two ticks; what either side leaves is asserted in full, so
//! that a difference that goes away on one side is noticed and its name can be taken off the list.
#![cfg(test)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use dueline::timers::RetryPolicy;
use dueline_compare::{
    Act, After, BACK_OFF, Budget, Fault, Id, KINDS, Ours, Reference, Scenario, Script, Step,
    UNKNOWN_KIND,
};

const NOW_MS: u64 = 1_700_000_000_000;

struct Pair {
    ours: Ours,
    theirs: Reference,
    step: Step,
}

impl Pair {
    fn of(act: Act) -> Self {
        Self::on(&Scenario::plain(0), act)
    }

    fn on(scenario: &Scenario, act: Act) -> Self {
        Self::scripted(scenario, &Script::always(act))
    }

    fn scripted(scenario: &Scenario, script: &Arc<Script>) -> Self {
        let pair = Self {
            ours: Ours::new(scenario, script),
            theirs: Reference::new(scenario, script),
            step: Step {
                tick: 0,
                now_ms: NOW_MS,
                scheduled: Vec::new(),
                malformed: Vec::new(),
                fault: None,
            },
        };
        pair.ours.prepare(&pair.step);
        pair.theirs.prepare(&pair.step);
        pair
    }

    fn put(&self, kind: u8, reference: &str, due_ms: u64) -> Id {
        let id = Id::new(kind, reference.to_owned());
        self.ours.schedule(&id, due_ms, &Bytes::new());
        self.theirs.schedule(&id, due_ms, &Bytes::new());
        id
    }

    fn tick(&mut self) -> (After, After) {
        (self.ours.tick(&self.step), self.theirs.tick(&self.step))
    }

    /// The next tick, at this time; what the last one left beside timers is gone.
    fn next_at(&mut self, now_ms: u64) -> (After, After) {
        self.step.tick += 1;
        self.step.now_ms = now_ms;
        self.ours.tidy();
        self.theirs.tidy();
        self.ours.prepare(&self.step);
        self.theirs.prepare(&self.step);
        self.tick()
    }
}

fn due_ms(after: &After, id: &Id) -> Option<u64> {
    after.rows.get(id).map(|row| row.due_ms)
}

fn attempt(after: &After, id: &Id) -> Option<u16> {
    after.rows.get(id).map(|row| row.attempt)
}

#[test]
fn order_within_one_due_is_that_of_scheduling_here_and_of_references_there() {
    let mut pair = Pair::of(Act::Done);
    let (b, a) = (pair.put(16, "b", NOW_MS), pair.put(16, "a", NOW_MS));
    let (ours, theirs) = pair.tick();
    assert_eq!(ours.log, [b.clone(), a.clone()]);
    assert_eq!(theirs.log, [a, b]);
}

#[test]
fn budgets_are_dealt_to_lanes_here_and_eaten_by_the_first_due_there() {
    let scenario = Scenario {
        budget: Budget {
            fired: 4,
            ..Budget::AMPLE
        },
        ..Scenario::plain(0)
    };
    let mut pair = Pair::on(&scenario, Act::Done);
    for number in 0..10 {
        pair.put(16, &format!("first-{number}"), NOW_MS - 10);
    }
    let behind = pair.put(17, "behind", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counts.fired, theirs.counts.fired), (4, 4));
    assert!(ours.effects.contains(&behind));
    assert!(!theirs.effects.contains(&behind));
}

#[test]
fn deferred_counts_what_was_read_here_and_every_row_over_the_cap_there() {
    let scenario = Scenario {
        caps: [Some(2), None, None],
        ..Scenario::plain(0)
    };
    let mut pair = Pair::on(&scenario, Act::Done);
    for number in 0..100 {
        pair.put(16, &format!("{number:02}"), NOW_MS - 100 + number);
    }
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counts.fired, theirs.counts.fired), (2, 2));
    assert_eq!(theirs.counts.deferred, 98);
    assert!(ours.counts.deferred < 98, "{:?}", ours.counts);
}

#[test]
fn attempts_are_counted_on_here_and_stop_at_eight_there_with_the_same_delays() {
    let mut pair = Pair::of(Act::Fail);
    let id = pair.put(16, "fails", NOW_MS);
    let (mut ours, mut theirs) = pair.tick();
    for failures in 1..=12u16 {
        assert_eq!(due_ms(&ours, &id), due_ms(&theirs, &id));
        assert_eq!(attempt(&ours, &id), Some(failures));
        assert_eq!(attempt(&theirs, &id), Some(failures.min(8)));
        (ours, theirs) = pair.next_at(due_ms(&ours, &id).unwrap());
    }
}

#[test]
fn a_reschedule_into_the_past_is_floored_here_and_runs_again_at_once_there() {
    let mut pair = Pair::of(Act::Past(1_000));
    let id = pair.put(16, "past", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!(due_ms(&ours, &id), Some(NOW_MS + 1));
    assert_eq!(due_ms(&theirs, &id), Some(NOW_MS - 1_000));
    // More rows than a page: there they are met again in the same tick.
    let mut pair = Pair::of(Act::Past(0));
    for number in 0..100 {
        pair.put(16, &format!("{number:02}"), NOW_MS - 200 + number);
    }
    let (ours, theirs) = pair.tick();
    assert_eq!(ours.runs.len(), 100);
    assert!(theirs.runs.len() > 100, "{}", theirs.runs.len());
}

#[test]
fn a_reschedule_to_the_same_due_is_accepted_here_and_a_failure_there() {
    let mut pair = Pair::of(Act::SameDue);
    let id = pair.put(16, "same", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counts.fired, theirs.counts.failed), (1, 1));
    assert_eq!(
        (due_ms(&ours, &id), attempt(&ours, &id)),
        (Some(NOW_MS + 1), Some(0))
    );
    assert_eq!(
        (due_ms(&theirs, &id), attempt(&theirs, &id)),
        (Some(NOW_MS + 5_000), Some(1))
    );
}

#[test]
fn a_lost_guard_is_planned_again_here_and_moved_by_five_seconds_there() {
    let mut pair = Pair::of(Act::LoseOnce);
    let id = pair.put(16, "raced", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counts.fired, ours.runs.len()), (1, 2));
    assert_eq!((theirs.counts.raced, theirs.runs.len()), (1, 1));
    assert_eq!(
        (due_ms(&ours, &id), due_ms(&theirs, &id)),
        (None, Some(NOW_MS + 5_000))
    );
    for act in [Act::LoseAlways, Act::Late] {
        let mut pair = Pair::of(act);
        let id = pair.put(16, "lost", NOW_MS);
        let (ours, theirs) = pair.tick();
        assert_eq!((ours.counts.failed, ours.runs.len()), (1, 4), "{act:?}");
        assert_eq!(
            (
                theirs.counts.raced + theirs.counts.failed,
                theirs.runs.len()
            ),
            (1, 1)
        );
        assert_eq!(ours.rows[&id], theirs.rows[&id]);
    }
}

#[test]
fn handlers_behind_one_that_lost_its_guard_run_again_in_a_group_and_once_there() {
    let seeds = (0..2_000).map(|seed| Scenario {
        group_max: 64,
        races: true,
        ..Scenario::plain(seed)
    });
    // The first seed in which a timer loses its guard before one that is done.
    let (first, second) = (Id::new(16, "a"), Id::new(16, "b"));
    let scenario = seeds.into_iter().find(|scenario| {
        let script = Script::new(scenario.clone());
        script.act(0, &first) == Act::LoseOnce && script.act(0, &second) == Act::Done
    });
    let scenario = scenario.unwrap();
    let script = Script::new(scenario.clone());
    let mut pair = Pair::scripted(&scenario, &script);
    pair.put(16, "a", NOW_MS - 1);
    pair.put(16, "b", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.runs_of(&second), theirs.runs_of(&second)), (2, 1));
    assert_eq!(ours.log, [first, second]);
}

#[test]
fn a_batch_of_more_than_92_operations_fails_here_and_commits_there_up_to_98() {
    for (operations, here, there) in [(92, 1, 1), (93, 0, 1), (98, 0, 1), (99, 0, 0)] {
        let mut pair = Pair::of(Act::Operations(operations));
        pair.put(16, "bulk", NOW_MS);
        let (ours, theirs) = pair.tick();
        assert_eq!(
            (ours.counts.fired, theirs.counts.fired),
            (here, there),
            "{operations}"
        );
    }
}

#[test]
fn a_batch_that_writes_its_own_row_is_refused_here_and_loses_the_write_there() {
    let mut pair = Pair::of(Act::OwnRow);
    let id = pair.put(16, "own", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counts.failed, attempt(&ours, &id)), (1, Some(1)));
    assert_eq!((theirs.counts.fired, theirs.rows.get(&id)), (1, None));
}

#[test]
fn an_unavailable_store_holds_the_lane_here_and_costs_an_attempt_there() {
    let mut pair = Pair::of(Act::Done);
    let (first, second) = (pair.put(16, "a", NOW_MS - 1), pair.put(16, "b", NOW_MS));
    pair.step.fault = Some(Fault::Refused(first.clone()));
    let (ours, theirs) = pair.tick();
    assert_eq!(ours.rows.len(), 2);
    assert_eq!((ours.counts.held, attempt(&ours, &first)), (1, Some(0)));
    assert_eq!(
        (theirs.counts.failed, attempt(&theirs, &first)),
        (1, Some(1))
    );
    assert!(theirs.effects.contains(&second) && !ours.effects.contains(&second));
}

#[test]
fn a_doubtful_commit_is_read_again_here_and_counts_as_failed_there() {
    let mut pair = Pair::of(Act::Count);
    let id = pair.put(16, "doubt", NOW_MS);
    pair.step.fault = Some(Fault::AnswerLost(id));
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counter, theirs.counter), (1, 1), "once on both sides");
    assert_eq!(
        (ours.counts.doubtful, ours.counts.failed, ours.wake_ms),
        (1, 0, None)
    );
    assert_eq!((theirs.counts.failed, theirs.counts.raced), (1, 1));
    assert_eq!(theirs.wake_ms, Some(NOW_MS + 5_000), "for nothing");
}

#[test]
fn time_is_read_for_each_fire_here_and_once_a_tick_there() {
    let mut pair = Pair::of(Act::Slow(700));
    pair.put(16, "a", NOW_MS - 1);
    pair.put(16, "b", NOW_MS);
    let (ours, theirs) = pair.tick();
    let times = |after: &After| after.runs.iter().map(|run| run.now_ms).collect::<Vec<_>>();
    assert_eq!(times(&ours), [NOW_MS, NOW_MS + 700]);
    assert_eq!(times(&theirs), [NOW_MS, NOW_MS]);
}

#[test]
fn rows_of_an_unknown_kind_are_left_here_and_moved_there() {
    let mut pair = Pair::of(Act::Done);
    let id = pair.put(UNKNOWN_KIND, "unknown", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!((due_ms(&ours, &id), ours.wake_ms), (Some(NOW_MS), None));
    assert_eq!(
        (due_ms(&theirs, &id), theirs.wake_ms),
        (Some(NOW_MS + 5_000), Some(NOW_MS + 5_000))
    );
}

#[test]
fn malformed_rows_are_set_aside_here_and_looked_at_for_ever_there() {
    let mut pair = Pair::of(Act::Done);
    let tag = Bytes::from_static(b"bad");
    pair.ours.put_malformed(&tag, NOW_MS);
    pair.theirs.put_malformed(&tag, NOW_MS);
    let (ours, theirs) = pair.tick();
    assert!(ours.set_aside.contains(&tag) && ours.malformed.is_empty());
    assert_eq!((ours.wake_ms, theirs.wake_ms), (None, Some(NOW_MS + 5_000)));
    assert_eq!(theirs.malformed.get(&tag), Some(&NOW_MS));
}

#[test]
fn the_wake_is_the_first_row_here_and_five_seconds_away_after_a_race_there() {
    let mut pair = Pair::of(Act::Vanish);
    pair.put(16, "gone", NOW_MS);
    pair.put(16, "later", NOW_MS + 60_000);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counts.raced, theirs.counts.raced), (1, 1));
    assert_eq!(ours.wake_ms, Some(NOW_MS + 60_000));
    assert_eq!(theirs.wake_ms, Some(NOW_MS + 5_000));
    // A malformed row hides the next timer there.
    let mut pair = Pair::of(Act::Done);
    pair.theirs
        .put_malformed(&Bytes::from_static(b"bad"), NOW_MS + 100);
    pair.ours
        .put_malformed(&Bytes::from_static(b"bad"), NOW_MS + 100);
    pair.put(16, "later", NOW_MS + 200);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.wake_ms, theirs.wake_ms), (Some(NOW_MS + 200), None));
}

#[test]
fn a_stored_wake_waits_for_the_clock_here_and_every_tick_reads_all_there() {
    let scenario = Scenario {
        woken: true,
        ..Scenario::plain(0)
    };
    let mut pair = Pair::on(&scenario, Act::Done);
    let id = pair.put(16, "overdue", NOW_MS - 10_000);
    let (ours, theirs) = pair.next_at(NOW_MS - 5_000);
    assert_eq!(
        (ours.counts.fired, theirs.counts.fired),
        (0, 1),
        "the clock has stepped back"
    );
    assert_eq!(ours.wake_ms, Some(NOW_MS));
    let (ours, _) = pair.next_at(NOW_MS);
    assert!(
        ours.effects.contains(&id),
        "no later than the time of its scheduling"
    );
}

#[test]
fn the_same_timer_scheduled_twice_is_two_here_and_overwritten_there() {
    let mut pair = Pair::of(Act::Count);
    pair.put(16, "twice", NOW_MS);
    pair.put(16, "twice", NOW_MS);
    assert_eq!(pair.ours.doubles(), 1);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counter, theirs.counter), (2, 1));
}

#[test]
fn a_panic_fails_its_timer_here_and_escapes_the_tick_there() {
    let mut pair = Pair::of(Act::Panic);
    let (first, second) = (pair.put(16, "a", NOW_MS - 1), pair.put(17, "b", NOW_MS));
    let ours = pair.ours.tick(&pair.step);
    assert_eq!(ours.counts.failed, 2);
    let (theirs, step) = (&pair.theirs, &pair.step);
    assert!(catch_unwind(AssertUnwindSafe(|| theirs.tick(step))).is_err());
    let theirs = pair.theirs.look();
    assert_eq!(
        (attempt(&theirs, &first), attempt(&theirs, &second)),
        (Some(0), Some(0))
    );
}

#[test]
fn a_scan_limit_of_one_fires_here_and_never_there() {
    let scenario = Scenario {
        budget: Budget {
            scanned: 1,
            ..Budget::AMPLE
        },
        ..Scenario::plain(0)
    };
    let mut pair = Pair::on(&scenario, Act::Done);
    pair.put(16, "one", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counts.fired, theirs.counts.fired), (1, 0));
}

#[test]
fn a_step_back_of_the_clock_leaves_the_time_limit_here_and_switches_it_off_there() {
    let scenario = Scenario {
        budget: Budget {
            elapsed_ms: 10,
            ..Budget::AMPLE
        },
        ..Scenario::plain(0)
    };
    let ran = |act| {
        let mut pair = Pair::on(&scenario, act);
        for number in 0..20 {
            pair.put(16, &format!("{number:02}"), NOW_MS - 3_600_000 + number);
        }
        let (ours, theirs) = pair.tick();
        (ours.runs.len(), theirs.runs.len())
    };
    assert_eq!(
        ran(Act::Slow(4)),
        (3, 3),
        "while the clock is sound both stop after 10 ms"
    );
    assert_eq!(ran(Act::SlowBackward(4)), (3, 20));
}

#[test]
fn a_failing_burst_is_spread_by_the_default_policy_here_and_comes_back_at_once_there() {
    let script = Script::always(Act::Fail);
    let scenario = Scenario::plain(0);
    let mut pair = Pair::scripted(&scenario, &script);
    pair.ours = Ours::with(&scenario, &script, RetryPolicy::default(), |store| store);
    pair.ours.prepare(&pair.step);
    for number in 0..100 {
        pair.put(KINDS[0], &format!("{number:02}"), NOW_MS);
    }
    let (ours, theirs) = pair.tick();
    let distinct = |after: &After| {
        let dues: std::collections::BTreeSet<u64> =
            after.rows.values().map(|row| row.due_ms).collect();
        (dues.len(), dues.first().copied(), dues.last().copied())
    };
    assert_eq!(
        distinct(&theirs),
        (1, Some(NOW_MS + 5_000), Some(NOW_MS + 5_000))
    );
    let (dues, first, last) = distinct(&ours);
    assert!(dues > 50, "{dues}");
    assert!(first >= Some(NOW_MS + 5_000) && last <= Some(NOW_MS + 6_000));
}

#[test]
fn a_full_store_charges_no_attempt_here_and_one_there() {
    let script = Script::always(Act::Operations(60));
    let scenario = Scenario::plain(0);
    let mut pair = Pair::scripted(&scenario, &script);
    pair.ours = Ours::with(&scenario, &script, BACK_OFF, |store| {
        store.with_capacity_limit(200)
    });
    pair.theirs = Reference::with(&scenario, &script, |store| store.with_capacity_limit(200));
    pair.ours.prepare(&pair.step);
    pair.theirs.prepare(&pair.step);
    let id = pair.put(16, "full", NOW_MS);
    let (ours, theirs) = pair.tick();
    assert_eq!((ours.counts.failed, theirs.counts.failed), (1, 1));
    assert_eq!(
        (attempt(&ours, &id), attempt(&theirs, &id)),
        (Some(0), Some(1))
    );
    assert_eq!(due_ms(&ours, &id), due_ms(&theirs, &id));
}
