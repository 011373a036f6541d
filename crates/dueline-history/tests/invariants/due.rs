//! I3, I12 and I16: due times, recurrence, generations.

use dueline_history::{
    Ended, EngineRules, Invariant, Octets, Outcome, Recurring, Run, VerbName, What,
};

use super::story::{KIND, NODE, Row, Story, then};

#[test]
fn i3_an_effect_has_its_due_behind_it_by_the_store_and_by_the_true_time() {
    let timer = Row::new("a", 7, 2_000);
    let fired = |rules: EngineRules, true_ms: u64, store_ms: u64| {
        then(&Story::new(rules), |it| {
            it.schedule(1, &timer).at(true_ms);
            it.engine(timer.delete(), |commit| {
                commit.effects.push(timer.effect());
                commit.store_ms = store_ms;
            });
        })
    };
    let skewed = || EngineRules {
        skew_ms: Some(500),
        ..EngineRules::default()
    };
    fired(EngineRules::default(), 1_000, 2_000).holds();
    fired(EngineRules::default(), 2_000, 1_999).breaks(Invariant::I3, "took effect early");
    fired(skewed(), 1_500, 2_000).holds();
    fired(skewed(), 1_499, 2_000).breaks(Invariant::I3, "took effect early");
}

#[test]
fn i3_a_back_off_is_a_due_too_and_a_claim_keeps_it_when_the_clock_steps_back() {
    let timer = Row::new("a", 7, 2_000);
    let later = timer.clone().failed(2_000, 1, "no").at(2_500);
    let story = then(&Story::plain(), |it| {
        it.schedule(1, &timer)
            .at(2_000)
            .engine(timer.moved(&later), |_| {});
    });
    then(&story, |it| {
        it.at(2_500).fire(&later);
    })
    .holds();
    then(&story, |it| {
        it.at(2_499).fire(&later);
    })
    .breaks(Invariant::I3, "took effect early");
    let claimed = timer.clone().claimed(12_000);
    then(&Story::plain(), |it| {
        it.schedule(1, &timer)
            .at(2_000)
            .engine(timer.moved(&claimed), |_| {});
        it.engine(claimed.delete(), |commit| {
            commit.effects.push(claimed.effect());
            commit.store_ms = 1_500;
        });
    })
    .holds();
}

#[test]
fn i3_a_user_may_make_a_timer_fire_now_and_the_engine_may_not() {
    let timer = Row::new("a", 7, 2_000).named();
    let hurried = timer.clone().at(1_500);
    let by_user = then(&Story::plain(), |it| {
        let moved = (VerbName::FireNow, Outcome::Moved);
        it.schedule(1, &timer).at(1_500);
        it.request(2, moved, &hurried, timer.moved(&hurried));
    });
    let fired = |story: &Story, at_ms: u64| {
        then(story, |it| {
            it.at(at_ms).fire(&hurried);
        })
    };
    fired(&by_user, 1_500).holds();
    fired(&by_user, 1_499).breaks(Invariant::I3, "took effect early");
    let by_engine = then(&Story::plain(), |it| {
        let hurried = hurried.clone().failed(1_400, 1, "no");
        it.schedule(1, &timer).at(1_500);
        it.engine(timer.moved(&hurried), |_| {}).fire(&hurried);
    });
    by_engine.breaks(Invariant::I3, "took effect early");
}

#[test]
fn i3_a_call_goes_out_no_earlier() {
    let timer = Row::new("a", 7, 2_000);
    let claimed = timer.clone().claimed(12_000);
    let called = |store_ms: u64| {
        then(&Story::plain(), |it| {
            it.schedule(1, &timer).at(2_000);
            it.engine(timer.moved(&claimed), |commit| commit.store_ms = store_ms);
            it.push(What::Called(run_of(&claimed)));
        })
    };
    called(2_000).holds();
    called(1_999).breaks(Invariant::I3, "was called early");
}

fn run_of(timer: &Row) -> Run {
    Run {
        node: NODE,
        turn: 0,
        partition: "p".into(),
        kind: timer.key.kind.0,
        reference: Octets(timer.key.reference.clone()),
        generation: timer.key.generation,
        attempt: timer.header.attempt,
        due_ms: timer.header.original_due_ms,
        now_ms: timer.header.original_due_ms,
        ended: Ended::Done,
    }
}

