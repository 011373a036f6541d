//! A test of the comparison: what is not meant is found.
//!
//! Goal: no rule is so wide that a bug of the engine passes under it. Method: a tick of both engines on
//! which they agree, then one thing of ours is falsified at a time, as a bug would.
#![cfg(test)]

use std::sync::Arc;

use bytes::Bytes;
use dueline::store::Batch;
use dueline_compare::judge::{Both, judge};
use dueline_compare::{
    Act, After, Id, KINDS, Ours, Reference, Scenario, Script, Step, UNKNOWN_KIND,
};
use dueline_testkit::{commit, partition};

const NOW_MS: u64 = 1_700_000_000_000;

struct Tick {
    scenario: Scenario,
    script: Arc<Script>,
    step: Step,
    before: After,
    ours: After,
    theirs: After,
}

impl Tick {
    /// Three timers due at three times, one to come, one of a kind without a handler; all do this.
    fn of(act: Act) -> Self {
        Self::in_groups_of(1, act)
    }

    fn in_groups_of(group_max: u16, act: Act) -> Self {
        let scenario = Scenario {
            group_max,
            ..Scenario::plain(0)
        };
        let script = Script::always(act);
        let mut scheduled: Vec<(Id, u64, Bytes)> = (0..3)
            .map(|n| {
                (
                    Id::new(KINDS[n], format!("t{n}")),
                    NOW_MS - 3 + n as u64,
                    Bytes::new(),
                )
            })
            .collect();
        scheduled.push((Id::new(KINDS[0], "later"), NOW_MS + 9, Bytes::new()));
        let step = Step {
            tick: 0,
            now_ms: NOW_MS,
            scheduled,
            malformed: Vec::new(),
            fault: None,
        };
        let mut ours = Ours::new(&scenario, &script);
        let theirs = Reference::new(&scenario, &script);
        ours.prepare(&step);
        theirs.prepare(&step);
        let before = theirs.look();
        let (ours, theirs) = (ours.tick(&step), theirs.tick(&step));
        Self {
            scenario,
            script,
            step,
            before,
            ours,
            theirs,
        }
    }

    fn judged(&self) -> Result<dueline_compare::judge::Found, String> {
        judge(&Both {
            scenario: &self.scenario,
            script: &self.script,
            step: &self.step,
            before: &self.before,
            ours: &self.ours,
            theirs: &self.theirs,
        })
    }

    /// What the judge says once our side of the tick has been falsified.
    fn falsified(act: Act, falsify: impl FnOnce(&mut After)) -> String {
        let mut tick = Self::of(act);
        tick.judged().expect("the engines agree as they are");
        falsify(&mut tick.ours);
        tick.judged().expect_err("the falsified tick must not pass")
    }
}

fn id(n: usize) -> Id {
    Id::new(KINDS[n], format!("t{n}"))
}

#[test]
fn engines_that_agree_pass_without_a_difference() {
    for act in [Act::Done, Act::Count, Act::Fail, Act::Retry, Act::Vanish] {
        let found = Tick::of(act).judged().unwrap();
        assert!(found.is_empty(), "{act:?}: {found:?}");
    }
}

#[test]
fn a_timer_that_was_lost_is_found() {
    let why = Tick::falsified(Act::Done, |ours| {
        ours.rows.remove(&Id::new(KINDS[0], "later"));
    });
    assert!(why.contains("did not run"), "{why}");
}

#[test]
fn an_effect_that_did_not_commit_is_found() {
    Tick::falsified(Act::Done, |ours| {
        ours.effects.remove(&id(1));
        ours.log.retain(|found| *found != id(1));
        ours.counts.fired -= 1;
    });
}

#[test]
fn a_timer_that_fires_and_stays_is_found() {
    Tick::falsified(Act::Done, |ours| {
        let later = ours.rows[&Id::new(KINDS[0], "later")].clone();
        ours.rows.insert(id(1), later);
    });
}

#[test]
fn a_timer_that_fires_before_its_due_is_found() {
    Tick::falsified(Act::Done, |ours| {
        let early = Id::new(KINDS[0], "later");
        ours.rows.remove(&early);
        ours.effects.insert(early.clone());
        ours.log.push(early);
        ours.counts.fired += 1;
    });
}

#[test]
fn a_back_off_of_another_length_is_found() {
    Tick::falsified(Act::Fail, |ours| {
        ours.rows.get_mut(&id(0)).unwrap().due_ms += 1;
    });
}

