//! I8 to I11: what ticks do, in what order and how soon.

use dueline::rows::{PauseKey, PauseRow};
use dueline::timers::TimerKind;
use dueline_history::{Budget, Commit, EngineRules, Invariant, KindCounts, Tick, What};

use super::story::{KIND, NODE, Row, Rows, Story, then};

fn live(rules: EngineRules) -> Story {
    then(&Story::new(rules), |it| {
        it.push(What::Phase { liveness: true });
    })
}

fn bounded() -> EngineRules {
    EngineRules {
        lateness_ms: Some(100),
        ..EngineRules::default()
    }
}

fn phase(story: &mut Story, liveness: bool) {
    story.push(What::Phase { liveness });
}

#[test]
fn i8_a_timer_is_served_within_the_bound_of_its_due() {
    let timer = Row::new("a", 7, 2_000);
    let story = then(&live(bounded()), |it| {
        it.schedule(1, &timer);
    });
    let fired = |story: &Story, at_ms: u64| {
        then(story, |it| {
            it.at(at_ms).fire(&timer);
        })
    };
    fired(&story, 2_100).holds();
    fired(&story, 2_101).breaks(Invariant::I8, "was served 1 ms later");
    // Faults excuse it, until they are over.
    let faulty = then(&story, |it| phase(it, false));
    fired(&faulty, 9_000).holds();
    let healed = then(&faulty, |it| {
        it.at(5_000);
        phase(it, true);
    });
    fired(&healed, 5_100).holds();
    fired(&healed, 5_101).breaks(Invariant::I8, "was served 1 ms later");
    // A retry is late by its own due, and one that is never served is late in the end.
    let later = timer.clone().failed(2_050, 1, "no").at(2_500);
    let retried = then(&story, |it| {
        it.at(2_050).engine(timer.moved(&later), |_| {});
    });
    then(&retried, |it| {
        it.at(2_600).fire(&later);
    })
    .holds();
    then(&retried, |it| {
        it.at(2_601).push(What::Mark { name: "end".into() });
    })
    .breaks(Invariant::I8, "was not served within the bound");
}

#[test]
fn i8_what_cannot_run_is_not_late() {
    let timer = Row::new("a", 7, 2_000);
    let pause = PauseKey {
        kind: TimerKind(KIND),
    };
    let row = PauseRow { since_ms: 1_000 };
    let paused: Rows = vec![(pause.encode().into(), Some(row.encode().into()))];
    let story = then(&live(bounded()), |it| {
        it.schedule(1, &timer).user(paused.clone(), |_| {});
        it.at(5_000).push(What::Mark {
            name: "later".into(),
        });
    });
    story.holds();
    let resumed = |at_ms: u64| {
        then(&story, |it| {
            it.user(vec![(pause.encode().into(), None)], |_| {});
            it.at(at_ms).fire(&timer);
        })
    };
    resumed(5_100).holds();
    resumed(5_101).breaks(Invariant::I8, "was served 1 ms later");
    let registered = |at_ms: u64| {
        then(&live(bounded()), |it| {
            let unknown = timer.clone().kind(99);
            it.schedule(1, &unknown).at(5_000);
            it.push(What::Registry {
                node: NODE,
                kinds: vec![99],
            });
            it.at(at_ms).fire(&unknown);
        })
    };
    registered(5_100).holds();
    registered(5_101).breaks(Invariant::I8, "was served 1 ms later");
}

fn budget() -> Budget {
    Budget {
        fired: 3,
        per_kind: 2,
        scanned: 10,
        elapsed_ms: 50,
    }
}

fn tick(partition: &'static str, turn: u64) -> Tick {
    Tick {
        node: NODE,
        turn,
        partition: partition.into(),
        began_ms: 1_000,
        elapsed_ms: 10,
        budget: budget(),
        kinds: Vec::new(),
        quarantined: 0,
        scanned: 0,
        stopped_on_budget: false,
        held_back: false,
        next_wake_ms: None,
    }
}

fn runs(kind: u8, fired: u64) -> KindCounts {
    KindCounts {
        kind,
        fired,
        ..KindCounts::default()
    }
}