fn recurring(may_skip: bool) -> Story {
    Story::new(EngineRules {
        recurring: vec![Recurring {
            kind: KIND,
            every_ms: 100,
            may_skip,
        }],
        ..EngineRules::default()
    })
}

#[test]
fn i12_the_next_due_counts_from_the_last_as_asked() {
    let timer = Row::new("a", 7, 2_000).named();
    let goes_on = |may_skip: bool, at_ms: u64, next_ms: u64| {
        then(&recurring(may_skip), |it| {
            let next = Row::new("a", 8, next_ms).named();
            it.schedule(1, &timer).at(at_ms).go_on(&timer, &next);
        })
    };
    goes_on(false, 2_030, 2_100).holds();
    goes_on(false, 2_030, 2_130).breaks(Invariant::I12, "which is not");
    goes_on(false, 2_230, 2_300).breaks(Invariant::I12, "which is not");
    goes_on(false, 2_030, 2_000).breaks(Invariant::I12, "which is not");
    goes_on(true, 2_230, 2_300).holds();
    goes_on(true, 2_200, 2_300).holds();
    goes_on(true, 2_199, 2_300).breaks(Invariant::I12, "which is not");
    goes_on(true, 2_030, 1_900).breaks(Invariant::I12, "which is not");
}

#[test]
fn i12_the_due_as_asked_is_kept_seen_and_written() {
    let timer = Row::new("a", 7, 2_000);
    let next = Row::new("a", 8, 3_000);
    let story = then(&Story::plain(), |it| {
        it.schedule(1, &timer).at(2_000);
    });
    // The key may lie later, floored behind the tick; the header says what was asked.
    then(&story, |it| {
        let past = Row::new("a", 8, 1_900).at(2_001);
        it.go_on(&timer, &past);
    })
    .holds();
    then(&story, |it| {
        it.engine(timer.moved(&next), |commit| {
            commit.effects.push(timer.effect());
            commit.effects[0].next_due_ms = Some(2_900);
        });
    })
    .breaks(Invariant::I12, "was to go on at 2900 and became");
    then(&story, |it| {
        it.engine(timer.delete(), |commit| {
            commit.effects.push(timer.effect());
            commit.effects[0].next_due_ms = Some(2_900);
        });
    })
    .breaks(Invariant::I12, "was to go on at 2900 and does not");
    then(&story, |it| {
        it.engine(timer.delete(), |commit| {
            commit.effects.push(timer.effect());
            commit.effects[0].due_ms = 2_001;
        });
    })
    .breaks(Invariant::I12, "its handler saw 2001 as its due");
    then(&story, |it| {
        let mut later = timer.clone().failed(2_000, 1, "no").at(2_500);
        later.header.original_due_ms = 2_500;
        it.engine(timer.moved(&later), |_| {});
    })
    .breaks(Invariant::I12, "changed the due as asked");
}

#[test]
fn i16_generations_of_a_process_only_grow() {
    let [first, second] = [Row::new("a", 7, 2_000), Row::new("b", 8, 2_000)];
    then(&Story::plain(), |it| {
        it.schedule(1, &first).schedule(2, &second);
    })
    .holds();
    then(&Story::plain(), |it| {
        it.schedule(1, &second).schedule(2, &first);
    })
    .breaks(Invariant::I16, "request 2 drew 7, after 8");
    // Two that overlap may end in either order.
    then(&Story::plain(), |it| {
        it.verb(2, VerbName::Schedule, &first).schedule(1, &second);
        it.user(first.put(), |commit| commit.request = Some(2))
            .ok(2, Outcome::Created, 7);
    })
    .holds();
    let goes_on_as = |generation: u64| {
        then(&Story::plain(), |it| {
            let [timer, next] = [Row::new("a", 9, 2_000), Row::new("a", generation, 3_000)];
            it.engine(timer.put(), |_| {})
                .at(2_000)
                .go_on(&timer, &next);
        })
    };
    goes_on_as(10).holds();
    goes_on_as(8).breaks(Invariant::I16, "goes on as 8");
}
