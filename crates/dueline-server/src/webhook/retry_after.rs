use jiff::fmt::rfc2822;

/// The longest wait that a receiver can ask for, in milliseconds (one day).
pub(super) const RETRY_AFTER_MS_MAX: u64 = 24 * 3_600_000;

/// Reads `Retry-After`: seconds or an HTTP date, as a wait from now in milliseconds, at most a day.
/// `None` for a text that is neither, and for a wait of nothing: the timer's own back-off then holds.
pub(super) fn retry_after_ms(text: &str, now_ms: u64) -> Option<u64> {
    let text = text.trim();
    let wait_ms = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds is still a wait: the longest.
        text.parse::<u64>()
            .unwrap_or(u64::MAX)
            .saturating_mul(1_000)
    } else {
        let at = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        u64::try_from(at.as_millisecond())
            .ok()?
            .saturating_sub(now_ms)
    };
    (wait_ms > 0).then_some(wait_ms.min(RETRY_AFTER_MS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_capped() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let at_ms = 784_111_777_000;
        for (text, wait_ms) in [
            ("120", Some(120_000)),
            (" 5 ", Some(5_000)),
            ("0", None),
            ("86401", Some(RETRY_AFTER_MS_MAX)),
            ("99999999999999999999999", Some(RETRY_AFTER_MS_MAX)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", None),
            ("Sun, 06 Nov 2094 08:49:27 GMT", None),
            ("Sat, 06 Nov 2094 08:49:27 GMT", Some(RETRY_AFTER_MS_MAX)),
            ("-5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after_ms(text, at_ms), wait_ms, "{text}");
        }
    }
}
