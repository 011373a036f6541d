//! dueline-server
