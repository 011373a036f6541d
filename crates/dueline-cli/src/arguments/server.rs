//! Which server a command talks to.

use clap::Args;

/// The server a command talks to.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerArgument {
    /// Address of the server.
    #[arg(
        long,
        env = "DUELINE_SERVER",
        default_value = "http://127.0.0.1:7431",
        value_name = "URL",
        display_order = 901
    )]
    pub(crate) server: String,
}
