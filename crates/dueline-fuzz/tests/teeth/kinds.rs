//! Built-in kinds that read what they must refuse, say what is not so, or touch what is not theirs.

use bytes::Bytes;
use dueline::kinds::fuzzing::{Form, forms};
use dueline::memory::MemoryStore;
use dueline::rows::{Malformed, TimerRow, class, is_of_class};
use dueline::store::{Batch, Key, NamespaceStore, Partition, StoreError, StoreErrorKind};
use dueline::timers::TimerError;
use dueline_fuzz::{Meddling, Reread, damaged_kinds_meddled, kind_rows_reread};
use dueline_testkit::block_on;

const INPUTS_MAX: usize = 20_000;
/// A world takes longer than a row.
const WORLDS_MAX: usize = 400;

/// What is told of a verb's answer.
type Told = fn(Result<(), TimerError>) -> Result<(), TimerError>;
/// What happens to the rows behind a tick.
type BehindTick = fn(&MemoryStore, &Partition);

/// Reads a value with one byte of it masked.
fn masked(form: &Form, value: &Bytes, place: usize, mask: u8) -> Result<Bytes, Malformed> {
    let mut bytes = value.to_vec();
    if let Some(byte) = bytes.get_mut(place) {
        *byte &= mask;
    }
    (form.reread)(&Bytes::from(bytes))
}

#[test]
fn a_row_of_a_kind_that_is_read_wrongly_is_found() {
    let faults: [(&str, Reread); 7] = [
        (
            "flags of a ticket that nobody knows are read",
            |form, value| {
                let mask = if form.what == "a ticket" { 0x0f } else { 0xff };
                masked(form, value, 1, mask)
            },
        ),
        ("a later version is read", |form, value| {
            let mut bytes = value.to_vec();
            if let Some(version) = bytes.first_mut().filter(|_| form.letter.is_some()) {
                *version = 1;
            }
            (form.reread)(&Bytes::from(bytes))
        }),
        ("a counter of any length is read", |form, value| {
            let length = if form.what == "the counter of open tickets" {
                17
            } else {
                value.len()
            };
            (form.reread)(&value.slice(..length.min(value.len())))
        }),
        (
            "a window need not begin at a multiple of its length",
            |form, value| {
                if form.what == "the reference of a roll-up" && value.len() > 16 {
                    return Ok(value.slice(..value.len() - 1));
                }
                (form.reread)(value)
            },
        ),
        (
            "a stage of a reservation is taken for another",
            |form, value| {
                let mask = if form.what == "a reservation" {
                    0x03
                } else {
                    0xff
                };
                masked(form, value, 1, mask)
            },
        ),
        (
            "an argument of a fault that has none is read",
            |form, value| {
                if form.what == "the script of a timer of the test kind" && value.len() == 12 {
                    return (form.reread)(&[&value[..4], &[0; 8]].concat().into());
                }
                (form.reread)(value)
            },
        ),
        (
            "what does not decode is refused without a word",
            |form, value| (form.reread)(value).map_err(|_| Malformed("")),
        ),
    ];
    for (fault, reread) in faults {
        super::is_found(fault, "kind_rows", INPUTS_MAX, |input| {
            let _read = kind_rows_reread(input, reread);
        });
    }
}

fn corrupt(answer: &Result<(), TimerError>) -> bool {
    matches!(answer, Err(TimerError::Store(error)) if error.kind() == StoreErrorKind::Corrupt)
}

#[test]
fn a_verb_that_says_what_is_not_so_is_found() {
    let faults: [(&str, Told); 3] = [
        ("what does not decode is taken for nothing", |answer| {
            if corrupt(&answer) { Ok(()) } else { answer }
        }),
        (
            "what does not decode is taken for another writer's",
            |answer| {
                if corrupt(&answer) {
                    Err(TimerError::Contended)
                } else {
                    answer
                }
            },
        ),
        ("what decodes is taken for damaged", |answer| {
            answer.and(Err(StoreError::corrupt("it is not").into()))
        }),
    ];
    for (fault, told) in faults {
        let meddling = Meddling {
            told,
            ..Meddling::NONE
        };
        super::is_found(fault, "damaged_kinds", WORLDS_MAX, |input| {
            let _reached = damaged_kinds_meddled(input, &meddling);
        });
    }
}

/// Writes to a partition, behind the back of everybody.
fn write(store: &MemoryStore, partition: &Partition, batch: Batch) {
    let _outcome = block_on(store.apply(partition, batch)).expect("the store works");
}

/// The rows of a table of a built-in kind that do not decode.
fn broken(store: &MemoryStore, partition: &Partition, kind: u8, letter: u8) -> Vec<(Key, Bytes)> {
    let form = forms().find(|form| form.kind.0 == kind && form.letter == Some(letter));
    let form = form.expect("there is such a table");
    let rows = store.rows(partition).into_iter();
    rows.filter(|(key, value)| {
        key.starts_with(&[class::BUILT_IN, 0, kind, letter]) && (form.reread)(value).is_err()
    })
    .collect()
}

fn removes_broken(store: &MemoryStore, partition: &Partition, kind: u8, letter: u8) {
    for (key, _) in broken(store, partition, kind, letter) {
        write(store, partition, Batch::new().delete(key));
    }
}

/// Loses the first timer of a kind that goes on after a failure or a look.
fn loses_timers_of(store: &MemoryStore, partition: &Partition, kind: u8) {
    for (key, _) in store.rows(partition) {
        if is_of_class(&key, class::TIMER) && key.get(2) == Some(&kind) {
            write(store, partition, Batch::new().delete(key));
        }
    }
}

#[test]
fn a_handler_that_touches_what_is_not_its_own_is_found() {
    let faults: [(&str, BehindTick); 9] = [
        ("a lease that does not decode goes", |store, at| {
            removes_broken(store, at, 1, b'l');
        }),
        ("a ticket that does not decode goes", |store, at| {
            removes_broken(store, at, 2, b't');
        }),
        ("a reservation that does not decode goes", |store, at| {
            removes_broken(store, at, 9, b'r');
        }),
        ("the state of an outbox begins anew", |store, at| {
            for (key, _) in broken(store, at, 8, b's') {
                let state = [&[1][..], &[0; 49]].concat();
                write(store, at, Batch::new().put(key, state));
            }
        }),
        ("successes that do not decode go", |store, at| {
            removes_broken(store, at, 255, b'd');
        }),
        ("a timer of the test kind is lost", |store, at| {
            loses_timers_of(store, at, 255)
        }),
        ("all leases go unswept", |store, at| {
            loses_timers_of(store, at, 1)
        }),
        ("all reservations stay", |store, at| {
            loses_timers_of(store, at, 9)
        }),
        ("a handler has panicked", |store, at| {
            for (key, value) in store.rows(at) {
                let Ok(mut row) = TimerRow::decode(&value) else {
                    continue;
                };
                if is_of_class(&key, class::TIMER)
                    && let Some(failure) = &mut row.header.failure
                {
                    failure.error = "the handler panicked: so".to_owned();
                    write(store, at, Batch::new().put(key, row.encode()));
                }
            }
        }),
    ];
    for (fault, behind_tick) in faults {
        let meddling = Meddling {
            behind_tick,
            ..Meddling::NONE
        };
        super::is_found(fault, "damaged_kinds", WORLDS_MAX, |input| {
            let _reached = damaged_kinds_meddled(input, &meddling);
        });
    }
}
