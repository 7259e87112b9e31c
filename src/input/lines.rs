//! Bytes to numbered lines, as they arrive.
//!
//! Owns where a line ends and how long it may be; leaves what a line means to `rows` and
//! the encoding of the whole list to `source`. Invariant: every physical line comes out
//! exactly once, in order, whatever pieces the bytes came in, and no more than
//! [`MAX_LINE`] bytes of an unfinished line are kept.

use bytes::BytesMut;

/// Bytes a line may have, its ending left out. A longer one is dropped as it comes in.
pub const MAX_LINE: usize = 1 << 20;

/// What a line ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// LF, or the end of the list.
    Lf,
    /// CR LF.
    CrLf,
}

/// One physical line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// From 1.
    pub number: u64,
    /// Without its ending; `None`: longer than [`MAX_LINE`], so its bytes are gone.
    pub bytes: Option<BytesMut>,
    /// What was taken off.
    pub ending: Ending,
}

/// Splits pushed bytes into lines that are pulled.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: BytesMut,
    /// Bytes of `buffer` already known to hold no LF.
    scanned: usize,
    /// Number of the last line handed out.
    number: u64,
    /// The unfinished line has passed [`MAX_LINE`]; the rest of it is dropped.
    skipping: bool,
    ended: bool,
}

impl Lines {
    /// Where the next bytes of the list go: append them here, then pull the lines.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The list is over: what is left is its last line.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether [`Lines::end`] was called.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The next complete line, if its end has arrived.
    pub fn next_line(&mut self) -> Option<Line> {
        match memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
            Some(at) => {
                let mut bytes = self.buffer.split_to(self.scanned + at + 1);
                bytes.truncate(bytes.len() - 1);
                Some(self.line(bytes))
            }
            None if self.ended && (self.skipping || !self.buffer.is_empty()) => {
                let bytes = self.buffer.split();
                Some(self.line(bytes))
            }
            None => {
                self.keep_partial();
                None
            }
        }
    }

    /// Remembers that the rest of the buffer holds no line end, within bounds.
    fn keep_partial(&mut self) {
        // One byte more than a line may have, because a CR at its end does not count.
        if self.skipping || self.buffer.len() > MAX_LINE + 1 {
            self.skipping = true;
            self.buffer.clear();
        }
        self.scanned = self.buffer.len();
    }

    fn line(&mut self, mut bytes: BytesMut) -> Line {
        let ending = if bytes.ends_with(b"\r") {
            bytes.truncate(bytes.len() - 1);
            Ending::CrLf
        } else {
            Ending::Lf
        };
        let whole = !self.skipping && bytes.len() <= MAX_LINE;
        self.scanned = 0;
        self.skipping = false;
        self.number += 1;
        Line {
            number: self.number,
            bytes: whole.then_some(bytes),
            ending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&[u8]]) -> Vec<(u64, Option<String>)> {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        let mut pull = |lines: &mut Lines| {
            while let Some(line) = lines.next_line() {
                let text = line.bytes.map(|b| String::from_utf8_lossy(&b).into_owned());
                out.push((line.number, text));
            }
        };
        for piece in pieces {
            lines.buffer().extend_from_slice(piece);
            pull(&mut lines);
        }
        lines.end();
        pull(&mut lines);
        out
    }

    fn texts(pieces: &[&[u8]]) -> Vec<String> {
        let lines = split(pieces);
        lines.into_iter().map(|(_, text)| text.unwrap()).collect()
    }

    #[test]
    fn carriage_returns_go_and_the_last_line_needs_no_end() {
        assert_eq!(texts(&[b"a\r\nb\n\r\nc"]), ["a", "b", "", "c"]);
        assert_eq!(texts(&[b"a\n"]), ["a"]);
        assert_eq!(texts(&[b"a\r"]), ["a"]);
        assert!(texts(&[]).is_empty());
    }

    #[test]
    fn a_line_may_arrive_in_pieces_that_part_cr_from_lf() {
        assert_eq!(
            texts(&[b"on", b"e\r", b"\ntw", b"o\n", b"", b"x"]),
            ["one", "two", "x"]
        );
    }

    #[test]
    fn a_carriage_return_inside_a_line_stays() {
        assert_eq!(texts(&[b"a\rb\n"]), ["a\rb"]);
    }

    #[test]
    fn a_line_of_the_limit_is_whole_and_one_byte_more_is_dropped_alone() {
        let fits = vec![b'x'; MAX_LINE];
        let long = vec![b'x'; MAX_LINE + 1];
        let lines = split(&[&fits, b"\r\n", &long, b"\n", b"after\n", &long, &long]);
        let seen: Vec<_> = lines
            .iter()
            .map(|(n, text)| (*n, text.as_ref().map(String::len)))
            .collect();
        assert_eq!(
            seen,
            [(1, Some(MAX_LINE)), (2, None), (3, Some(5)), (4, None)]
        );
    }

    #[test]
    fn an_endless_line_keeps_no_memory() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            lines.buffer().extend_from_slice(&[b'x'; 64 << 10]);
            assert!(lines.next_line().is_none());
            assert!(lines.buffer().len() <= MAX_LINE + 1);
        }
    }
}
