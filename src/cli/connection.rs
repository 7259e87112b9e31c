//! The flags for how exits and sites are spoken to, shared by `run` and `probe`: one definition
//! of each and its default.

use std::path::PathBuf;

use clap::Args;

use super::values::{self, Header, Span};

// No doc comment here: clap would show it as what the command is about.
#[derive(Args, Clone, Debug)]
pub struct ConnectionArgs {
    /// Ask exits for a tunnel (CONNECT) to http:// targets too
    #[arg(long, help_heading = "Exits")]
    pub tunnel: bool,
    /// Longest time for dial, handshake and TLS together
    #[arg(
        long,
        value_name = "DUR",
        default_value = "10s",
        help_heading = "Requests"
    )]
    pub connect_timeout: Span,
    /// Longest wait for the whole head of an answer
    #[arg(
        long,
        value_name = "DUR",
        default_value = "30s",
        help_heading = "Requests"
    )]
    pub first_byte_timeout: Span,
    /// Longest gap inside a body
    #[arg(
        long,
        value_name = "DUR",
        default_value = "15s",
        help_heading = "Requests"
    )]
    pub stall_timeout: Span,
    /// Longest time of one attempt from dial to last byte
    #[arg(
        long,
        value_name = "DUR",
        default_value = "5m",
        help_heading = "Requests"
    )]
    pub timeout: Span,
    /// A request header, repeatable; secret ones belong in the settings file
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        value_parser = values::Unshown(str::parse::<Header>),
        help_heading = "Requests"
    )]
    pub header: Vec<Header>,
    /// The User-Agent header
    #[arg(short = 'A', long, value_name = "UA", default_value = concat!("exitfetch/", env!("CARGO_PKG_VERSION")), help_heading = "Requests")]
    pub user_agent: String,
    /// PEM file with root certificates to trust besides the system's
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub cacert: Option<PathBuf>,
    /// Verify no certificate: anybody in between can read and change what is fetched
    #[arg(long, help_heading = "Requests")]
    pub insecure: bool,
}
