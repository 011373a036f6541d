use dueline::timers::TimerView;

use super::error::ServiceError;

/// Under which condition a request is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    /// None.
    #[default]
    None,
    /// Only if there is no timer by that id.
    Absent,
    /// Only if there is one.
    Present,
    /// Only if it is one of these generations; those that could not be one are left out.
    Generations(Vec<u64>),
}

impl Condition {
    /// The generation that a change of this timer has to find, so that the condition still holds
    /// when it commits; `None` if the condition asks nothing.
    pub(crate) fn generation(&self, view: Option<&TimerView>) -> Result<Option<u64>, ServiceError> {
        let current = view.map(|view| view.generation);
        match (self, current) {
            (Self::None, _) | (Self::Absent, None) => Ok(None),
            (Self::Absent, Some(generation)) => Err(ServiceError::AlreadyExists { generation }),
            (Self::Present, Some(generation)) => Ok(Some(generation)),
            (Self::Generations(wanted), Some(generation)) if wanted.contains(&generation) => {
                Ok(Some(generation))
            }
            (Self::Present | Self::Generations(_), _) => Err(ServiceError::Changed { current }),
        }
    }
}
