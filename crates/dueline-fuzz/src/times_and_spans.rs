use dueline::limits::DUE_MS_MAX;
use dueline_server::fuzzing::{parse_rfc3339_ms, parse_span_ms, rfc3339_ms, span_text};
use jiff::Timestamp;

const NANOS_PER_MS: i128 = 1_000_000;

/// A text that may be a time or a span: what is read is within the limits, reads back from how it is
/// written, and is what another reader of RFC 3339 takes it for.
///
/// # Panics
/// If it is not.
pub fn times_and_spans(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(at_ms) = parse_rfc3339_ms(text) {
        assert!(at_ms <= DUE_MS_MAX, "{text:?} is {at_ms}");
        assert_eq!(parse_rfc3339_ms(&rfc3339_ms(at_ms)), Ok(at_ms), "{text:?}");
        if let Ok(other) = text.parse::<Timestamp>() {
            let nanos = other.as_nanosecond();
            let rounded_up =
                nanos.div_euclid(NANOS_PER_MS) + i128::from(nanos.rem_euclid(NANOS_PER_MS) > 0);
            assert_eq!(rounded_up, i128::from(at_ms), "{text:?}");
        }
    }
    if let Ok(span_ms) = parse_span_ms(text) {
        assert_eq!(parse_span_ms(&span_text(span_ms)), Ok(span_ms), "{text:?}");
    }
}
