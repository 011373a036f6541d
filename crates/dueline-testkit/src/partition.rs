use dueline::store::Partition;

/// The partition of a name that is known to be sound.
///
/// # Panics
/// If it is empty or longer than 256 bytes.
#[track_caller]
#[allow(
    clippy::expect_used,
    reason = "a test that names a bad partition fails by panicking"
)]
pub fn partition(name: &'static str) -> Partition {
    Partition::new(name).expect("a partition of 1 to 256 bytes")
}
