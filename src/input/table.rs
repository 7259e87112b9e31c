//! Physical lines to CSV records.
//!
//! Owns quoting (RFC 4180, quoted line ends included) and what becomes of a quote that is
//! never closed; leaves header and cells to `rows`. Invariant: every line is part of
//! exactly one record, and a bad record costs its own first line only.
//!
//! `csv-core` and not `csv`: it takes bytes as they arrive and says when a record is
//! complete, while a `csv::Reader` pulls from a blocking reader and would hold a complete
//! record back until its buffer is full.

use std::collections::VecDeque;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::lines::{Ending, Line, MAX_LINE};

/// One CSV record.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// The physical line it starts on.
    pub line: u64,
    /// Its cells as bytes, or why there are none.
    pub cells: Result<Vec<Vec<u8>>, &'static str>,
}

/// Assembles records from pushed lines.
pub struct Table {
    parser: Reader,
    /// Unescaped bytes of the record under way and where its cells end.
    text: Vec<u8>,
    text_len: usize,
    ends: Vec<usize>,
    ends_len: usize,
    /// Lines of the record under way, kept so that they can be read again on their own
    /// if its quote turns out never to be closed.
    open: Vec<Line>,
    open_bytes: usize,
    /// Lines that wait to be read (again).
    waiting: VecDeque<Line>,
}

impl Table {
    /// Nothing read yet.
    pub fn new() -> Table {
        Table {
            // A bare CR is data: one physical line ends at most one record.
            parser: ReaderBuilder::new()
                .terminator(Terminator::Any(b'\n'))
                .build(),
            text: vec![0; 1024],
            text_len: 0,
            ends: vec![0; 32],
            ends_len: 0,
            open: Vec::new(),
            open_bytes: 0,
            waiting: VecDeque::new(),
        }
    }

    /// The next line of the list.
    pub fn push(&mut self, line: Line) {
        self.waiting.push_back(line);
    }

    /// The next complete record; blank lines between records are passed over.
    pub fn next_record(&mut self) -> Option<Record> {
        while let Some(line) = self.waiting.pop_front() {
            let record = self.take(line);
            if record.is_some() {
                return record;
            }
        }
        None
    }

    /// To be called when no line will follow: a record that is still open is refused, and
    /// [`Table::next_record`] then gives what the open quote had swallowed.
    pub fn end(&mut self) -> Option<Record> {
        (!self.open.is_empty()).then(|| self.give_up_quote())
    }

    fn take(&mut self, line: Line) -> Option<Record> {
        let Some(bytes) = &line.bytes else {
            return Some(self.too_long(line));
        };
        if self.open.is_empty() && bytes.trim_ascii().is_empty() {
            return None;
        }
        if self.open_bytes + bytes.len() > MAX_LINE {
            self.waiting.push_front(line);
            return Some(self.give_up_quote());
        }
        self.parse(bytes);
        let complete = match line.ending {
            Ending::Lf => self.parse(b"\n"),
            Ending::CrLf => self.parse(b"\r\n"),
        };
        self.open_bytes += bytes.len();
        let ending = line.ending;
        self.open.push(line);
        complete.then(|| self.finish(ending))
    }

    /// An over-long line inside a quoted cell ends the hope that the quote gets closed.
    fn too_long(&mut self, line: Line) -> Record {
        if !self.open.is_empty() {
            self.waiting.push_front(line);
            return self.give_up_quote();
        }
        Record {
            line: line.number,
            cells: Err("is longer than 1 MiB"),
        }
    }

    /// Feeds `input` to the parser; `true` if it ended the record.
    fn parse(&mut self, mut input: &[u8]) -> bool {
        // An empty input would mean the end of all input to the parser.
        while !input.is_empty() {
            let (result, read, wrote, ended) = self.parser.read_record(
                input,
                &mut self.text[self.text_len..],
                &mut self.ends[self.ends_len..],
            );
            input = &input[read..];
            self.text_len += wrote;
            self.ends_len += ended;
            match result {
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record | ReadRecordResult::End => return true,
            }
        }
        false
    }

