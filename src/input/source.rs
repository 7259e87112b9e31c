//! Where a list comes from, and its bytes as they arrive.
//!
//! Owns opening (file, standard input, URL), decompression, and the check that the list is
//! in an encoding of single bytes; leaves lines to `lines`. A list that cannot be used as a
//! whole (missing, UTF-16, broken compression) is an error; its text names the list as
//! [`ListSource`] shows itself, never a provider URL's path, query or login.

use std::fmt;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;

use anyhow::{Context, bail};
use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, BufReader};

use super::download;
use super::format::ListFormat;
use super::mask::masked;
use crate::model::Secret;

/// The bytes of a list, decompressed, its byte-order mark removed.
pub(super) type Bytes = Pin<Box<dyn AsyncRead + Send>>;

/// Where a list is read from, as the command line names it.
#[derive(Clone, PartialEq, Eq)]
pub enum ListSource {
    /// `-`
    Stdin,
    /// A path. A pipe will do.
    File(PathBuf),
    /// `http://…` or `https://…`, fetched directly: this is the user's own request. Secret,
    /// because providers put tokens into path and query.
    Url(Secret),
}

impl ListSource {
    /// The format that the name tells; standard input is text.
    pub fn format(&self) -> ListFormat {
        ListFormat::of_name(&self.name())
    }

    /// What suffixes are looked for in.
    fn name(&self) -> String {
        match self {
            ListSource::Stdin => String::new(),
            ListSource::File(path) => path.to_string_lossy().into_owned(),
            ListSource::Url(url) => url
                .expose()
                .split(['?', '#'])
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

impl FromStr for ListSource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<ListSource, Self::Err> {
        let starts_with = |prefix: &str| {
            text.get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        Ok(match text {
            "-" => ListSource::Stdin,
            _ if starts_with("http://") || starts_with("https://") => {
                ListSource::Url(Secret::new(text))
            }
            _ => ListSource::File(PathBuf::from(text)),
        })
    }
}

impl fmt::Display for ListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListSource::Stdin => f.write_str("standard input"),
            ListSource::File(path) => f.write_str(&shown(path)),
            ListSource::Url(url) => f.write_str(&download::shown(url)),
        }
    }
}

impl fmt::Debug for ListSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListSource({self})")
    }
}

/// Opens the list and looks at its first bytes.
///
/// # Errors
/// The list cannot be opened, is not what its name says, or is UTF-16.
pub(super) async fn open(source: &ListSource) -> anyhow::Result<Bytes> {
    let raw: Bytes = match source {
        ListSource::Stdin => Box::pin(tokio::io::stdin()),
        ListSource::File(path) => Box::pin(open_file(path, source).await?),
        ListSource::Url(url) => download::open(url)
            .await
            .with_context(|| format!("cannot fetch {source}"))?,
    };
    let read_error = || format!("cannot read {source}");
    let (start, raw) = peek(raw).await.with_context(read_error)?;
    let plain = decompressed(raw, Compression::of(&start, &source.name(), source)?);
    let (start, mut plain) = peek(plain).await.with_context(read_error)?;
    if is_wide(&start) {
        bail!("{source} is UTF-16 (or another encoding with zero bytes)\nhint: save it as UTF-8");
    }
    if start.starts_with(BYTE_ORDER_MARK) {
        let mut mark = [0; BYTE_ORDER_MARK.len()];
        plain.read_exact(&mut mark).await.with_context(read_error)?;
    }
    Ok(plain)
}

/// U+FEFF in UTF-8 (RFC 3629 §6).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// UTF-16 or UTF-32, by their byte-order marks or the zero bytes around ASCII.
fn is_wide(start: &[u8]) -> bool {
    start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") || start.contains(&0)
}

async fn open_file(path: &Path, source: &ListSource) -> anyhow::Result<File> {
    let hint = match looks_like_an_exit(&path.to_string_lossy()) {
        true => "\nhint: exits and URLs themselves go into a file, one a line",
        false => "",
    };
    File::open(path)
        .await
        .with_context(|| format!("cannot open {source}{hint}"))
}

/// A path as messages show it. Who gives an exit where its list is wanted has typed a login.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    match looks_like_an_exit(&text) {
        // `host:port:user:pass`, or the other way round.
        true if !text.contains('@') => "***".to_owned(),
        true => masked(&text),
        false => text.into_owned(),
    }
}

fn looks_like_an_exit(text: &str) -> bool {
    let before_at = text.rsplit_once('@').map(|(login, _)| login);
    let four_parts = !text.contains('/') && text.split(':').count() >= 4;
    before_at.is_some_and(|login| login.contains(':')) || four_parts
}

/// The first four bytes (fewer only if there are no more) and a reader that gives them
/// again. Four tell a compression and an encoding, and no usable line is shorter, so
/// waiting for them holds no entry back.
async fn peek(mut reader: Bytes) -> std::io::Result<(Vec<u8>, Bytes)> {
    let mut start = Vec::with_capacity(4);
    (&mut reader).take(4).read_to_end(&mut start).await?;
    let again = Cursor::new(start.clone());
    Ok((start, Box::pin(again.chain(reader))))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// By the magic bytes. A name that promises a compression which is not there is an
    /// error: the list was cut or mislabelled, and its bytes would pass for bad lines.
    fn of(start: &[u8], name: &str, source: &ListSource) -> anyhow::Result<Compression> {
        let found = if start.starts_with(b"\x1f\x8b") {
            Compression::Gzip
        } else if start.starts_with(b"\x28\xb5\x2f\xfd") {
            Compression::Zstd
        } else {
            Compression::None
        };
        let name = name.to_ascii_lowercase();
        for (suffix, promised) in [(".gz", Compression::Gzip), (".zst", Compression::Zstd)] {
            if name.ends_with(suffix) && found != promised {
                bail!("{source} is named {suffix} but does not hold such data");
            }
        }
        Ok(found)
    }
}

/// Files put together with `cat a.gz b.gz` are read to their end.
fn decompressed(raw: Bytes, compression: Compression) -> Bytes {
    match compression {
        Compression::None => raw,
        Compression::Gzip => {
            let mut decoder = GzipDecoder::new(BufReader::new(raw));
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        Compression::Zstd => {
            let mut decoder = ZstdDecoder::new(BufReader::new(raw));
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
    }
}

#[cfg(test)]
mod tests;
