//! `exits.csv` and `summary.json` of the output directory, written whole or not at all.

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

/// Puts `content` at `path` in one step: under another name first, then renamed.
///
/// # Errors
/// The disk refused; the text names the file. The file at `path` is then as it was.
pub fn write_whole(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let written = std::fs::write(&part, content).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // The first error is the one to tell; what is left is replaced next time.
        let _ = std::fs::remove_file(&part);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
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
}
