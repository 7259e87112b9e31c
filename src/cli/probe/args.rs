//! The flags of `exitfetch probe`.

use std::path::PathBuf;

use clap::Args;

use super::super::connection::ConnectionArgs;
use super::super::values::{Levels, Rate, whole};
use super::pick::Sample;
use super::show::Form;

/// Shown under `probe --help`.
pub(in crate::cli) const EXAMPLES: &str = "\
DUR: 10s, 1m30s, 250ms. R: a number per second, or /m, /h.

Example:
  exitfetch probe --exits exits.txt --target https://you.example/ping --own-target

Choose a small page that answers fast and that you may ask for some hundred times. What
is found is written beside the exit list (exits.txt.probe.json), and `exitfetch run`
takes its caps from there. Rehearse it without any site: `exitfetch lab`.

Exit status: 0 all exits measured, 1 local failure, 2 usage, 3 some without a verdict,
4 no exit served, 130 or 143 interrupted.";

/// `exitfetch probe`.
#[derive(Args, Debug)]
pub(in crate::cli) struct ProbeArgs {
    /// Exits, one a line: a file, an https:// address, or - for standard input
    #[arg(long, value_name = "FILE|URL|-", help_heading = "Lists")]
    pub(super) exits: Option<String>,
    /// A page to ask for; several are asked in turn
    #[arg(long, value_name = "URL", help_heading = "Lists")]
    pub(super) target: Vec<String>,

    /// Requests at a time to try, from 1 upwards
    #[arg(
        long,
        value_name = "N,N,...",
        default_value = "1,2,4,8,16",
        help_heading = "Exits"
    )]
    pub(super) levels: Levels,
    /// Exits to probe of each tier, region and group; the 25th percentile counts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1u32..), help_heading = "Exits")]
    pub(super) sample: u32,
    /// Probe every exit
    #[arg(long, conflicts_with = "sample", help_heading = "Exits")]
    pub(super) all: bool,
    /// Then probe exits of a group together, to find what the group carries
    #[arg(long, help_heading = "Exits")]
    pub(super) joint: bool,

    /// Requests per second to one site through all exits together [default: 10]
    #[arg(
        long,
        value_name = "R",
        allow_negative_numbers = true,
        help_heading = "Sites"
    )]
    pub(super) rate: Option<Rate>,
    /// The targets are yours: no rate holds unless --rate is given
    #[arg(long, help_heading = "Sites")]
    pub(super) own_target: bool,
    /// Most requests of the whole probe
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = whole(1u32..), help_heading = "Sites")]
    pub(super) max_requests: u32,

    #[command(flatten)]
    pub(super) connection: ConnectionArgs,

    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Write a page with drawings
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) html: Option<PathBuf>,
    /// Settings file [default: ./exitfetch.toml, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cli) config: Option<PathBuf>,
}

impl ProbeArgs {
    /// How many exits are probed.
    pub(super) fn sample(&self) -> Sample {
        match self.all {
            true => Sample::All,
            false => Sample::Each(self.sample),
        }
    }

    /// What standard output is to hold.
    pub(super) fn form(&self) -> Form {
        match self.json {
            true => Form::Json,
            false => Form::Table,
        }
    }
}
