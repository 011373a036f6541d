//! Times and spans as the API writes them: RFC 3339 in UTC with milliseconds, and spans such as
//! `30m` or `PT30M`.
//!
//! Times are read and written through calendar dates and not through `jiff::Timestamp`, whose range
//! ends a day before the latest due that the engine takes (9999-12-31T23:59:59.999Z).

use std::ops::Range;

use dueline::limits::DUE_MS_MAX;
use jiff::civil::DateTime;
use jiff::{SignedDuration, Span, SpanRelativeTo};

/// Where the seconds lie in `2027-01-31T09:00:00`.
const SECOND: Range<usize> = 17..19;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// A time as RFC 3339 in UTC with milliseconds; one past the calendar shows its last millisecond.
pub fn rfc3339_ms(at_ms: u64) -> String {
    let since_epoch = i64::try_from(at_ms.min(DUE_MS_MAX)).unwrap_or(0);
    let at = EPOCH
        .checked_add(SignedDuration::from_millis(since_epoch))
        .unwrap_or(EPOCH);
    format!("{at:.3}Z")
}

/// Reads RFC 3339 with an offset; a fraction below a millisecond is rounded up, and a leap second is the
/// second behind it, so that nothing is ever due before the time that was asked for.
pub fn parse_rfc3339_ms(text: &str) -> Result<u64, String> {
    const FORM: &str = "not a time of the form 2027-01-31T09:00:00Z (RFC 3339 with an offset)";
    let (local, offset) = split_offset(text).ok_or(FORM)?;
    let at: DateTime = local
        .parse()
        .map_err(|error| format!("not a time (RFC 3339): {error}"))?;
    // The calendar has no second 60, and reads it as second 59.
    let leap = SignedDuration::from_secs(i64::from(local.get(SECOND) == Some("60")));
    let since_epoch = at.duration_since(EPOCH) - offset + leap;
    let whole_ms = since_epoch.as_millis();
    let rounded_up = since_epoch.subsec_nanos() % 1_000_000 > 0;
    let at_ms = whole_ms + i128::from(rounded_up);
    match u64::try_from(at_ms) {
        Ok(at_ms) if at_ms <= DUE_MS_MAX => Ok(at_ms),
        Ok(_) => Err("the latest time is 9999-12-31T23:59:59.999Z".to_owned()),
        Err(_) => Err("the earliest time is 1970-01-01T00:00:00Z".to_owned()),
    }
}

/// Splits `YYYY-MM-DDThh:mm:ss[.fraction](Z|+hh:mm|-hh:mm)` into its local time and its offset.
fn split_offset(text: &str) -> Option<(&str, SignedDuration)> {
    const LOCAL_BYTES: usize = "2027-01-31T09:00:00".len();
    let shape = text.as_bytes().get(..LOCAL_BYTES)?;
    let well_shaped = shape
        .iter()
        .zip(b"0000-00-00T00:00:00")
        .all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b'T' | b't' | b' '),
            _ => byte == like,
        });
    if !well_shaped {
        return None;
    }
    if let Some(local) = text.strip_suffix(['Z', 'z']) {
        return has_sound_fraction(local.get(LOCAL_BYTES..)?)
            .then_some((local, SignedDuration::ZERO));
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let two_digits = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !two_digits(hours) || !two_digits(minutes) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let ahead = SignedDuration::from_mins(hours * 60 + minutes);
    let offset = match offset.as_bytes().first()? {
        b'+' => ahead,
        b'-' => -ahead,
        _ => return None,
    };
    has_sound_fraction(local.get(LOCAL_BYTES..)?).then_some((local, offset))
}

