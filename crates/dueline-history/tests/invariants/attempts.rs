//! I13 and I14: attempts, back-off, and what cannot be run or read.

use dueline::rows::{DeadReason, QuarantineKey, TimerKey};
use dueline::timers::TimerKind;
use dueline_history::{Ended, EngineRules, Invariant, Octets, Retries, Run, What};

use super::story::{KIND, NODE, Row, Rows, Story, then};

fn retrying() -> Story {
    Story::new(EngineRules {
        retries: vec![Retries {
            kind: KIND,
            initial_ms: 100,
            max_ms: 300,
            jitter_percent: 20,
            attempts_max: Some(3),
        }],
        ..EngineRules::default()
    })
}

/// The timer was scheduled and is due; then the engine makes this of it.
fn moved(from: &Row, rows: Rows) -> Story {
    ran(from, None, rows)
}

fn ran(from: &Row, ended: Option<Ended>, rows: Rows) -> Story {
    then(&retrying(), |it| {
        it.user(from.put(), |_| {}).at(2_000);
        if let Some(ended) = ended {
            it.push(What::Fire(run_of(from, ended)));
        }
        it.engine(rows, |_| {});
    })
}

fn run_of(timer: &Row, ended: Ended) -> Run {
    Run {
        node: NODE,
        turn: 0,
        partition: "p".into(),
        kind: timer.key.kind.0,
        reference: Octets(timer.key.reference.clone()),
        generation: timer.key.generation,
        attempt: timer.header.attempt,
        due_ms: timer.header.original_due_ms,
        now_ms: 2_000,
        ended,
    }
}

fn timer() -> Row {
    Row::new("a", 7, 2_000)
}

/// Failed at 2,000 with so many attempts behind it, and due again after this.
fn failed(attempt: u16, delay_ms: u64, error: &str) -> Row {
    timer().failed(2_000, attempt, error).at(2_000 + delay_ms)
}

#[test]
fn i13_an_attempt_is_counted_once() {
    let to = |attempt: u16| moved(&timer(), timer().moved(&failed(attempt, 100, "no")));
    to(1).holds();
    to(0).breaks(Invariant::I13, "charged wrongly, 0 became 0");
    to(2).breaks(Invariant::I13, "charged wrongly, 0 became 2");
    // A claim counts it, and the failure of its call does not count it again.
    let claimed = timer().claimed(12_000);
    moved(&timer(), timer().moved(&claimed)).holds();
    moved(&claimed, claimed.moved(&failed(1, 100, "no"))).holds();
    moved(&claimed, claimed.moved(&failed(2, 200, "no")))
        .breaks(Invariant::I13, "charged wrongly, 1 became 2");
    let mut uncounted = claimed.clone();
    uncounted.header.attempt = 0;
    moved(&timer(), timer().moved(&uncounted)).breaks(Invariant::I13, "charged wrongly");
}

#[test]
fn i13_what_is_not_the_handlers_fault_is_not_counted() {
    let full = "the store is full";
    moved(&timer(), timer().moved(&failed(0, 100, full))).holds();
    moved(&timer(), timer().moved(&failed(1, 100, full)))
        .breaks(Invariant::I13, "charged wrongly, 0 became 1");
    let uncharged = Some(Ended::Uncharged);
    ran(
        &timer(),
        uncharged,
        timer().moved(&failed(0, 100, "no socket")),
    )
    .holds();
    ran(
        &timer(),
        uncharged,
        timer().moved(&failed(1, 100, "no socket")),
    )
    .breaks(Invariant::I13, "charged wrongly");
    // A clean stop gives the attempt of a claim back.
    let claimed = timer().claimed(12_000);
    moved(&claimed, claimed.moved(&timer().at(2_001))).holds();
    let mut kept = timer().at(2_001);
    kept.header.attempt = 1;
    moved(&claimed, claimed.moved(&kept)).breaks(Invariant::I13, "charged wrongly, 1 became 1");
}

