//! The segments of a run, and what goes into them.
//!
//! One is open at a time and is added to by whole exchanges, each one write: first its
//! request and its metadata, its response last, so that the record that the journal points
//! to ends what belongs to it. An answer that came through a file is copied behind them, or,
//! when it is long, becomes a segment of its own: a link instead of seconds of copying in
//! the engine's loop.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::capture::{Captured, Response};
use super::gzip::Gzip;
use super::read::Found;
use super::seen::{Place, Seen};
use super::spool::Spooled;
use super::text::{self, END, Length, Original};
use super::{Archive, DIR, OPEN, WarcForm, put};
use crate::model::PhaseTimes;
use crate::store::{StoreError, backwards};

/// A segment of this many bytes is full: 1 GB, as the standard recommends.
const FULL: u64 = 1_000_000_000;
/// A response longer than this has a segment of its own. A larger bound makes fewer files
/// and lets the engine wait longer for a copy (about 1 ms per 4 MiB).
const OWN: u64 = 16 << 20;

/// Writes the segments of one directory.
#[derive(Debug)]
pub struct Segments {
    archive: Archive,
    out: PathBuf,
    dir: PathBuf,
    open: Option<Open>,
    /// Number of the next segment.
    next: u32,
    full: u64,
    own: u64,
    seen: Seen,
    gzip: Option<Gzip>,
    buffer: Vec<u8>,
}

/// The segment that is being written.
#[derive(Debug)]
struct Open {
    number: u32,
    file: File,
    path: PathBuf,
    /// Whole exchanges end here.
    len: u64,
}

/// What is recorded of an exchange besides its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Id of the exit that it went through.
    pub exit: &'a str,
    /// The listed URL, where redirects have led to another one.
    pub listed: Option<&'a str>,
    /// How long its phases took.
    pub phases: &'a PhaseTimes,
}

/// Where a body is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its segment, relative to the output directory.
    pub file: String,
    /// Where its record begins.
    pub offset: u64,
    /// Bytes of its record.
    pub length: u64,
}

/// What a journal's line says of a payload that can be found again.
#[derive(Deserialize)]
struct Recorded {
    file: String,
    offset: u64,
    bytes: u64,
    sha256: String,
    content_encoding: Option<String>,
}

