//! `exits.csv` and `summary.json` of the output directory, written whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::Summary;

/// Writes both files into `dir`.
///
/// # Errors
/// The disk refused; the text names the file.
pub fn write_files(summary: &Summary, dir: &Path) -> anyhow::Result<()> {
    write_whole(&dir.join("exits.csv"), summary.csv()?.as_bytes())?;
    write_whole(&dir.join("summary.json"), summary.json()?.as_bytes())
}

/// Puts `content` at `path` in one step: under another name first, then renamed. A link stays and
/// its target is replaced. A device or a pipe is written to: a rename would put a file in its place.
///
/// # Errors
/// The disk refused; the text names the file. The file at `path` is then as it was.
pub fn write_whole(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let special = |meta: std::fs::Metadata| !meta.is_file() && !meta.is_dir();
    let written = if std::fs::metadata(path).is_ok_and(special) {
        std::fs::write(path, content)
    } else {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        replace(&target, content)
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let written = std::fs::write(&part, content).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // The first error is the one to tell; what is left is replaced next time.
        let _ = std::fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_failure_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary.json");
        std::fs::write(&path, "old and longer").unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let taken = dir.path().join("taken");
        std::fs::create_dir(&taken).unwrap();
        let error = write_whole(&taken, b"x").unwrap_err().to_string();
        assert!(error.contains("taken"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_stays_a_link_and_a_pipe_a_pipe() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        std::fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        write_whole(&pipe, b"page").unwrap();
        // Checked before the join: where a file has taken the pipe's place, no writer ever comes.
        let kind = std::fs::symlink_metadata(&pipe).unwrap().file_type();
        assert!(kind.is_fifo());
        assert_eq!(reader.join().unwrap(), b"page");
    }
}
