//! The disk of a simulation: chains of line numbers.
//!
//! Stands in for `store/spill`: the newest line of an origin first, each read once. Has room for
//! everything, and takes no time.

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Disk {
    records: Vec<Option<Record>>,
    spare: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    before: Option<u64>,
    line: u64,
}

impl Disk {
    /// Adds a line to the chain whose newest is at `before`; answers where it is.
    pub(super) fn put(&mut self, before: Option<u64>, line: u64) -> u64 {
        let record = Some(Record { before, line });
        match self.spare.pop() {
            Some(at) => {
                self.records[at as usize] = record;
                at
            }
            None => {
                self.records.push(record);
                self.records.len() as u64 - 1
            }
        }
    }

    /// Takes up to `most` lines out of the chain whose newest is at `newest`; and where it goes on.
    pub(super) fn take(&mut self, newest: u64, most: usize) -> (Vec<u64>, Option<u64>) {
        let (mut lines, mut rest) = (Vec::new(), Some(newest));
        while let Some(at) = rest
            && lines.len() < most
        {
            // One that was read before is none: its line has an end too many, and is missed here.
            let Some(record) = self.records[at as usize].take() else {
                return (lines, None);
            };
            self.spare.push(at);
            lines.push(record.line);
            rest = record.before;
        }
        (lines, rest)
    }
}
