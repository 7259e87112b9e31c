//! `exitfetch report`: one HTML page from an output directory.

use std::path::PathBuf;

use anyhow::anyhow;

use super::{Code, Stopped, stdout};
use crate::report::{Gathered, page, write_whole};

/// Shown under `report --help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  exitfetch report exitfetch-out
  exitfetch report pages -o monday.html
  exitfetch report pages -o - | ssh desk 'cat > monday.html'

The page needs no network and no script. It can be made while a run is under way, and
of a directory that a killed run has left.";

#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// Output directory of a run
    dir: PathBuf,
    /// Where the page goes; - is standard output [default: report.html in DIR]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn report(args: &ReportArgs) -> Result<Code, Stopped> {
    let gathered = Gathered::read(&args.dir).map_err(Stopped::usage)?;
    let text = page(gathered);
    if args
        .out
        .as_deref()
        .is_some_and(|out| out.as_os_str() == "-")
    {
        stdout::print(&text).map_err(Stopped::local)?;
        return Ok(Code::Ok);
    }
    let beside = || args.dir.join("report.html");
    let path = args.out.clone().unwrap_or_else(beside);
    write_whole(&path, text.as_bytes())
        .map_err(|error| anyhow!("{error:#}\nhint: name another place with --out"))
        .map_err(Stopped::local)?;
    stdout::print(&format!("{}\n", path.display())).map_err(Stopped::local)?;
    Ok(Code::Ok)
}
