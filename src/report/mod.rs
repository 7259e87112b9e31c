//! What people read: the summary of a run, its files, and progress while it goes.
//!
//! `tally` folds attempts and records as they come, in memory that follows the exits and a
//! bounded number of origins; `summary` is the finished result, which `table`, `csv` and
//! JSON show. Nothing here decides anything. Only `progress` names indicatif, only
//! `metrics` listens.

mod end;
mod exits_csv;
mod files;
mod gather;
mod html;
mod knob;
mod largest;
mod metrics;
mod origins;
mod progress;
mod spent;
mod summary;
mod table;
mod tally;
pub mod timeline;

pub use end::{ExitEnd, RunEnd};
pub use exits_csv::ExitRow;
pub use files::{write_files, write_whole};
pub use gather::Gathered;
pub use html::{escaped, page};
pub use metrics::Metrics;
pub use origins::OriginRow;
pub use progress::{Console, HeldBack, LogLine, Progress, ProgressMode, STATUS, Screen, Snapshot};
pub use spent::{Share, Spent, Stage};
pub use summary::{Example, ExitFacts, FailureRow, GroupRow, ProbedCaps, Summary, Totals};
pub use tally::{Counts, Tally, Tried};
