use serde::Serialize;

/// Most errors that one answer lists.
const ERRORS_MAX: usize = 20;

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldError {
    /// A JSON pointer into the body; `""` is the body itself.
    pub(crate) pointer: String,
    /// What is wrong and what would be right.
    pub(crate) detail: String,
}

/// What is wrong with a request, collected so that one answer tells it all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn one(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let mut errors = Self::new();
        errors.add(pointer, detail);
        errors
    }

    pub(crate) fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        if self.0.len() < ERRORS_MAX {
            self.0.push(FieldError {
                pointer: pointer.into(),
                detail: detail.into(),
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_vec(self) -> Vec<FieldError> {
        self.0
    }
}

/// The pointer of a member below another.
pub(crate) fn pointer_to(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}
