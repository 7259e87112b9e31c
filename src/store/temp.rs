//! Temporary files and how they get their final name.
//!
//! Where the file system has unnamed files (`O_TMPFILE`), a body has no name at all until it
//! is whole: a crash leaves nothing, and no directory entry is made and renamed (measured on
//! tmpfs: 3 µs of 14 per small file; more on ext4). Elsewhere it is `.tmp/NUMBER.part` and is
//! renamed. Which of the two is tried once, when the directory is opened.
//!
//! Everything is done relative to open directories, so a long path to the output directory
//! is not walked for each file.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::StoreError;

/// What temporary names end in; only files named `NUMBER.part` are ours to remove.
const SUFFIX: &str = ".part";
/// Permissions before the user's mask.
const FILE: Mode = Mode::from_raw_mode(0o666);
const DIRECTORY: Mode = Mode::from_raw_mode(0o777);
/// Directories that are known to exist, by hash: 2^20 bits, 128 KiB.
const KNOWN_WORDS: usize = 1 << 14;

/// The directories that files pass through.
#[derive(Debug)]
pub(super) struct TempFiles {
    out: PathBuf,
    out_dir: OwnedFd,
    temp: PathBuf,
    temp_dir: OwnedFd,
    kind: Kind,
    next: AtomicU64,
    known: Box<[AtomicU64]>,
}

/// How temporary files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Without any name.
    Unnamed,
    /// As `.tmp/NUMBER.part`.
    Named,
}

/// A temporary file. Dropped, it is gone.
#[derive(Debug)]
pub(super) struct TempFile {
    file: File,
    /// Empty: it has no name.
    path: PathBuf,
}

impl TempFiles {
    /// For the output directory `out`, with `.tmp/` in it. Removes the temporary files of an
    /// earlier run; the caller holds the directory's lock.
    pub(super) fn open(out: &Path) -> Result<TempFiles, StoreError> {
        let temp = out.join(".tmp");
        std::fs::create_dir_all(&temp).map_err(StoreError::io("create", &temp))?;
        remove_stale(&temp).map_err(StoreError::io("clear", &temp))?;
        let mut files = TempFiles {
            out_dir: directory(out)?,
            temp_dir: directory(&temp)?,
            out: out.to_owned(),
            temp,
            kind: Kind::Unnamed,
            next: AtomicU64::new(0),
            known: (0..KNOWN_WORDS).map(|_| AtomicU64::new(0)).collect(),
        };
        if files.try_unnamed().is_err() {
            files.kind = Kind::Named;
        }
        Ok(files)
    }

    /// Another way of keeping them, for tests of both.
    #[cfg(test)]
    pub(super) fn keeping(mut self, kind: Kind) -> TempFiles {
        self.kind = kind;
        self
    }

    /// The output directory.
    pub(super) fn out(&self) -> &Path {
        &self.out
    }

    /// `.tmp/`.
    pub(super) fn dir(&self) -> &Path {
        &self.temp
    }

