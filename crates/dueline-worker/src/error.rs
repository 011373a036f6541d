use std::fmt;

use dueline::store::StoreError;

/// Why the alarm could not be seen to. The only errors that the driver lets out: thrown to the
/// platform, so that its few retries are spent on them alone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AlarmError {
    /// The heads of the lanes could not be read, so nobody knows when to wake.
    Heads(StoreError),
    /// The platform refused to read or to write the alarm.
    Alarm(StoreError),
}

impl fmt::Display for AlarmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heads(error) => write!(f, "the next due time could not be read: {error}"),
            Self::Alarm(error) => write!(f, "the alarm could not be read or set: {error}"),
        }
    }
}

impl std::error::Error for AlarmError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Heads(error) | Self::Alarm(error) => Some(error),
        }
    }
}
