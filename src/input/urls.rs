//! The URL list, read beside the run.
//!
//! Owns the reader's thread and its bounded channel; leaves what a row means to `entry`.
//! Invariants: an entry is handed over with the read that completed it; at most
//! `BATCHES` batches of `BATCH` entries wait, then reading stops until there is room;
//! nothing is skipped in silence, a list that breaks off ends with an error.
//!
//! A thread of its own, because reading, decompressing and parsing a long list would take
//! turns with the sockets otherwise, and a blocked standard input must hold up nobody.

mod draft;
mod entry;

use std::thread::JoinHandle;

use anyhow::{Context, anyhow, bail};
use tokio::sync::mpsc;

use super::format::ListFormat;
use super::list::{List, More};
use super::rows::{Content, Row};
use super::source::ListSource;
use crate::model::{Job, Refusal};
use crate::threads;
use entry::Columns;

/// Entries in one message, so that a channel hop is not paid for each.
const BATCH: usize = 512;
/// Messages that may wait.
const BATCHES: usize = 8;

/// One entry of the list: what a record will be written for.
#[derive(Clone, Debug)]
pub enum Entry {
    /// It can be fetched.
    Job(Job),
    /// It cannot; the run goes on.
    Refused(Refusal),
}

/// Entries that became known together, at least one.
pub type Batch = Vec<Entry>;

/// The list under way.
#[derive(Debug)]
pub struct Urls {
    /// The batch that [`Urls::begin`] waited for.
    first: Option<Batch>,
    batches: mpsc::Receiver<anyhow::Result<Batch>>,
    thread: Option<JoinHandle<()>>,
}

/// Opens the list and waits until its first entry is known, or its end. As of [`spawn`] and
/// [`Urls::begin`].
///
/// # Errors
/// As of [`Urls::begin`].
pub async fn open(source: ListSource, format: Option<ListFormat>) -> anyhow::Result<Urls> {
    let mut urls = spawn(source, format)?;
    urls.begin().await?;
    Ok(urls)
}

/// Starts the reading. `format` wins over what the name tells. Dropping the [`Urls`] stops it.
///
/// # Errors
/// This machine has no thread to spare.
pub fn spawn(source: ListSource, format: Option<ListFormat>) -> anyhow::Result<Urls> {
    let (sender, batches) = mpsc::channel(BATCHES);
    let thread = threads::start("url list", move || read_here(source, format, &sender))?;
    Ok(Urls {
        first: None,
        batches,
        thread: Some(thread),
    })
}

impl Urls {
    /// Waits until the first entry is known, or the end: so a list that cannot be used at all
    /// is an error before anything is sent. A pipe may be silent for ever. Cancel-safe.
    ///
    /// # Errors
    /// No such list, UTF-16, broken compression, a CSV list without a usable header.
    pub async fn begin(&mut self) -> anyhow::Result<()> {
        self.first = self.next().await.transpose()?;
        Ok(())
    }

    /// The next entries; `None` after the last. Cancel-safe. After an error the list is
    /// over: entries behind the break are unknown.
    pub async fn next(&mut self) -> Option<anyhow::Result<Batch>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        match self.batches.recv().await {
            Some(batch) => Some(batch),
            None => self.fate_of_thread(),
        }
    }

    /// A reader that died must not pass for the end of the list.
    fn fate_of_thread(&mut self) -> Option<anyhow::Result<Batch>> {
        // The channel is closed, so the thread is at its end: this does not wait.
        let died = self.thread.take()?.join().is_err();
        died.then(|| Err(anyhow!("the reader of the URL list stopped unexpectedly")))
    }
}

type Sender = mpsc::Sender<anyhow::Result<Batch>>;

fn read_here(source: ListSource, format: Option<ListFormat>, sender: &Sender) {
    let runtime = match threads::event_loop() {
        Ok(runtime) => runtime,
        Err(error) => {
            // Room is certain: nothing was sent. Nobody listening is no one's loss.
            let _ = sender.try_send(Err(error.into()));
            return;
        }
    };
    runtime.block_on(async {
        tokio::select! {
            // A reader nobody listens to would wait on a silent pipe for ever.
            () = sender.closed() => {}
            result = send_all(source, format, sender) => if let Err(error) = result {
                let _ = sender.send(Err(error)).await;
            },
        }
    });
    // A blocked read of standard input cannot be cancelled, only left behind.
    runtime.shutdown_background();
}

async fn send_all(
    source: ListSource,
    format: Option<ListFormat>,
    sender: &Sender,
) -> anyhow::Result<()> {
    let mut list = List::open(source, format).await?;
    let mut reading = Reading::default();
    loop {
        let more = list.read().await?;
        while let Some(row) = list.next_row() {
            reading
                .take(row)
                .with_context(|| list.source().to_string())?;
            if reading.batch.len() == BATCH && reading.send(sender).await == Listener::Gone {
                return Ok(());
            }
        }
        if reading.send(sender).await == Listener::Gone || more == More::End {
            return Ok(());
        }
    }
}

/// What the reading of rows remembers.
#[derive(Default)]
struct Reading {
    /// Of a CSV list, once its header was read.
    columns: Columns,
    batch: Batch,
}

impl Reading {
    fn take(&mut self, row: Row) -> anyhow::Result<()> {
        let line = row.line;
        match row.content {
            Content::Header(Ok(names)) => match Columns::new(&names) {
                Ok(columns) => self.columns = columns,
                Err(reason) => bail!("the CSV header in line {line} {reason}"),
            },
            Content::Header(Err(reason)) => bail!("the CSV header in line {line} {reason}"),
            content => self.batch.push(entry::read(line, content, &self.columns)),
        }
        Ok(())
    }

    async fn send(&mut self, sender: &Sender) -> Listener {
        if self.batch.is_empty() {
            return Listener::There;
        }
        match sender.send(Ok(std::mem::take(&mut self.batch))).await {
            Ok(()) => Listener::There,
            Err(_) => Listener::Gone,
        }
    }
}

/// Whether anybody still wants entries.
#[derive(PartialEq, Eq)]
enum Listener {
    There,
    Gone,
}

#[cfg(test)]
mod tests;
