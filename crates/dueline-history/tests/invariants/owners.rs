//! I6, I7, I15 and I17: who may change a row, and what the rows of a store look like.

use dueline::rows::{DeadReason, PauseKey, PauseRow, TimerKey};
use dueline::timers::TimerKind;
use dueline_history::{Commit, EngineRules, Invariant, LaneWake, VerbName, What};

use super::story::{KIND, Row, Rows, Story, then};

#[test]
fn i6_the_engine_changes_only_what_was_there_just_before() {
    let timer = Row::new("a", 7, 2_000);
    let story = then(&Story::plain(), |it| {
        it.schedule(1, &timer).at(2_000);
    });
    let later = timer.clone().failed(2_000, 1, "no").at(2_500);
    then(&story, |it| {
        it.engine(timer.moved(&later), |_| {});
    })
    .holds();
    let gone = then(&story, |it| {
        it.cancel(2, &timer);
    });
    then(&gone, |it| {
        it.engine(timer.delete(), |_| {});
    })
    .breaks(Invariant::I6, "that was not there was moved or removed");
    // A user's own write is not guarded by anybody but the user.
    then(&gone, |it| {
        it.user(timer.delete(), |_| {});
    })
    .holds();
    then(&gone, |it| {
        it.verb(3, VerbName::Cancel, &timer);
        it.user(timer.delete(), |commit| commit.request = Some(3));
    })
    .breaks(Invariant::I6, "that was not there was moved or removed");
    let mut other = timer.clone();
    other.header.attempt = 1;
    then(&story, |it| {
        it.engine(other.put(), |_| {});
    })
    .breaks(Invariant::I6, "was put over another");
}

#[test]
fn i6_a_late_commit_of_an_old_owner_changes_nothing_that_a_newer_one_wrote_since() {
    let timer = Row::new("a", 7, 2_000).named();
    let later = timer.clone().failed(2_000, 1, "no").at(2_500);
    let story = then(&Story::plain(), |it| {
        it.schedule(1, &timer).at(2_010);
        it.engine(timer.moved(&later), |commit| commit.epoch = 2);
        it.at(2_600);
    });
    let late = |asked_ms: u64| {
        then(&story, |it| {
            it.engine(later.delete(), |commit: &mut Commit| {
                commit.effects.push(later.effect());
                commit.landed_late = true;
                commit.asked_ms = Some(asked_ms);
            });
        })
    };
    late(2_010).holds();
    late(2_009).breaks(Invariant::I6, "changed what a newer one had written since");
}

fn kept() -> Story {
    Story::new(EngineRules {
        wakes_kept: true,
        ..EngineRules::default()
    })
}

fn wake(kind: u8, at_ms: u64) -> LaneWake {
    LaneWake { kind, at_ms }
}

#[test]
fn i7_every_lane_has_a_wake_at_its_first_row_after_every_commit() {
    let [timer, other] = [
        Row::new("a", 7, 2_000),
        Row::new("b", 8, 3_000).kind(KIND + 1),
    ];
    let put = |wakes: &[LaneWake]| {
        then(&kept(), |it| {
            it.user([timer.put(), other.put()].concat(), |commit| {
                commit.wakes = wakes.to_vec()
            });
        })
    };
    put(&[wake(KIND, 2_000), wake(KIND + 1, 3_000)]).holds();
    put(&[wake(KIND, 1_000), wake(KIND + 1, 3_000), wake(KIND, 5_000)]).holds();
    put(&[wake(KIND, 2_000)]).breaks(Invariant::I7, "the lane of kind 17 has no wake");
    put(&[wake(KIND, 2_001), wake(KIND + 1, 3_000)]).breaks(Invariant::I7, "due at 2000");
    then(&Story::plain(), |it| {
        it.user(timer.put(), |_| {});
    })
    .holds();
    // One that became durable together with the next leaves the wakes to it.
    then(&kept(), |it| {
        it.user(timer.put(), |commit| commit.has_more = true);
        it.user(other.put(), |commit| {
            commit.wakes = vec![wake(KIND, 2_000), wake(KIND + 1, 3_000)];
        });
    })
    .holds();
    // What is overdue may be looked at now.
    then(&kept(), |it| {
        it.at(2_500)
            .user(timer.put(), |commit| commit.wakes = vec![wake(KIND, 2_500)]);
    })
    .holds();
    // A malformed row is due at what its bytes say.
    let malformed = TimerKey::lane_due_end(TimerKind(KIND), 1_999);
    then(&kept(), |it| {
        let rows = vec![(malformed.into(), Some("".into()))];
        it.user(rows, |commit| commit.wakes = vec![wake(KIND, 2_001)]);
    })
    .breaks(Invariant::I7, "due at 2000");
}

