//! Which stored files may be newer than their records, and what then tells.
//!
//! A run that fetches again what has an ok record (a refresh; a file that is gone or cut short)
//! makes the file and then records it. Killed in between, it leaves a whole file that its last
//! record does not describe; of the same size it would pass for the old one. So such a run marks
//! the directory. A mark that is left behind makes files written since then count as stored only
//! if their digest is the recorded one, until a refresh has come to its end. Without a mark
//! nothing is read: a size will do.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::model::Record;
use crate::model::job::hex;

/// The mark's name in the output directory.
const MARK: &str = ".refresh";

/// What a run leaves of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Every entry has its record.
    Nothing,
    /// Some were not reached.
    Some,
}

/// Nothing is left that the mark of `dir` could be about.
pub(in crate::store) fn clear(dir: &Path) {
    // Should this fail, files are looked at more closely than need be.
    let _ = std::fs::remove_file(dir.join(MARK));
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Doubt {
    mark: PathBuf,
    /// A run that began to replace then did not end.
    since: Option<SystemTime>,
    /// This run replaces.
    replacing: bool,
    /// And asks again for all that is stored.
    refreshing: bool,
}

impl Doubt {
    /// What an earlier run left in `dir`.
    pub(super) fn of(dir: &Path) -> Doubt {
        let mark = dir.join(MARK);
        Doubt {
            since: mark.metadata().and_then(|meta| meta.modified()).ok(),
            mark,
            replacing: false,
            refreshing: false,
        }
    }

    /// From here on this run replaces. A mark that is there stays as old as it is.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        if !self.replacing && self.since.is_none() {
            File::create(&self.mark)?;
        }
        self.replacing = true;
        Ok(())
    }

    /// The same of all that is stored.
    pub(super) fn begin_refresh(&mut self) -> io::Result<()> {
        self.refreshing = true;
        self.begin()
    }

    /// The run ends in order, all that it replaced is recorded. With nothing left of its list
    /// a refresh settles an older doubt as well.
    pub(super) fn end(&self, rest: Rest) {
        let settled = self.since.is_none() || (self.refreshing && rest == Rest::Nothing);
        if self.replacing && settled {
            // Should this fail, files are looked at more closely than need be.
            let _ = std::fs::remove_file(&self.mark);
        }
    }

    /// Whether a file of the recorded size is the recorded one.
    pub(super) fn trusts(&self, file: &Path, meta: &Metadata, record: &Record) -> bool {
        let Some(since) = self.since else {
            return true;
        };
        if meta.modified().is_ok_and(|written| written < since) {
            return true;
        }
        record.sha256.is_some() && digest(file).ok() == record.sha256
    }
}

fn digest(file: &Path) -> io::Result<String> {
    struct Into(Sha256);
    impl io::Write for Into {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sum = Into(Sha256::new());
    io::copy(&mut File::open(file)?, &mut sum)?;
    Ok(hex(&sum.0.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;

    fn trusts(dir: &Path, sha256: &str) -> bool {
        let file = dir.join("body");
        let record = Record {
            sha256: Some(sha256.to_owned()),
            ..Record::empty(Outcome::Ok, String::new())
        };
        Doubt::of(dir).trusts(&file, &file.metadata().unwrap(), &record)
    }

    #[test]
    fn after_a_refresh_that_died_only_the_digest_tells() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("body"), "x").unwrap();
        let right = hex(&Sha256::digest("x"));
        assert!(trusts(dir.path(), "else"), "nobody refreshed");
        Doubt::of(dir.path()).begin().unwrap();
        std::fs::write(dir.path().join("body"), "x").unwrap();
        assert!(!trusts(dir.path(), "else") && trusts(dir.path(), &right));
    }

    #[test]
    fn an_ordinary_end_leaves_no_mark_and_an_older_one_only_if_work_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let marked = || dir.path().join(MARK).exists();
        let mut first = Doubt::of(dir.path());
        first.begin_refresh().unwrap();
        assert!(marked());
        first.end(Rest::Some);
        assert!(!marked());
        Doubt::of(dir.path()).begin().unwrap();
        let mut next = Doubt::of(dir.path());
        next.begin().unwrap();
        next.end(Rest::Nothing);
        assert!(marked(), "it may be of another list");
        next.begin_refresh().unwrap();
        next.end(Rest::Some);
        assert!(marked());
        Doubt::of(dir.path()).end(Rest::Nothing);
        assert!(marked(), "a run that replaces nothing settles nothing");
        next.end(Rest::Nothing);
        assert!(!marked());
    }
}
