//! How much room the disk has: linkers and databases that run out of it end with errors that do not say so.

use crate::process::output_of;

/// What a whole run writes below `target`, by `du` after one in a fresh clone, and a tenth more.
const WHOLE_RUN_BYTES: u64 = 11_000_000_000;
/// Less than this is as good as full: a linker asks for as much at once.
const FULL_BELOW_BYTES: u64 = 500_000_000;

/// The bytes that are free where the workspace lies, if `df` can say.
pub(crate) fn free_bytes() -> Option<u64> {
    free(&output_of("df", &["-Pk", "."])?)
}

/// What to say before a whole run.
pub(crate) fn before_a_whole_run(free_bytes: u64) -> String {
    let (free, needed) = (gigabytes(free_bytes), gigabytes(WHOLE_RUN_BYTES));
    if free_bytes < WHOLE_RUN_BYTES {
        format!(
            "WARNING: the disk has {free} free, and a run from a fresh clone fills {needed}: what \
             an earlier run has left in `target` may be enough, or it ends with a full disk"
        )
    } else {
        format!("the disk has {free} free; a run from a fresh clone fills {needed}")
    }
}

/// What to add to the words of a check that failed.
pub(crate) fn behind_a_failure(free_bytes: u64) -> Option<String> {
    (free_bytes < FULL_BELOW_BYTES).then(|| {
        let free = gigabytes(free_bytes);
        format!("the disk is full ({free} free), which alone may be the reason: make room, then run it again")
    })
}

/// The fourth column below the heading of `df -Pk`, as POSIX has it.
fn free(answer: &str) -> Option<u64> {
    let row = answer.lines().nth(1)?;
    let kibibytes: u64 = row.split_whitespace().nth(3)?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n\
                          /dev/vda         264212084 29579356  65706532      32% /\n";

    #[test]
    fn the_free_bytes_are_read_from_the_answer() {
        assert_eq!(free(ANSWER), Some(65_706_532 * 1024));
        assert_eq!(free("Filesystem\n"), None);
        assert_eq!(free("df: .: no such file\n"), None);
    }

    #[test]
    fn this_disk_has_bytes_free_or_is_full() {
        assert!(free_bytes().is_some());
    }

    #[test]
    fn little_room_is_warned_of() {
        assert!(before_a_whole_run(WHOLE_RUN_BYTES - 1).starts_with("WARNING: the disk has "));
        assert!(!before_a_whole_run(WHOLE_RUN_BYTES).contains("WARNING"));
    }

    #[test]
    fn a_failure_on_a_full_disk_says_so() {
        let said = behind_a_failure(120_000_000).expect("it is full");
        assert!(said.starts_with("the disk is full (0.1 GB free)"), "{said}");
        assert_eq!(behind_a_failure(FULL_BELOW_BYTES), None);
    }
}
