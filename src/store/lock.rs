//! Opening `results.jsonl` as the only run that may write it.
//!
//! The lock is on the journal itself, so no lock file can be left behind: it goes with the
//! process, however that ends. `--fresh` moves the old journal aside while its lock is held
//! and takes the new one's before letting go.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Opens and locks the journal at `path`, made if there is none.
///
/// # Errors
/// Another run holds it, or it cannot be opened, written or locked.
pub(super) fn open(path: &Path) -> anyhow::Result<File> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        if let Some(file) = claim(file, path)? {
            return Ok(file);
        }
    }
}

/// Locks `file`, opened from `path`. `None`: between open and lock a run with `--fresh`
/// moved it aside, so the lock would guard the wrong file.
fn claim(file: File, path: &Path) -> anyhow::Result<Option<File>> {
    match file.try_lock() {
        Ok(()) => Ok(is_still_at(&file, path)?.then_some(file)),
        Err(TryLockError::WouldBlock) => bail!(
            "another run is writing to {}\nhint: wait for it to end, or choose another --out",
            path.parent().unwrap_or(path).display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Moves the locked journal to the first free `results.N.jsonl` and starts a new one. An
/// empty journal is kept as it is. Returns the new file and the backup's path.
pub(super) fn set_aside(old: File, path: &Path) -> anyhow::Result<(File, Option<PathBuf>)> {
    if old.metadata()?.len() == 0 {
        return Ok((old, None));
    }
    let backup = (1u32..)
        .map(|n| path.with_extension(format!("{n}.jsonl")))
        .find(|backup| backup.symlink_metadata().is_err())
        .context("no free name for the backup of results.jsonl")?;
    std::fs::rename(path, &backup)
        .with_context(|| format!("cannot rename {} to {}", path.display(), backup.display()))?;
    let new = open(path)?;
    drop(old);
    Ok((new, Some(backup)))
}

/// Whether `file`, opened from `path`, has not been moved or removed since.
pub(super) fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((held.dev(), held.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_is_turned_away_by_name_until_the_first_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        let held = open(&path).unwrap();
        let error = open(&path).unwrap_err().to_string();
        assert!(
            error.contains("another run") && error.contains(dir.path().to_str().unwrap()),
            "{error}"
        );
        drop(held);
        open(&path).unwrap();
    }

    #[test]
    fn a_lock_on_a_file_that_was_moved_aside_meanwhile_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        drop(open(&path).unwrap());
        let slow = File::options().append(true).open(&path).unwrap();
        std::fs::rename(&path, dir.path().join("results.1.jsonl")).unwrap();
        assert!(claim(slow, &path).unwrap().is_none(), "no file is there");
        let slow = File::options()
            .append(true)
            .open(dir.path().join("results.1.jsonl"));
        std::fs::write(&path, "").unwrap();
        assert!(
            claim(slow.unwrap(), &path).unwrap().is_none(),
            "another file is there"
        );
    }

    #[test]
    fn fresh_keeps_each_old_journal_under_a_number_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.jsonl");
        for n in 1..=2 {
            std::fs::write(&path, format!("journal {n}\n")).unwrap();
            let (new, backup) = set_aside(open(&path).unwrap(), &path).unwrap();
            let backup = backup.unwrap();
            assert_eq!(backup, dir.path().join(format!("results.{n}.jsonl")));
            assert_eq!(
                std::fs::read_to_string(backup).unwrap(),
                format!("journal {n}\n")
            );
            assert!(is_still_at(&new, &path).unwrap());
            assert!(open(&path).is_err(), "the new journal is locked");
        }
    }
}
