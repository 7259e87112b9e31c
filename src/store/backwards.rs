//! The lines of a journal, last first, of those that hold some text.
//!
//! What is wanted is mostly near the end, and a journal can have gigabytes: blocks are
//! searched as bytes, and only a line that holds the text is looked at.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem::FinderRev;

/// Bytes that are read at a time.
const BLOCK: u64 = 1 << 20;

/// Calls `each` with the lines of `file` that hold `text`, last first, without their line
/// ends, until it answers something. A last line without an end is passed over.
///
/// # Errors
/// The file cannot be read.
pub(super) fn find<T>(
    file: &File,
    text: &[u8],
    mut each: impl FnMut(&[u8]) -> Option<T>,
) -> io::Result<Option<T>> {
    let finder = FinderRev::new(text);
    let mut end = file.metadata()?.len();
    let mut block = BLOCK;
    // The end of a line whose beginning was not read yet.
    let mut rest = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(block);
        let mut data = vec![0; (end - start) as usize];
        file.read_exact_at(&mut data, start)?;
        data.append(&mut rest);
        end = start;
        let lines = match memchr::memchr(b'\n', &data) {
            _ if start == 0 => 0,
            Some(newline) => newline + 1,
            None => data.len(),
        };
        if let Some(found) = last_first(&data[lines..], &finder, &mut each) {
            return Ok(Some(found));
        }
        // A line that is longer than what was read costs twice as much each time, not more.
        block = if lines == data.len() {
            block * 2
        } else {
            BLOCK
        };
        data.truncate(lines);
        rest = data;
    }
    Ok(None)
}

fn last_first<T>(
    lines: &[u8],
    finder: &FinderRev<'_>,
    each: &mut impl FnMut(&[u8]) -> Option<T>,
) -> Option<T> {
    let mut end = memchr::memrchr(b'\n', lines)?;
    while let Some(at) = finder.rfind(&lines[..end]) {
        let start = memchr::memrchr(b'\n', &lines[..at]).map_or(0, |newline| newline + 1);
        let line_end = memchr::memchr(b'\n', &lines[at..end]).map_or(end, |n| at + n);
        if let Some(found) = each(&lines[start..line_end]) {
            return Some(found);
        }
        end = start.checked_sub(1)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(content: &[u8], text: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        std::fs::write(&path, content).unwrap();
        let mut lines = Vec::new();
        let file = File::open(path).unwrap();
        let none = find(&file, text.as_bytes(), |line| {
            lines.push(String::from_utf8_lossy(line).into_owned());
            None::<()>
        });
        assert_eq!(none.unwrap(), None);
        lines
    }

    #[test]
    fn whole_lines_come_last_first_and_each_once() {
        assert_eq!(found(b"a1\nb\na2 a\n\na3", "a"), ["a2 a", "a1"]);
        assert_eq!(found(b"", "a"), [""; 0]);
        assert_eq!(found(b"a", "a"), [""; 0]);
        assert_eq!(found(b"x\n", "a"), [""; 0]);
    }

    #[test]
    fn lines_across_blocks_are_whole() {
        let line = |n: u32| format!("line {n} {}", "x".repeat(n as usize % 50_000));
        let mut content: String = (0..200).map(|n| line(n * 997) + "\n").collect();
        let long = "line of many ".to_owned() + &"y".repeat(3 << 20);
        content.insert_str(content.len() / 2, &format!("\n{long}\n"));
        let lines = found(content.as_bytes(), "line");
        let mut expected: Vec<&str> = content.lines().filter(|l| l.contains("line")).collect();
        expected.reverse();
        assert!(lines == expected, "{} of {}", lines.len(), expected.len());
    }
}