    fn finish(&mut self, ending: Ending) -> Record {
        let mut from = 0;
        let mut cells: Vec<Vec<u8>> = Vec::with_capacity(self.ends_len);
        for &to in &self.ends[..self.ends_len] {
            cells.push(self.text[from..to].to_vec());
            from = to;
        }
        // The CR of the line's own end was read as data of the last cell.
        if let (Ending::CrLf, Some(last)) = (ending, cells.last_mut())
            && last.last() == Some(&b'\r')
        {
            last.pop();
        }
        let line = self.open.first().map_or(0, |line| line.number);
        self.restart();
        Record {
            line,
            cells: Ok(cells),
        }
    }

    /// Refuses the line with the quote and queues the lines behind it once more. They hold
    /// no quote but doubled ones, or it would have been closed, so this happens once.
    fn give_up_quote(&mut self) -> Record {
        let mut lines = std::mem::take(&mut self.open).into_iter();
        let line = lines.next().map_or(0, |line| line.number);
        for line in lines.rev() {
            self.waiting.push_front(line);
        }
        self.parser.reset();
        self.restart();
        Record {
            line,
            cells: Err("opens a quote that is not closed within 1 MiB or the list"),
        }
    }

    fn restart(&mut self) {
        self.text_len = 0;
        self.ends_len = 0;
        self.open.clear();
        self.open_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::lines::Lines;

    type Read = (u64, Result<Vec<String>, &'static str>);

    fn read(list: &[u8]) -> Vec<Read> {
        let mut lines = Lines::default();
        lines.buffer().extend_from_slice(list);
        lines.end();
        let mut table = Table::new();
        while let Some(line) = lines.next_line() {
            table.push(line);
        }
        let text = |cell: Vec<u8>| String::from_utf8(cell).unwrap();
        std::iter::from_fn(|| table.next_record().or_else(|| table.end()))
            .map(|record| {
                let cells = record.cells.map(|c| c.into_iter().map(text).collect());
                (record.line, cells)
            })
            .collect()
    }

    fn cells(line: u64, cells: &[&str]) -> Read {
        (line, Ok(cells.iter().map(|&c| c.to_owned()).collect()))
    }

    #[test]
    fn records_carry_the_line_they_start_on_and_blank_lines_do_not_count() {
        assert_eq!(
            read(b"a,b\r\n\r\n \n1,\"x\r\n\r\ny\"\r\n2,"),
            [
                cells(1, &["a", "b"]),
                cells(4, &["1", "x\r\n\r\ny"]),
                cells(7, &["2", ""])
            ]
        );
    }

    #[test]
    fn doubled_quotes_commas_and_carriage_returns_inside_quotes_are_data() {
        assert_eq!(
            read(b"\"a\"\"b,c\",\"d\r\"\r\n\"e\"\r\n"),
            [cells(1, &["a\"b,c", "d\r"]), cells(2, &["e"])]
        );
    }

    #[test]
    fn a_quote_never_closed_costs_its_own_line_only() {
        let read = read(b"a,b\n1,\"x\n2,y\n3,z");
        assert_eq!(read[0], cells(1, &["a", "b"]));
        assert_eq!(read[1].0, 2);
        assert!(read[1].1.is_err());
        assert_eq!(read[2..], [cells(3, &["2", "y"]), cells(4, &["3", "z"])]);
    }

    #[test]
    fn an_open_quote_holds_a_mebibyte_at_most() {
        let mut list = b"\"open\n".to_vec();
        let line = [b'x'; 1023];
        for _ in 0..2048 {
            list.extend_from_slice(&line);
            list.push(b'\n');
        }
        list.extend_from_slice(b"closed\"\n");
        let read = read(&list);
        assert_eq!(read.len(), 2050);
        assert_eq!(read.iter().filter(|(_, cells)| cells.is_err()).count(), 1);
    }

    #[test]
    fn many_wide_and_long_cells_grow_the_room() {
        for width in [31, 32, 33, 64, 500] {
            let wide = vec!["x".repeat(32); width];
            let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
            let list = format!("{0}\n{0}\n", wide.join(","));
            let expected = [cells(1, &wide), cells(2, &wide)];
            assert_eq!(read(list.as_bytes()), expected, "{width}");
        }
    }

    #[test]
    fn an_over_long_line_is_refused_alone_even_inside_a_quote() {
        let long = "x".repeat(MAX_LINE + 1);
        let read = read(format!("a\n\"b\n{long}\nc\n").as_bytes());
        let lines: Vec<_> = read.iter().map(|(n, c)| (*n, c.is_ok())).collect();
        assert_eq!(lines, [(1, true), (2, false), (3, false), (4, true)]);
    }
}
