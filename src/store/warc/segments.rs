//! The segments of a run, and what goes into them.
//!
//! One is open at a time and is added to by whole exchanges: first its request and its
//! metadata, its response last, so that the record that the journal points to ends what
//! belongs to it. Short exchanges wait in memory for [`Segments::flush`], several in one write.
//! An answer that came through a file is copied behind them, or, when it is long, becomes a
//! segment of its own: a link instead of seconds of copying in the engine's loop.

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
use super::text::{self, Original};
use super::{Archive, DIR, OPEN, WarcForm, put};
use crate::model::PhaseTimes;
use crate::store::{StoreError, backwards};

/// A segment of this many bytes is full: 1 GB, as the standard recommends.
const FULL: u64 = 1_000_000_000;
/// A response longer than this has a segment of its own. A larger bound makes fewer files
/// and lets the engine wait longer for a copy (about 1 ms per 4 MiB).
const OWN: u64 = 16 << 20;
/// Exchanges of so many bytes are worth a write. More: hardly fewer writes per exchange, and
/// more to be fetched again when the disk is full.
const BUFFER: usize = 64 << 10;

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
    /// Whole exchanges that follow what the open segment holds.
    buffer: Vec<u8>,
}

/// The segment that is being written.
#[derive(Debug)]
struct Open {
    number: u32,
    /// Its file when it is done, relative to the output directory.
    whole: String,
    file: File,
    path: PathBuf,
    /// Bytes written; whole exchanges end here.
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
    /// The segment's number.
    segment: u32,
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

    /// Adds an exchange. Nothing of it is left when that fails. It is in the file when
    /// [`Segments::flush`] has succeeded.
    ///
    /// # Errors
    /// The disk refused, or less than `--min-free` is left.
    pub fn append(&mut self, captured: Captured, facts: Facts<'_>) -> Result<Placed, StoreError> {
        let original = match captured.payload {
            Some(digest) => self.original(&digest)?,
            None => None,
        };
        if matches!(captured.response, Response::File { .. }) {
            self.flush()?;
        }
        let before = self.buffer.len();
        let placed = self.add(captured, original, facts);
        if placed.is_err() {
            self.buffer.truncate(before);
        }
        placed
    }

    fn add(
        &mut self,
        captured: Captured,
        original: Option<Original>,
        facts: Facts<'_>,
    ) -> Result<Placed, StoreError> {
        let before = self.buffer.len();
        self.put_context(&captured, facts);
        let of = &captured.common;
        if let (Some(payload), Some(original)) = (&captured.payload, original) {
            let head = captured.response.head();
            return self.put_record(before, |out| {
                text::revisit(out, of, payload, &original, head);
            });
        }
        let placed = match captured.response {
            Response::Memory { bytes, .. } => self.put_record(before, |out| {
                text::response(out, of, captured.digest, &bytes);
            })?,
            Response::File { spooled, .. } if spooled.len - spooled.start > self.own => {
                self.write_own(spooled)?
            }
            Response::File { spooled, .. } => self.copy(&spooled)?,
        };
        if let Some(digest) = captured.payload {
            let place = Place {
                segment: placed.segment,
                offset: placed.offset,
            };
            self.seen.insert(&digest, place);
        }
        Ok(placed)
    }

    /// Request and metadata, into the buffer.
    fn put_context(&mut self, captured: &Captured, facts: Facts<'_>) {
        let of = &captured.common;
        let block = text::facts(facts.exit, facts.listed, facts.phases);
        let ids = [self.archive.id(), self.archive.id()];
        put(self.gzip.as_mut(), &mut self.buffer, |out| {
            text::request(out, &ids[0], of, &captured.request);
        });
        put(self.gzip.as_mut(), &mut self.buffer, |out| {
            text::metadata(out, &ids[1], of, &block);
        });
    }

    /// The record that holds this payload, if it is there still.
    fn original(&mut self, digest: &[u8; 32]) -> Result<Option<Original>, StoreError> {
        let Some(place) = self.seen.get(digest) else {
            return Ok(None);
        };
        let waits = |open: &Open| open.number == place.segment && open.len <= place.offset;
        if self.open.as_ref().is_some_and(waits) {
            self.flush()?;
        }
        let find = || {
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
        };
        Ok(find())
    }

