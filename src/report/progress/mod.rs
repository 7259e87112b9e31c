//! Progress on stderr while the run goes; the only place that names indicatif.
//!
//! On a terminal up to five lines are redrawn (`bars`), and log lines go above them. Anywhere
//! else a plain line comes every 30 seconds, as a log line, without control characters. All of
//! it goes through the [`Console`], so no reader of stderr can hold a run up.

mod bars;
mod console;
mod pace;
mod snapshot;
mod status;

use std::io::{self, IsTerminal};
use std::time::Duration;

use bars::Bars;
use console::Frame;
use pace::Pace;

pub use console::{Console, LogLine};
pub use snapshot::{HeldBack, Snapshot};

/// Time between two plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(30);

/// The target of status lines in the log: they are shown whatever level is asked for.
pub const STATUS: &str = "status";

/// `--progress`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressMode {
    /// Live lines on a terminal, plain lines elsewhere.
    Auto,
    /// Live lines anywhere.
    Always,
    /// Nothing.
    Never,
}

/// What stderr is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// A terminal: lines can be redrawn.
    Terminal,
    /// A file, a pipe, or a terminal that can only print lines.
    Plain,
}

impl Screen {
    /// What this process's stderr is.
    pub fn of_stderr() -> Screen {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        match io::stderr().is_terminal() && !dumb {
            true => Screen::Terminal,
            false => Screen::Plain,
        }
    }
}

/// Shows snapshots.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
    pace: Pace,
    console: Console,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Live,
    Plain { next: Duration },
}

impl Progress {
    /// Progress as asked for, on stderr.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub fn new(mode: ProgressMode, screen: Screen) -> io::Result<Progress> {
        let shown = match (mode, screen) {
            (ProgressMode::Never, _) => Shown::Nothing,
            (ProgressMode::Always, _) | (ProgressMode::Auto, Screen::Terminal) => Shown::Live,
            (ProgressMode::Auto, Screen::Plain) => Shown::Plain { next: PLAIN_EVERY },
        };
        let bars = matches!(shown, Shown::Live).then(Bars::new);
        Ok(Progress {
            shown,
            pace: Pace::default(),
            console: Console::start(bars)?,
        })
    }

    /// Shows `now`, if it is time to. Cheap to call often.
    pub fn update(&mut self, now: &Snapshot) {
        let rates = self.pace.rates(now);
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Live => self.console.show(Frame::Draw(status::lines(now, rates))),
            Shown::Plain { next } => {
                if now.elapsed >= *next {
                    *next = now.elapsed + PLAIN_EVERY;
                    tell(&status::line(now, rates));
                }
            }
        }
        self.tell_dropped();
    }

    /// Shows `now` as one line, whatever else is shown: somebody asked for it.
    pub fn show(&mut self, now: &Snapshot) {
        let rates = self.pace.rates(now);
        tell(&status::line(now, rates));
    }

    /// Takes the live lines away, and waits for what was logged before.
    pub fn finish(&mut self) {
        if matches!(self.shown, Shown::Live) {
            self.console.show(Frame::Erase);
        }
        self.shown = Shown::Nothing;
        self.console.flush();
        self.tell_dropped();
    }

    /// Where everything goes that is to be seen on stderr.
    pub fn console(&self) -> Console {
        self.console.clone()
    }

    fn tell_dropped(&self) {
        let dropped = self.console.take_dropped();
        if dropped > 0 {
            tracing::warn!(
                "{dropped} log lines are left out: stderr was not read as fast as they came"
            );
        }
    }
}

fn tell(line: &str) {
    tracing::info!(target: STATUS, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Snapshot {
        Snapshot {
            elapsed: Duration::from_secs(seconds),
            ..Snapshot::default()
        }
    }

    #[test]
    fn without_a_terminal_a_line_comes_every_thirty_seconds() {
        let mut progress = Progress::new(ProgressMode::Auto, Screen::Plain).unwrap();
        let mut next = Vec::new();
        for seconds in [0, 29, 30, 31, 59, 95, 96] {
            progress.update(&at(seconds));
            let Shown::Plain { next: at } = progress.shown else {
                panic!("plain");
            };
            next.push(at.as_secs());
        }
        assert_eq!(next, [30, 30, 60, 60, 60, 125, 125]);
    }

    #[test]
    fn always_is_live_anywhere_and_never_nowhere() {
        let shown = |mode, screen| Progress::new(mode, screen).unwrap().shown;
        for screen in [Screen::Plain, Screen::Terminal] {
            assert!(matches!(shown(ProgressMode::Always, screen), Shown::Live));
            assert!(matches!(shown(ProgressMode::Never, screen), Shown::Nothing));
        }
        let auto = shown(ProgressMode::Auto, Screen::Terminal);
        assert!(matches!(auto, Shown::Live));
    }
}