#[test]
fn i7_a_paused_lane_needs_no_wake_and_one_that_is_resumed_does() {
    let timer = Row::new("a", 7, 2_000);
    let pause = PauseKey {
        kind: TimerKind(KIND),
    };
    let row = PauseRow { since_ms: 1_000 };
    let paused: Rows = vec![(pause.encode().into(), Some(row.encode().into()))];
    let resumed: Rows = vec![(pause.encode().into(), None)];
    let story = then(&kept(), |it| {
        it.user([paused.clone(), timer.put()].concat(), |_| {});
        it.scan(&[&paused, &timer.put()], |_| {});
    });
    story.holds();
    then(&story, |it| {
        it.user(resumed.clone(), |_| {});
    })
    .breaks(Invariant::I7, "has no wake");
    then(&story, |it| {
        it.user(resumed, |commit| commit.wakes = vec![wake(KIND, 2_000)]);
        it.scan(&[&timer.put()], |_| {});
    })
    .breaks(Invariant::I7, "has no wake");
}

#[test]
fn i15_a_name_points_at_its_timer_after_every_commit() {
    let timer = Row::new("a", 7, 2_000).named();
    let story = then(&Story::plain(), |it| {
        it.schedule(1, &timer);
    });
    then(&story, |it| {
        let dead = timer.clone().failed(2_000, 1, "told so");
        it.at(2_000)
            .engine(timer.died(&dead, DeadReason::Handler), |_| {});
    })
    .holds();
    then(&Story::plain(), |it| {
        it.user(timer.put()[..1].to_vec(), |_| {});
    })
    .breaks(Invariant::I15, "a name and its timer disagree");
    then(&story, |it| {
        let row = timer.delete()[..1].to_vec();
        it.at(2_000)
            .engine(row, |commit| commit.effects.push(timer.effect()));
    })
    .breaks(Invariant::I15, "a name and its timer disagree");
    then(&story, |it| {
        let later = timer.clone().failed(2_000, 1, "no").at(2_500);
        it.at(2_000)
            .engine(timer.moved(&later)[..2].to_vec(), |_| {});
    })
    .breaks(Invariant::I15, "a name and its timer disagree");
    then(&story, |it| {
        let second = Row::new("a", 8, 3_000).named();
        it.user(second.put(), |_| {});
    })
    .breaks(Invariant::I15, "a name and its timer disagree");
    let anonymous = Row::new("a", 7, 2_000);
    then(&Story::plain(), |it| {
        it.schedule(1, &anonymous);
        let named = anonymous.clone().named().failed(2_000, 1, "no").at(2_500);
        it.at(2_000).engine(anonymous.moved(&named), |_| {});
    })
    .breaks(Invariant::I15, "a move changed whether it is named");
}

#[test]
fn i15_a_store_holds_what_its_commits_wrote() {
    let row = |value: &'static str| -> Rows { vec![("row".into(), Some(value.into()))] };
    let story = then(&Story::plain(), |it| {
        it.user(row("one"), |_| {});
    });
    let read = |rows: &Rows| {
        then(&story, |it| {
            it.scan(&[rows], |_| {});
        })
    };
    read(&row("one")).holds();
    read(&row("two")).breaks(Invariant::I15, "with other bytes");
    read(&Rows::new()).breaks(Invariant::I15, "a row is not in the store");
    let more: Rows = vec![("more".into(), Some("".into()))];
    read(&[more, row("one")].concat()).breaks(Invariant::I15, "a row that nobody wrote");
    then(&story, |it| {
        it.scan(&[&row("one")], |scan| scan.rows.push(scan.rows[0].clone()));
    })
    .breaks(Invariant::I15, "not in the order");
    let at_rest = |is_at_rest: bool| {
        then(&story, |it| {
            it.scan(&[&row("one")], |scan| {
                scan.at_rest = is_at_rest;
                scan.wakes = vec![wake(KIND, 2_000)];
            });
        })
    };
    at_rest(false).holds();
    at_rest(true).breaks(Invariant::I15, "a wake of a lane that is empty");
}

#[test]
fn i17_two_recoveries_leave_what_one_left() {
    let recovered = |once: u64, twice: u64| {
        then(&Story::plain(), |it| {
            it.push(What::Recovered { once, twice });
        })
    };
    recovered(1, 1).holds();
    recovered(1, 2).breaks(Invariant::I17, "one recovery left");
}
