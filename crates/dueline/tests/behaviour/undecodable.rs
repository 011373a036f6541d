//! Payloads and headers this binary cannot decode: set aside once, bytes unchanged, no attempt
//! charged, and fired by a binary that can.

use dueline::rows::{DeadReason, NameKey, TimerKey, TimerRow};
use dueline::store::{Batch, Group};
use dueline::timers::{
    DueTimer, Fired, HandlerError, Registration, TickBudget, TimerCtx, TypedHandler,
};
use dueline::{BoxFuture, Bytes};
use dueline_testkit::block_on;
use serde::Deserialize;

use crate::world::handlers::{Calls, Seen, fails, notes};
use crate::world::{A, B, World};

#[derive(Deserialize)]
struct First {
    amount: u32,
}

struct ReadsFirst(Seen);

impl TypedHandler for ReadsFirst {
    type Payload = First;

    fn fire<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
        payload: First,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        self.0.note(payload.amount.to_string());
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Second {
    First(First),
    Text(String),
}

struct ReadsSecond(Seen);

impl TypedHandler for ReadsSecond {
    type Payload = Second;
    const CODEC_VERSION: u16 = 2;

    fn fire<'a>(
        &'a self,
        _: &'a TimerCtx<'a>,
        _: &'a DueTimer,
        payload: Second,
    ) -> BoxFuture<'a, Result<Fired, HandlerError>> {
        self.0.note(match payload {
            Second::First(first) => first.amount.to_string(),
            Second::Text(text) => text,
        });
        Box::pin(async { Ok(Fired::Done(Batch::new())) })
    }
}

#[test]
fn an_undecodable_payload_is_set_aside_once_and_fired_once_by_a_higher_codec_version() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::typed(ReadsFirst(seen.clone())))]);
    world.put_with(A, "good", 900, named(), br#"{"amount":7}"#);
    world.put_with(A, "text", 900, named(), br#""ninety""#);
    world.put_with(A, "never", 950, named(), b"\xff\x00");
    let report = world.run(&engine);
    assert_eq!(
        (report.total.fired, report.total.dead, report.total.failed),
        (1, 2, 0)
    );
    let commits = world.store.counts().commits();
    for _ in 0..3 {
        world.clock.advance_ms(1_000_000);
        assert_eq!(world.run(&engine).total.progressed(), 0);
    }
    assert_eq!(world.store.counts().commits(), commits, "written once");
    let dead = world.dead();
    assert_eq!(dead.len(), 2);
    for (_, row) in &dead {
        assert_eq!(
            (row.reason, row.codec_version),
            (DeadReason::UndecodablePayload, 1)
        );
        assert_eq!(row.header.attempt, 0, "no attempt is charged");
        let error = &row.header.failure.as_ref().unwrap().error;
        assert!(
            error.starts_with("the payload does not decode (codec version 1)"),
            "{error}"
        );
    }
    world.check_names();

    // The same version leaves them; a higher one takes them out and fires what it can read.
    let verbs = world.verbs();
    let requeue = |version: u16| {
        block_on(verbs.requeue_undecodable(&world.partition, A, version, None, 64)).unwrap()
    };
    assert_eq!(requeue(1).requeued.len(), 0);
    let engine = world.engine([(A, Registration::typed(ReadsSecond(seen.clone())))]);
    assert_eq!(requeue(2).requeued.len(), 2);
    world.check_names();
    let report = world.run(&engine);
    assert_eq!((report.total.fired, report.total.dead), (1, 1));
    assert_eq!(seen.all(), ["7", "ninety"]);
    assert_eq!(world.dead()[0].1.codec_version, 2);
    assert_eq!(world.dead()[0].1.payload, &b"\xff\x00"[..]);
    assert_eq!(requeue(2).requeued.len(), 0, "not twice for one version");
}

fn named() -> dueline::rows::Header {
    dueline::rows::Header {
        flags: dueline::rows::Flags {
            named: true,
            ..dueline::rows::Flags::default()
        },
        ..dueline::rows::Header::default()
    }
}

#[test]
fn a_detached_kind_that_cannot_decode_gives_its_attempt_back() {
    let world = World::at(1_000);
    let calls = Calls::noting(&Seen::default())
        .call(|_| Box::pin(async { Err(HandlerError::undecodable("no such form")) }));
    let engine = world.engine([(A, Registration::detached(calls).codec_version(3))]);
    world.put_named(A, "x", 900);
    for call in world.tick(&engine).calls {
        assert_eq!(block_on(engine.settle(block_on(call.run()))).dead, 1);
    }
    let (_, row) = world.dead().pop().unwrap();
    assert_eq!((row.codec_version, row.header.attempt), (3, 0));
    assert_eq!(row.payload, "payload");
    world.check_names();
}

#[test]
fn a_header_of_a_later_version_is_set_aside_whole_and_comes_back_byte_for_byte() {
    for group_max in [1, 8] {
        let world = World::at(1_000);
        let seen = Seen::default();
        let engine = world.engine([(A, Registration::inline(notes(&seen)).group_max(group_max))]);
        let old = world.put_named(A, "named", 900);
        let anonymous = world.put(A, "anonymous", 910);
        let later = Bytes::from_static(b"\x63later header and payload");
        world.commit(
            Batch::new()
                .put(old.clone(), later.clone())
                .put(anonymous, later.clone()),
        );
        world.put(A, "behind", 950);
        let report = world.run(&engine);
        assert_eq!((report.total.dead, report.total.fired), (2, 1));
        assert_eq!(seen.take(), ["behind"]);
        let dead = world.dead();
        for (key, row) in &dead {
            assert_eq!(
                (row.reason, &row.payload),
                (DeadReason::UndecodableHeader, &later)
            );
            assert_eq!(row.header.flags.named, key.reference == "named");
        }
        world.check_names();
        let verbs = world.verbs();
        let page = block_on(verbs.dead(&world.partition, None, None, 10)).unwrap();
        for dead in page.dead {
            assert!(
                block_on(verbs.requeue(&world.partition, &dead.id))
                    .unwrap()
                    .is_some()
            );
        }
        let values: Vec<_> = world
            .rows(dueline::rows::class::TIMER)
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        assert_eq!(values, [later.clone(), later]);
    }
}

#[test]
fn a_header_too_large_for_the_dead_class_goes_to_quarantine() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(A, Registration::inline(notes(&seen)))]);
    let huge = Bytes::from(vec![99; dueline::limits::VALUE_BYTES_MAX]);
    let key = TimerKey {
        kind: A,
        due_ms: 900,
        generation: 1,
        reference: Bytes::from_static(b"x"),
    };
    world.commit(Batch::new().put(key.encode(), huge.clone()));
    world.put(A, "behind", 950);
    let report = world.run(&engine);
    assert_eq!((report.quarantined, report.total.fired), (1, 1));
    assert_eq!(world.rows(dueline::rows::class::QUARANTINE)[0].1, huge);
}

