use bytes::Bytes;
use dueline::limits::{ERROR_TEXT_BYTES_MAX, PAYLOAD_BYTES_MAX};
use dueline::rows::{
    DeadKey, DeadRow, Failure, Header, KindNameRow, NameKey, NameRow, NameState, PauseRow,
    TimerKey, TimerRow,
};
use dueline::timers::TimerKind;

/// The value of any row: what decodes encodes to the same bytes and is within the limits.
///
/// # Panics
/// If it is not.
pub fn row_values(data: &[u8]) {
    let value = Bytes::copy_from_slice(data);
    if let Ok(row) = TimerRow::decode(&value) {
        assert_eq!(row.encode(), value);
        assert!(row.payload.len() <= PAYLOAD_BYTES_MAX);
        header(&row.header);
    }
    if let Ok(row) = DeadRow::decode(&value) {
        assert_eq!(row.encode(), value);
        assert!(!row.reason.as_str().is_empty());
        header(&row.header);
    }
    if let Ok(row) = NameRow::decode(&value) {
        assert_eq!(row.encode(), value);
        points_at_its_row(&row);
    }
    if let Ok(row) = PauseRow::decode(&value) {
        assert_eq!(row.encode(), value);
    }
    if let Ok(row) = KindNameRow::decode(&value) {
        assert_eq!(row.encode(), value);
    }
    failure_is_cut_at_a_character(&String::from_utf8_lossy(data));
}

fn header(header: &Header) {
    if let Some(failure) = &header.failure {
        assert!(failure.error.len() <= ERROR_TEXT_BYTES_MAX);
        // What was read needs no cutting.
        assert_eq!(Failure::new(failure.at_ms, &failure.error), *failure);
    }
}

fn points_at_its_row(row: &NameRow) {
    let name = NameKey {
        kind: TimerKind(16),
        reference: Bytes::from_static(b"name"),
    };
    let target = row.target(&name);
    let (due_ms, generation) = if row.state == NameState::Dead {
        let key = DeadKey::decode(&target).expect("a dead row's key");
        assert_eq!(NameRow::of_dead(&key), *row);
        (key.dead_at_ms, key.generation)
    } else {
        let key = TimerKey::decode(&target).expect("a timer row's key");
        (key.due_ms, key.generation)
    };
    assert_eq!((due_ms, generation), (row.due_ms, row.generation));
}

fn failure_is_cut_at_a_character(text: &str) {
    let failure = Failure::new(1, text);
    assert!(failure.error.len() <= ERROR_TEXT_BYTES_MAX);
    assert!(text.starts_with(&failure.error));
    let whole = text.len() <= ERROR_TEXT_BYTES_MAX;
    assert!(!whole || failure.error == text);
    assert!(whole || failure.error.len() + 4 > ERROR_TEXT_BYTES_MAX);
    let row = TimerRow {
        header: Header {
            failure: Some(failure),
            ..Header::default()
        },
        payload: Bytes::from_static(b"p"),
    };
    assert_eq!(TimerRow::decode(&row.encode()), Ok(row));
}
