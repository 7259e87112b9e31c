//! Standard error, written by one thread: log lines and the live lines, in order, and nobody
//! who has something to say waits for a reader.
//!
//! Owns: what waits to be written, and how much of it is kept while nobody reads. Lines beyond
//! that are dropped and counted; errors never are. Leaves to `bars` how live lines are drawn.
//!
//! Why a thread: a pipe that nobody reads and a terminal that is held with Ctrl-S block the
//! writer, and a run must not stop for that. Invariants: lines come out in the order in which
//! they went in; live lines are drawn at most five times a second, whatever is logged.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

use super::bars::Bars;
use crate::threads;

/// Bytes of lines that wait; more are dropped. Some ten thousand lines.
const WAITING_MOST: usize = 4 << 20;
/// Bytes per write: what a pipe takes whole or not at all, so that progress can be seen.
const PIECE: usize = 4096;
/// Time between two drawings of the live lines.
const REDRAW_EVERY: Duration = Duration::from_millis(200);
/// A reader that takes nothing for this long is waited for no longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is done with the live lines.
#[derive(Debug)]
pub(super) enum Frame {
    /// These are to be seen.
    Draw(Vec<String>),
    /// They go.
    Erase,
}

/// The way to standard error. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Console(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// There is something to write.
    work: Condvar,
    /// Something was written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    frame: Option<Frame>,
    /// Lines that found no room.
    dropped: u64,
    /// Somebody waits for all of it: no pause between drawings.
    urgent: bool,
    /// The thread has taken something that is not out yet.
    writing: bool,
    /// Pieces written so far.
    pieces: u64,
    /// Nobody reads.
    stuck: bool,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.frame.is_none()
    }
}

impl Console {
    /// Starts the thread. With `bars` it can show live lines.
    ///
    /// # Errors
    /// The system has no room for a thread.
    pub(super) fn start(bars: Option<Bars>) -> io::Result<Console> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            work: Condvar::new(),
            written: Condvar::new(),
        });
        let own = Arc::clone(&shared);
        threads::start("stderr", move || own.serve(bars, &mut io::stderr()))?;
        Ok(Console(shared))
    }

    /// Writes text that ends in a newline, unless too much waits already.
    pub fn log(&self, text: &[u8]) {
        self.0.put(|waiting| {
            if waiting.text.len() + text.len() > WAITING_MOST {
                waiting.dropped += 1;
            } else {
                waiting.text.extend_from_slice(text);
            }
        });
    }

    /// Writes text that ends in a newline, however much waits: for errors, which are few.
    pub fn insist(&self, text: &[u8]) {
        self.0.put(|waiting| waiting.text.extend_from_slice(text));
    }

    pub(super) fn show(&self, frame: Frame) {
        self.0.put(|waiting| waiting.frame = Some(frame));
    }

    /// How many lines were dropped since the last call, once there is room to say so.
    pub(super) fn take_dropped(&self) -> u64 {
        let mut waiting = self.0.lock();
        if waiting.text.len() > WAITING_MOST / 2 {
            return 0;
        }
        std::mem::take(&mut waiting.dropped)
    }

    /// Waits until everything is out, but not for a reader who takes nothing for two seconds.
    pub fn flush(&self) {
        let mut waiting = self.0.lock();
        waiting.urgent = true;
        self.0.work.notify_one();
        let mut seen = waiting.pieces;
        while !waiting.stuck && (waiting.writing || !waiting.is_empty()) {
            let (guard, timeout) = self
                .0
                .written
                .wait_timeout(waiting, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            waiting = guard;
            waiting.stuck = timeout.timed_out() && waiting.pieces == seen;
            seen = waiting.pieces;
        }
        waiting.urgent = false;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, change: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.lock();
        let asleep = waiting.is_empty();
        change(&mut waiting);
        if asleep {
            self.work.notify_one();
        }
    }

    /// The thread: for the life of the program, since the last word may be an error.
    fn serve(&self, mut bars: Option<Bars>, stderr: &mut impl Write) {
        loop {
            let (text, frame) = self.take();
            match &mut bars {
                Some(bars) => self.write(&bars.render(&text, frame), stderr),
                None => self.write(&text, stderr),
            }
            self.lock().writing = false;
            self.written.notify_all();
            if bars.is_some() {
                self.pause();
            }
        }
    }

    fn take(&self) -> (Vec<u8>, Option<Frame>) {
        let mut waiting = self.lock();
        while waiting.is_empty() {
            waiting = self
                .work
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        waiting.writing = true;
        (std::mem::take(&mut waiting.text), waiting.frame.take())
    }

    /// A stderr that is closed or full costs the text, nothing else.
    fn write(&self, bytes: &[u8], stderr: &mut impl Write) {
        for piece in bytes.chunks(PIECE) {
            let _ = stderr.write_all(piece);
            let mut waiting = self.lock();
            waiting.pieces += 1;
            waiting.stuck = false;
        }
    }

    fn pause(&self) {
        let waiting = self.lock();
        let _ = self
            .work
            .wait_timeout_while(waiting, REDRAW_EVERY, |waiting| !waiting.urgent);
    }
}

/// A log line on its way to the console.
#[derive(Debug)]
pub struct LogLine<'a> {
    console: &'a Console,
    level: Level,
}

impl Write for LogLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.level {
            Level::ERROR => self.console.insist(line),
            _ => self.console.log(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Console {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> LogLine<'a> {
        LogLine {
            console: self,
            level: Level::INFO,
        }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> LogLine<'a> {
        LogLine {
            console: self,
            level: *meta.level(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A console whose thread never comes: as if nobody read.
    fn unread() -> Console {
        Console(Arc::new(Shared {
            waiting: Mutex::default(),
            work: Condvar::new(),
            written: Condvar::new(),
        }))
    }

    #[test]
    fn nobody_waits_for_a_reader_and_what_is_dropped_is_counted() {
        let console = unread();
        let line = [b'x'; 1024];
        for _ in 0..5000 {
            console.log(&line);
        }
        let kept = console.0.lock().text.len();
        assert_eq!(kept, WAITING_MOST);
        console.insist(b"error: what matters\n");
        assert!(console.0.lock().text.ends_with(b"matters\n"));
        assert_eq!(console.take_dropped(), 0, "there is no room to say so");
        console.0.take();
        assert_eq!(console.take_dropped(), 5000 - WAITING_MOST as u64 / 1024);
        assert_eq!(console.take_dropped(), 0, "told once");
    }

    #[test]
    fn a_flush_gives_up_on_a_reader_that_takes_nothing_and_the_next_one_does_at_once() {
        let console = unread();
        console.log(b"a line\n");
        console.flush();
        assert!(console.0.lock().stuck);
        console.0.write(b"a reader came", &mut Vec::new());
        assert!(!console.0.lock().stuck);
    }

    #[test]
    fn lines_leave_in_the_order_in_which_they_came() {
        let console = unread();
        console.log(b"1\n");
        console.insist(b"2\n");
        let mut line = console.make_writer();
        line.write_all(b"3\n").unwrap();
        let (text, _) = console.0.take();
        assert_eq!(text, b"1\n2\n3\n");
    }
}
