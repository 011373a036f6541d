//! dueline-testkit
