//! Free space of the output directory: looked at before the first request, and again each
//! time a few megabytes were stored.
//!
//! A look is one `statvfs` (about a microsecond), so the run notices `--min-free` within
//! [`STRIDE`] bytes. Below it the run stops while the disk still has room for the records.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::StoreError;

/// Bytes stored between two looks. Larger: fewer looks and a larger overshoot.
const STRIDE: u64 = 16 << 20;
/// What a file counts at least, so that a million empty ones are noticed too.
const PER_FILE: u64 = 64 << 10;

/// The bound on free space and what was stored since the last look.
#[derive(Debug)]
pub(super) struct Space {
    dir: PathBuf,
    min_free: u64,
    since: AtomicU64,
}

impl Space {
    /// `min_free` bytes must stay free on the file system of `dir`; 0 asks for nothing.
    pub fn new(dir: &Path, min_free: u64) -> Space {
        Space {
            dir: dir.to_owned(),
            min_free,
            since: AtomicU64::new(0),
        }
    }

    /// Looks now.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.min_free == 0 {
            return Ok(());
        }
        let disk = rustix::fs::statvfs(&self.dir)
            .map_err(|e| StoreError::io("look up the free space of", &self.dir)(e.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free >= self.min_free {
            return Ok(());
        }
        Err(StoreError::LowSpace {
            dir: self.dir.clone(),
            free,
            min_free: self.min_free,
        })
    }

    /// Counts `bytes` more, and looks when a stride is full.
    pub fn spend(&self, bytes: u64) -> Result<(), StoreError> {
        let before = self.since.fetch_add(bytes.max(PER_FILE), Ordering::Relaxed);
        if before.saturating_add(bytes) < STRIDE {
            return Ok(());
        }
        self.since.store(0, Ordering::Relaxed);
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_no_disk_meets_is_noticed_at_once_and_after_a_stride() {
        let dir = tempfile::tempdir().unwrap();
        let space = Space::new(dir.path(), u64::MAX);
        let error = space.check().unwrap_err();
        assert!(
            error.is_full() && error.to_string().contains("--min-free"),
            "{error}"
        );
        let files = (0..10_000).take_while(|_| space.spend(0).is_ok()).count();
        assert!((100..=300).contains(&files), "{files}");
        assert!(space.spend(STRIDE).is_err());
    }

    #[test]
    fn no_bound_asks_nothing() {
        let space = Space::new(Path::new("/nowhere/at/all"), 0);
        assert!(space.check().is_ok() && space.spend(u64::MAX).is_ok());
    }
}
