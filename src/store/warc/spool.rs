//! A long answer on its way to disk: a segment of its own from the first byte.
//!
//! The temporary file begins with a `warcinfo` and the response's header. Length and digest
//! are known only at the end; they have a fixed room there and are overwritten in place. So
//! a long answer is written once, and needs no more memory than a piece of it. What becomes
//! of the file, `segments` decides.

use std::os::unix::fs::FileExt;

use super::Archive;
use super::gzip::{self, Gzip};
use super::text::{self, Common, Digest, END};
use crate::store::StoreError;
use crate::store::temp::TempFile;

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Spool {
    temp: TempFile,
    /// Compresses the response; `None`: it stays as it is.
    gzip: Option<Gzip>,
    /// Where the response's record begins.
    start: u64,
    /// Bytes of the file.
    len: u64,
    /// Bytes of the response.
    block: u64,
    out: Vec<u8>,
}

/// A whole one. Dropped, it leaves no file.
#[derive(Debug)]
pub(super) struct Spooled {
    pub(super) temp: TempFile,
    /// Where the response's record begins.
    pub(super) start: u64,
    /// Bytes of the file, which ends with that record.
    pub(super) len: u64,
}

impl Spool {
    /// An empty one; `digest` is of the kind that the record will have.
    pub(super) fn begin(
        archive: &Archive,
        of: &Common,
        digest: Digest,
    ) -> Result<Spool, StoreError> {
        let mut out = Vec::new();
        let mut gzip = archive.gzip();
        archive.put_warcinfo(gzip.as_mut(), &mut out);
        let start = out.len() as u64;
        let header = text::late_response(of, digest, 0);
        match &mut gzip {
            None => out.extend_from_slice(&header),
            Some(gzip) => {
                gzip.begin(&mut out);
                gzip::stored(&header, &mut out);
            }
        }
        let temp = archive.bodies().files().create()?;
        let mut spool = Spool {
            temp,
            gzip,
            start,
            len: 0,
            block: 0,
            out: Vec::new(),
        };
        spool.put(archive, &out)?;
        Ok(spool)
    }

    /// Adds bytes of the answer.
    pub(super) fn write(&mut self, archive: &Archive, bytes: &[u8]) -> Result<(), StoreError> {
        self.block += bytes.len() as u64;
        let Some(gzip) = &mut self.gzip else {
            return self.put(archive, bytes);
        };
        let mut out = std::mem::take(&mut self.out);
        gzip.write(bytes, &mut out);
        self.put(archive, &out)?;
        out.clear();
        self.out = out;
        Ok(())
    }

    /// The answer is whole: ends its record and fills in what its header lacks.
    pub(super) fn end(
        mut self,
        archive: &Archive,
        of: &Common,
        digest: Digest,
    ) -> Result<Spooled, StoreError> {
        let header = text::late_response(of, digest, self.block);
        let mut late = Vec::new();
        match self.gzip.take() {
            None => {
                self.put(archive, END)?;
                self.overwrite(archive, &header, self.start)?;
            }
            Some(mut gzip) => {
                gzip.write(END, &mut late);
                gzip.end(&header, &mut late);
                self.put(archive, &late)?;
                late.clear();
                gzip::stored(&header, &mut late);
                self.overwrite(archive, &late, self.start + gzip::BODY_AT)?;
            }
        }
        Ok(Spooled {
            temp: self.temp,
            start: self.start,
            len: self.len,
        })
    }

    fn put(&mut self, archive: &Archive, bytes: &[u8]) -> Result<(), StoreError> {
        let bodies = archive.bodies();
        bodies.spend(bytes.len() as u64)?;
        if let Err(error) = self.temp.write(bytes) {
            return Err(StoreError::io("write", self.temp.shown(bodies.files()))(
                error,
            ));
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn overwrite(&self, archive: &Archive, bytes: &[u8], at: u64) -> Result<(), StoreError> {
        let bodies = archive.bodies();
        let written = self.temp.file().write_all_at(bytes, at);
        written.map_err(|error| StoreError::io("write", self.temp.shown(bodies.files()))(error))
    }
}
