//! Log lines on stderr, kept apart from the live lines, and never waited for.

use std::io::Write;
use std::sync::OnceLock;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::time::{SystemTime, uptime};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

use super::args::{LogFormat, RunArgs};
use crate::report::{Console, Progress, STATUS, Screen};

/// Where lines go once a run has begun.
static CONSOLE: OnceLock<Console> = OnceLock::new();

/// Starts logging for a run. A stderr that is closed costs the lines, nothing else.
pub(super) fn start(args: &RunArgs, progress: &Progress) {
    let level = match (args.quiet, args.verbose) {
        (true, _) => LevelFilter::ERROR,
        (_, true) => LevelFilter::DEBUG,
        (false, false) => LevelFilter::INFO,
    };
    // Whoever asks for the status line gets it, however quiet the run is.
    let targets = Targets::new()
        .with_default(level)
        .with_target(STATUS, LevelFilter::INFO);
    let console = CONSOLE.get_or_init(|| progress.console()).clone();
    let lines = fmt::layer()
        .with_writer(console)
        .with_target(false)
        .with_ansi(shows_colours());
    let all = registry().with(targets);
    // Fails only where logging runs already, in tests.
    let _ = match args.log_format {
        LogFormat::Text => {
            tracing::subscriber::set_global_default(all.with(lines.with_timer(uptime())))
        }
        // Programs that collect lines ask for the time of day, people for how long it took.
        LogFormat::Json => {
            tracing::subscriber::set_global_default(all.with(lines.json().with_timer(SystemTime)))
        }
    };
}

/// See <https://no-color.org>: the variable set and not empty.
fn shows_colours() -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
    Screen::of_stderr() == Screen::Terminal && !no_colour
}

/// One line for the user. A stderr that cannot be written is no reason to fail.
pub(super) fn say(line: &str) {
    let line = format!("{line}\n");
    match CONSOLE.get() {
        Some(console) => console.insist(line.as_bytes()),
        None => {
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

/// Lets what was said so far out, before something is printed elsewhere or the program ends.
/// Somebody who does not read is waited for a moment only.
pub(super) fn flush() {
    if let Some(console) = CONSOLE.get() {
        console.flush();
    }
}
