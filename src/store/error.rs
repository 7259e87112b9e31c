//! Local faults: what this machine's disk refused, and where.
//!
//! They are never an exit's or an origin's fault and are not retried. The `io::Error` is
//! kept, so a caller can tell a full disk from a missing permission.

use std::io;
use std::path::{Path, PathBuf};

use bytesize::ByteSize;

/// A fault of the output directory. The text names the file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system said no.
    #[error("{}cannot {doing} {}: {cause}", full(cause), file.display())]
    Io {
        /// What was tried: `create`, `write`, `rename` …
        doing: &'static str,
        /// On which file or directory.
        file: PathBuf,
        /// As the system put it. Part of the text, so it is no `source` to be told again.
        cause: io::Error,
    },
    /// Less than `--min-free` is left.
    #[error(
        "disk nearly full: {} free for {}, below --min-free {}",
        ByteSize(*free).display().iec(), dir.display(), ByteSize(*min_free).display().iec()
    )]
    LowSpace {
        /// The output directory.
        dir: PathBuf,
        /// Bytes that an unprivileged user may still write.
        free: u64,
        /// The bound that was set.
        min_free: u64,
    },
}

impl StoreError {
    /// Makes an `io::Error` into one that names what was tried on which file.
    pub(super) fn io(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> StoreError {
        move |cause| StoreError::Io {
            doing,
            file: file.to_owned(),
            cause,
        }
    }

    /// The disk, or the user's share of it, is used up.
    pub fn is_full(&self) -> bool {
        match self {
            StoreError::LowSpace { .. } => true,
            StoreError::Io { cause, .. } => is_full(cause),
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

fn full(error: &io::Error) -> &'static str {
    if is_full(error) { "disk full: " } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_and_the_file_is_named() {
        let full =
            StoreError::io("write", Path::new("out/.tmp/1.part"))(io::Error::from_raw_os_error(28));
        assert!(full.is_full());
        assert!(
            full.to_string()
                .starts_with("disk full: cannot write out/.tmp/1.part: No space left")
        );
        let told = format!("{:#}", anyhow::Error::from(full));
        assert_eq!(told.matches("No space left").count(), 1, "{told}");
        let denied =
            StoreError::io("create", Path::new("x"))(io::ErrorKind::PermissionDenied.into());
        assert!(!denied.is_full());
    }
}