/// A writer that put a row by itself, with more payload than a retry could carry beside its error.
#[test]
fn a_payload_over_its_limit_is_set_aside_instead_of_holding_its_lane() {
    for (extra, is_dead) in [(1, true), (31_000, true), (32_700, false)] {
        let world = World::at(1_000);
        let engine = world.engine([(A, Registration::inline(fails("no")))]);
        let row = TimerRow {
            payload: vec![7; dueline::limits::PAYLOAD_BYTES_MAX + extra].into(),
            ..TimerRow::default()
        };
        let key = world.put(A, "x", 900);
        world.commit(Batch::new().put(key, row.encode()));
        world.put(A, "behind", 950);
        let report = world.run(&engine);
        assert!(!report.held_back, "{extra} bytes over");
        assert_eq!(report.total.failed, 1, "the one behind has run");
        let aside = if is_dead {
            world.dead()[0].1.payload.clone()
        } else {
            world.rows(dueline::rows::class::QUARANTINE)[0].1.clone()
        };
        assert_eq!(aside, row.encode());
    }
}

#[test]
fn a_thousand_timers_behind_undecodable_and_unknown_ones_are_on_time() {
    let world = World::at(1_000);
    let seen = Seen::default();
    let engine = world.engine([(
        A,
        Registration::typed(ReadsFirst(seen.clone())).group_max(64),
    )]);
    for n in 0..300 {
        world.put_with(A, "bad", n, dueline::rows::Header::default(), b"bad");
        world.put(B, "unknown", n);
    }
    for _ in 0..1_000 {
        world.put_with(
            A,
            "good",
            999,
            dueline::rows::Header::default(),
            br#"{"amount":1}"#,
        );
    }
    let unknown_written = Seen::default();
    let noted = unknown_written.clone();
    world.store.on_commit(move |_, group: &Group| {
        for write in group.batches.iter().flat_map(|batch| &batch.writes) {
            if write.key().get(2) == Some(&B.0) {
                noted.note("written");
            }
        }
    });
    let mut ticks = 0;
    while seen.len() < 1_000 {
        let _tick = world.woken_tick(&engine, TickBudget::native());
        ticks += 1;
    }
    assert!(ticks <= 2, "{ticks} ticks of 1,024 for 1,300 rows");
    assert_eq!(unknown_written.len(), 0);
    assert_eq!(world.dead().len(), 300);
}

#[test]
fn a_cancelled_timer_is_not_set_aside() {
    let world = World::at(1_000);
    let engine = world.engine([(A, Registration::typed(ReadsFirst(Seen::default())))]);
    world.put_named(A, "x", 900);
    let other = world.clone();
    world.store.before_commit(1, move |_, _, _| {
        let cancelled = block_on(other.verbs().cancel(&other.partition, A, &"x".into(), None));
        assert!(cancelled.unwrap().is_some());
    });
    assert_eq!(world.run(&engine).total.raced, 1);
    assert!(world.memory.rows(&world.partition).is_empty());
    let name = NameKey {
        kind: A,
        reference: Bytes::from_static(b"x"),
    };
    assert_eq!(world.get(name.encode()), None);
    assert!(TimerRow::decode(&Bytes::from_static(b"bad")).is_err());
}
