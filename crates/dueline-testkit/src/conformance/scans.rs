//! Ranges and their pages.

use dueline::limits::SCAN_RANGES_MAX;
use dueline::store::{Batch, Cursor, Key, Partition, ScanPage, ScanRange, StoreErrorKind};

use super::subject::home;
use super::{Make, Subject};
use crate::block_on;

fn letters(make: Make<'_>) -> (Subject, Partition) {
    let subject = Subject::make(make);
    let batch = ["a", "b", "c", "d", "e"]
        .into_iter()
        .fold(Batch::new(), |b, key| b.put(key, key));
    subject.commit(&home(), batch);
    (subject, home())
}

#[track_caller]
fn page(subject: &Subject, p: &Partition, range: &ScanRange) -> ScanPage {
    block_on(subject.store().scan(p, range)).expect("a page")
}

fn keys(subject: &Subject, p: &Partition, range: &ScanRange) -> Vec<Key> {
    subject
        .scan_all(p, range)
        .into_iter()
        .map(|(key, _)| key)
        .collect()
}

/// Rows come in the order of their raw bytes, a prefix before what it begins.
pub fn rows_come_in_the_order_of_raw_bytes(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let ordered: [&[u8]; 12] = [
        b"", b"\0", b"\0\0", b"\x01", b"A", b"a", b"a\0", b"a\0z", b"aa", b"\x7f", b"\x80", b"\xff",
    ];
    for key in [7, 2, 11, 0, 9, 4, 1, 10, 3, 8, 6, 5].map(|index: usize| ordered[index]) {
        subject.commit(&p, Batch::new().put(key, "v"));
    }
    assert_eq!(subject.keys(&p), ordered.map(Key::from_static));
}

/// The start belongs to the range and the end does not.
pub fn the_start_is_in_and_the_end_is_out(make: Make<'_>) {
    let (subject, p) = letters(make);
    assert_eq!(keys(&subject, &p, &ScanRange::new("b", "d", 9)), ["b", "c"]);
    assert_eq!(
        keys(&subject, &p, &ScanRange::new("b\0", "d\0", 9)),
        ["c", "d"]
    );
    assert_eq!(keys(&subject, &p, &ScanRange::new("", "b", 9)), ["a"]);
}

/// Pages of any size add up to the range, and each goes on strictly behind the one before.
pub fn pages_add_up_to_the_range(make: Make<'_>) {
    let (subject, p) = letters(make);
    for limit in 1..=7 {
        let range = ScanRange::new("a", "e", limit);
        assert_eq!(
            keys(&subject, &p, &range),
            ["a", "b", "c", "d"],
            "pages of {limit}"
        );
    }
}

/// A page that holds all that is left carries no cursor, an exact fit included.
pub fn an_exact_fit_carries_no_cursor(make: Make<'_>) {
    let (subject, p) = letters(make);
    let mut range = ScanRange::new("a", "e", 4);
    loop {
        let page = page(&subject, &p, &range);
        let at_the_end = page.rows.last().is_some_and(|(key, _)| key == "d");
        assert_eq!(page.next.is_none(), at_the_end, "{page:?}");
        if at_the_end {
            break;
        }
        range.after = page.next;
    }
    let one_short = ScanRange::new("a", "e", 3);
    assert!(
        page(&subject, &p, &one_short).next.is_some(),
        "one row is left"
    );
}

/// A cursor marks a place, not a row: it stays good when rows come and go.
pub fn a_cursor_outlives_its_row(make: Make<'_>) {
    let (subject, p) = letters(make);
    let range = ScanRange::new("a", "e", 2);
    let first = page(&subject, &p, &range);
    let (last, _) = first.rows.last().cloned().expect("a row");
    let batch = Batch::new()
        .delete(last.clone())
        .delete("c")
        .put("cc", "new")
        .put("A", "new");
    subject.commit(&p, batch);
    let rest = keys(&subject, &p, &range.after(first.next));
    assert!(
        rest.iter().all(|key| *key > last),
        "{rest:?} behind {last:?}"
    );
    assert_eq!(rest.last_chunk(), Some(&["cc".into(), "d".into()]));
}

/// A range that ends at or before its start is empty.
pub fn an_inverted_range_is_empty(make: Make<'_>) {
    let (subject, p) = letters(make);
    for (start, end) in [("b", "b"), ("c", "a"), ("", ""), ("z", "a")] {
        let page = page(&subject, &p, &ScanRange::new(start, end, 9));
        assert_eq!(page, ScanPage::default(), "{start:?} to {end:?}");
    }
}

