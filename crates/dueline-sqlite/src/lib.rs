//! dueline-sqlite
