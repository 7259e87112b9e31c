//! The live lines on a terminal, drawn with indicatif into memory; the console writes them.
//!
//! Log lines go above them. Each line is cut to the terminal's width at that moment: one that
//! wraps could not be erased.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::console::Frame;
use super::status::fit;

/// Where the size of the terminal is not known.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// The live lines.
#[derive(Debug)]
pub(super) struct Bars {
    bar: ProgressBar,
    canvas: Canvas,
}

impl Bars {
    pub(super) fn new() -> Bars {
        let canvas = Canvas::default();
        let target = ProgressDrawTarget::term_like(Box::new(canvas.clone()));
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is constant; without it indicatif's own does.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Bars { bar, canvas }
    }

    /// The bytes that put `text` above the live lines and change these to `frame`.
    pub(super) fn render(&mut self, text: &[u8], frame: Option<Frame>) -> Vec<u8> {
        if !text.is_empty() {
            let canvas = &self.canvas;
            self.bar.suspend(|| canvas.put(text));
        }
        match frame {
            None => {}
            Some(Frame::Draw(lines)) => {
                let columns = usize::from(self.canvas.width());
                let lines: Vec<&str> = lines.iter().map(|line| fit(line, columns)).collect();
                self.bar.set_message(lines.join("\n"));
            }
            Some(Frame::Erase) => self.bar.finish_and_clear(),
        }
        std::mem::take(&mut *self.canvas.lock())
    }
}

/// What is to be written, and the terminal's size.
#[derive(Clone, Debug, Default)]
struct Canvas(Arc<Mutex<Vec<u8>>>);

impl Canvas {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, bytes: &[u8]) {
        self.lock().extend_from_slice(bytes);
    }

    /// `CSI n c`; nothing for 0, which terminals take for 1.
    fn go(&self, n: usize, direction: char) -> io::Result<()> {
        if n > 0 {
            self.put(format!("\x1b[{n}{direction}").as_bytes());
        }
        Ok(())
    }

    fn size(&self) -> (u16, u16) {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let size = size.map(|size| (size.ws_col, size.ws_row));
        size.filter(|(columns, rows)| *columns > 0 && *rows > 0)
            .unwrap_or((COLUMNS, ROWS))
    }
}

impl TermLike for Canvas {
    fn width(&self) -> u16 {
        self.size().0
    }

    fn height(&self) -> u16 {
        self.size().1
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.go(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.go(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.go(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.go(n, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.put(text.as_bytes());
        self.put(b"\n");
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.put(text.as_bytes());
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.put(b"\r\x1b[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_are_drawn_logged_above_and_erased() {
        let mut bars = Bars::new();
        let two = || Some(Frame::Draw(vec!["one".to_owned(), "two".to_owned()]));
        let drawn = text(bars.render(b"", two()));
        assert!(drawn.contains("one") && drawn.contains("two"), "{drawn:?}");
        let logged = text(bars.render(b"a log line\n", None));
        let (before, after) = logged.split_once("a log line\n").unwrap();
        assert_eq!(
            before.matches("\x1b[2K").count(),
            2,
            "both are erased first"
        );
        assert!(
            after.contains("one") && after.contains("two"),
            "and drawn anew"
        );
        let erased = text(bars.render(b"", Some(Frame::Erase)));
        assert_eq!(erased.matches("\x1b[2K").count(), 2, "{erased:?}");
        assert!(!erased.contains("one"), "{erased:?}");
        assert_eq!(text(bars.render(b"after\n", None)), "after\n");
    }
}