#[test]
fn i9_the_ticks_of_a_turn_keep_its_budget() {
    let ticked = |ticks: &[Tick]| {
        let rules = EngineRules {
            budget: Some(budget()),
            overrun_ms: 20,
            ..EngineRules::default()
        };
        then(&Story::new(rules), |it| {
            for tick in ticks {
                it.push(What::Tick(tick.clone()));
            }
        })
    };
    let with = |turn: u64, change: &dyn Fn(&mut Tick)| {
        let mut tick = tick("p", turn);
        change(&mut tick);
        tick
    };
    let two = with(1, &|it| it.kinds = vec![runs(16, 2)]);
    let one = with(1, &|it| it.kinds = vec![runs(17, 1)]);
    ticked(&[two.clone(), one.clone()]).holds();
    ticked(&[with(1, &|it| it.kinds = vec![runs(16, 3)])])
        .breaks(Invariant::I9, "3 runs of kind 16 in one turn");
    ticked(&[two.clone(), one.clone(), one.clone()]).breaks(Invariant::I9, "4 runs in one turn");
    let next_turn = with(2, &|it| it.kinds = vec![runs(17, 2)]);
    ticked(&[two, one, next_turn]).holds();
    ticked(&[with(1, &|it| it.scanned = 14)]).holds();
    ticked(&[with(1, &|it| it.scanned = 15)]).breaks(Invariant::I9, "15 rows read in one turn");
    ticked(&[with(1, &|it| it.elapsed_ms = 70)]).holds();
    ticked(&[with(1, &|it| it.elapsed_ms = 71)]).breaks(Invariant::I9, "took longer than 70 ms");
    ticked(&[with(1, &|it| it.budget.fired = 4)]).breaks(Invariant::I9, "a budget over");
}

#[test]
fn i10_a_partition_that_is_due_waits_for_few_ticks_of_others() {
    let rules = EngineRules {
        turns_max: Some(2),
        ..EngineRules::default()
    };
    let timer = Row::new("a", 7, 2_000);
    let in_q = |commit: &mut Commit| commit.partition = "q".into();
    let story = then(&live(rules), |it| {
        it.user(timer.put(), in_q);
        for turn in 1..9 {
            it.push(What::Tick(tick("p", turn)));
        }
        it.at(2_000);
    });
    story.holds();
    let others = |ticks: u64| {
        then(&story, |it| {
            for turn in 10..10 + ticks {
                it.push(What::Tick(tick("p", turn)));
            }
        })
    };
    let served = |ticks: u64| {
        then(&others(ticks), |it| {
            it.push(What::Tick(tick("q", 99)));
        })
    };
    served(3).holds();
    served(4).breaks(Invariant::I10, "q waited for 3 ticks of others");
    others(3).holds();
    others(4).breaks(Invariant::I10, "q waited for 3 ticks of others to the end");
    // It waits no more once its timer is gone.
    then(&others(2), |it| {
        it.user(timer.delete(), in_q);
        for turn in 20..29 {
            it.push(What::Tick(tick("p", turn)));
        }
    })
    .holds();
    // Ticked and due still, it waits anew.
    then(&served(3), |it| {
        for turn in 120..123 {
            it.push(What::Tick(tick("p", turn)));
        }
    })
    .breaks(Invariant::I10, "to the end");
}

#[test]
fn i11_timers_of_one_tick_take_effect_in_the_order_of_their_keys() {
    let rules = || EngineRules {
        kinds_in_order: vec![KIND],
        ..EngineRules::default()
    };
    let [first, second] = [Row::new("b", 7, 2_000), Row::new("a", 8, 2_001)];
    let story = |rules: EngineRules| {
        then(&Story::new(rules), |it| {
            it.schedule(1, &first).schedule(2, &second).at(3_000);
        })
    };
    let fired = |story: Story, order: [(&Row, u64); 2]| {
        then(&story, |it| {
            for (timer, turn) in order {
                it.engine(timer.delete(), |commit| {
                    commit.effects.push(timer.effect());
                    commit.turn = turn;
                });
            }
        })
    };
    fired(story(rules()), [(&first, 1), (&second, 1)]).holds();
    let wrong = [(&second, 1), (&first, 1)];
    fired(story(rules()), wrong).breaks(Invariant::I11, "took effect behind a later one");
    fired(story(rules()), [(&second, 1), (&first, 2)]).holds();
    fired(story(EngineRules::default()), wrong).holds();
}
