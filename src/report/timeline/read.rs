//! `timeline.jsonl` read back: runs with their spans, whatever else is in the file.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::line::{Line, RunHead, Span};

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// What is the same for all of it.
    pub head: RunHead,
    /// In order.
    pub spans: Vec<Span>,
    /// Why it ended; `None`: it is under way, or was killed.
    pub end: Option<String>,
}

/// All runs of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tracks {
    /// In order.
    pub runs: Vec<Track>,
    /// Lines that are none.
    pub malformed: u64,
}

impl Tracks {
    /// Reads the file at `path`; none is as an empty one.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn read(path: &Path) -> io::Result<Tracks> {
        match std::fs::File::open(path) {
            Ok(file) => Tracks::from(BufReader::with_capacity(1 << 20, file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Tracks::default()),
            Err(error) => Err(error),
        }
    }

    fn from(mut source: impl BufRead) -> io::Result<Tracks> {
        let mut tracks = Tracks::default();
        let mut text = Vec::new();
        while source.read_until(b'\n', &mut text)? > 0 {
            if !text.trim_ascii().is_empty() {
                match serde_json::from_slice(&text) {
                    Ok(line) => tracks.take(line),
                    Err(_) => tracks.malformed += 1,
                }
            }
            text.clear();
        }
        Ok(tracks)
    }

    fn take(&mut self, line: Line) {
        match (line, self.runs.last_mut()) {
            (Line::Run(head), _) => self.runs.push(Track {
                head,
                ..Track::default()
            }),
            (Line::Span(span), Some(run)) if is_sane(&span) => run.spans.push(span),
            (Line::End(why), Some(run)) => run.end = Some(why),
            // A span or an end without its run.
            (Line::Span(_) | Line::End(_), _) => self.malformed += 1,
        }
    }

    /// The same as lines.
    pub(super) fn into_lines(self) -> Vec<Line> {
        let runs = self.runs.into_iter();
        let lines = runs.flat_map(|run| {
            let spans = run.spans.into_iter().map(Line::Span);
            let end = run.end.map(Line::End);
            std::iter::once(Line::Run(run.head)).chain(spans).chain(end)
        });
        lines.collect()
    }
}

/// No number of it can spoil a drawing.
fn is_sane(span: &Span) -> bool {
    let good = |n: f64| n.is_finite() && (0.0..1e12).contains(&n);
    good(span.t) && good(span.s) && span.jobs.iter().all(|n| good(*n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_and_foreign_lines_are_passed_over_and_counted() {
        let span = serde_json::to_string(&Line::Span(Span::default())).unwrap();
        let head = serde_json::to_string(&Line::Run(RunHead::default())).unwrap();
        let text = format!(
            "{span}\n{head}\n{span}\n\n{{\"span\":{{\"t\":-1}}}}\nnonsense\n{head}\n{span}\n{}",
            &span[..9]
        );
        let tracks = Tracks::from(text.as_bytes()).unwrap();
        assert_eq!(tracks.malformed, 4);
        let spans: Vec<usize> = tracks.runs.iter().map(|run| run.spans.len()).collect();
        assert_eq!(spans, [1, 1]);
    }
}
