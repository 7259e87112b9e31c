//! `exitfetch cat`: one stored body on standard output, from either layout.
//!
//! What comes out is what a file of the body holds: where `--compressed` decoded it, an
//! archive's record is decoded here. The record's digest tells whether it was, and whether
//! what was printed is what was fetched.

use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use clap::Args;
use http::{HeaderMap, HeaderValue, header};
use sha2::{Digest, Sha256};

use super::{Code, Stopped};
use crate::fetch::{Decoder, Piece};
use crate::model::job::hex;
use crate::model::{Outcome, Record};
use crate::store;

/// Shown under `cat --help`.
pub(super) const EXAMPLES: &str = "\
Example:
  exitfetch cat exitfetch-out 8914ef58e960a01a > page.html

Exit status: 0 printed, 1 the body is missing or not what was recorded, 2 no such directory or
id, or nothing was stored for it.";

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// `exitfetch cat`.
#[derive(Args, Debug)]
pub struct CatArgs {
    /// The output directory of a run
    pub dir: PathBuf,
    /// The job's id, as results.jsonl has it
    pub id: String,
}

pub(super) fn cat(args: &CatArgs) -> Result<Code, Stopped> {
    let record = store::find_record(&args.dir, &args.id).map_err(Stopped::usage)?;
    let record = record.ok_or_else(|| {
        let dir = args.dir.display();
        Stopped::usage(anyhow!("{dir} has no record of the id {}", args.id))
    })?;
    if record.outcome != Outcome::Ok {
        return Err(Stopped::usage(nothing_stored(&record)));
    }
    let body = Body { args, record };
    match body.print() {
        // The reader has seen enough.
        Err(error) if is_closed(&error) => Ok(Code::Ok),
        Err(error) => Err(Stopped::local(error)),
        Ok(()) => Ok(Code::Ok),
    }
}

fn nothing_stored(record: &Record) -> anyhow::Error {
    let why = record.error.as_ref().map_or("", |error| &error.detail);
    anyhow!("nothing was stored for {}: {why}", record.id)
}

/// The reader of standard output has gone.
fn is_closed(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

struct Body<'a> {
    args: &'a CatArgs,
    record: Record,
}

impl Body<'_> {
    fn print(&self) -> anyhow::Result<()> {
        let mut out = Output {
            out: io::stdout().lock(),
            digest: Sha256::new(),
        };
        match self.coding()? {
            None => self.each(|piece| out.put(piece))?,
            Some(decoder) => self.decode(decoder, &mut out)?,
        }
        out.out.flush()?;
        let digest = hex(&out.digest.finalize());
        match &self.record.sha256 {
            Some(recorded) if *recorded != digest => Err(anyhow!(
                "{}: what is stored is not what was recorded",
                self.record.id
            )),
            _ => Ok(()),
        }
    }

    /// How to decode what is stored: an archive holds it in the coding that it came in, and
    /// whether that was undone shows in the digest.
    fn coding(&self) -> anyhow::Result<Option<Decoder>> {
        let (Some(coding), Some(_)) = (&self.record.content_encoding, self.record.offset) else {
            return Ok(None);
        };
        let mut digest = Sha256::new();
        self.each(|piece| {
            digest.update(piece);
            Ok(())
        })?;
        if self.record.sha256.as_deref() == Some(&*hex(&digest.finalize())) {
            return Ok(None);
        }
        let mut headers = HeaderMap::new();
        let coding = HeaderValue::from_str(coding).context("the content coding is no text")?;
        headers.insert(header::CONTENT_ENCODING, coding);
        Decoder::of(&headers).map_err(|why| anyhow!("{}: {why}", self.record.id))
    }

    /// Hands the stored bytes to `each`, piece by piece.
    fn each(&self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> anyhow::Result<()> {
        let mut body = store::open_body(&self.args.dir, &self.record)?;
        let mut piece = vec![0; PIECE];
        loop {
            match body.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(n) => each(&piece[..n])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let file = self.record.file.as_deref().unwrap_or_default();
                    return Err(error).with_context(|| format!("cannot read {file}"));
                }
            }
        }
    }

    fn decode(&self, mut decoder: Decoder, out: &mut Output<'_>) -> anyhow::Result<()> {
        let mut empty = true;
        self.each(|piece| {
            empty = false;
            decoder.feed(Bytes::copy_from_slice(piece));
            out.drain(&mut decoder)
        })?;
        // An empty body is empty in every coding.
        if !empty {
            decoder.end();
            out.drain(&mut decoder)?;
        }
        Ok(())
    }
}

/// Standard output, and the digest of what was written to it.
struct Output<'a> {
    out: io::StdoutLock<'a>,
    digest: Sha256,
}

impl Output<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.out.write_all(bytes)
    }

    fn drain(&mut self, decoder: &mut Decoder) -> io::Result<()> {
        loop {
            match decoder.piece()? {
                Piece::Output(bytes) => self.put(&bytes)?,
                Piece::Hungry | Piece::Done => return Ok(()),
            }
        }
    }
}
