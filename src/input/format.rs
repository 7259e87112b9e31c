//! How a list is written: text, CSV or JSON Lines. Decided by name, never by guessing
//! from the content, so that the same list reads the same wherever it comes from.

use std::fmt;
use std::str::FromStr;

/// The three ways to write a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ListFormat {
    /// One entry per line.
    #[default]
    Text,
    /// A header row, then one entry per record (RFC 4180).
    Csv,
    /// One JSON object per line.
    Jsonl,
}

impl ListFormat {
    /// The format a file name (or the path of a URL) tells; `.gz` and `.zst` are looked
    /// through, anything unknown is text.
    pub fn of_name(name: &str) -> ListFormat {
        let name = name.to_ascii_lowercase();
        let name = name
            .strip_suffix(".gz")
            .or_else(|| name.strip_suffix(".zst"))
            .unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("csv") => ListFormat::Csv,
            Some("jsonl" | "ndjson" | "json") => ListFormat::Jsonl,
            _ => ListFormat::Text,
        }
    }
}

impl FromStr for ListFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<ListFormat, String> {
        match text {
            "text" => Ok(ListFormat::Text),
            "csv" => Ok(ListFormat::Csv),
            "jsonl" => Ok(ListFormat::Jsonl),
            _ => Err("write text, csv or jsonl".to_owned()),
        }
    }
}

impl fmt::Display for ListFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ListFormat::Text => "text",
            ListFormat::Csv => "csv",
            ListFormat::Jsonl => "jsonl",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_format_through_a_compression_suffix() {
        for (name, format) in [
            ("urls.txt", ListFormat::Text),
            ("urls", ListFormat::Text),
            ("a.csv/urls", ListFormat::Text),
            ("urls.CSV", ListFormat::Csv),
            ("urls.csv.gz", ListFormat::Csv),
            ("urls.jsonl.zst", ListFormat::Jsonl),
            ("urls.ndjson", ListFormat::Jsonl),
            ("urls.gz", ListFormat::Text),
        ] {
            assert_eq!(ListFormat::of_name(name), format, "{name}");
        }
    }

    #[test]
    fn a_format_is_read_as_it_is_written() {
        for format in [ListFormat::Text, ListFormat::Csv, ListFormat::Jsonl] {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("xml".parse::<ListFormat>().is_err());
    }
}
