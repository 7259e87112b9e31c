//! Log lines on stderr, kept apart from the progress line.

use std::io::{IsTerminal, Write};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::time::{SystemTime, uptime};

use super::args::{LogFormat, RunArgs};
use crate::report::Progress;

/// Starts logging for a run. A stderr that is closed costs the lines, nothing else.
pub(super) fn start(args: &RunArgs, progress: &Progress) {
    let level = match (args.quiet, args.verbose) {
        (true, _) => LevelFilter::ERROR,
        (_, true) => LevelFilter::DEBUG,
        (false, false) => LevelFilter::INFO,
    };
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(progress.log_writer())
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_timer(uptime());
    // Fails only where logging runs already, in tests.
    let _ = match args.log_format {
        LogFormat::Text => tracing::subscriber::set_global_default(lines.finish()),
        // Programs that collect lines ask for the time of day, people for how long it took.
        LogFormat::Json => {
            tracing::subscriber::set_global_default(lines.json().with_timer(SystemTime).finish())
        }
    };
}

/// One line for the user. A stderr that cannot be written is no reason to fail.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