fn has_sound_fraction(text: &str) -> bool {
    match text.strip_prefix('.') {
        None => text.is_empty(),
        Some(digits) => {
            (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
    }
}

/// Reads a span such as `30m`, `1h 30m`, `PT30M` or `60d` (a day is 24 hours), rounded up to a
/// millisecond. One that ends beyond the calendar wherever it begins is refused: it could not be
/// written in every unit.
pub fn parse_span_ms(text: &str) -> Result<u64, String> {
    let span: Span = text
        .trim()
        .parse()
        .map_err(|_| "not a span such as \"30m\", \"1h 30m\" or \"PT30M\"".to_owned())?;
    let span = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| "a span has no months or years: their length varies; use days".to_owned())?;
    let rounded_up = span.subsec_nanos() % 1_000_000 > 0;
    match u64::try_from(span.as_millis() + i128::from(rounded_up)) {
        Ok(span_ms) if span_ms <= DUE_MS_MAX => Ok(span_ms),
        Ok(_) => Err("a span this long ends beyond 9999-12-31, the latest time".to_owned()),
        Err(_) => Err("a span must not be negative".to_owned()),
    }
}

/// A span in its largest unit that loses nothing: `10m`, `90s`, `250ms`.
pub fn span_text(span_ms: u64) -> String {
    for (unit_ms, unit) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if span_ms >= unit_ms && span_ms.is_multiple_of(unit_ms) {
            return format!("{}{unit}", span_ms / unit_ms);
        }
    }
    if span_ms == 0 {
        "0s".to_owned()
    } else {
        format!("{span_ms}ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_any_offset_and_rounded_up() {
        for (text, at_ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.0001Z", 1),
            ("1970-01-01T00:00:00.001Z", 1),
            ("1970-01-01T01:00:00+01:00", 0),
            ("1969-12-31T19:00:00-05:00", 0),
            ("2027-01-31t09:00:00.5z", 1_801_386_000_500),
            ("2027-01-31 14:30:00+05:30", 1_801_386_000_000),
            ("9999-12-31T23:59:59.999Z", DUE_MS_MAX),
        ] {
            assert_eq!(parse_rfc3339_ms(text), Ok(at_ms), "{text}");
        }
    }

    #[test]
    fn a_leap_second_is_never_read_as_the_second_before_it() {
        for (text, at_ms) in [
            ("2016-12-31T23:59:59Z", 1_483_228_799_000),
            ("2016-12-31T23:59:60Z", 1_483_228_800_000),
            ("2016-12-31T23:59:60.25Z", 1_483_228_800_250),
            ("2017-01-01T05:29:60+05:30", 1_483_228_800_000),
            ("1969-12-31T23:59:60Z", 0),
        ] {
            assert_eq!(parse_rfc3339_ms(text), Ok(at_ms), "{text}");
        }
        assert!(parse_rfc3339_ms("2016-12-31T23:59:61Z").is_err());
        assert!(parse_rfc3339_ms("9999-12-31T23:59:60Z").is_err());
    }

    #[test]
    fn texts_that_are_no_time_or_out_of_range_are_refused() {
        for text in [
            "",
            "now",
            "2027-01-31",
            "2027-01-31T09:00:00",
            "2027-02-30T00:00:00Z",
            "2027-01-31T25:00:00Z",
            "2027-01-31T09:00Z",
            "2027-01-31T09:00:00.Z",
            "2027-01-31T09:00:00+0100",
            "2027-01-31T09:00:00+24:00",
            "2027-01-31T09:00:00+1:000",
            "2027-01-31T09:00:00.5-000:5",
            "2027-01-31T09:00:00+:1000",
            "2027-01-31T09:00:00Z[UTC]",
            "2027-01-31T09:00:00\u{e9}:00",
            "1969-12-31T23:59:59Z",
            "9999-12-31T23:59:59.9991Z",
            "9999-12-31T23:59:59-01:00",
            "+010000-01-01T00:00:00Z",
            "9223372036854775807",
        ] {
            assert!(parse_rfc3339_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_written_with_milliseconds_in_utc() {
        assert_eq!(rfc3339_ms(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339_ms(1_801_386_000_500), "2027-01-31T09:00:00.500Z");
        assert_eq!(rfc3339_ms(DUE_MS_MAX), "9999-12-31T23:59:59.999Z");
        assert_eq!(rfc3339_ms(u64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn spans_are_read_in_both_forms_and_written_without_loss() {
        for (text, span_ms) in [
            ("30m", 1_800_000),
            ("PT30M", 1_800_000),
            ("1h 30m", 5_400_000),
            ("250ms", 250),
            ("60d", 5_184_000_000),
            ("P1D", 86_400_000),
            ("0s", 0),
            ("1.5s", 1_500),
            ("1us", 1),
        ] {
            assert_eq!(parse_span_ms(text), Ok(span_ms), "{text}");
            assert_eq!(parse_span_ms(&span_text(span_ms)), Ok(span_ms), "{text}");
        }
        for text in [
            "",
            "soon",
            "-5s",
            "1 month",
            "P1Y",
            "30",
            "9999999999999999999999h",
        ] {
            assert!(parse_span_ms(text).is_err(), "{text}");
        }
        // The clock form takes more hours than any other, and days on top.
        for text in ["81weeks777777777:20:001.5", "70389529h", "PT253402300800S"] {
            assert!(parse_span_ms(text).is_err(), "{text}");
        }
        let longest = "PT253402300799.999S";
        assert_eq!(parse_span_ms(longest), Ok(DUE_MS_MAX));
        assert_eq!(parse_span_ms(&span_text(DUE_MS_MAX)), Ok(DUE_MS_MAX));
        assert_eq!(span_text(600_000), "10m");
        assert_eq!(span_text(90_000), "90s");
        assert_eq!(span_text(1), "1ms");
    }

    proptest::proptest! {
        #[test]
        fn every_time_of_the_calendar_reads_back(at_ms in 0..=DUE_MS_MAX) {
            proptest::prop_assert_eq!(parse_rfc3339_ms(&rfc3339_ms(at_ms)), Ok(at_ms));
        }

        #[test]
        fn every_span_reads_back(span_ms in 0..=DUE_MS_MAX) {
            proptest::prop_assert_eq!(parse_span_ms(&span_text(span_ms)), Ok(span_ms));
        }

        #[test]
        fn no_text_is_read_as_a_time_by_accident(text in "[-+:.0-9TtZz ]{0,30}") {
            if let Ok(at_ms) = parse_rfc3339_ms(&text) {
                proptest::prop_assert!(at_ms <= DUE_MS_MAX);
            }
            let _ = parse_span_ms(&text);
        }
    }
}