    /// Makes an empty temporary file.
    pub(super) fn create(&self) -> Result<TempFile, StoreError> {
        let (name, flags, path) = match self.kind {
            Kind::Unnamed => (".".to_owned(), OFlags::TMPFILE, PathBuf::new()),
            Kind::Named => {
                let name = self.temp_name();
                let path = self.temp.join(&name);
                (name, OFlags::CREATE | OFlags::EXCL, path)
            }
        };
        let flags = flags | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.temp_dir, &name, flags, FILE) {
            Ok(file) => Ok(TempFile {
                file: file.into(),
                path,
            }),
            Err(error) => Err(StoreError::io("create a file in", &self.temp)(error.into())),
        }
    }

    /// Gives `temp` its final name, relative to the output directory, in one step; what had
    /// that name before is replaced. Missing directories are made.
    pub(super) fn commit(&self, temp: TempFile, file: &str) -> Result<(), StoreError> {
        let to = self.out.join(file);
        self.place(&temp, file)
            .map_err(|error| StoreError::io("store a body as", &to)(error))?;
        temp.keep();
        Ok(())
    }

    fn place(&self, temp: &TempFile, file: &str) -> io::Result<()> {
        self.expect_parent(file);
        match self.name(temp, file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(parent) = self.out.join(file).parent() {
                    std::fs::create_dir_all(parent)?;
                }
                self.name(temp, file)
            }
            done => done,
        }
    }

    /// Makes the directory of `file` unless one of its hash was made before: cheaper than
    /// finding out by a failure. A wrong guess costs that failure, nothing else.
    fn expect_parent(&self, file: &str) {
        let Some((parent, _)) = file.rsplit_once('/') else {
            return;
        };
        let hash = fnv(parent);
        let bit = 1 << (hash % 64);
        let word = &self.known[(hash / 64) as usize % KNOWN_WORDS];
        if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            // It may be there already, or its own parent may be missing: `place` sees to that.
            let _ = rustix::fs::mkdirat(&self.out_dir, parent, DIRECTORY);
        }
    }

    fn name(&self, temp: &TempFile, file: &str) -> io::Result<()> {
        if !temp.path.as_os_str().is_empty() {
            let from = temp.path.file_name().unwrap_or_default();
            rustix::fs::renameat(&self.temp_dir, from, &self.out_dir, file)?;
            return Ok(());
        }
        match self.link(temp, &self.out_dir, file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let between = self.temp_name();
                self.link(temp, &self.temp_dir, &between)?;
                let renamed = rustix::fs::renameat(&self.temp_dir, &between, &self.out_dir, file);
                if renamed.is_err() {
                    let _ = rustix::fs::unlinkat(&self.temp_dir, &between, AtFlags::empty());
                }
                Ok(renamed?)
            }
            done => done,
        }
    }

    fn link(&self, temp: &TempFile, dir: &OwnedFd, name: &str) -> io::Result<()> {
        rustix::fs::linkat(&temp.file, "", dir, name, AtFlags::EMPTY_PATH)?;
        Ok(())
    }

    /// Not every file system has unnamed files, and not every kernel lets everybody name them.
    fn try_unnamed(&self) -> io::Result<()> {
        let temp = self.create().map_err(io::Error::other)?;
        let name = self.temp_name();
        self.link(&temp, &self.temp_dir, &name)?;
        rustix::fs::unlinkat(&self.temp_dir, &name, AtFlags::empty())?;
        Ok(())
    }

    fn temp_name(&self) -> String {
        format!("{}{SUFFIX}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl TempFile {
    /// One that `file` stands for, for tests of its failures.
    #[cfg(test)]
    pub(super) fn named(file: File, path: PathBuf) -> TempFile {
        TempFile { file, path }
    }

    /// Adds `bytes`.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// What it holds so far.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// How errors name it.
    pub(super) fn shown<'a>(&'a self, files: &'a TempFiles) -> &'a Path {
        if self.path.as_os_str().is_empty() {
            files.dir()
        } else {
            &self.path
        }
    }

    /// It has its final name: nothing is left to remove.
    fn keep(mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // A file that cannot be removed now goes when the next run opens the directory.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn directory(path: &Path) -> Result<OwnedFd, StoreError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|error| StoreError::io("open", path)(error.into()))
}

fn remove_stale(temp: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(temp)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        if number.is_some_and(|n| n.parse::<u64>().is_ok()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// FNV-1a, folded: spread enough for a bitmap.
fn fnv(text: &str) -> u64 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(kind: Kind, steps: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let files = TempFiles::open(dir.path()).unwrap().keeping(kind);
        for (file, content) in steps {
            let mut temp = files.create().unwrap();
            temp.write(content.as_bytes()).unwrap();
            files.commit(temp, file).unwrap();
        }
        let left = std::fs::read_dir(files.dir()).unwrap().count();
        assert_eq!(left, 0, "{kind:?} leaves nothing in .tmp");
        dir
    }

    #[test]
    fn both_kinds_store_replace_and_make_directories() {
        let steps = [
            ("bodies/9f/86/a", "one"),
            ("bodies/9f/86/b", "two"),
            ("bodies/9f/86/a", "three"),
            ("top", "four"),
        ];
        for kind in [Kind::Unnamed, Kind::Named] {
            let dir = stored(kind, &steps);
            let read = |file: &str| std::fs::read_to_string(dir.path().join(file)).unwrap();
            assert_eq!(read("bodies/9f/86/a"), "three");
            assert_eq!(read("bodies/9f/86/b"), "two");
            assert_eq!(read("top"), "four");
        }
    }

    #[test]
    fn a_directory_that_vanished_is_made_again() {
        for kind in [Kind::Unnamed, Kind::Named] {
            let dir = tempfile::tempdir().unwrap();
            let files = TempFiles::open(dir.path()).unwrap().keeping(kind);
            for _ in 0..2 {
                files
                    .commit(files.create().unwrap(), "bodies/x/y/z")
                    .unwrap();
                std::fs::remove_dir_all(dir.path().join("bodies")).unwrap();
            }
        }
    }
}