/// A cursor outside the range is `Invalid`, and so is a limit of 0.
pub fn a_foreign_cursor_and_a_limit_of_zero_are_invalid(make: Make<'_>) {
    let (subject, p) = letters(make);
    let range = ScanRange::new("b", "d", 2);
    let foreign = ["a", "d", "e"].map(|key| range.clone().after(Some(Cursor::behind(key.into()))));
    for range in foreign.into_iter().chain([ScanRange::new("b", "d", 0)]) {
        let error = block_on(subject.store().scan(&p, &range)).expect_err("an invalid range");
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "{range:?}");
        let ranges = [ScanRange::new("a", "e", 9), range];
        let error = block_on(subject.store().scan_many(&p, &ranges)).expect_err("invalid ranges");
        assert_eq!(error.kind(), StoreErrorKind::Invalid);
    }
    let at_start = range.after(Some(Cursor::behind("b".into())));
    assert_eq!(keys(&subject, &p, &at_start), ["c"]);
}

/// A store may cut its pages short; followed to their end they miss nothing and repeat nothing.
pub fn long_ranges_are_followed_to_their_end(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    let batches: Vec<Batch> = (0..50)
        .map(|hundred| {
            (0..100).fold(Batch::new(), |batch, one| {
                batch.put(format!("{hundred:02}{one:02}"), "v")
            })
        })
        .collect();
    assert_eq!(subject.group(&p, batches).committed(), 50);
    let wanted: Vec<Key> = (0..5_000)
        .map(|index| format!("{index:04}").into())
        .collect();
    for limit in [usize::MAX, 4_097, 999] {
        assert_eq!(keys(&subject, &p, &ScanRange::new("", "x", limit)), wanted);
    }
}

/// Large values come whole, however the store pages them.
pub fn large_values_come_whole(make: Make<'_>) {
    let subject = Subject::make(make);
    let p = home();
    for key in ["a", "b", "c", "d", "e"] {
        subject.commit(&p, Batch::new().put(key, key.repeat(500_000)));
    }
    let rows = subject.scan_all(&p, &ScanRange::new("", "x", 100));
    assert_eq!(rows.len(), 5);
    for (key, value) in rows {
        assert!(value.len() == 500_000 && value.iter().all(|byte| *byte == key[0]));
    }
}

/// `scan_many` answers a prefix of the ranges, one page each, as `scan` would.
pub fn scan_many_answers_a_prefix_of_the_ranges(make: Make<'_>) {
    let (subject, p) = letters(make);
    let ranges = [
        ScanRange::new("a", "c", 9),
        ScanRange::new("c", "a", 9),
        ScanRange::new("a", "e", 1),
        ScanRange::new("a", "e", 9).after(Some(Cursor::behind("b".into()))),
        ScanRange::new("x", "z", 9),
    ];
    let mut rest = &ranges[..];
    while !rest.is_empty() {
        let pages = block_on(subject.store().scan_many(&p, rest)).expect("pages");
        assert!(
            !pages.is_empty() && pages.len() <= rest.len(),
            "a prefix, at least the first"
        );
        for (range, answer) in rest.iter().zip(&pages) {
            let wanted = keys(&subject, &p, range);
            let got: Vec<Key> = answer.rows.iter().map(|(key, _)| key.clone()).collect();
            assert!(wanted.starts_with(&got), "{range:?}");
            assert_eq!(
                answer.next.is_none(),
                got.len() == wanted.len(),
                "{range:?}"
            );
        }
        rest = &rest[pages.len()..];
    }
}

/// 256 ranges may be asked for at once, 257 are `Invalid`, and none give no page.
pub fn scan_many_takes_256_ranges(make: Make<'_>) {
    let (subject, p) = letters(make);
    let ranges = vec![ScanRange::new("a", "c", 1); SCAN_RANGES_MAX + 1];
    let error = block_on(subject.store().scan_many(&p, &ranges)).expect_err("too many");
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    let pages = block_on(subject.store().scan_many(&p, &ranges[1..])).expect("as many as allowed");
    assert!((1..=SCAN_RANGES_MAX).contains(&pages.len()));
    let none = block_on(subject.store().scan_many(&p, &[])).expect("no pages");
    assert_eq!(none, []);
}
