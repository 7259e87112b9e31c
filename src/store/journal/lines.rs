//! The lines of a stretch of a file: those that begin in it, to their ends.
//!
//! So the stretches of a file can be read apart, and each line belongs to one of them. What
//! is in memory is one block and one line, of that no more than 32 MiB.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A longer line is no record; memory stays bounded whatever the file is.
const LINE_MAX: usize = 32 << 20;
/// Bytes read at once.
const BLOCK: usize = 64 << 10;

/// Reads them one after the other.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    from: BufReader<ReadAt<'a>>,
    /// Where the next line begins.
    offset: u64,
    /// Lines that begin here or later are not ours.
    end: u64,
    line: Vec<u8>,
}

/// One line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Without its newline; of a line that is too long, the first part of it.
    pub text: &'a [u8],
    /// Where it is, newline included.
    pub at: Range<u64>,
    /// It has a newline.
    pub ended: bool,
}

impl<'a> Lines<'a> {
    /// The lines of `file` that begin in `range`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn that_begin_in(file: &'a File, range: Range<u64>) -> io::Result<Lines<'a>> {
        // A line begins at the start if the byte before it ends one.
        let offset = range.start.saturating_sub(1);
        let mut lines = Lines {
            from: BufReader::with_capacity(BLOCK, ReadAt { file, offset }),
            offset,
            end: range.end,
            line: Vec::new(),
        };
        if range.start > 0 {
            lines.skip_line()?;
        }
        Ok(lines)
    }

    /// Goes past the next newline, or to the end of the stretch.
    fn skip_line(&mut self) -> io::Result<()> {
        while self.offset < self.end {
            let buffer = self.from.fill_buf()?;
            let ours = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
            let ours = &buffer[..buffer.len().min(ours)];
            if ours.is_empty() {
                self.offset = self.end;
                break;
            }
            let newline = memchr::memchr(b'\n', ours);
            let taken = newline.map_or(ours.len(), |at| at + 1);
            self.from.consume(taken);
            self.offset += taken as u64;
            if newline.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// The next one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.offset >= self.end {
            return Ok(None);
        }
        let (length, ended) = self.read_line()?;
        if length == 0 {
            return Ok(None);
        }
        let start = self.offset;
        self.offset += length;
        Ok(Some(Line {
            text: &self.line,
            at: start..self.offset,
            ended,
        }))
    }

    /// Reads a line into `line`. Returns its length in the file, and whether it has a newline.
    fn read_line(&mut self) -> io::Result<(u64, bool)> {
        self.line.clear();
        let mut length = 0;
        loop {
            let buffer = self.from.fill_buf()?;
            let newline = memchr::memchr(b'\n', buffer);
            let text = &buffer[..newline.unwrap_or(buffer.len())];
            let room = LINE_MAX - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            let taken = newline.map_or(buffer.len(), |at| at + 1);
            self.from.consume(taken);
            length += taken as u64;
            if newline.is_some() || taken == 0 {
                return Ok((length, newline.is_some()));
            }
        }
    }
}

/// Reads on from an offset of its own, so that others can read the file at the same time.
#[derive(Debug)]
struct ReadAt<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for ReadAt<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_too_long_is_read_to_its_end_and_kept_in_part() {
        let mut file = tempfile::tempfile().unwrap();
        let long = vec![b'x'; LINE_MAX + BLOCK + 7];
        file.write_all(&long).unwrap();
        file.write_all(b"\nnext\n").unwrap();
        let after = long.len() as u64 + 1;
        let mut lines = Lines::that_begin_in(&file, 0..after + 1).unwrap();
        let first = lines.next().unwrap().unwrap();
        assert_eq!(
            (first.text.len(), first.at, first.ended),
            (LINE_MAX, 0..after, true)
        );
        let second = lines.next().unwrap().unwrap();
        assert_eq!((second.text, second.ended), (&b"next"[..], true));
        assert!(lines.next().unwrap().is_none());
        // None begins in its middle.
        let mut lines = Lines::that_begin_in(&file, 1000..after).unwrap();
        assert!(lines.next().unwrap().is_none());
    }
}
