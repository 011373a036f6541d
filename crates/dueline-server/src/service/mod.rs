//! What the server does, without a word of HTTP: requests decoded from JSON, timers scheduled and
//! read through the engine's verbs, and the answers as they are shown.

mod error;
mod field_errors;
mod fields;
mod json_text;
mod merge_patch;
mod names;
mod page_token;
mod shown;
mod target_spec;
mod timer_spec;
