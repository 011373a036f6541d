//! The whole store and the whole driver under shuttle.

use crate::model::Model;

pub(crate) const MODELS: &[Model] = &[];
