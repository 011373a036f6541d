//! Readers of times, spans and command lines that read wrongly, or panic.

use std::ffi::OsString;

use dueline_cli::fuzzing::read_arguments;
use dueline_fuzz::{ArgumentsReader, TimeTexts, arguments_read_by, times_and_spans_read_by};
use dueline_server::fuzzing::{parse_rfc3339_ms, parse_span_ms, rfc3339_ms, span_text};

const INPUTS_MAX: usize = 20_000;

/// As it was once: an offset's hours and minutes may have any digits that fill its six bytes.
fn offset_of_other_digits(text: &str) -> Result<u64, String> {
    let padded = || {
        let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
        let (sign, digits) = offset.split_at_checked(1)?;
        let (hours, minutes) = digits.split_once(':')?;
        let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
        Some(format!("{local}{sign}{hours:02}:{minutes:02}"))
    };
    parse_rfc3339_ms(text).or_else(|error| parse_rfc3339_ms(&padded().ok_or(error)?))
}

/// As it was once: more hours than can be written.
fn beyond_the_calendar(text: &str) -> Result<u64, String> {
    const HOURS: u64 = 777_777_777;
    parse_span_ms(text).or_else(|error| {
        let is_long = error.contains("ends beyond");
        is_long.then_some(HOURS * 3_600_000).ok_or(error)
    })
}

#[test]
fn a_time_that_is_read_or_written_wrongly_is_found() {
    const SOUND: TimeTexts = TimeTexts::SOUND;
    fn rounded_down(text: &str) -> Result<u64, String> {
        let at_ms = parse_rfc3339_ms(text)?;
        Ok(at_ms - u64::from(text.contains("0001")))
    }
    fn early_by_a_leap_second(text: &str) -> Result<u64, String> {
        let leap_ms = if text.get(17..19) == Some("60") {
            1_000
        } else {
            0
        };
        parse_rfc3339_ms(text).map(|at_ms| at_ms - leap_ms)
    }
    fn beyond_a_day(text: &str) -> Result<u64, String> {
        parse_rfc3339_ms(&text.replace("+24:", "+23:"))
    }
    fn in_any_zone(text: &str) -> Result<u64, String> {
        parse_rfc3339_ms(&text.replace('-', "+").replacen('+', "-", 2))
    }
    fn within_a_character(text: &str) -> Result<u64, String> {
        let local = &text[..text.len().min(19)];
        parse_rfc3339_ms(local).or_else(|_| parse_rfc3339_ms(text))
    }
    fn in_every_century(text: &str) -> Result<u64, String> {
        parse_rfc3339_ms(&text.replace("2100-02-29", "2100-03-01"))
    }
    let read_time = |read_time| TimeTexts { read_time, ..SOUND };
    let faults = [
        ("a fraction is rounded down", read_time(rounded_down)),
        ("a leap second is early", read_time(early_by_a_leap_second)),
        ("an offset of a day is read", read_time(beyond_a_day)),
        (
            "an offset of other digits is read",
            read_time(offset_of_other_digits),
        ),
        ("every offset is ahead", read_time(in_any_zone)),
        (
            "a text is cut within a character",
            read_time(within_a_character),
        ),
        ("every century has a leap day", read_time(in_every_century)),
        (
            "a time is written without its milliseconds",
            TimeTexts {
                time_text: |at_ms| rfc3339_ms(at_ms / 1_000 * 1_000),
                ..SOUND
            },
        ),
    ];
    for (fault, texts) in faults {
        super::is_found(fault, "times_and_spans", INPUTS_MAX, |input| {
            let _read = times_and_spans_read_by(input, &texts);
        });
    }
}

#[test]
fn a_span_that_is_read_or_written_wrongly_is_found() {
    const SOUND: TimeTexts = TimeTexts::SOUND;
    fn of_either_sign(text: &str) -> Result<u64, String> {
        parse_span_ms(text.trim_start_matches('-'))
    }
    let read_span = |read_span| TimeTexts { read_span, ..SOUND };
    let faults = [
        ("a span may be negative", read_span(of_either_sign)),
        (
            "a span beyond the calendar is read",
            read_span(beyond_the_calendar),
        ),
        (
            "a span is written in whole seconds",
            TimeTexts {
                span_text: |ms| span_text(ms.div_ceil(1_000) * 1_000),
                ..SOUND
            },
        ),
    ];
    for (fault, texts) in faults {
        super::is_found(fault, "times_and_spans", INPUTS_MAX, |input| {
            let _read = times_and_spans_read_by(input, &texts);
        });
    }
}

#[test]
fn a_command_line_that_is_answered_wrongly_is_found() {
    type Answer = Result<String, (i32, String)>;
    fn utf8_alone(words: Vec<OsString>) -> Answer {
        let words = words.into_iter().map(|word| word.into_string());
        read_arguments(words.map(|word| word.unwrap().into()).collect())
    }
    fn another_code(words: Vec<OsString>) -> Answer {
        read_arguments(words).map_err(|(code, text)| {
            let is_missing = text.contains("required arguments were not provided");
            (if is_missing { 1 } else { code }, text)
        })
    }
    fn no_word(words: Vec<OsString>) -> Answer {
        read_arguments(words).map_err(|(code, text)| {
            let is_value = text.contains("invalid value");
            (code, if is_value { String::new() } else { text })
        })
    }
    fn a_complaint_as_a_success(words: Vec<OsString>) -> Answer {
        read_arguments(words).map_err(|(code, text)| {
            let is_twice = text.contains("cannot be used multiple times");
            (if is_twice { 0 } else { code }, text)
        })
    }
    let faults: [(&str, ArgumentsReader); 4] = [
        ("a word that is not UTF-8 panics", utf8_alone),
        ("what is missing has another exit code", another_code),
        ("a wrong value is refused without a word", no_word),
        (
            "an option that is given twice is a success",
            a_complaint_as_a_success,
        ),
    ];
    for (fault, read) in faults {
        super::is_found(fault, "arguments", INPUTS_MAX, |input| {
            let _shown = arguments_read_by(input, read);
        });
    }
}
