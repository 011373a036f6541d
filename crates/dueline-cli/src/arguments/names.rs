//! Names of partitions and timers as the server takes them, checked before anything is sent.

/// The longest name of a partition, in bytes of UTF-8.
const PARTITION_BYTES_MAX: usize = 256;
/// The longest id of a timer, in bytes of UTF-8.
const ID_BYTES_MAX: usize = 512;

/// Parses the name of a partition.
pub(crate) fn partition(text: &str) -> Result<String, String> {
    name(text, PARTITION_BYTES_MAX)
}

/// Parses the id of a timer or of a dead letter.
pub(crate) fn id(text: &str) -> Result<String, String> {
    name(text, ID_BYTES_MAX)
}

fn name(text: &str, bytes_max: usize) -> Result<String, String> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    if text.len() > bytes_max {
        return Err(format!(
            "it has {} bytes, {bytes_max} are allowed",
            text.len()
        ));
    }
    if text.chars().any(char::is_control) {
        return Err("it must not hold control characters".to_owned());
    }
    // URLs take these as steps in a path, whatever their encoding.
    if text.contains('/') || text == "." || text == ".." {
        return Err("it must not hold `/`, nor be `.` or `..`".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_inclusive_and_counted_in_bytes() {
        assert!(partition(&"a".repeat(256)).is_ok());
        assert!(partition(&"a".repeat(257)).is_err());
        assert!(id(&"\u{e9}".repeat(256)).is_ok());
        assert!(id(&"\u{e9}".repeat(257)).is_err());
    }

    #[test]
    fn names_that_a_url_would_take_apart_are_refused() {
        for wrong in ["", ".", "..", "a/b", "a\nb", "\u{7f}"] {
            assert!(id(wrong).is_err(), "{wrong:?}");
        }
        for right in ["...", "a b", "%2F", "\u{1f600}", "a:b?c#d"] {
            assert_eq!(id(right).as_deref(), Ok(right));
        }
    }
}
