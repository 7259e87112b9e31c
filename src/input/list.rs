//! A list under way: its bytes joined to its rows.
//!
//! Owns the order of reading: rows are pulled until none is complete, then one read is
//! made. So a row comes out with the read that completed it, never later.

use anyhow::Context;
use tokio::io::AsyncReadExt;

use super::format::ListFormat;
use super::rows::{Row, Rows};
use super::source::{self, Bytes, ListSource};

/// Room made for each read: large enough that a file costs few reads.
const READ_SIZE: usize = 64 << 10;

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    /// Bytes: pull rows.
    Bytes,
    /// The end: pull the last rows.
    End,
}

/// An opened list.
pub(super) struct List {
    source: ListSource,
    bytes: Bytes,
    rows: Rows,
}

impl List {
    /// Opens `source`; `format` wins over what its name tells.
    ///
    /// # Errors
    /// As of [`source::open`].
    pub async fn open(source: ListSource, format: Option<ListFormat>) -> anyhow::Result<List> {
        let bytes = source::open(&source).await?;
        let rows = Rows::new(format.unwrap_or_else(|| source.format()));
        Ok(List {
            source,
            bytes,
            rows,
        })
    }

    /// One read. Cancel-safe: a cancelled read takes no bytes.
    ///
    /// # Errors
    /// The list breaks off: I/O, broken compression, a silent server.
    pub async fn read(&mut self) -> anyhow::Result<More> {
        let buffer = self.rows.buffer();
        buffer.reserve(READ_SIZE);
        let read = self
            .bytes
            .read_buf(buffer)
            .await
            .with_context(|| format!("cannot read {} to its end", self.source))?;
        if read > 0 {
            return Ok(More::Bytes);
        }
        self.rows.end();
        Ok(More::End)
    }

    /// The next row, if all of it has arrived.
    pub fn next_row(&mut self) -> Option<Row> {
        self.rows.next_row()
    }

    /// How messages name the list.
    pub fn source(&self) -> &ListSource {
        &self.source
    }
}
