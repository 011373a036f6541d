//! I1 to I5: what becomes of a timer, and of a request.

use dueline::rows::{PauseKey, PauseRow};
use dueline::timers::TimerKind;
use dueline_history::{Invariant, Outcome, Policy, Source, Told, VerbName, What};

use super::story::{KIND, NODE, Row, Story, then};

fn scheduled(timer: &Row) -> Story {
    then(&Story::plain(), |story| {
        story.schedule(1, timer);
    })
}

#[test]
fn i1_a_timer_ends_with_its_effect_and_in_no_other_way() {
    let timer = Row::new("a", 7, 2_000).named();
    let story = scheduled(&timer);
    then(&story, |it| {
        it.at(2_000)
            .fire(&timer)
            .scan(&[], |scan| scan.at_rest = true);
    })
    .holds();
    then(&story, |it| {
        it.at(2_000).engine(timer.delete(), |_| {});
    })
    .breaks(Invariant::I1, "vanished without an effect");
    then(&story, |it| {
        it.user(timer.delete(), |commit| commit.source = Source::Store);
    })
    .breaks(Invariant::I1, "vanished by the store itself");
    let other = Row::new("b", 8, 2_000);
    then(&story, |it| {
        let rows = [other.put(), timer.delete()].concat();
        it.request(2, (VerbName::Schedule, Outcome::Created), &other, rows);
    })
    .breaks(Invariant::I1, "vanished by");
    // A handler's batch may remove another timer, and says so.
    then(&story, |it| {
        it.at(2_000).engine(timer.delete(), |commit| {
            commit.cuts.push(timer.occurrence())
        });
    })
    .holds();
}

#[test]
fn i1_what_was_acknowledged_is_there_and_what_is_there_is_found() {
    let timer = Row::new("a", 7, 2_000).named();
    let story = scheduled(&timer);
    then(&Story::plain(), |it| {
        it.verb(1, VerbName::Schedule, &timer)
            .user(timer.put(), |commit| commit.request = Some(1))
            .ok(1, Outcome::Created, 8);
    })
    .breaks(Invariant::I1, "acknowledged as 8 and not written");
    then(&story, |it| {
        it.verb(2, VerbName::Get, &timer).ok(2, Outcome::Found, 7);
    })
    .holds();
    then(&story, |it| {
        it.verb(2, VerbName::Get, &timer)
            .ok(2, Outcome::NotFound, 0);
    })
    .breaks(Invariant::I1, "was not found, and is there");
    // It fired while it was looked for.
    then(&story, |it| {
        it.at(2_000)
            .verb(2, VerbName::Get, &timer)
            .fire(&timer)
            .ok(2, Outcome::NotFound, 0);
    })
    .holds();
    then(&story, |it| {
        it.scan(&[&timer.put()], |_| {});
    })
    .holds();
    then(&story, |it| {
        let name = timer.put().split_off(1);
        it.scan(&[&name], |_| {});
    })
    .breaks(Invariant::I1, "is not in the store");
}

#[test]
fn i1_nothing_that_can_run_is_left_at_the_end() {
    let timer = Row::new("a", 7, 2_000);
    let left = |story: &Story, now_ms: u64| {
        then(story, |it| {
            it.at(now_ms)
                .scan(&[&timer.put()], |scan| scan.at_rest = true);
        })
    };
    let story = scheduled(&timer);
    left(&story, 1_999).holds();
    left(&story, 2_000).breaks(Invariant::I1, "is left at the end");
    then(&story, |it| {
        let pause = PauseKey {
            kind: TimerKind(KIND),
        };
        let row = PauseRow { since_ms: 1_000 };
        let rows = vec![(pause.encode().into(), Some(row.encode().into()))];
        it.user(rows.clone(), |_| {});
        it.at(2_000)
            .scan(&[&timer.put(), &rows], |scan| scan.at_rest = true);
    })
    .holds();
    let unknown = scheduled(&timer.clone().kind(99));
    then(&unknown, |it| {
        let rows = timer.clone().kind(99).put();
        it.at(2_000).scan(&[&rows], |scan| scan.at_rest = true);
    })
    .holds();
    then(&story, |it| {
        it.push(What::Stopped {
            node: NODE,
            crashed: false,
        });
        it.at(2_000)
            .scan(&[&timer.put()], |scan| scan.at_rest = true);
    })
    .holds();
}

#[test]
fn i2_an_occurrence_takes_effect_once_and_in_the_commit_that_ends_it() {
    let timer = Row::new("a", 7, 2_000);
    let effect = || timer.effect();
    let mut story = scheduled(&timer);
    story.at(2_000);
    let fired = then(&story, |it| {
        it.fire(&timer);
    });
    fired.holds();
    then(&fired, |it| {
        it.engine(Vec::new(), |commit| commit.effects.push(effect()));
    })
    .breaks(Invariant::I2, "took effect twice");
    then(&story, |it| {
        it.engine(timer.delete(), |commit| {
            commit.effects = vec![effect(), effect()]
        });
    })
    .breaks(Invariant::I2, "twice in one commit");
    then(&story, |it| {
        it.engine(Vec::new(), |commit| commit.effects.push(effect()));
    })
    .breaks(Invariant::I2, "its timer does not end");
    then(&fired, |it| {
        it.user(timer.put(), |_| {});
    })
    .breaks(Invariant::I2, "came back from the gone");
    then(&story, |it| {
        it.user(timer.clone().at(3_000).put(), |_| {});
    })
    .breaks(Invariant::I2, "has two rows");
    // Removed, and the removal not acknowledged yet.
    then(&story, |it| {
        it.verb(2, VerbName::Cancel, &timer)
            .user(timer.delete(), |commit| commit.request = Some(2))
            .engine(Vec::new(), |commit| commit.effects.push(effect()));
    })
    .breaks(Invariant::I2, "took effect when it was gone");
}

