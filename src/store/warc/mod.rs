//! WARC output (`--warc`): exchanges with their exact bytes in segments `warc/00001.warc`,
//! instead of one file per body.
//!
//! Per exchange: a `request`, a `metadata` (exit and phase times) and a `response`, or a
//! `revisit` in its place where this directory holds the same payload already. Only what is
//! accepted is archived, as only that is stored as files; redirect hops are not.
//!
//! [`Archive`] is cloned into the fetch tasks, which collect ([`Capture`]); [`Segments`] is
//! the engine's and writes, so each segment has one writer. Order: segment, journal, count.
//! Invariant: a segment under its final name holds whole records, because it gets there only
//! when it is done; the one that is being written is called `….open`, and after a crash the
//! next run cuts it back to what the journal tells and names it (`recover`).
//!
//! Own writer: lengths and digests have to be known or patched without keeping a body in
//! memory, and readers need one gzip member per record.

mod capture;
mod digits;
mod gzip;
mod http;
mod ids;
mod read;
mod recover;
mod seen;
mod segments;
mod spool;
mod text;

use std::sync::Arc;
use std::time::Duration;

use super::Bodies;
use crate::model::Clock;
use digits::Date;
use gzip::Gzip;
use ids::{Ids, RecordId};

pub use capture::{Capture, Captured, Opening};
pub use segments::{Facts, Placed, Segments};

pub(super) use read::{is_stored, payload};
pub(super) use recover::recover;

/// How segments are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarcForm {
    /// As they are (`--warc`).
    Plain,
    /// One gzip member per record (`--warc-gz`).
    Gzip,
}

/// Where the segments are, relative to the output directory.
const DIR: &str = "warc";
/// What the name of a segment that is being written ends in.
const OPEN: &str = ".open";

impl WarcForm {
    fn extension(self) -> &'static str {
        match self {
            WarcForm::Plain => "warc",
            WarcForm::Gzip => "warc.gz",
        }
    }

    /// The file of segment `number`, relative to the output directory.
    fn file(self, number: u32) -> String {
        format!("{DIR}/{number:05}.{}", self.extension())
    }
}

/// What the tasks of a run need to collect exchanges. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Archive(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    bodies: Bodies,
    form: WarcForm,
    ids: Ids,
    clock: Clock,
}

impl Archive {
    /// For segments of this form; temporary files pass through `bodies`.
    pub(super) fn new(bodies: Bodies, form: WarcForm, clock: Clock) -> Archive {
        Archive(Arc::new(Shared {
            bodies,
            form,
            ids: Ids::new(),
            clock,
        }))
    }

    /// Begins to collect an exchange whose head has come.
    pub fn capture(&self, opening: Opening) -> Capture {
        Capture::new(self, opening)
    }

    fn bodies(&self) -> &Bodies {
        &self.0.bodies
    }

    fn gzip(&self) -> Option<Gzip> {
        match self.0.form {
            WarcForm::Plain => None,
            WarcForm::Gzip => Some(Gzip::new()),
        }
    }

    fn id(&self) -> RecordId {
        self.0.ids.draw()
    }

    /// The instant `ago` before now.
    fn date(&self, ago: Duration) -> Date {
        let clock = &self.0.clock;
        Date::of(clock.unix(clock.now().back(ago)))
    }

    fn put_warcinfo(&self, gzip: Option<&mut Gzip>, out: &mut Vec<u8>) {
        let (id, date) = (self.id(), self.date(Duration::ZERO));
        put(gzip, out, |out| text::warcinfo(out, &id, &date));
    }
}

/// A record at the end of `out`, as `write` adds it to what it is handed.
fn put(gzip: Option<&mut Gzip>, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    match gzip {
        Some(gzip) => gzip.whole(out, write),
        None => write(out),
    }
}

#[cfg(test)]
mod tests;
