//! The flags of `run`, as typed. `settings` turns them into what is meant.

use std::path::PathBuf;

use clap::{ArgAction, Args, Command, ValueEnum};

use super::connection::ConnectionArgs;
use super::values::{self, MetricsAddress, Rate, Size, Span};
use crate::input::ListFormat;
use crate::model::Codes;
use crate::report::ProgressMode;
use crate::store::{NameTemplate, WarcForm};

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

/// The flags that `-h` shows.
const MOST_USED: [&str; 15] = [
    "brief",
    "help",
    "exits",
    "urls",
    "dry_run",
    "per_exit",
    "rate",
    "retries",
    "accept",
    "header",
    "user_agent",
    "out",
    "refresh",
    "quiet",
    "max_time",
];

/// `run` as `-h` shows it.
pub fn brief(run: Command) -> Command {
    run.mut_args(|arg| {
        let shown = MOST_USED.contains(&arg.get_id().as_str());
        arg.hide(!shown)
    })
    .after_help("All flags, examples and exit statuses: exitfetch run --help")
}

/// `exitfetch run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Print the flags that are used most
    #[arg(short = 'h')]
    pub brief: bool,
    /// Print all flags
    #[arg(long, action = ArgAction::HelpShort)]
    help: Option<bool>,

    /// Exits, one a line: a file, an https:// address, or - for standard input
    #[arg(long, value_name = "FILE|URL|-", help_heading = "Lists")]
    pub exits: Option<String>,
    /// URLs, one a line: a file, an https:// address, or - for standard input
    #[arg(long, value_name = "FILE|URL|-", help_heading = "Lists")]
    pub urls: Option<String>,
    /// Form of the URL list where its name does not tell: text, csv or jsonl
    #[arg(long, value_name = "FORM", value_parser = values::list_format(), hide_possible_values = true, help_heading = "Lists")]
    pub urls_format: Option<ListFormat>,
    /// Read both lists and say how long a run would take; send and write nothing
    #[arg(long, help_heading = "Lists")]
    pub dry_run: bool,

    /// Requests in flight through one exit; wins over its tier, never over its own cap=
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = values::whole(1u32..=65_535), help_heading = "Exits")]
    pub per_exit: u32,
    /// Leave caps out that `exitfetch probe` wrote beside the exit list
    #[arg(long, help_heading = "Exits")]
    pub no_probe_file: bool,
    /// Requests in flight in all [default: what the limit of open files allows]
    #[arg(long, value_name = "N", value_parser = values::whole(1u32..), help_heading = "Exits")]
    pub max_in_flight: Option<u32>,
    /// End the run when no exit was usable for this long
    #[arg(
        long,
        value_name = "DUR",
        default_value = "60s",
        help_heading = "Exits"
    )]
    pub no_exit_timeout: Span,

    /// Requests per second to one site through all exits together: 0.2, 5, 30/m, unlimited
    #[arg(
        long,
        value_name = "R",
        default_value = "10",
        allow_negative_numbers = true,
        help_heading = "Sites"
    )]
    pub rate: Rate,
    /// Requests a site may get at once after a rest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::whole(1u32..), help_heading = "Sites")]
    pub burst: u32,
    /// Requests in flight at one site [default: 4 seconds of --rate, at least 2]
    #[arg(long, value_name = "N", value_parser = values::whole(1u32..), help_heading = "Sites")]
    pub per_origin: Option<u32>,
    /// Longest Retry-After to wait out; a longer one fails the job
    #[arg(
        long,
        value_name = "DUR",
        default_value = "15m",
        help_heading = "Sites"
    )]
    pub max_pause: Span,
    /// Give a site's jobs up after this long without one good answer
    #[arg(long, value_name = "DUR", default_value = "2m", help_heading = "Sites")]
    pub origin_patience: Span,

    /// Further tries of a job; up to 10 failures of exits are not counted
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = values::whole(0u32..), help_heading = "Requests")]
    pub retries: u32,
    /// How exits and sites are spoken to
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Redirects followed per job; 0 takes the 3xx as the answer
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = values::whole(0u32..),
        help_heading = "Requests"
    )]
    pub max_redirects: u32,
    /// Statuses that are ok and stored, such as 200-299,404; others fail the job
    #[arg(long, value_name = "CODES", default_value_t = Codes::default(), help_heading = "Requests")]
    pub accept: Codes,
    /// Ask for gzip, br and zstd; store bodies decoded
    #[arg(long, help_heading = "Requests")]
    pub compressed: bool,

    /// Output directory; a second run in it resumes
    #[arg(
        long,
        value_name = "DIR",
        default_value = "exitfetch-out",
        help_heading = "Output"
    )]
    pub out: PathBuf,
    /// Fail larger bodies [default: none]
    #[arg(long, value_name = "SIZE", help_heading = "Output")]
    pub max_body: Option<Size>,
    /// Stop when less disk than this is free; 0 turns it off
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256MiB",
        help_heading = "Output"
    )]
    pub min_free: Size,
    /// Names of files below bodies/, made of {id} {host} {line} {ext} {hash} and /
    #[arg(long, value_name = "TEMPLATE", help_heading = "Output")]
    pub name_template: Option<NameTemplate>,
    /// Archive whole exchanges in WARC files, warc/00001.warc and so on, instead of body files
    #[arg(long, conflicts_with_all = ["name_template", "warc_gz"], help_heading = "Output")]
    pub warc: bool,
    /// The same, compressed: warc/00001.warc.gz
    #[arg(long, conflicts_with = "name_template", help_heading = "Output")]
    pub warc_gz: bool,
    /// On resume, leave jobs that failed alone instead of trying them again
    #[arg(long, help_heading = "Output")]
    pub no_retry_failed: bool,
    /// Fetch everything anew; the old results.jsonl is kept under another name
    #[arg(long, conflicts_with = "no_retry_failed", help_heading = "Output")]
    pub fresh: bool,
    /// Ask again for what is stored, and fetch what has changed since
    #[arg(long, conflicts_with = "fresh", help_heading = "Output")]
    pub refresh: bool,
    /// Write each record there too as it happens; - is standard output
    #[arg(long, value_name = "FILE|-", help_heading = "Output")]
    pub results: Option<String>,
    /// Summary on stdout (on stderr with --results -): table, json, csv or none
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        hide_possible_values = true,
        default_value = "table",
        help_heading = "Output"
    )]
    pub summary: SummaryForm,
    /// Progress on stderr: auto, always or never
    #[arg(long, value_name = "WHEN", value_parser = values::progress_mode(), hide_possible_values = true, default_value = "auto", help_heading = "Output")]
    pub progress: ProgressMode,
    /// Serve figures for Prometheus at this port of 127.0.0.1, or at IP:PORT, under /metrics
    #[arg(long, value_name = "ADDR", help_heading = "Output")]
    pub metrics: Option<MetricsAddress>,
    /// Only errors on stderr
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub quiet: bool,
    /// A log line per attempt
    #[arg(short, long, help_heading = "Output")]
    pub verbose: bool,
    /// Form of log lines: text or json
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        hide_possible_values = true,
        default_value = "text",
        help_heading = "Output"
    )]
    pub log_format: LogFormat,

    /// Stop after this long, even with work left
    #[arg(long, value_name = "DUR", help_heading = "Run")]
    pub max_time: Option<Span>,
    /// Seed of the random choices [default: a new one per run]
    #[arg(long, value_name = "N", value_parser = values::whole(0u64..), help_heading = "Run")]
    pub seed: Option<u64>,
    /// Settings file [default: ./exitfetch.toml, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub config: Option<PathBuf>,
    /// Print all settings as a settings file, with where each comes from, and do nothing else
    #[arg(long, help_heading = "Run")]
    pub print_config: bool,
}

impl RunArgs {
    /// The archive that was asked for.
    pub(super) fn archive(&self) -> Option<WarcForm> {
        match (self.warc, self.warc_gz) {
            (_, true) => Some(WarcForm::Gzip),
            (true, false) => Some(WarcForm::Plain),
            (false, false) => None,
        }
    }
}
