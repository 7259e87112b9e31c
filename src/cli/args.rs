//! The flags of `run`, as typed. `settings` turns them into what is meant.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::values::{self, Header, Rate, Size, Span};
use crate::input::ListFormat;
use crate::model::Codes;
use crate::report::ProgressMode;
use crate::store::NameTemplate;

/// The per-exit summary's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SummaryForm {
    /// Aligned columns, for people.
    Table,
    /// What `summary.json` holds.
    Json,
    /// What `exits.csv` holds.
    Csv,
    /// Nothing.
    None,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One readable line each.
    Text,
    /// One JSON object each.
    Json,
}

/// `exitfetch run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Exit list: a file, an https:// address, or - for standard input
    #[arg(long, value_name = "FILE|URL|-", help_heading = "Lists")]
    pub exits: Option<String>,
    /// URL list: a file, an https:// address, or - for standard input
    #[arg(long, value_name = "FILE|URL|-", help_heading = "Lists")]
    pub urls: Option<String>,
    /// Form of the URL list, where its name does not tell
    #[arg(long, value_name = "FORM", value_parser = values::list_format(), help_heading = "Lists")]
    pub urls_format: Option<ListFormat>,
    /// Read both lists, print what would run and the least time it can take, touch nothing
    #[arg(long, help_heading = "Lists")]
    pub dry_run: bool,

    /// Requests in flight through an exit without its own cap or tier
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=65_535), help_heading = "Exits")]
    pub per_exit: u32,
    /// Requests in flight in all [default: from the descriptor limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Exits")]
    pub max_in_flight: Option<u32>,
    /// End the run when no exit was usable for this long
    #[arg(
        long,
        value_name = "DUR",
        default_value = "60s",
        help_heading = "Exits"
    )]
    pub no_exit_timeout: Span,
    /// CONNECT for http:// targets too
    #[arg(long, help_heading = "Exits")]
    pub tunnel: bool,

    /// Requests per second to one site, whatever the number of exits: 0.2, 5, 30/m, unlimited
    #[arg(long, value_name = "R", default_value = "10", help_heading = "Sites")]
    pub rate: Rate,
    /// Requests a rested site may get at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Sites")]
    pub burst: u32,
    /// Requests in flight at one site [default: 4 seconds' worth, at least 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Sites")]
    pub per_origin: Option<u32>,
    /// Longest Retry-After that is waited out; a longer one fails the job
    #[arg(
        long,
        value_name = "DUR",
        default_value = "15m",
        help_heading = "Sites"
    )]
    pub max_pause: Span,
    /// Give a site up after this long without one good answer
    #[arg(long, value_name = "DUR", default_value = "2m", help_heading = "Sites")]
    pub origin_patience: Span,

    /// Tries after the first that failed for the site's or an unclear reason
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Requests")]
    pub retries: u32,
    /// Limit of dial, handshake and TLS together
    #[arg(
        long,
        value_name = "DUR",
        default_value = "10s",
        help_heading = "Requests"
    )]
    pub connect_timeout: Span,
    /// Limit for the whole response head
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
    /// Limit of a whole attempt
    #[arg(
        long,
        value_name = "DUR",
        default_value = "5m",
        help_heading = "Requests"
    )]
    pub timeout: Span,
    /// Redirects followed per job; 0 records the 3xx itself
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        help_heading = "Requests"
    )]
    pub max_redirects: u32,
    /// Statuses that count as ok and are stored; others are recorded as failed
    #[arg(long, value_name = "CODES", default_value_t = Codes::default(), help_heading = "Requests")]
    pub accept: Codes,
    /// A request header; the flag can be repeated
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        value_parser = values::HeaderParser,
        help_heading = "Requests"
    )]
    pub header: Vec<Header>,
    /// User-Agent
    #[arg(short = 'A', long, value_name = "UA", default_value = concat!("exitfetch/", env!("CARGO_PKG_VERSION")), help_heading = "Requests")]
    pub user_agent: String,
    /// Ask for gzip, br and zstd and store bodies decoded
    #[arg(long, help_heading = "Requests")]
    pub compressed: bool,
    /// PEM file with more root certificates
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub cacert: Option<PathBuf>,
    /// Verify no certificate
    #[arg(long, help_heading = "Requests")]
    pub insecure: bool,

    /// Output directory; a second run in it resumes
    #[arg(
        long,
        value_name = "DIR",
        default_value = "exitfetch-out",
        help_heading = "Output"
    )]
    pub out: PathBuf,
    /// Larger bodies fail [default: none]
    #[arg(long, value_name = "SIZE", help_heading = "Output")]
    pub max_body: Option<Size>,
    /// Stop when less disk than this is free
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256MiB",
        help_heading = "Output"
    )]
    pub min_free: Size,
    /// File names below bodies/, made of {id} {host} {line} {ext} {hash} and /
    #[arg(long, value_name = "TEMPLATE", help_heading = "Output")]
    pub name_template: Option<NameTemplate>,
    /// On resume leave failed jobs alone
    #[arg(long, help_heading = "Output")]
    pub no_retry_failed: bool,
    /// Ignore what the directory records; the old journal is kept beside the new one
    #[arg(long, conflicts_with = "no_retry_failed", help_heading = "Output")]
    pub fresh: bool,
    /// Write each record there too, as it happens
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub results: Option<String>,
    /// The per-exit summary, on stdout (on stderr with --results -)
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        default_value = "table",
        help_heading = "Output"
    )]
    pub summary: SummaryForm,
    /// Progress on stderr
    #[arg(long, value_name = "WHEN", value_parser = values::progress_mode(), default_value = "auto", help_heading = "Output")]
    pub progress: ProgressMode,
    /// Only errors on stderr
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// A log line per attempt
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// Form of log lines
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        default_value = "text",
        help_heading = "Output"
    )]
    pub log_format: LogFormat,

    /// Stop after this long, work left or not
    #[arg(long, value_name = "DUR", help_heading = "Run")]
    pub max_time: Option<Span>,
    /// Seed of the random choices [default: a new one per run]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,
    /// Settings file [default: exitfetch.toml, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub config: Option<PathBuf>,
}