impl Segments {
    /// Goes on behind what `out` holds; `journal` tells which payloads these are.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub(in crate::store) fn open(
        out: &Path,
        archive: Archive,
        journal: &File,
    ) -> Result<Segments, StoreError> {
        let dir = out.join(DIR);
        std::fs::create_dir_all(&dir).map_err(StoreError::io("create", &dir))?;
        let mut segments = Segments {
            next: last_number(&dir).map_err(StoreError::io("read", &dir))? + 1,
            gzip: archive.gzip(),
            archive,
            out: out.to_owned(),
            dir,
            open: None,
            full: FULL,
            own: OWN,
            seen: Seen::new(),
            buffer: Vec::new(),
        };
        segments
            .remember(journal)
            .map_err(StoreError::io("read", &out.join("results.jsonl")))?;
        Ok(segments)
    }

    /// Takes in the payloads that earlier runs have archived, the latest first, as many as
    /// are kept in mind. Coded ones are passed over: the journal has no digest of them.
    fn remember(&mut self, journal: &File) -> io::Result<()> {
        let text = format!("\"file\":\"{DIR}/");
        let seen = &mut self.seen;
        backwards::find(journal, text.as_bytes(), |line| {
            let recorded = serde_json::from_slice::<Recorded>(line).ok()?;
            let plain = recorded.content_encoding.is_none() && recorded.bytes > 0;
            if plain
                && let Some(digest) = unhex(&recorded.sha256)
                && let Some(segment) = number(recorded.file.strip_prefix(DIR)?)
            {
                let offset = recorded.offset;
                seen.insert_older(&digest, Place { segment, offset });
            }
            seen.is_full().then_some(())
        })?;
        Ok(())
    }

    /// Adds an exchange. Nothing of it is left when that fails.
    ///
    /// # Errors
    /// The disk refused, or less than `--min-free` is left.
    pub fn append(&mut self, captured: Captured, facts: Facts<'_>) -> Result<Placed, StoreError> {
        self.buffer.clear();
        self.put_context(&captured, facts);
        let of = &captured.common;
        let payload = captured.payload;
        if let Some(digest) = payload
            && let Some(original) = self.original(&digest)
        {
            let head = captured.response.head();
            let header = text::revisit(of, digest, &original, head.len());
            return self.write(&[header.as_bytes(), head, END]);
        }
        let placed = match captured.response {
            Response::Memory { bytes, .. } => {
                let length = Length::Known(bytes.len() as u64);
                let header = text::response(of, captured.digest, length);
                self.write(&[header.as_bytes(), &bytes, END])?
            }
            Response::File { spooled, .. } if spooled.len - spooled.start > self.own => {
                self.write_own(spooled)?
            }
            Response::File { spooled, .. } => self.copy(&spooled)?,
        };
        if let (Some(digest), Some(segment)) = (payload, number(&placed.file[DIR.len()..])) {
            let offset = placed.offset;
            self.seen.insert(&digest, Place { segment, offset });
        }
        Ok(placed)
    }

    /// Request and metadata, into the buffer.
    fn put_context(&mut self, captured: &Captured, facts: Facts<'_>) {
        let of = &captured.common;
        let request = &captured.request;
        let block = text::facts(facts.exit, facts.listed, facts.phases);
        let about = text::metadata(self.archive.id(), of, block.len());
        let asked = text::request(self.archive.id(), of, request.len());
        let out = &mut self.buffer;
        put(self.gzip.as_mut(), &[asked.as_bytes(), request, END], out);
        put(
            self.gzip.as_mut(),
            &[about.as_bytes(), block.as_bytes(), END],
            out,
        );
    }

    /// The record that holds this payload, if it is there still.
    fn original(&self, digest: &[u8; 32]) -> Option<Original> {
        let place = self.seen.get(digest)?;
        let found = [WarcForm::Plain, WarcForm::Gzip].iter().find_map(|form| {
            let file = form.file(place.segment);
            Found::at(&self.out, &file, place.offset).ok()
        })?;
        let original = found.as_original()?;
        if found.is_response() {
            return Some(original);
        }
        let there = Found::at(&self.out, &original.file(), original.offset).ok()?;
        there.is_response().then_some(original)
    }

    /// What is in the buffer and, behind it, the record of these parts.
    fn write(&mut self, parts: &[&[u8]]) -> Result<Placed, StoreError> {
        let start = self.buffer.len();
        put(self.gzip.as_mut(), parts, &mut self.buffer);
        let length = (self.buffer.len() - start) as u64;
        self.add(start as u64, length, |_| Ok(()))
    }

    /// What is in the buffer and, behind it, the record that is in a file.
    fn copy(&mut self, spooled: &Spooled) -> Result<Placed, StoreError> {
        let start = self.buffer.len() as u64;
        let length = spooled.len - spooled.start;
        self.add(start, length, |open| {
            let mut from = spooled.temp.file();
            from.seek(SeekFrom::Start(spooled.start))?;
            open.file.seek(SeekFrom::Start(open.len + start))?;
            let copied = io::copy(&mut from.take(length), &mut open.file)?;
            if copied < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(())
        })
    }

    /// Adds the buffer to the open segment, then what `more` writes behind it.
    fn add(
        &mut self,
        start: u64,
        length: u64,
        more: impl FnOnce(&mut Open) -> io::Result<()>,
    ) -> Result<Placed, StoreError> {
        self.archive.bodies().spend(start + length)?;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        let written = open.file.write_all_at(&self.buffer, open.len);
        if let Err(error) = written.and_then(|()| more(&mut open)) {
            let failed = StoreError::io("write", &open.path)(error);
            // Should this fail too, it stays open for the next run to cut.
            if open.file.set_len(open.len).is_ok() {
                self.open = Some(open);
            }
            return Err(failed);
        }
        let placed = Placed {
            file: self.archive.0.form.file(open.number),
            offset: open.len + start,
            length,
        };
        open.len += start + length;
        self.open = Some(open);
        Ok(placed)
    }

    /// A new segment, with its `warcinfo`.
    fn begin(&mut self) -> Result<Open, StoreError> {
        let number = self.next;
        let path = self.out.join(self.archive.0.form.file(number) + OPEN);
        let mut info = Vec::new();
        self.archive.put_warcinfo(self.gzip.as_mut(), &mut info);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(StoreError::io("create", &path))?;
        self.next += 1;
        file.write_all_at(&info, 0)
            .map_err(StoreError::io("write", &path))?;
        Ok(Open {
            number,
            file,
            path,
            len: info.len() as u64,
        })
    }

    /// A file that begins with a `warcinfo` becomes a segment; what is in the buffer ends it.
    fn write_own(&mut self, spooled: Spooled) -> Result<Placed, StoreError> {
        let bodies = self.archive.bodies();
        let Spooled { temp, start, len } = spooled;
        temp.file()
            .write_all_at(&self.buffer, len)
            .map_err(StoreError::io("write", &self.dir))?;
        let file = self.archive.0.form.file(self.next);
        bodies.files().commit(temp, &file)?;
        self.next += 1;
        Ok(Placed {
            file,
            offset: start,
            length: len - start,
        })
    }

    /// Ends the open segment if it is full. What it holds is in the journal by now.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn roll(&mut self) -> Result<(), StoreError> {
        match &self.open {
            Some(open) if open.len >= self.full => self.end(),
            _ => Ok(()),
        }
    }

    /// Gives the open segment its final name.
    ///
    /// # Errors
    /// It cannot be renamed; the next run does it.
    pub(in crate::store) fn end(&mut self) -> Result<(), StoreError> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let whole = self.out.join(self.archive.0.form.file(open.number));
        std::fs::rename(&open.path, &whole).map_err(StoreError::io("rename", &open.path))
    }

    /// With other bounds, for tests.
    #[cfg(test)]
    pub(super) fn with_bounds(mut self, full: u64, own: u64) -> Segments {
        (self.full, self.own) = (full, own);
        self
    }
}

impl Response {
    fn head(&self) -> &[u8] {
        match self {
            Response::Memory { bytes, head } => &bytes[..*head],
            Response::File { head, .. } => head,
        }
    }
}

/// The highest number of a segment in `dir`, or 0.
fn last_number(dir: &Path) -> io::Result<u32> {
    let mut last = 0;
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        last = last.max(name.to_str().and_then(number).unwrap_or(0));
    }
    Ok(last)
}

/// The number of a segment by its file name.
fn number(name: &str) -> Option<u32> {
    let name = name.trim_start_matches('/');
    let (digits, rest) = name.split_at(name.find('.')?);
    let ours = rest.starts_with(".warc");
    ours.then(|| digits.parse().ok()).flatten()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (n, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * n..2 * n + 2], 16).ok()?;
    }
    Some(bytes)
}
