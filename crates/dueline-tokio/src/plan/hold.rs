use std::time::Duration;

/// How long a partition is held back after the n-th turn in a row that the store refused: 1 s,
/// doubling to 60 s.
pub(crate) fn refused(times: u32) -> Duration {
    doubling(Duration::from_secs(1), Duration::from_secs(60), times)
}

/// The same while the store is full: doubling to 5 s, since whoever makes room wants it used.
pub(crate) fn without_room(times: u32) -> Duration {
    doubling(Duration::from_secs(1), Duration::from_secs(5), times)
}

/// How long a partition waits after the n-th turn in a row that found nothing to do and left a wake
/// that is due: not at all, then 10 ms, doubling to 1 s. Once may be a read that was a moment old;
/// again and again means that the store's clock is behind, and asking at once would spin.
pub(crate) fn fruitless(times: u32) -> Duration {
    match times.checked_sub(1) {
        None | Some(0) => Duration::ZERO,
        Some(times) => doubling(Duration::from_millis(10), Duration::from_secs(1), times),
    }
}

fn doubling(first: Duration, most: Duration, times: u32) -> Duration {
    let factor = 1u32
        .checked_shl(times.saturating_sub(1))
        .unwrap_or(u32::MAX);
    first.saturating_mul(factor.max(1)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_double_up_to_their_limit_and_stay_there() {
        let seconds: Vec<u64> = (1..=8).map(|times| refused(times).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(refused(u32::MAX), Duration::from_secs(60));
        let full: Vec<u64> = (1..=5).map(|times| without_room(times).as_secs()).collect();
        assert_eq!(full, [1, 2, 4, 5, 5]);
        let millis: Vec<u128> = (1..=4).map(|times| fruitless(times).as_millis()).collect();
        assert_eq!(millis, [0, 10, 20, 40]);
        assert_eq!(fruitless(1_000), Duration::from_secs(1));
    }
}
