//! `timeline.jsonl`: how a run went, second by second, for the page that `report` makes.
//!
//! [`Recorder`] is a pure fold that the engine feeds with integers (a start, an end, a look at
//! the queues five times a second); once a second it becomes one [`Line`], which [`Timeline`]
//! appends to the file. A file of more than [`LINES_MOST`] lines is written anew with
//! neighbours merged, so it is bounded however long a run takes. Runs that resume append
//! behind a line of their own.
//!
//! Invariants: the most in flight of an exit in any span is exact, before and after merging.
//! What the timeline costs is bounded by [`TRACKED`] exits, whatever the fleet's size. It is
//! never a reason for a run to stop: a disk that refuses it is told once, and it ends there.

mod file;
mod line;
mod merge;
mod read;
mod recorder;

pub use file::Timeline;
pub use line::{ExitUse, Happened, Line, Named, RunHead, Span};
pub use read::{Track, Tracks};
pub use recorder::{Gauges, Recorder};

/// Lines of the file at which neighbours are merged. More: finer and larger.
pub const LINES_MOST: usize = 10_000;
/// Exits whose use is recorded one by one; the others' is summed.
pub const TRACKED: usize = 64;
