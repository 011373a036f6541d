//! What a handler may return: its limits, and what is refused.

use dueline::Bytes;
use dueline::limits::{ERROR_TEXT_BYTES_MAX, PAYLOAD_BYTES_MAX, REFERENCE_BYTES_MAX};
use dueline::rows::{Flags, Header, NameKey, NameRow, TimerKey, TimerRow};
use dueline::store::{Batch, Precondition};
use dueline::timers::{Fired, Registration, Registry, RegistryError, RetryPolicy};

use crate::world::handlers::{appends, says};
use crate::world::{A, World};

#[test]
fn a_batch_that_writes_the_firing_timer_or_its_name_is_refused_and_says_what_to_do() {
    for named in [false, true] {
        let world = World::at(1_000);
        let key = if named {
            world.put_named(A, "x", 900)
        } else {
            world.put(A, "x", 900)
        };
        let name: Bytes = Bytes::from_static(b"\x6e\x00\x10x");
        let target = if named { name } else { key };
        let engine = world.engine([(
            A,
            Registration::inline(says(move |_| {
                Fired::Done(Batch::new().put("effect", "yes").delete(target.clone()))
            })),
        )]);
        assert_eq!(world.run(&engine).total.failed, 1);
        assert_eq!(world.get("effect"), None);
        let error = world.timers()[0].1.header.failure.clone().unwrap().error;
        assert!(error.contains("Fired::Reschedule"), "{error}");
        world.check_names();
    }
}

#[test]
fn a_batch_over_a_limit_is_a_failure_that_names_the_figure() {
    let too_many = (0..93).fold(Batch::new(), |batch, n: u32| {
        batch.put(format!("key{n}"), "value")
    });
    let too_large = (0..3).fold(Batch::new(), |batch, n: u32| {
        batch.put(format!("key{n}"), vec![0; 400_000])
    });
    let mut bad_key = Batch::new();
    bad_key = bad_key.put(vec![1; 1_025], "value");
    for (batch, figure) in [(too_many, "92"), (too_large, "bytes"), (bad_key, "1024")] {
        let world = World::at(1_000);
        let engine = world.engine([(
            A,
            Registration::inline(says(move |_| Fired::Done(batch.clone()))).group_max(8),
        )]);
        world.put(A, "x", 900);
        assert_eq!(world.run(&engine).total.failed, 1, "{figure}");
        let (_, row) = world.timers().pop().unwrap();
        let error = row.header.failure.unwrap().error;
        assert!(error.contains(figure), "{error}");
    }
}

#[test]
fn ninety_two_operations_beside_a_named_reschedule_are_accepted() {
    let effects = (0..92).fold(Batch::new(), |batch, n: u32| {
        batch.put(format!("key{n}"), "value")
    });
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(says(move |_| Fired::Reschedule {
            due_at_ms: 2_000,
            payload: Bytes::new(),
            batch: effects.clone(),
        })),
    )]);
    world.put_named(A, "x", 900);
    assert_eq!(world.run(&engine).total.rescheduled, 1);
    world.check_names();
}

#[test]
fn a_deadline_that_the_handler_set_and_missed_is_a_failure_without_effects() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(says(|_| {
            Fired::Done(
                Batch::new()
                    .require(Precondition::NotAfter(999))
                    .put("effect", "yes"),
            )
        })),
    )]);
    world.put(A, "x", 900);
    let report = world.run(&engine);
    assert_eq!((report.total.failed, report.total.fired), (1, 0));
    assert_eq!(world.get("effect"), None);
    assert_eq!(world.timers()[0].1.header.attempt, 1);
}

#[test]
fn a_registry_refuses_kind_0_and_a_second_handler_of_a_kind() {
    let mut registry = Registry::new();
    let kind_0 = registry.register(
        dueline::timers::TimerKind(0),
        Registration::inline(appends()),
    );
    assert_eq!(kind_0, Err(RegistryError::InvalidKind));
    assert_eq!(
        registry.register(A, Registration::inline(appends())),
        Ok(())
    );
    let second = registry.register(A, Registration::inline(appends()));
    assert_eq!(second, Err(RegistryError::Duplicate(A)));
}

/// The largest payload under the longest name: every move of the engine fits a batch.
#[test]
fn the_largest_timer_can_be_retried_rescheduled_and_buried() {
    let text = "e".repeat(ERROR_TEXT_BYTES_MAX);
    let payload = Bytes::from(vec![7; PAYLOAD_BYTES_MAX]);
    for case in ["retry", "reschedule", "dead", "exhausted"] {
        let world = World::at(1_000);
        let (reason, next) = (text.clone(), payload.clone());
        let once = RetryPolicy {
            attempts_max: Some(if case == "exhausted" { 1 } else { 9 }),
            ..RetryPolicy::default()
        };
        let engine = world.engine([(
            A,
            Registration::inline(says(move |_| match case {
                "reschedule" => Fired::Reschedule {
                    due_at_ms: 2_000,
                    payload: next.clone(),
                    batch: Batch::new(),
                },
                "dead" => Fired::Dead {
                    reason: reason.clone(),
                    batch: Batch::new(),
                },
                _ => Fired::Retry {
                    after_ms: None,
                    reason: reason.clone(),
                },
            }))
            .retry(once),
        )]);
        let key = TimerKey {
            kind: A,
            due_ms: 900,
            generation: 1,
            reference: Bytes::from(vec![0xff; REFERENCE_BYTES_MAX]),
        };
        let row = TimerRow {
            header: Header {
                flags: Flags {
                    named: true,
                    ..Flags::default()
                },
                ..Header::default()
            },
            payload: payload.clone(),
        };
        let name = NameKey {
            kind: A,
            reference: key.reference.clone(),
        };
        let name_row = NameRow::of(&key, &row.header);
        world.commit(
            Batch::new()
                .put(key.encode(), row.encode())
                .put(name.encode(), name_row.encode()),
        );
        let report = world.run(&engine);
        assert_eq!(
            (report.total.progressed(), report.total.held),
            (1, 0),
            "{case}"
        );
        let kept = match case {
            "dead" | "exhausted" => world.dead()[0].1.payload.clone(),
            _ => world.timers()[0].1.payload.clone(),
        };
        assert_eq!(kept, payload, "{case}");
        world.check_names();
    }
}

#[test]
fn a_rescheduled_payload_over_its_limit_is_a_failure_that_names_the_figure() {
    let world = World::at(1_000);
    let engine = world.engine([(
        A,
        Registration::inline(says(|_| Fired::Reschedule {
            due_at_ms: 2_000,
            payload: vec![0; PAYLOAD_BYTES_MAX + 1].into(),
            batch: Batch::new(),
        })),
    )]);
    world.put(A, "x", 900);
    assert_eq!(world.run(&engine).total.failed, 1);
    let error = world.timers()[0].1.header.failure.clone().unwrap().error;
    assert!(
        error.contains("491520") && error.contains("491521"),
        "{error}"
    );
}