#[test]
fn i13_back_off_is_what_the_policy_says_or_the_handler_named() {
    let after = |delay_ms: u64| moved(&timer(), timer().moved(&failed(1, delay_ms, "no")));
    after(99).breaks(Invariant::I13, "backs off for 99 ms");
    after(100).holds();
    after(128).holds();
    after(129).breaks(Invariant::I13, "backs off for 129 ms");
    let second = failed(1, 100, "no");
    let again = |delay_ms: u64| {
        let to = timer().failed(3_000, 2, "no").at(3_000 + delay_ms);
        moved(&second, second.moved(&to))
    };
    again(199).breaks(Invariant::I13, "backs off for 199 ms");
    again(200).holds();
    let named = Some(Ended::Retry {
        after_ms: Some(700),
    });
    ran(&timer(), named, timer().moved(&failed(1, 700, "later"))).holds();
    ran(&timer(), named, timer().moved(&failed(1, 100, "later")))
        .breaks(Invariant::I13, "backs off for 100 ms");
    let unnamed = Some(Ended::Retry { after_ms: None });
    ran(&timer(), unnamed, timer().moved(&failed(1, 100, "later"))).holds();
}

/// Found due at 2,000 by a clock that was then set back to 1,500: it is not due again before 2,000,
/// however short its back-off.
#[test]
fn i13_while_its_clock_is_set_back_a_timer_waits_until_it_was_found_due() {
    let found_due = |from: &Row, failed_at_ms: u64, to_ms: u64| {
        let to = timer().failed(failed_at_ms, 1, "no").at(to_ms);
        then(&retrying(), |it| {
            it.user(from.put(), |_| {})
                .at(failed_at_ms)
                .engine(from.moved(&to), |_| {});
        })
    };
    found_due(&timer(), 1_500, 2_001).holds();
    found_due(&timer(), 1_500, 2_008).holds();
    found_due(&timer(), 1_500, 2_009).breaks(Invariant::I13, "backs off for 509 ms");
    // No clock was set back: the back-off is the policy's.
    found_due(&timer(), 2_000, 2_501).breaks(Invariant::I13, "backs off for 501 ms");
    // The end of a claim lies ahead of every failure of its call.
    found_due(&timer().claimed(12_000), 1_500, 2_001)
        .breaks(Invariant::I13, "backs off for 501 ms");
}

#[test]
fn i13_a_timer_dies_of_its_attempts_when_they_are_used() {
    let before = |attempt: u16| timer().failed(1_000, attempt, "no");
    let died = |attempt: u16, reason: DeadReason| {
        let dead = timer().failed(2_000, attempt, "no");
        moved(
            &before(attempt - 1),
            before(attempt - 1).died(&dead, reason),
        )
    };
    died(3, DeadReason::Exhausted).holds();
    died(2, DeadReason::Exhausted).breaks(Invariant::I13, "died of 2 attempts of 3");
    died(2, DeadReason::Handler).holds();
    moved(&before(2), before(2).moved(&failed(3, 300, "no")))
        .breaks(Invariant::I13, "goes on after 3 attempts of 3");
    let dead = timer().failed(2_000, 3, "no");
    then(&died(3, DeadReason::Exhausted), |it| {
        let gone = dead.put_dead(DeadReason::Exhausted)[0].0.clone();
        let rows = [vec![(gone, None)], timer().at(2_100).put()].concat();
        it.engine(rows, |_| {});
    })
    .breaks(Invariant::I13, "a dead timer was moved");
}

#[test]
fn i13_a_call_goes_out_under_an_attempt_that_was_counted_before() {
    let claimed = timer().claimed(12_000);
    let mut run = run_of(&claimed, Ended::Done);
    let story = moved(&timer(), timer().moved(&claimed));
    let called = |story: &Story, run: &Run| {
        then(story, |it| {
            it.push(What::Called(run.clone()));
        })
    };
    called(&story, &run).holds();
    let unclaimed = then(&retrying(), |it| {
        it.user(timer().put(), |_| {})
            .at(2_000)
            .user(Rows::new(), |_| {});
    });
    called(&unclaimed, &run).breaks(Invariant::I13, "was not counted before");
    run.attempt = 2;
    called(&story, &run).breaks(Invariant::I13, "was not counted before");
}

#[test]
fn i14_a_node_leaves_kinds_alone_that_it_does_not_run() {
    let unknown = timer().kind(99);
    let story = then(&Story::plain(), |it| {
        it.schedule(1, &unknown).at(2_000);
    });
    then(&story, |it| {
        it.fire(&unknown);
    })
    .breaks(Invariant::I14, "a node that does not run it changed");
    then(&story, |it| {
        let later = unknown.clone().failed(2_000, 1, "no").at(2_500);
        it.engine(unknown.moved(&later), |_| {});
    })
    .breaks(Invariant::I14, "a node that does not run it changed");
    then(&story, |it| {
        it.push(What::Registry {
            node: NODE,
            kinds: vec![99],
        });
        it.fire(&unknown);
    })
    .holds();
    then(&story, |it| {
        it.engine(unknown.delete(), |commit| {
            commit.cuts.push(unknown.occurrence())
        });
    })
    .holds();
}

