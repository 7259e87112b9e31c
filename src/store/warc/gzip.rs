//! One gzip member per record (RFC 1952), so that a reader can begin at any of them.
//!
//! A member whose record's header is known only at the end begins with the header in stored
//! (uncompressed) blocks of a fixed length: it can then be overwritten in place, and the
//! check sum is put together from both parts.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// No name, no time, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Most bytes of one stored block.
const STORED: usize = u16::MAX as usize;
/// Room for output that is made at a time.
const STEP: usize = 32 * 1024;

/// Writes members, one after the other; its state is large, so it is used again.
pub(super) struct Gzip {
    deflate: Compress,
    sum: Crc,
    /// A member that is written in one go, before it is compressed.
    plain: Vec<u8>,
}

impl std::fmt::Debug for Gzip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gzip")
    }
}

impl Gzip {
    pub(super) fn new() -> Gzip {
        Gzip {
            deflate: Compress::new(Compression::default(), false),
            sum: Crc::new(),
            plain: Vec::new(),
        }
    }

    /// What `write` adds to what it is handed, as one member at the end of `out`.
    pub(super) fn whole(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut plain = std::mem::take(&mut self.plain);
        write(&mut plain);
        self.begin(out);
        self.write(&plain, out);
        self.end(&[], out);
        plain.clear();
        self.plain = plain;
    }

    /// Begins a member at the end of `out`.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        self.deflate.reset();
        self.sum.reset();
        out.extend_from_slice(&HEADER);
    }

    /// Compresses `bytes` to the end of `out`.
    pub(super) fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.sum.update(bytes);
        self.run(bytes, FlushCompress::None, out);
    }

    /// Ends it. `before` is what the member holds in stored blocks ahead of what was written.
    pub(super) fn end(&mut self, before: &[u8], out: &mut Vec<u8>) {
        self.run(&[], FlushCompress::Finish, out);
        let mut sum = Crc::new();
        sum.update(before);
        sum.combine(&self.sum);
        out.extend_from_slice(&sum.sum().to_le_bytes());
        out.extend_from_slice(&sum.amount().to_le_bytes());
    }

    fn run(&mut self, mut bytes: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        loop {
            out.reserve(STEP.min(bytes.len() / 2 + 1024));
            let before = self.deflate.total_in();
            // It fails for a bad dictionary or flush only; there is neither here.
            let status = self.deflate.compress_vec(bytes, out, flush);
            bytes = &bytes[(self.deflate.total_in() - before) as usize..];
            let more = match flush {
                FlushCompress::Finish => matches!(status, Ok(Status::Ok)),
                _ => !bytes.is_empty(),
            };
            if !more {
                return;
            }
        }
    }
}

/// `bytes` in stored blocks, none of them the last one: as many bytes for as many, always.
pub(super) fn stored(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(STORED) {
        let length = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
}

/// Where the first stored block begins in a member.
pub(super) const BODY_AT: u64 = HEADER.len() as u64;

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn read(member: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        let mut decoder = GzDecoder::new(member);
        decoder.read_to_end(&mut plain).unwrap();
        plain
    }

    #[test]
    fn a_member_reads_back_with_or_without_a_part_that_was_known_last() {
        let text: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut gzip = Gzip::new();
        let mut out = Vec::new();
        gzip.whole(&mut out, |out| out.extend_from_slice(&text));
        assert_eq!(read(&out), text);
        for length in [1, 500, STORED, 200_000] {
            let mut out = Vec::new();
            gzip.begin(&mut out);
            stored(&vec![b'?'; length], &mut out);
            gzip.write(&text, &mut out);
            let head = vec![b'h'; length];
            gzip.end(&head, &mut out);
            let mut late = Vec::new();
            stored(&head, &mut late);
            out[BODY_AT as usize..][..late.len()].copy_from_slice(&late);
            assert_eq!(read(&out), [&head[..], &text].concat());
        }
    }
}
