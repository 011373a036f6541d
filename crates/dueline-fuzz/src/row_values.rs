use bytes::Bytes;
use dueline::limits::{ERROR_TEXT_BYTES_MAX, PAYLOAD_BYTES_MAX};
use dueline::rows::{
    DeadKey, DeadRow, Failure, Header, KindNameRow, Malformed, NameKey, NameRow, NameState,
    PauseRow, TimerKey, TimerRow,
};
use dueline::store::Value;
use dueline::timers::TimerKind;

/// What reads values, and what cuts an error's text.
#[derive(Clone, Copy, Debug)]
pub struct ValueReaders {
    /// A timer.
    pub timer: fn(&Value) -> Result<TimerRow, Malformed>,
    /// A dead timer.
    pub dead: fn(&Value) -> Result<DeadRow, Malformed>,
    /// A name.
    pub name: fn(&Value) -> Result<NameRow, Malformed>,
    /// A paused kind.
    pub pause: fn(&Value) -> Result<PauseRow, Malformed>,
    /// A kind's name.
    pub kind_name: fn(&Value) -> Result<KindNameRow, Malformed>,
    /// A failure at a time, from the error's text.
    pub failure: fn(u64, &str) -> Failure,
}

impl ValueReaders {
    /// The product's.
    pub const SOUND: Self = Self {
        timer: TimerRow::decode,
        dead: DeadRow::decode,
        name: NameRow::decode,
        pause: PauseRow::decode,
        kind_name: KindNameRow::decode,
        failure: Failure::new,
    };
}

/// The value of any row: what decodes encodes to the same bytes and is within the limits.
///
/// # Panics
/// If it is not.
pub fn row_values(data: &[u8]) {
    row_values_read_by(data, &ValueReaders::SOUND);
}

/// [`row_values`], with readers that may be wrong.
///
/// # Panics
/// As [`row_values`].
pub fn row_values_read_by(data: &[u8], readers: &ValueReaders) {
    let value = Bytes::copy_from_slice(data);
    if let Ok(row) = (readers.timer)(&value) {
        assert_eq!(row.encode(), value);
        assert!(row.payload.len() <= PAYLOAD_BYTES_MAX);
        header(&row.header, readers);
    }
    if let Ok(row) = (readers.dead)(&value) {
        assert_eq!(row.encode(), value);
        assert!(!row.reason.as_str().is_empty());
        header(&row.header, readers);
    }
    if let Ok(row) = (readers.name)(&value) {
        assert_eq!(row.encode(), value);
        points_at_its_row(&row);
    }
    if let Ok(row) = (readers.pause)(&value) {
        assert_eq!(row.encode(), value);
    }
    if let Ok(row) = (readers.kind_name)(&value) {
        assert_eq!(row.encode(), value);
    }
    failure_is_cut_at_a_character(&String::from_utf8_lossy(data), readers);
}

fn header(header: &Header, readers: &ValueReaders) {
    if let Some(failure) = &header.failure {
        assert!(failure.error.len() <= ERROR_TEXT_BYTES_MAX);
        // What was read needs no cutting.
        assert_eq!((readers.failure)(failure.at_ms, &failure.error), *failure);
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

fn failure_is_cut_at_a_character(text: &str, readers: &ValueReaders) {
    let failure = (readers.failure)(1, text);
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
    assert_eq!((readers.timer)(&row.encode()), Ok(row));
}