#[test]
fn i4_a_cancel_that_was_acknowledged_is_final() {
    let timer = Row::new("a", 7, 2_000).named();
    let story = then(&scheduled(&timer), |it| {
        it.cancel(2, &timer);
    });
    story.holds();
    then(&story, |it| {
        it.at(2_000)
            .engine(Vec::new(), |commit| commit.effects.push(timer.effect()));
    })
    .breaks(Invariant::I4, "after an acknowledged removal");
    // A replacement is one too.
    let next = Row::new("a", 8, 3_000).named();
    let replaced = then(&scheduled(&timer), |it| {
        let replace = (VerbName::Schedule, Outcome::Replaced);
        it.request(2, replace, &next, timer.moved(&next));
    });
    replaced.holds();
    then(&replaced, |it| {
        it.at(2_000)
            .engine(Vec::new(), |commit| commit.effects.push(timer.effect()));
    })
    .breaks(Invariant::I4, "after an acknowledged removal");
    then(&scheduled(&timer), |it| {
        it.verb(2, VerbName::Cancel, &timer)
            .user(vec![("row".into(), Some("".into()))], |commit| {
                commit.request = Some(2)
            })
            .ok(2, Outcome::Removed, 7);
    })
    .breaks(Invariant::I4, "acknowledged as removed and is there");
}

#[test]
fn i5_a_request_has_the_commits_that_its_answer_says() {
    let timer = Row::new("a", 7, 2_000);
    let fail = || Told::Fail { why: "full".into() };
    let asked = then(&Story::plain(), |it| {
        it.verb(1, VerbName::Schedule, &timer);
    });
    let put = |it: &mut Story| {
        it.user(timer.put(), |commit| commit.request = Some(1));
    };
    then(&asked, |it| {
        it.told(1, Told::Unknown);
    })
    .holds();
    then(&asked, |it| {
        it.told(1, Told::Unknown);
        it.user(timer.put(), |commit| {
            commit.request = Some(1);
            commit.landed_late = true;
        });
    })
    .holds();
    then(&asked, |it| {
        it.told(1, fail());
    })
    .holds();
    then(&asked, |it| {
        put(it);
        it.told(1, fail());
    })
    .breaks(Invariant::I5, "failed (full) and was committed");
    then(&asked, |it| {
        it.told(1, fail());
        put(it);
    })
    .breaks(Invariant::I5, "committed after it was told");
    then(&asked, |it| {
        it.ok(1, Outcome::Created, 7);
    })
    .breaks(Invariant::I5, "acknowledged (Created) and not committed");
    then(&asked, |it| {
        put(it);
        it.user(vec![("row".into(), Some("".into()))], |commit| {
            commit.request = Some(1)
        });
        it.ok(1, Outcome::Created, 7);
    })
    .breaks(Invariant::I5, "has two commits");
    then(&asked, |it| {
        put(it);
        it.ok(1, Outcome::NotFound, 0);
    })
    .breaks(Invariant::I5, "was told NotFound and was committed");
}

#[test]
fn i5_a_request_is_sent_and_answered_once_and_sees_what_was_there() {
    let timer = Row::new("a", 7, 2_000).named();
    let story = scheduled(&timer);
    then(&Story::plain(), |it| {
        it.told(1, Told::Unknown);
    })
    .breaks(Invariant::I5, "answered and never sent");
    then(&Story::plain(), |it| {
        it.user(Vec::new(), |commit| commit.request = Some(1));
    })
    .breaks(Invariant::I5, "which was never sent");
    then(&story, |it| {
        it.told(1, Told::Unknown);
    })
    .breaks(Invariant::I5, "answered twice");
    then(&story, |it| {
        it.verb(1, VerbName::Get, &timer);
    })
    .breaks(Invariant::I5, "used for two verbs");
    let saw = |story: &Story, generation: u64| {
        then(story, |it| {
            it.verb(3, VerbName::Get, &timer)
                .ok(3, Outcome::Found, generation);
        })
    };
    saw(&story, 7).holds();
    saw(&story, 9).breaks(Invariant::I5, "saw generation 9, which never was");
    let cancelled = then(&story, |it| {
        it.cancel(2, &timer);
    });
    saw(&cancelled, 7).breaks(Invariant::I5, "saw generation 7, which was gone");
    then(&story, |it| {
        it.verb(3, VerbName::Get, &timer)
            .cancel(2, &timer)
            .ok(3, Outcome::Found, 7);
    })
    .holds();
}

#[test]
fn i5_only_one_policy_keeps_what_is_there() {
    let timer = Row::new("a", 7, 2_000).named();
    let kept_by = |policy| {
        then(&scheduled(&timer), |it| {
            it.verb_by(3, VerbName::Schedule, Some(policy), &timer)
                .ok(3, Outcome::Kept, 7);
        })
    };
    kept_by(Policy::IfAbsent).holds();
    for policy in [Policy::Replace, Policy::KeepEarliest] {
        kept_by(policy).breaks(Invariant::I5, "kept a timer that its policy does not keep");
    }
}
