//! dueline-tokio