    /// The record that `write` writes, behind the context of its exchange, which begins at
    /// `before`.
    fn put_record(
        &mut self,
        before: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Placed, StoreError> {
        let start = self.buffer.len();
        put(self.gzip.as_mut(), &mut self.buffer, write);
        let end = self.buffer.len();
        self.archive.bodies().spend((end - before) as u64)?;
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        let open = self.open.insert(open);
        Ok(open.placed(open.len + start as u64, (end - start) as u64))
    }

    /// Enough waits for [`Segments::flush`].
    pub fn is_full(&self) -> bool {
        self.buffer.len() >= BUFFER
    }

    /// What waits is not to be written, and what comes next takes its place.
    pub fn forget(&mut self) {
        self.buffer.clear();
        if let Some(open) = &self.open {
            self.seen.forget_from(Place {
                segment: open.number,
                offset: open.len,
            });
        }
    }

    /// Writes what waits. The journal may tell of it then.
    ///
    /// # Errors
    /// The disk refused; all of it still waits.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        match self.buffer.is_empty() {
            true => Ok(()),
            false => self.write(|_| Ok(0)),
        }
    }

    /// What is in the buffer and, behind it, the record that is in a file.
    fn copy(&mut self, spooled: &Spooled) -> Result<Placed, StoreError> {
        let context = self.buffer.len() as u64;
        let length = spooled.len - spooled.start;
        self.archive.bodies().spend(context + length)?;
        self.write(|open| {
            let mut from = spooled.temp.file();
            from.seek(SeekFrom::Start(spooled.start))?;
            open.file.seek(SeekFrom::Start(open.len + context))?;
            let copied = io::copy(&mut from.take(length), &mut open.file)?;
            match copied == length {
                true => Ok(length),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        })?;
        let Some(open) = &self.open else {
            unreachable!("it was written to");
        };
        Ok(open.placed(open.len - length, length))
    }

    /// Adds the buffer to the open segment, then as many bytes as `more` writes behind it.
    fn write(&mut self, more: impl FnOnce(&mut Open) -> io::Result<u64>) -> Result<(), StoreError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        let open = self.open.insert(open);
        let written = open.file.write_all_at(&self.buffer, open.len);
        match written.and_then(|()| more(open)) {
            Ok(more) => {
                open.len += self.buffer.len() as u64 + more;
                self.buffer.clear();
                Ok(())
            }
            Err(error) => {
                // Should this fail too, the next write covers the rest, or `end` cuts it.
                let _ = open.file.set_len(open.len);
                Err(StoreError::io("write", &open.path)(error))
            }
        }
    }

    /// A new segment, with its `warcinfo`.
    fn begin(&mut self) -> Result<Open, StoreError> {
        let number = self.next;
        let whole = self.archive.0.form.file(number);
        let path = self.out.join(whole.clone() + OPEN);
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
            whole,
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
        let segment = self.next;
        let file = self.archive.0.form.file(segment);
        bodies.files().commit(temp, &file)?;
        self.buffer.clear();
        self.next += 1;
        Ok(Placed {
            file,
            segment,
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
    /// It cannot be ended or renamed; the next run does it.
    pub(in crate::store) fn end(&mut self) -> Result<(), StoreError> {
        self.flush()?;
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let cut = open.file.set_len(open.len);
        cut.map_err(StoreError::io("write", &open.path))?;
        let whole = self.out.join(open.whole);
        std::fs::rename(&open.path, &whole).map_err(StoreError::io("rename", &open.path))
    }

    /// With other bounds, for tests.
    #[cfg(test)]
    pub(super) fn with_bounds(mut self, full: u64, own: u64) -> Segments {
        (self.full, self.own) = (full, own);
        self
    }
}

impl Open {
    fn placed(&self, offset: u64, length: u64) -> Placed {
        Placed {
            file: self.whole.clone(),
            segment: self.number,
            offset,
            length,
        }
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
