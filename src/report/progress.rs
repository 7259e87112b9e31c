//! Progress on stderr while the run goes; the only place that names indicatif.
//!
//! On a terminal one line is redrawn, and log lines go above it ([`LogWriter`]). Anywhere
//! else a plain line comes every 30 seconds, without control characters. A stderr that
//! cannot be written is no reason to stop.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use bytesize::ByteSize;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing_subscriber::fmt::MakeWriter;

use super::Counts;

/// Time between two plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(30);
/// Redraws per second on a terminal.
const REDRAWS: u8 = 8;

/// `--progress`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressMode {
    /// A live line on a terminal, plain lines elsewhere.
    Auto,
    /// The same, also where the log is kept short.
    Always,
    /// Nothing.
    Never,
}

/// What stderr is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// A terminal: lines can be redrawn.
    Terminal,
    /// A file or a pipe.
    Plain,
}

impl Screen {
    /// What this process's stderr is.
    pub fn of_stderr() -> Screen {
        match io::stderr().is_terminal() {
            true => Screen::Terminal,
            false => Screen::Plain,
        }
    }
}

/// How the run stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Since the start of the run.
    pub elapsed: Duration,
    /// Entries that have ended.
    pub counts: Counts,
    /// Entries of the list, once it is read to its end.
    pub entries: Option<u64>,
    /// Attempts under way.
    pub in_flight: u64,
    /// Jobs waiting for their origin's budget.
    pub waiting_budget: u64,
    /// Jobs waiting for an exit.
    pub waiting_exit: u64,
    /// Exits that can take jobs now.
    pub exits_usable: usize,
    /// Exits of the list.
    pub exits: usize,
}

impl Snapshot {
    fn text(&self) -> String {
        let counts = &self.counts;
        let ended = counts.ok + counts.failed + counts.refused;
        let of = self.entries.map_or(String::new(), |n| format!(" of {n}"));
        let per_second =
            ended.saturating_sub(counts.already_ok) as f64 / self.elapsed.as_secs_f64().max(0.001);
        format!(
            "{ended}{of} done: {} ok, {} failed, {} refused; {per_second:.1}/s, {}; \
             {} in flight, waiting {} for budget and {} for an exit; {} of {} exits usable",
            counts.ok,
            counts.failed,
            counts.refused,
            ByteSize(counts.bytes).display().iec(),
            self.in_flight,
            self.waiting_budget,
            self.waiting_exit,
            self.exits_usable,
            self.exits,
        )
    }
}

/// Shows snapshots.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Live(ProgressBar),
    Plain { next: Duration },
}

impl Progress {
    /// Progress as asked for, on stderr.
    pub fn new(mode: ProgressMode, screen: Screen) -> Progress {
        let shown = match (mode, screen) {
            (ProgressMode::Never, _) => Shown::Nothing,
            (ProgressMode::Auto | ProgressMode::Always, Screen::Terminal) => {
                Shown::Live(live(ProgressDrawTarget::stderr_with_hz(REDRAWS)))
            }
            (ProgressMode::Auto | ProgressMode::Always, Screen::Plain) => {
                Shown::Plain { next: PLAIN_EVERY }
            }
        };
        Progress { shown }
    }

    /// Shows `now`, if it is time to. Cheap to call often.
    pub fn update(&mut self, now: &Snapshot) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Live(bar) => {
                if let Some(entries) = now.entries {
                    bar.set_length(entries.max(1));
                }
                let counts = &now.counts;
                bar.set_position(counts.ok + counts.failed + counts.refused);
                bar.set_message(now.text());
            }
            Shown::Plain { next } => {
                if now.elapsed >= *next {
                    *next = now.elapsed + PLAIN_EVERY;
                    plain(&format!("{}\n", now.text()));
                }
            }
        }
    }

    /// Takes the live line away.
    pub fn finish(&mut self) {
        if let Shown::Live(bar) = &self.shown {
            bar.finish_and_clear();
        }
        self.shown = Shown::Nothing;
    }

    /// Where log lines go, so that they and the live line do not mix.
    pub fn log_writer(&self) -> LogWriter {
        LogWriter {
            above: match &self.shown {
                Shown::Live(bar) => Some(bar.clone()),
                Shown::Nothing | Shown::Plain { .. } => None,
            },
        }
    }
}

fn live(target: ProgressDrawTarget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, target);
    // The template is constant; without it indicatif's own does.
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

fn plain(line: &str) {
    // Nobody reads stderr: nothing is lost that the journal does not have.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// A writer for log lines: to stderr, above the live line where there is one.
#[derive(Clone, Debug)]
pub struct LogWriter {
    above: Option<ProgressBar>,
}

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A closed stderr must not end the run, so its errors end here.
        let write = || {
            let _ = io::stderr().write_all(bytes);
        };
        match &self.above {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogWriter;

    fn make_writer(&'a self) -> LogWriter {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(seconds: u64) -> Snapshot {
        Snapshot {
            elapsed: Duration::from_secs(seconds),
            counts: Counts {
                ok: 50,
                already_ok: 20,
                failed: 2,
                bytes: 2048,
                ..Counts::default()
            },
            entries: Some(100),
            in_flight: 6,
            waiting_budget: 40,
            waiting_exit: 2,
            exits_usable: 5,
            exits: 6,
        }
    }

    #[test]
    fn a_snapshot_is_one_plain_line() {
        assert_eq!(
            snapshot(10).text(),
            "52 of 100 done: 50 ok, 2 failed, 0 refused; 3.2/s, 2.0 KiB; 6 in flight, \
             waiting 40 for budget and 2 for an exit; 5 of 6 exits usable"
        );
        assert!(!snapshot(0).text().contains(['\r', '\u{1b}', '\n']));
    }

    #[test]
    fn without_a_terminal_a_line_comes_every_thirty_seconds() {
        let mut progress = Progress::new(ProgressMode::Auto, Screen::Plain);
        let mut next = Vec::new();
        for seconds in [0, 29, 30, 31, 59, 95, 96] {
            progress.update(&snapshot(seconds));
            let Shown::Plain { next: at } = progress.shown else {
                panic!("plain");
            };
            next.push(at.as_secs());
        }
        assert_eq!(next, [30, 30, 60, 60, 60, 125, 125]);
    }

    #[test]
    fn never_shows_nothing_and_logs_still_go_out() {
        let progress = Progress::new(ProgressMode::Never, Screen::Terminal);
        assert!(matches!(progress.shown, Shown::Nothing));
        assert_eq!(progress.log_writer().write(b"").unwrap(), 0);
    }
}
