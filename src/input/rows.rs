//! Lines to rows: the layer at which text, CSV and JSON Lines stop to differ.
//!
//! Owns what does not count (blank lines, comments) and what cannot be read (encoding,
//! JSON syntax, row shape); leaves what the fields mean to `urls` and `exits`. Invariant:
//! every line (CSV: record) that counts comes out as exactly one row.

use bytes::BytesMut;
use serde_json::{Map, Value};

use super::Reason;
use super::format::ListFormat;
use super::lines::{Line, Lines};
use super::table::{Record, Table};

/// One row of a list.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// The physical line it starts on, from 1.
    pub line: u64,
    /// What it holds.
    pub content: Content,
}

/// What a row holds.
#[derive(Debug, PartialEq)]
pub enum Content {
    /// A line of a text list, outer blanks removed, never empty.
    Text(String),
    /// The first record of a CSV list: its column names, outer blanks removed, or why they
    /// cannot be read. No entry.
    Header(Result<Vec<String>, Reason>),
    /// A further record of a CSV list.
    Cells(Vec<String>),
    /// A line of a JSONL list.
    Object(Map<String, Value>),
    /// An entry nobody can make sense of.
    Unreadable(Reason),
}

/// Rows of a list whose bytes are pushed into [`Rows::lines`].
pub struct Rows {
    lines: Lines,
    grammar: Grammar,
}

enum Grammar {
    Text,
    Csv { table: Box<Table>, header: Header },
    Jsonl,
}

/// Whether the header record has been seen.
enum Header {
    Awaited,
    Read,
}

impl Rows {
    /// Rows of a list written in `format`.
    pub fn new(format: ListFormat) -> Rows {
        Rows {
            lines: Lines::default(),
            grammar: match format {
                ListFormat::Text => Grammar::Text,
                ListFormat::Jsonl => Grammar::Jsonl,
                ListFormat::Csv => Grammar::Csv {
                    table: Box::new(Table::new()),
                    header: Header::Awaited,
                },
            },
        }
    }

    /// Where the next bytes of the list go.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.lines.buffer()
    }

    /// The list is over.
    pub fn end(&mut self) {
        self.lines.end();
    }

    /// The next row, if all of it has arrived.
    pub fn next_row(&mut self) -> Option<Row> {
        match &mut self.grammar {
            Grammar::Text => next_of(&mut self.lines, text_row),
            Grammar::Jsonl => next_of(&mut self.lines, json_row),
            Grammar::Csv { table, header } => {
                next_record(&mut self.lines, table).map(|record| table_row(record, header))
            }
        }
    }
}

fn next_of(lines: &mut Lines, row: fn(Line) -> Option<Row>) -> Option<Row> {
    loop {
        if let Some(row) = row(lines.next_line()?) {
            return Some(row);
        }
    }
}

fn next_record(lines: &mut Lines, table: &mut Table) -> Option<Record> {
    loop {
        if let Some(record) = table.next_record() {
            return Some(record);
        }
        match lines.next_line() {
            Some(line) => table.push(line),
            None if lines.ended() => return table.end(),
            None => return None,
        }
    }
}

const TOO_LONG: &str = "is longer than 1 MiB";
const NOT_UTF8: &str = "is not UTF-8";

fn text_row(line: Line) -> Option<Row> {
    let content = match &line.bytes {
        None => Content::Unreadable(TOO_LONG.into()),
        Some(bytes) => match std::str::from_utf8(bytes).map(str::trim) {
            Ok("") => return None,
            Ok(text) if text.starts_with('#') => return None,
            Ok(text) => Content::Text(text.to_owned()),
            // A comment is skipped whatever its encoding.
            Err(_) if bytes.trim_ascii_start().starts_with(b"#") => return None,
            Err(_) => Content::Unreadable(NOT_UTF8.into()),
        },
    };
    let line = line.number;
    Some(Row { line, content })
}

fn json_row(line: Line) -> Option<Row> {
    let content = match &line.bytes {
        None => Content::Unreadable(TOO_LONG.into()),
        Some(bytes) => match std::str::from_utf8(bytes).map(str::trim) {
            Ok("") => return None,
            Ok(text) => object(text),
            Err(_) => Content::Unreadable(NOT_UTF8.into()),
        },
    };
    let line = line.number;
    Some(Row { line, content })
}

fn object(text: &str) -> Content {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Content::Object(members),
        Ok(_) => Content::Unreadable("is not a JSON object: write one object per line".into()),
        // The parser's own words could quote the line; the place is enough.
        Err(error) => {
            Content::Unreadable(format!("is not valid JSON (column {})", error.column()).into())
        }
    }
}

