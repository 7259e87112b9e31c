//! `--results FILE|-`: each record also goes there, as whole lines, as it happens.
//!
//! A thread of its own writes, so a reader that is slow or asleep never stops the engine's
//! loop (and with it every timer and signal). What is not written yet is counted: while
//! [`ResultsCopy::is_behind`] the engine starts nothing new and reads no further entries,
//! which bounds the backlog by the jobs in flight. A reader that went away is an event, not a panic.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::oneshot;

use crate::model::Record;
use crate::threads;

/// Unwritten bytes from which on the reader counts as behind.
const BEHIND: usize = 4 << 20;

/// Why records no longer reach the copy.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CopyError {
    /// The reader closed its end (EPIPE).
    #[error("the reader of --results has closed")]
    ResultsClosed,
    /// It was not waited for any longer.
    #[error("the reader of --results did not take all records in time")]
    Late,
    /// It cannot be written.
    #[error("cannot write --results {target}: {cause}")]
    Io {
        /// `-` or the file.
        target: String,
        /// As the system put it. Part of the text, so it is no `source` to be told again.
        cause: Arc<io::Error>,
    },
}

#[derive(Debug, Default)]
struct Shared {
    unwritten: AtomicUsize,
    error: OnceLock<CopyError>,
}

/// Writes records to a second place.
#[derive(Debug)]
pub struct ResultsCopy {
    batch: Vec<u8>,
    shared: Arc<Shared>,
    lines: Sender<Vec<u8>>,
    ended: oneshot::Receiver<()>,
}

impl ResultsCopy {
    /// To the file `target`, replaced, or to stdout where it is `-`. `journal` is the
    /// run's own `results.jsonl`, which must be another file.
    ///
    /// # Errors
    /// It cannot be opened, or is the journal.
    pub fn open(target: &str, journal: &Path) -> anyhow::Result<ResultsCopy> {
        let file = if target == "-" {
            let stdout = io::stdout().as_fd().try_clone_to_owned();
            File::from(stdout.context("cannot write --results to stdout")?)
        } else {
            open_file(target, journal)
                .with_context(|| format!("cannot write --results {target}"))?
        };
        ResultsCopy::start(file, target)
    }

    fn start(file: File, target: &str) -> anyhow::Result<ResultsCopy> {
        let shared = Arc::new(Shared::default());
        let (lines, to_write) = channel();
        let (on_end, ended) = oneshot::channel();
        let (state, target) = (shared.clone(), target.to_owned());
        threads::start("results", move || {
            write_all(file, &target, &to_write, &state);
            // Nobody listens when the program ends without waiting.
            let _ = on_end.send(());
        })?;
        Ok(ResultsCopy {
            batch: Vec::new(),
            shared,
            lines,
            ended,
        })
    }

    /// Adds a record to the batch.
    pub fn push(&mut self, record: &Record) {
        let start = self.batch.len();
        match serde_json::to_writer(&mut self.batch, record) {
            Ok(()) => self.batch.push(b'\n'),
            Err(_) => self.batch.truncate(start),
        }
    }

    /// Hands the batch over to be written. Never waits.
    ///
    /// # Errors
    /// An earlier batch could not be written; all later ones are dropped.
    pub fn flush(&mut self) -> Result<(), CopyError> {
        if let Some(error) = self.shared.error.get() {
            return Err(error.clone());
        }
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.shared
                .unwritten
                .fetch_add(batch.len(), Ordering::Relaxed);
            // The thread ends early only after it has set the error, seen by the next flush.
            let _ = self.lines.send(batch);
        }
        Ok(())
    }

    /// The reader takes less than comes: start nothing new, read nothing more for now.
    pub fn is_behind(&self) -> bool {
        self.shared.error.get().is_none() && self.shared.unwritten.load(Ordering::Relaxed) > BEHIND
    }

    /// Waits until everything is written, or `patience` is over.
    ///
    /// # Errors
    /// Something was not written.
    pub async fn finish(mut self, patience: Duration) -> Result<(), CopyError> {
        self.flush()?;
        let ResultsCopy {
            shared,
            lines,
            ended,
            ..
        } = self;
        drop(lines);
        let late = tokio::time::timeout(patience, ended).await.is_err();
        match shared.error.get() {
            Some(error) => Err(error.clone()),
            None if late => Err(CopyError::Late),
            None => Ok(()),
        }
    }
}

fn open_file(target: &str, journal: &Path) -> anyhow::Result<File> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(target)?;
    let meta = file.metadata()?;
    if let Ok(own) = std::fs::metadata(journal)
        && (own.dev(), own.ino()) == (meta.dev(), meta.ino())
    {
        bail!("it is the run's own journal: the records are there anyway");
    }
    if meta.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

fn write_all(mut file: File, target: &str, lines: &Receiver<Vec<u8>>, shared: &Shared) {
    for batch in lines {
        if let Err(error) = file.write_all(&batch) {
            let error = match error.kind() {
                io::ErrorKind::BrokenPipe => CopyError::ResultsClosed,
                _ => CopyError::Io {
                    target: target.to_owned(),
                    cause: Arc::new(error),
                },
            };
            let _ = shared.error.set(error);
            return;
        }
        shared.unwritten.fetch_sub(batch.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::ok_record;

    const SOON: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn records_arrive_as_whole_lines_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("copy.jsonl");
        std::fs::write(&target, "old").unwrap();
        let mut copy = ResultsCopy::open(target.to_str().unwrap(), Path::new("none")).unwrap();
        for line in 1..=3 {
            copy.push(&ok_record("a", line));
            copy.flush().unwrap();
        }
        copy.finish(SOON).await.unwrap();
        let lines: Vec<u64> = std::fs::read_to_string(target)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Record>(line).unwrap().line)
            .collect();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_reader_that_went_away_is_reported_as_such() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut copy = ResultsCopy::start(file, "-").unwrap();
        copy.push(&ok_record("a", 1));
        let finished = copy.finish(SOON).await;
        assert!(matches!(finished, Err(CopyError::ResultsClosed)));
    }

    #[tokio::test]
    async fn a_reader_that_sleeps_holds_nobody_up_and_shows_as_behind() {
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let mut copy = ResultsCopy::start(file, "-").unwrap();
        let mut record = ok_record("a", 1);
        record.url = "u".repeat(1 << 20);
        for _ in 0..6 {
            copy.push(&record);
            copy.flush().unwrap();
        }
        assert!(copy.is_behind());
        let finished = copy.finish(Duration::from_millis(20)).await;
        assert!(matches!(finished, Err(CopyError::Late)));
        drop(reader);
    }

    #[tokio::test]
    async fn the_journal_itself_and_a_full_device_are_refused_or_reported() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("results.jsonl");
        std::fs::write(&journal, "kept").unwrap();
        assert!(ResultsCopy::open(journal.to_str().unwrap(), &journal).is_err());
        assert_eq!(std::fs::read_to_string(&journal).unwrap(), "kept");
        let mut copy = ResultsCopy::open("/dev/full", &journal).unwrap();
        copy.push(&ok_record("a", 1));
        let error = copy.finish(SOON).await.unwrap_err().to_string();
        assert!(error.contains("/dev/full"), "{error}");
    }
}
