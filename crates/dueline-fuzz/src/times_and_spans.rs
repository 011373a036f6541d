use dueline::limits::DUE_MS_MAX;
use dueline_server::fuzzing::{parse_rfc3339_ms, parse_span_ms, rfc3339_ms, span_text};
use jiff::{SignedDuration, Timestamp};

const NANOS_PER_MS: i128 = 1_000_000;

/// A span this long can be written in any unit (290 years: the nanoseconds of 292 fill 63 bits).
const SPAN_MS_ALWAYS_HELD: u64 = 290 * 365 * 86_400_000;

/// What reads and writes times and spans, all in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct TimeTexts {
    /// Reads RFC 3339.
    pub read_time: fn(&str) -> Result<u64, String>,
    /// Writes RFC 3339.
    pub time_text: fn(u64) -> String,
    /// Reads a span.
    pub read_span: fn(&str) -> Result<u64, String>,
    /// Writes a span.
    pub span_text: fn(u64) -> String,
}

impl TimeTexts {
    /// The product's.
    pub const SOUND: Self = Self {
        read_time: parse_rfc3339_ms,
        time_text: rfc3339_ms,
        read_span: parse_span_ms,
        span_text,
    };
}

/// What a text was taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadAs {
    /// A time, in milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// A span, in milliseconds.
    pub span_ms: Option<u64>,
}

/// A text that may be a time or a span. A time is read if and only if a reader of our own, which knows
/// nothing but the grammar of RFC 3339 and the calendar, reads it, and as the same; so does jiff, where it
/// reads it. A span is what jiff takes it for. What is read reads back from how it is written.
///
/// # Panics
/// If it is not so.
pub fn times_and_spans(data: &[u8]) {
    let _read = times_and_spans_read_by(data, &TimeTexts::SOUND);
}

/// [`times_and_spans`], with readers that may be wrong.
///
/// # Panics
/// As [`times_and_spans`].
pub fn times_and_spans_read_by(data: &[u8], texts: &TimeTexts) -> ReadAs {
    let Ok(text) = std::str::from_utf8(data) else {
        return ReadAs::default();
    };
    let time_ms = (texts.read_time)(text).ok();
    let expected_ms = rounded_up(nanos_of_time(text)).filter(|ms| *ms <= DUE_MS_MAX);
    assert_eq!(time_ms, expected_ms, "{text:?}");
    if let Some(at_ms) = time_ms {
        let written = (texts.time_text)(at_ms);
        assert_eq!((texts.read_time)(&written), Ok(at_ms), "{text:?}");
        if let Ok(other) = text.parse::<Timestamp>()
            && !has_leap_second(text)
        {
            let other_ms = rounded_up(Some(other.as_nanosecond()));
            assert_eq!(time_ms, other_ms, "{text:?}");
        }
    }
    let span_ms = (texts.read_span)(text).ok();
    if let Some(span_ms) = span_ms {
        let written = (texts.span_text)(span_ms);
        assert_eq!((texts.read_span)(&written), Ok(span_ms), "{text:?}");
    }
    // jiff reads spans without days into a duration of its own, too, which holds longer ones.
    if let Ok(other) = text.trim().parse::<SignedDuration>() {
        let other_ms = rounded_up(Some(other.as_nanos()));
        let is_held = span_ms.is_some() || other_ms.is_none_or(|ms| ms <= SPAN_MS_ALWAYS_HELD);
        assert!(
            !is_held || span_ms == other_ms,
            "{text:?} is {span_ms:?}, {other_ms:?}"
        );
    }
    ReadAs { time_ms, span_ms }
}

fn rounded_up(nanos: Option<i128>) -> Option<u64> {
    let nanos = nanos?;
    let ms = nanos.div_euclid(NANOS_PER_MS) + i128::from(nanos.rem_euclid(NANOS_PER_MS) > 0);
    u64::try_from(ms).ok()
}

fn has_leap_second(text: &str) -> bool {
    text.get(17..19) == Some("60")
}

/// Reads `YYYY-MM-DDThh:mm:ss[.fraction](Z|+hh:mm|-hh:mm)` in nanoseconds since 1970. A second 60 is the
/// one behind second 59.
fn nanos_of_time(text: &str) -> Option<i128> {
    let mut rest = text;
    let year = number(&mut rest, 4)?;
    let month = after(&mut rest, "-").and_then(|()| number(&mut rest, 2))?;
    let day = after(&mut rest, "-").and_then(|()| number(&mut rest, 2))?;
    ["T", "t", " "].iter().find_map(|it| after(&mut rest, it))?;
    let hour = number(&mut rest, 2)?;
    let minute = after(&mut rest, ":").and_then(|()| number(&mut rest, 2))?;
    let second = after(&mut rest, ":").and_then(|()| number(&mut rest, 2))?;
    let mut fraction = 0;
    if after(&mut rest, ".").is_some() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=9).contains(&digits) {
            return None;
        }
        fraction = number(&mut rest, digits)? * 10_i128.pow(9 - u32::try_from(digits).ok()?);
    }
    let ahead_minutes = match rest.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign @ ("+" | "-"), offset) => {
            rest = offset;
            let hours = number(&mut rest, 2)?;
            let minutes = after(&mut rest, ":").and_then(|()| number(&mut rest, 2))?;
            if !rest.is_empty() || hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if sign == "+" { 1 } else { -1 }
        }
        _ => return None,
    };
    if day < 1 || day > days_of(year, month)? || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let minutes = (days_before(year, month) + day - 1) * 1_440 + hour * 60 + minute - ahead_minutes;
    Some((minutes * 60 + second) * 1_000_000_000 + fraction)
}

fn number(rest: &mut &str, digits: usize) -> Option<i128> {
    let (number, behind) = rest.split_at_checked(digits)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    *rest = behind;
    number.parse().ok()
}

fn after(rest: &mut &str, word: &str) -> Option<()> {
    *rest = rest.strip_prefix(word)?;
    Some(())
}

fn is_leap(year: i128) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i128, month: i128) -> Option<i128> {
    match month {
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(28 + i128::from(is_leap(year))),
        1..=12 => Some(31),
        _ => None,
    }
}

/// Days from 1970-01-01 to the first of this month, negative before 1970.
fn days_before(year: i128, month: i128) -> i128 {
    let years: i128 = if year >= 1970 {
        (1970..year).map(|it| 365 + i128::from(is_leap(it))).sum()
    } else {
        -(year..1970)
            .map(|it| 365 + i128::from(is_leap(it)))
            .sum::<i128>()
    };
    let months = (1..month).filter_map(|it| days_of(year, it));
    years + months.sum::<i128>()
}
