//! The file: appended line by line, rewritten with half of its lines when it is long.
//!
//! Losing the timeline loses a picture, not a result: an error is told once, as a warning,
//! and nothing more is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::LINES_MOST;
use super::line::Line;
use super::merge::halve;
use super::read::Tracks;
use crate::report::write_whole;

/// The `timeline.jsonl` of an output directory, open for a run.
#[derive(Debug)]
pub struct Timeline {
    path: PathBuf,
    /// `None` once the disk has refused it.
    file: Option<File>,
    lines: usize,
    most: usize,
}

impl Timeline {
    /// Opens the timeline in `dir`; what earlier runs wrote stays. `backup` is where the
    /// records of an earlier run were moved: their timeline goes beside them.
    pub fn open(dir: &Path, backup: Option<&Path>) -> Timeline {
        let path = dir.join("timeline.jsonl");
        if let Some(number) = backup.and_then(number_of) {
            // There may be none; and if it cannot be moved, this run is appended to it.
            let _ = std::fs::rename(&path, dir.join(format!("timeline.{number}.jsonl")));
        }
        let mut timeline = Timeline {
            file: None,
            lines: 0,
            most: LINES_MOST,
            path,
        };
        let opened = timeline.open_end();
        timeline.keep(opened);
        timeline
    }

    /// Adds a line.
    pub fn add(&mut self, line: &Line) {
        if self.file.is_none() {
            return;
        }
        let added = self.append(line).and_then(|()| self.shorten());
        self.keep(added);
    }

    fn keep(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            tracing::warn!(
                "{}: {error}; the run goes on, its report will not show how it went over time",
                self.path.display()
            );
            self.file = None;
        }
    }

    /// The end of the file, behind a whole line.
    fn open_end(&mut self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .append(true)
            .create(true)
            .open(&self.path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        self.lines = memchr::memchr_iter(b'\n', &text).count();
        file.seek(SeekFrom::End(0))?;
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n")?;
        }
        self.file = Some(file);
        Ok(())
    }

    fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        if let Some(file) = &mut self.file {
            file.write_all(&text)?;
            self.lines += 1;
        }
        Ok(())
    }

    fn shorten(&mut self) -> io::Result<()> {
        if self.lines <= self.most {
            return Ok(());
        }
        let lines = halve(Tracks::read(&self.path)?.into_lines());
        let mut text = Vec::new();
        for line in &lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        write_whole(&self.path, &text).map_err(io::Error::other)?;
        // Runs without end would make heads alone too many: then they are few enough next time.
        self.most = self.most.max(lines.len() * 3 / 2);
        self.open_end()
    }
}

/// The number in `results.3.jsonl`.
fn number_of(backup: &Path) -> Option<&str> {
    backup.file_name()?.to_str()?.split('.').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::timeline::{RunHead, Span};

    fn second(t: u32) -> Line {
        Line::Span(Span {
            t: f64::from(t),
            s: 1.0,
            attempts: 1,
            ..Span::default()
        })
    }

    #[test]
    fn however_long_a_run_takes_the_file_is_bounded_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let mut timeline = Timeline::open(dir.path(), None);
        timeline.most = 20;
        timeline.add(&Line::Run(RunHead::default()));
        for t in 0..500 {
            timeline.add(&second(t));
        }
        let tracks = Tracks::read(&dir.path().join("timeline.jsonl")).unwrap();
        assert_eq!((tracks.runs.len(), tracks.malformed), (1, 0));
        let spans = &tracks.runs[0].spans;
        assert!((10..=20).contains(&spans.len()), "{}", spans.len());
        assert_eq!(spans.iter().map(|span| span.attempts).sum::<u64>(), 500);
        assert_eq!(spans.iter().map(|span| span.s).sum::<f64>(), 500.0);
        assert!(spans.windows(2).all(|two| two[0].t + two[0].s == two[1].t));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_second_run_is_told_from_the_first_and_a_torn_line_spoils_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("timeline.jsonl");
        for _ in 0..2 {
            let mut timeline = Timeline::open(dir.path(), None);
            timeline.add(&Line::Run(RunHead::default()));
            timeline.add(&second(0));
            let mut text = std::fs::read(&path).unwrap();
            text.extend(b"{\"span\":{\"t\":1,");
            std::fs::write(&path, text).unwrap();
        }
        let tracks = Tracks::read(&path).unwrap();
        assert_eq!((tracks.runs.len(), tracks.malformed), (2, 2));
        assert!(tracks.runs.iter().all(|run| run.spans.len() == 1));
    }

    #[test]
    fn afresh_puts_the_old_timeline_beside_the_old_records() {
        let dir = tempfile::tempdir().unwrap();
        Timeline::open(dir.path(), None).add(&second(0));
        let backup = dir.path().join("results.4.jsonl");
        Timeline::open(dir.path(), Some(&backup)).add(&second(7));
        let old = std::fs::read_to_string(dir.path().join("timeline.4.jsonl")).unwrap();
        assert!(old.contains("\"t\":0.0"), "{old}");
    }

    #[test]
    fn a_disk_that_refuses_ends_the_timeline_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("timeline.jsonl")).unwrap();
        let mut timeline = Timeline::open(dir.path(), None);
        timeline.add(&second(0));
        assert!(timeline.file.is_none());
    }
}
