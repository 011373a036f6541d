/// Asks the system to wake this thread as exactly as it can. Linux may otherwise be 50 us late, to
/// let several wakes share one; where it cannot be asked, nothing is lost but that.
pub(crate) fn wake_exactly() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        tracing::debug!(%error, "the system wakes this thread with its usual slack");
    }
}