#[test]
fn a_back_off_that_changes_due_attempt_or_payload_is_found() {
    Tick::falsified(Act::Fail, |ours| {
        ours.rows.get_mut(&id(0)).unwrap().original_ms += 1
    });
    Tick::falsified(Act::Fail, |ours| {
        ours.rows.get_mut(&id(0)).unwrap().attempt += 1
    });
    Tick::falsified(Act::Fail, |ours| {
        ours.rows.get_mut(&id(0)).unwrap().payload = Bytes::from_static(b"?");
    });
}

#[test]
fn effects_out_of_the_order_of_their_dues_are_found() {
    let why = Tick::falsified(Act::Done, |ours| ours.log.swap(0, 2));
    assert!(why.contains("out of order"), "{why}");
}

#[test]
fn a_handler_that_runs_twice_is_found() {
    Tick::falsified(Act::Done, |ours| {
        let again = ours.runs[0].clone();
        ours.runs.push(again);
    });
}

#[test]
fn a_handler_that_a_group_runs_again_without_a_lost_guard_is_found() {
    let mut tick = Tick::in_groups_of(64, Act::Done);
    tick.judged().expect("the engines agree as they are");
    let again = tick.ours.runs[0].clone();
    tick.ours.runs.push(again);
    tick.judged().expect_err("nothing was lost");
}

#[test]
fn a_handler_that_is_told_another_due_is_found() {
    Tick::falsified(Act::Done, |ours| ours.runs[0].told_ms += 1);
}

#[test]
fn a_report_that_miscounts_is_found() {
    Tick::falsified(Act::Done, |ours| ours.counts.fired += 1);
    Tick::falsified(Act::Fail, |ours| ours.counts.failed -= 1);
    Tick::falsified(Act::Vanish, |ours| ours.counts.raced += 1);
    Tick::falsified(Act::Done, |ours| ours.counts.stopped = true);
    Tick::falsified(Act::Done, |ours| ours.counts.deferred += 1);
}

#[test]
fn a_lost_update_of_a_shared_row_is_found() {
    Tick::falsified(Act::Count, |ours| ours.counter -= 1);
}

#[test]
fn a_wake_that_is_late_or_missing_is_found() {
    Tick::falsified(Act::Done, |ours| ours.wake_ms = Some(NOW_MS + 10));
    Tick::falsified(Act::Done, |ours| ours.wake_ms = None);
}

#[test]
fn a_rule_holds_on_both_sides() {
    // Planned again three times and then moved: not moved twice, not done, not given up after two.
    Tick::falsified(Act::LoseAlways, |ours| {
        ours.rows.get_mut(&id(0)).unwrap().attempt += 1
    });
    Tick::falsified(Act::LoseAlways, |ours| {
        ours.rows.remove(&id(0));
    });
    Tick::falsified(Act::LoseAlways, |ours| {
        let last = ours.runs.iter().rposition(|run| run.id == id(0)).unwrap();
        ours.runs.remove(last);
    });
    // Floored right behind the tick, not later.
    Tick::falsified(Act::Past(5), |ours| {
        ours.rows.get_mut(&id(0)).unwrap().due_ms += 1
    });
}

#[test]
fn a_row_of_an_unknown_kind_that_is_written_is_found() {
    let mut tick = Tick::of(Act::Done);
    let unknown = Id::new(UNKNOWN_KIND, "unknown");
    let row = tick.before.rows[&id(0)].clone();
    tick.before.rows.insert(unknown.clone(), row.clone());
    let moved = dueline_compare::Row {
        due_ms: NOW_MS + 5_000,
        attempt: 1,
        ..row.clone()
    };
    tick.theirs.rows.insert(unknown.clone(), moved.clone());
    tick.ours.rows.insert(unknown.clone(), row);
    tick.judged().expect("left here, moved there");
    tick.ours.rows.insert(unknown, moved);
    tick.judged().expect_err("moved here");
}

/// The commits of our side are held to the invariants. A row that is removed behind their back is one
/// that a store has lost.
#[test]
fn what_our_store_loses_is_told_by_its_history() {
    let scenario = Scenario::plain(0);
    let script = Script::always(Act::Done);
    for loses in [false, true] {
        let mut ours = Ours::new(&scenario, &script);
        ours.schedule(&Id::new(KINDS[0], "lost"), NOW_MS, &Bytes::new());
        if loses {
            let partition = partition("compared");
            let (key, _) = ours.memory.rows(&partition).remove(0);
            commit(ours.memory.as_ref(), &partition, Batch::new().delete(key));
        }
        let told = ours.judge().err().unwrap_or_default();
        assert_eq!(told.contains("I1 at event"), loses, "{told}");
    }
}
