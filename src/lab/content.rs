//! Bodies: bytes that follow from host and target, so that a mix-up shows.
//!
//! It is text: letters a to p in lines of 64. The first line is the body's own; what follows is
//! lent from one text that all bodies share, each from another place. So nothing is made and
//! nothing is copied for a large body, whatever position is asked for.

use std::io;
use std::sync::LazyLock;

use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZstdEncoder};
use futures_util::FutureExt;
use tokio::io::AsyncWriteExt;

/// Bytes of a line, its line feed included.
const LINE: u64 = 64;
/// Lines of the shared text: few enough for a cache, and more than gzip looks back.
const LINES: u64 = 1024;
/// So much of a body can be lent at once.
pub(super) const RUN: usize = 64 << 10;

/// The first `size` bytes of what the lab serves at `target` (path and query) of `host`
/// (lower case, default port dropped) where a route's body is content and not a message.
pub fn content(host: &str, target: &str, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    append(&mut bytes, seed(host, target), 0, size);
    bytes
}

/// What a body follows from: FNV-1a (64 bit) over host, a zero byte and target.
pub(super) fn seed(host: &str, target: &str) -> u64 {
    let bytes = host.bytes().chain([0]).chain(target.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Appends `size` bytes of the body of `seed`, from position `from` on.
pub(super) fn append(out: &mut Vec<u8>, seed: u64, from: u64, size: usize) {
    out.reserve(size);
    let end = from + size as u64;
    let mut at = from;
    if at < LINE {
        let line = line(seed, 0);
        let until = end.min(LINE);
        out.extend_from_slice(&line[at as usize..until as usize]);
        at = until;
    }
    while at < end {
        let n = (end - at).min(RUN as u64);
        out.extend_from_slice(&lent(seed, at)[..n as usize]);
        at += n;
    }
}

/// The [`RUN`] bytes that the body of `seed` has from position `from` on, which is not in its
/// first line.
pub(super) fn lent(seed: u64, from: u64) -> &'static [u8] {
    static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut text: Vec<u8> = (0..LINES).flat_map(|n| line(0, n)).collect();
        text.extend_from_within(..RUN);
        text
    });
    let at = seed % LINES * LINE + from % (LINES * LINE);
    let at = (at % (LINES * LINE)) as usize;
    &TEXT[at..at + RUN]
}

/// Line `n` of an endless text.
fn line(text: u64, n: u64) -> [u8; LINE as usize] {
    let mut line = [0; LINE as usize];
    for (place, block) in line.chunks_exact_mut(8).zip(n * 8..) {
        place.copy_from_slice(&letters(text, block));
    }
    line
}

/// Eight letters; every eighth block ends in a line feed. The mixing is that of splitmix64.
fn letters(seed: u64, block: u64) -> [u8; 8] {
    let mut z = seed.wrapping_add(block.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mut letters = (z & 0x0f0f_0f0f_0f0f_0f0f) + 0x6161_6161_6161_6161;
    if block % 8 == 7 {
        letters = (letters & 0x00ff_ffff_ffff_ffff) | (0x0a << 56);
    }
    letters.to_le_bytes()
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Brotli,
    Zstd,
}

impl Coding {
    /// As `Content-Encoding` names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }
}

/// `bytes`, `times` over, in `coding`.
pub(super) fn compress(coding: Coding, bytes: &[u8], times: u64) -> Vec<u8> {
    macro_rules! with {
        ($encoder:ident) => {
            async {
                let mut encoder = $encoder::new(Vec::new());
                for _ in 0..times {
                    encoder.write_all(bytes).await?;
                }
                encoder.shutdown().await?;
                io::Result::Ok(encoder.into_inner())
            }
            .now_or_never()
        };
    }
    // Writing to memory neither waits nor fails.
    let done = match coding {
        Coding::Gzip => with!(GzipEncoder),
        Coding::Brotli => with!(BrotliEncoder),
        Coding::Zstd => with!(ZstdEncoder),
    };
    done.and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        // More than the shared text has.
        const SIZE: usize = 400_000;
        let whole = content("a.test", "/x", SIZE);
        assert_eq!(whole.len(), SIZE);
        let seed = seed("a.test", "/x");
        for piece in [1, 3, 63, 64, 65, RUN, SIZE - 1] {
            let mut pieces = Vec::new();
            while pieces.len() < SIZE {
                let n = piece.min(SIZE - pieces.len());
                let from = pieces.len() as u64;
                append(&mut pieces, seed, from, n);
            }
            assert!(pieces == whole, "pieces of {piece}");
        }
        for from in [64, 65, 65_535, 300_000] {
            assert!(
                lent(seed, from as u64) == &whole[from..from + RUN],
                "{from}"
            );
        }
        assert_eq!(content("a.test", "/", 0), b"");
        assert!(whole.iter().skip(63).step_by(64).all(|byte| *byte == b'\n'));
    }

    #[test]
    fn other_hosts_and_targets_have_other_bodies() {
        let body = content("a.test", "/x", 64);
        assert_ne!(body, content("b.test", "/x", 64));
        assert_ne!(body, content("a.test", "/x?a", 64));
        assert_ne!(content("a", "b/", 64), content("ab", "/", 64));
        let tail = |target| content("a.test", target, 1000).split_off(LINE as usize);
        assert_ne!(tail("/x"), tail("/y"));
    }

    #[test]
    fn compressed_zeros_are_small() {
        let zeros = [0; 1 << 16];
        for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            let size = compress(coding, &zeros, 16).len();
            assert!((1..4096).contains(&size), "{coding:?}: {size}");
        }
    }
}