#[test]
fn i14_what_is_not_read_goes_to_the_dead_byte_for_byte() {
    let unread = Some(Ended::Undecodable);
    let dead = |reason: DeadReason| timer().died(&timer().failed(2_000, 0, "?"), reason);
    ran(&timer(), unread, dead(DeadReason::UndecodablePayload)).holds();
    ran(
        &timer(),
        unread,
        timer().died(&timer().failed(2_000, 1, "?"), DeadReason::Handler),
    )
    .breaks(Invariant::I14, "was not read died of it");
    then(&retrying(), |it| {
        it.user(timer().put(), |_| {}).at(2_000);
        it.push(What::Fire(run_of(&timer(), Ended::Undecodable)))
            .fire(&timer());
    })
    .breaks(Invariant::I14, "was not read vanished");
    let mut changed = failed(1, 100, "no");
    changed.payload = "other";
    moved(&timer(), timer().moved(&changed)).breaks(Invariant::I14, "changed the bytes");
    // Read again after a fault of the store, and this time it was.
    then(
        &ran(
            &timer(),
            unread,
            timer().moved(&failed(0, 100, "the store is full")),
        ),
        |it| {
            let again = failed(0, 100, "the store is full");
            it.at(2_100)
                .push(What::Fire(run_of(&again, Ended::Done)))
                .fire(&again);
        },
    )
    .holds();
}

/// The run could not read it, and the process died before that was committed: what is known of it is
/// that its last attempt was cut.
#[test]
fn i14_what_is_not_read_may_die_of_attempts_that_were_cut() {
    let cut = "attempt 3 was cut: its process stopped, or its answer was lost";
    let claimed = Row {
        header: timer().failed(1_000, 2, "no").header,
        ..timer()
    }
    .claimed(12_000);
    let died = |from: &Row, error: &str, reason: DeadReason| {
        let dead = timer().failed(2_000, 3, error);
        ran(from, Some(Ended::Undecodable), from.died(&dead, reason))
    };
    died(&claimed, cut, DeadReason::Exhausted).holds();
    died(&claimed, "no", DeadReason::Exhausted).breaks(Invariant::I14, "was not read died of it");
    died(&claimed, cut, DeadReason::Handler).breaks(Invariant::I14, "was not read died of it");
    // One that was never claimed has no run that could be cut.
    let unclaimed = timer().failed(1_000, 2, "no");
    died(&unclaimed, cut, DeadReason::Exhausted).breaks(Invariant::I14, "was not read died of it");
}

#[test]
fn i14_a_row_that_does_not_decode_is_set_aside_byte_for_byte() {
    let key = TimerKey::lane_due_end(TimerKind(KIND), 1_999);
    let place = || Octets(QuarantineKey::of(&key).encode());
    let aside = |rows: Rows| {
        then(&Story::plain(), |it| {
            it.user(vec![((&key).into(), Some("bytes".into()))], |_| {});
            it.at(2_000)
                .engine([vec![((&key).into(), None)], rows].concat(), |_| {});
        })
    };
    aside(vec![(place(), Some("bytes".into()))]).holds();
    let numbered = Octets([place().0.as_ref(), &[1]].concat().into());
    aside(vec![(numbered, Some("bytes".into()))]).holds();
    aside(Vec::new()).breaks(Invariant::I14, "a malformed row vanished");
    aside(vec![(place(), Some("byte".into()))]).breaks(Invariant::I14, "a malformed row vanished");
    // A timer whose header does not decode: the dead row holds the whole value.
    let bare = |rows: Rows| {
        then(&Story::plain(), |it| {
            let key = timer().key.encode();
            it.user(vec![((&key).into(), Some("payload".into()))], |_| {});
            it.at(2_000)
                .engine([vec![(key.into(), None)], rows].concat(), |_| {});
        })
    };
    let dead = timer().failed(2_000, 0, "no header");
    bare(dead.put_dead(DeadReason::UndecodableHeader)).holds();
    bare(dead.put_dead(DeadReason::Handler)).breaks(Invariant::I14, "was changed");
    bare(timer().at(2_500).put()).breaks(Invariant::I14, "was changed");
}
