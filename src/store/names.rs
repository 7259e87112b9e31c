//! Names of body files: from a job and a content type, nothing else.
//!
//! Invariants: different ids never give one file, also where letter case or Unicode form
//! does not count; a name stays below `bodies/`, every component is plain ASCII of at most
//! 255 bytes and no device name of Windows; the same job always gets the same name.
//!
//! Ids of `[a-z0-9_-]{1,64}` are taken as they are. Every other id becomes a cleaned form,
//! `~` and 16 hex digits of its SHA-256: no plain id holds `~`, and no two ids share a hash.

use sha2::{Digest, Sha256};

use super::NameTemplate;
use crate::model::Job;
use crate::model::job::hex;

/// Longest id that is taken as it is.
const PLAIN: usize = 64;
/// How much of another id stays readable before its hash.
const READABLE: usize = 40;
/// The longest form of an id: a plain one, or readable part, `~` and hash.
pub(super) const ID_MAX: usize = PLAIN;
/// Hex digits of an id's hash.
pub(super) const HASH_LEN: usize = 16;

/// Chooses where a body is stored, relative to the output directory.
#[derive(Clone, Debug, Default)]
pub struct Names {
    template: Option<NameTemplate>,
}

impl Names {
    /// By `template`, or `bodies/9f/86/ID.ext` without one.
    pub fn new(template: Option<NameTemplate>) -> Names {
        Names { template }
    }

    /// The file of `job`'s body. The two levels of directories come from the first digits
    /// of a generated id, which is a hash, and from the hash of a given one.
    pub fn file(&self, job: &Job, content_type: Option<&str>) -> String {
        let ext = extension(content_type.unwrap_or_default());
        if let Some(template) = &self.template {
            return format!("bodies/{}", template.render(job, ext));
        }
        if !job.id_given && is_hash(&job.id) {
            return fanned_out(&job.id, &job.id, ext);
        }
        fanned_out(&id_hash(&job.id), &safe_id(&job.id), ext)
    }
}

/// `bodies/9f/86/NAME.ext`, the directories by the first digits of `hash`. Pushed together: this
/// is done for every body, and formatting costs five times as much.
fn fanned_out(hash: &str, name: &str, ext: &str) -> String {
    let parts = ["bodies/", &hash[..2], "/", &hash[2..4], "/", name, ext];
    parts.concat()
}

fn is_hash(id: &str) -> bool {
    id.len() == HASH_LEN && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// First 16 hex digits of SHA-256 over the id.
pub(super) fn id_hash(id: &str) -> String {
    hex(&Sha256::digest(id.as_bytes())[..HASH_LEN / 2])
}

/// The id as a file name without extension.
pub(super) fn safe_id(id: &str) -> String {
    let plain = (1..=PLAIN).contains(&id.len())
        && id
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        && !is_device(id);
    if plain {
        id.to_owned()
    } else {
        format!("{}~{}", clean(id, READABLE, ""), id_hash(id))
    }
}

/// `text` in lower case with one `_` for each run of characters other than letters, digits,
/// `-` and those of `also`; at most `max` bytes. May be empty.
pub(super) fn clean(text: &str, max: usize, also: &str) -> String {
    let mut out = String::with_capacity(max.min(text.len()));
    for c in text.chars() {
        if out.len() == max {
            break;
        }
        if c.is_ascii_alphanumeric() || c == '-' || also.contains(c) {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out
}

/// Whether Windows takes a file of this name for a device (the part before the first dot counts).
pub(super) fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let stem = stem.trim_end().to_ascii_lowercase();
    match stem.as_str() {
        "con" | "prn" | "aux" | "nul" => true,
        stem => {
            let port = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
            port.is_some_and(|n| n.len() == 1 && n.bytes().all(|b| b.is_ascii_digit()))
        }
    }
}

/// The longest of [`extension`]'s answers.
pub(super) const EXT_MAX: usize = 6;

/// The extension with its dot for a content type, from a fixed list; empty for all others,
/// so that nothing a server writes gets into a name.
pub(super) fn extension(content_type: &str) -> &'static str {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let known = EXTENSIONS
        .iter()
        .find(|(_, types)| types.iter().any(|t| t.eq_ignore_ascii_case(essence)));
    if let Some((ext, _)) = known {
        return ext;
    }
    let suffix = essence.rsplit_once('+').map(|(_, suffix)| suffix);
    match suffix {
        Some(suffix) if suffix.eq_ignore_ascii_case("json") => ".json",
        Some(suffix) if suffix.eq_ignore_ascii_case("xml") => ".xml",
        _ => "",
    }
}

/// Common types by extension (IANA media types and what servers send in their place).
const EXTENSIONS: &[(&str, &[&str])] = &[
    (".html", &["text/html"]),
    (".json", &["application/json", "text/json"]),
    (".txt", &["text/plain"]),
    (".xml", &["application/xml", "text/xml"]),
    (".xhtml", &["application/xhtml+xml"]),
    (".rss", &["application/rss+xml"]),
    (".atom", &["application/atom+xml"]),
    (".css", &["text/css"]),
    (".csv", &["text/csv"]),
    (".tsv", &["text/tab-separated-values"]),
    (".md", &["text/markdown"]),
    (
        ".js",
        &[
            "text/javascript",
            "application/javascript",
            "application/x-javascript",
        ],
    ),
    (
        ".jsonl",
        &[
            "application/x-ndjson",
            "application/jsonl",
            "application/x-jsonlines",
        ],
    ),
    (".jpg", &["image/jpeg", "image/jpg"]),
    (".png", &["image/png"]),
    (".gif", &["image/gif"]),
    (".webp", &["image/webp"]),
    (".avif", &["image/avif"]),
    (".svg", &["image/svg+xml"]),
    (".ico", &["image/x-icon", "image/vnd.microsoft.icon"]),
    (".bmp", &["image/bmp"]),
    (".tiff", &["image/tiff"]),
    (".pdf", &["application/pdf"]),
    (".epub", &["application/epub+zip"]),
    (".zip", &["application/zip", "application/x-zip-compressed"]),
    (".gz", &["application/gzip", "application/x-gzip"]),
    (".zst", &["application/zstd"]),
    (".tar", &["application/x-tar"]),
    (".7z", &["application/x-7z-compressed"]),
    (".mp3", &["audio/mpeg"]),
    (".ogg", &["audio/ogg", "video/ogg"]),
    (".wav", &["audio/wav", "audio/x-wav"]),
    (".mp4", &["video/mp4"]),
    (".webm", &["video/webm", "audio/webm"]),
    (".m3u8", &["application/vnd.apple.mpegurl"]),
    (".woff", &["font/woff"]),
    (".woff2", &["font/woff2"]),
    (".ttf", &["font/ttf"]),
    (".wasm", &["application/wasm"]),
    (".doc", &["application/msword"]),
    (
        ".docx",
        &["application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
    ),
    (".xls", &["application/vnd.ms-excel"]),
    (
        ".xlsx",
        &["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
    ),
    (
        ".pptx",
        &["application/vnd.openxmlformats-officedocument.presentationml.presentation"],
    ),
];

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