fn table_row(record: Record, header: &mut Header) -> Row {
    let cells: Result<Vec<String>, Reason> = match record.cells {
        Ok(cells) => cells
            .into_iter()
            .map(|cell| String::from_utf8(cell).map_err(|_| NOT_UTF8.into()))
            .collect(),
        Err(reason) => Err(reason.into()),
    };
    let content = match (std::mem::replace(header, Header::Read), cells) {
        (Header::Awaited, names) => Content::Header(names.map(trimmed)),
        (Header::Read, Ok(cells)) => Content::Cells(cells),
        (Header::Read, Err(reason)) => Content::Unreadable(reason),
    };
    Row {
        line: record.line,
        content,
    }
}

fn trimmed(names: Vec<String>) -> Vec<String> {
    names.iter().map(|name| name.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(format: ListFormat, pieces: &[&[u8]]) -> Vec<Row> {
        let mut rows = Rows::new(format);
        let mut out = Vec::new();
        for piece in pieces {
            rows.buffer().extend_from_slice(piece);
            out.extend(std::iter::from_fn(|| rows.next_row()));
        }
        rows.end();
        out.extend(std::iter::from_fn(|| rows.next_row()));
        out
    }

    fn lines(rows: &[Row]) -> Vec<u64> {
        rows.iter().map(|row| row.line).collect()
    }

    #[test]
    fn blank_lines_and_comments_of_a_text_list_do_not_count() {
        let list = b"# head\n\n  a b \t\n \t \n\t# inner\nx#y\n# Pr\xfcfung\n\xff\n";
        let rows = rows(ListFormat::Text, &[list]);
        assert_eq!(lines(&rows), [3, 6, 8]);
        assert_eq!(rows[0].content, Content::Text("a b".into()));
        assert_eq!(rows[1].content, Content::Text("x#y".into()));
        assert_eq!(rows[2].content, Content::Unreadable(NOT_UTF8.into()));
    }

    #[test]
    fn a_json_line_that_is_no_object_is_refused_by_place_and_not_quoted() {
        let list = b"{\"a\":1}\n\n[1]\n{\"pw\": hunter2}\n\"x\"\n";
        let rows = rows(ListFormat::Jsonl, &[list]);
        assert_eq!(lines(&rows), [1, 3, 4, 5]);
        assert!(matches!(&rows[0].content, Content::Object(o) if o.len() == 1));
        assert!(matches!(&rows[2].content, Content::Unreadable(r)
            if r.contains("column 8") && !r.contains("hunter2")));
    }

    #[test]
    fn the_first_record_of_a_csv_list_is_its_header() {
        let rows = rows(ListFormat::Csv, &[b"\n url , id\nx,\xff\ny,1"]);
        assert_eq!(lines(&rows), [2, 3, 4]);
        let names = vec!["url".to_owned(), "id".to_owned()];
        assert_eq!(rows[0].content, Content::Header(Ok(names)));
        assert!(matches!(rows[1].content, Content::Unreadable(_)));
    }

    #[test]
    fn a_row_comes_out_as_soon_as_its_line_is_complete() {
        for format in [ListFormat::Text, ListFormat::Csv, ListFormat::Jsonl] {
            let mut rows = Rows::new(format);
            rows.buffer().extend_from_slice(b"{\"a\":1}\n{");
            assert!(rows.next_row().is_some(), "{format}");
            assert!(rows.next_row().is_none(), "{format}");
        }
    }

    /// Bytes that meet the grammars more often than plain noise does.
    fn soup() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(&b"\n"[..]),
            Just(&b"\r\n"[..]),
            Just(&b"\""[..]),
            Just(&b","[..]),
            Just(&b"#"[..]),
            Just(&b" "[..]),
            Just(&b"{\"url\":\"http://o.test/\"}"[..]),
            Just(&b"http://u:p@o.test/"[..]),
            Just(&b"\xff\0"[..]),
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn how_the_bytes_arrive_changes_nothing(soup in soup(), cut in any::<prop::sample::Index>()) {
            for format in [ListFormat::Text, ListFormat::Csv, ListFormat::Jsonl] {
                let whole = rows(format, &[&soup]);
                let bytewise: Vec<&[u8]> = soup.chunks(1).collect();
                prop_assert_eq!(&rows(format, &bytewise), &whole);
                let (head, tail) = soup.split_at(cut.index(soup.len() + 1));
                prop_assert_eq!(&rows(format, &[head, tail]), &whole);
            }
        }

        #[test]
        fn every_line_that_counts_is_one_row(soup in soup()) {
            let blank = |line: &[u8]| line.trim_ascii().is_empty();
            let comment = |line: &[u8]| line.trim_ascii().starts_with(b"#");
            let count = |skip: &dyn Fn(&[u8]) -> bool| {
                soup.split(|&b| b == b'\n').filter(|line| !skip(line)).count()
            };
            let text = rows(ListFormat::Text, &[&soup]);
            prop_assert_eq!(text.len(), count(&|line| blank(line) || comment(line)));
            prop_assert_eq!(rows(ListFormat::Jsonl, &[&soup]).len(), count(&blank));
            // Quotes may join lines of a CSV list, never part or reorder them.
            let csv = lines(&rows(ListFormat::Csv, &[&soup]));
            prop_assert!(csv.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
