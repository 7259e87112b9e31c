//! Records read back: the payload of one, and the header that a `revisit` points to.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use flate2::bufread::GzDecoder;

use super::OPEN;
use super::http::{self, Extent, Kind};
use super::text::Original;
use crate::model::{Framing, Record};

/// Longest header that is read, in bytes: of a record, or of HTTP in it.
const HEAD_MAX: usize = 1 << 20;

/// Whether the archived body that `record` points to is there, as far as sizes tell. `None`:
/// it points to no archive.
pub(in crate::store) fn is_stored(dir: &Path, record: &Record) -> Option<bool> {
    let (offset, length) = (record.offset?, record.length?);
    let file = record.file.as_deref()?;
    // One look: resume asks this for each entry, and no earlier run has left a segment open.
    let there = is_inside(file).then(|| std::fs::metadata(dir.join(file)).ok());
    let size = there.flatten().map_or(0, |meta| meta.len());
    Some(size > 0 && size >= offset.saturating_add(length))
}

/// The payload of the record that `record` points to: chunks undone, content coding as it
/// came. A `revisit` leads to the record with its payload.
///
/// # Errors
/// The segment is missing, or does not hold such a record there.
pub(in crate::store) fn payload(dir: &Path, record: &Record) -> io::Result<impl Read + use<>> {
    let file = record.file.as_deref().unwrap_or_default();
    let found = Found::at(dir, file, record.offset.unwrap_or_default())?;
    let found = match found.original() {
        None => found,
        Some(original) => Found::at(dir, &original.file(), original.offset)?,
    };
    Payload::of(found)
}

/// The path of a segment, which may be under way still. `None`: no file of ours.
fn segment(dir: &Path, file: &str) -> Option<PathBuf> {
    let path = is_inside(file).then(|| dir.join(file))?;
    if path.exists() {
        return Some(path);
    }
    Some(dir.join(format!("{file}{OPEN}")))
}

/// It leads nowhere but into the output directory.
fn is_inside(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    parts.all(|part| matches!(part, Component::Normal(_)))
}

/// A record: its header, and its block still to be read.
pub(super) struct Found {
    /// The name of its segment, without its directory.
    segment: String,
    offset: u64,
    fields: Vec<(String, String)>,
    block: BufReader<Box<dyn Read>>,
}

impl Found {
    /// The record at `offset` of `file`.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn at(dir: &Path, file: &str, offset: u64) -> io::Result<Found> {
        let path = segment(dir, file).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = BufReader::new(File::open(path)?);
        bytes.seek(SeekFrom::Start(offset))?;
        let source: Box<dyn Read> = if file.ends_with(".gz") {
            Box::new(GzDecoder::new(bytes))
        } else {
            Box::new(bytes)
        };
        let mut block = BufReader::new(source);
        let head = read_head(&mut block)?;
        let head = String::from_utf8_lossy(&head);
        let mut lines = head.lines();
        if !lines.next().is_some_and(|line| line.starts_with("WARC/1.")) {
            return Err(broken("no WARC record begins there"));
        }
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        Ok(Found {
            segment: file.rsplit('/').next().unwrap_or_default().to_owned(),
            offset,
            fields: fields.collect(),
            block,
        })
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let field = fields.find(|(is, _)| is.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    /// It holds a payload.
    pub(super) fn is_response(&self) -> bool {
        self.field("WARC-Type") == Some("response")
    }

    /// Where its payload is, if it is a `revisit`.
    fn original(&self) -> Option<Original> {
        let field = |name: &str| self.field(name).map(str::to_owned);
        Some(Original {
            id: field("WARC-Refers-To")?,
            uri: field("WARC-Refers-To-Target-URI")?,
            date: field("WARC-Refers-To-Date")?,
            segment: field("WARC-Refers-To-Filename")?,
            offset: self.field("WARC-Refers-To-File-Offset")?.parse().ok()?,
        })
    }

    /// What a `revisit` of its payload says about it.
    pub(super) fn as_original(&self) -> Option<Original> {
        match self.field("WARC-Type")? {
            "revisit" => self.original(),
            "response" => Some(Original {
                id: self.field("WARC-Record-ID")?.to_owned(),
                uri: self.field("WARC-Target-URI")?.to_owned(),
                date: self.field("WARC-Date")?.to_owned(),
                segment: self.segment.clone(),
                offset: self.offset,
            }),
            _ => None,
        }
    }
}

/// Reads up to and with an empty line.
fn read_head(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut lines = from.take(HEAD_MAX as u64);
    loop {
        let before = head.len();
        if lines.read_until(b'\n', &mut head)? == 0 {
            return Err(broken("a header without an end"));
        }
        if matches!(&head[before..], b"\n" | b"\r\n") {
            return Ok(head);
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads the payload of a response.
struct Payload {
    block: BufReader<Box<dyn Read>>,
    /// Bytes of the block that were not read.
    left: u64,
    extent: Extent,
}

impl Payload {
    fn of(mut found: Found) -> io::Result<Payload> {
        if !found.is_response() {
            return Err(broken("the record there is no response"));
        }
        let length = found.field("Content-Length").and_then(|n| n.parse().ok());
        let length: u64 = length.ok_or_else(|| broken("a record without a length"))?;
        let head = read_head(&mut found.block)?;
        let left = length
            .checked_sub(head.len() as u64)
            .ok_or_else(|| broken("a record that ends in its head"))?;
        let extent = match http::framing(&head) {
            Framing::Chunked => Extent::new(Framing::Chunked),
            Framing::Length(_) | Framing::Close => Extent::new(Framing::Length(left)),
        };
        Ok(Payload {
            block: found.block,
            left,
            extent,
        })
    }
}

impl Read for Payload {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.left > 0 && !out.is_empty() {
            let bytes = self.block.fill_buf()?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let most = bytes.len().min(out.len());
            let most = usize::try_from(self.left).map_or(most, |left| left.min(most));
            let Some((n, kind)) = self.extent.step(&bytes[..most]) else {
                break;
            };
            if kind == Kind::Data {
                out[..n].copy_from_slice(&bytes[..n]);
            }
            self.block.consume(n);
            self.left -= n as u64;
            if kind == Kind::Data {
                return Ok(n);
            }
        }
        Ok(0)
    }
}
