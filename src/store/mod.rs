//! The output directory: bodies, their names, the journal of what is done, and jobs that wait.
//!
//! One run owns a directory, by a lock on `results.jsonl`. Order on success: temporary file,
//! rename, record; so a record never names a file that is not whole, and what is not
//! recorded is fetched again. What a job is and whether it went well is decided elsewhere.

mod backwards;
mod bodies;
mod error;
mod journal;
mod latest;
mod lock;
mod names;
mod reread;
mod results_copy;
mod space;
mod spill;
mod temp;
mod template;
mod warc;
mod writers;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::model::Clock;

pub use bodies::{Bodies, Finished, TempBody};
pub use error::StoreError;
pub use journal::{Decision, FailedBefore, Journal, Loaded, Past, Rest, Twin};
pub use latest::{Kept, latest};
pub use names::Names;
pub use reread::{find_record, open_body};
pub use results_copy::{CopyError, ResultsCopy};
pub use spill::{Batch, Spill};
pub use template::NameTemplate;
pub use warc::{Archive, Capture, Captured, Facts, Opening, Placed, Segments, WarcForm};

/// How a directory is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Move an earlier journal aside and fetch everything again.
    pub fresh: bool,
    /// What becomes of jobs that failed in an earlier run.
    pub failed_before: FailedBefore,
    /// Bytes that must stay free; 0 asks for nothing.
    pub min_free: u64,
    /// The user's form of file names.
    pub name_template: Option<NameTemplate>,
    /// Exchanges go into WARC segments of this form instead of one file per body.
    pub warc: Option<WarcForm>,
    /// Dates what goes into segments.
    pub clock: Clock,
}

/// The output directory of one run.
#[derive(Debug)]
pub struct Store {
    /// Temporary and final body files; clones go into the fetch tasks.
    pub bodies: Bodies,
    /// Where each body goes.
    pub names: Names,
    /// What is done and what is under way.
    pub journal: Journal,
    /// Where exchanges go instead of `bodies`.
    pub warc: Option<Warc>,
    /// Jobs that wait on disk.
    pub spill: Spill,
    /// Where `fresh` moved the earlier journal.
    pub backup: Option<PathBuf>,
    dir: PathBuf,
}

/// Both ends of an archive: what the fetch tasks collect with, and what the engine writes.
#[derive(Debug)]
pub struct Warc {
    /// Clones go into the fetch tasks.
    pub archive: Archive,
    /// Takes what they collected.
    pub segments: Segments,
}

impl Store {
    /// Makes `dir` if need be, takes its lock, makes sure that it can be written and has
    /// room, clears stale temporary files and reads the journal.
    ///
    /// # Errors
    /// Any of these fails. The text names the file and is meant for the user; nothing was
    /// fetched yet, so the run ends with a local failure.
    pub fn open(dir: &Path, options: OpenOptions) -> anyhow::Result<Store> {
        if dir.is_file() {
            bail!("{} is a file\nhint: --out needs a directory", dir.display());
        }
        std::fs::create_dir_all(dir)
            .with_context(|| format!("cannot use {} as output directory", dir.display()))?;
        let file = lock::open(&dir.join("results.jsonl"))?;
        let space = space::Space::new(dir, options.min_free);
        space.check()?;
        let bodies = Bodies::new(temp::TempFiles::open(dir)?, space);
        let opened = Store::fill(dir, bodies.clone(), file, options);
        if opened.is_err() {
            bodies.close();
        }
        opened
    }

    fn fill(
        dir: &Path,
        bodies: Bodies,
        mut file: File,
        options: OpenOptions,
    ) -> anyhow::Result<Store> {
        bodies.probe()?;
        warc::recover(dir, &file)?;
        let mut backup = None;
        if options.fresh {
            (file, backup) = lock::set_aside(file, &dir.join("results.jsonl"))?;
            journal::clear_doubt(dir);
        }
        let warc = match options.warc {
            None => None,
            Some(form) => {
                let archive = Archive::new(bodies.clone(), form, options.clock);
                let segments = Segments::open(dir, archive.clone(), &file)?;
                Some(Warc { archive, segments })
            }
        };
        Ok(Store {
            bodies,
            warc,
            names: Names::new(options.name_template),
            journal: Journal::open(dir, file, options.failed_before)?,
            spill: Spill::new(dir.join(".tmp"), options.min_free),
            backup,
            dir: dir.to_owned(),
        })
    }

    /// The output directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes what is still buffered, takes the temporary directory away and gives the lock back.
    ///
    /// # Errors
    /// The last records could not be written.
    pub fn close(self) -> Result<(), StoreError> {
        let flushed = self.journal.close();
        let ended = self.warc.map_or(Ok(()), |mut warc| warc.segments.end());
        self.bodies.close();
        flushed.and(ended)
    }
}

/// A clock for tests; what it shows does not matter there.
#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests of file calls need some clock"
)]
fn test_clock() -> Clock {
    Clock::new(std::time::Instant::now(), std::time::Duration::ZERO)
}

/// A GET of `http://o.test/ID`, the id counted as generated.
#[cfg(test)]
fn test_job(id: &str) -> crate::model::Job {
    let mut url = url::Url::parse("http://o.test/").unwrap();
    url.set_path(id);
    crate::model::Job {
        id: id.into(),
        id_given: false,
        line: 1,
        method: http::Method::GET,
        url,
        listed: None,
        authorization: None,
        headers: None,
        body: None,
        extra: None,
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
