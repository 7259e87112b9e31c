//! Writing to standard output, which may be closed or full at any time.

use std::io::{self, Write};

use anyhow::{Context, Result};

use super::logging;

/// Writes `text`. A reader that went away is no error: there is nobody left to tell.
///
/// # Errors
/// Any other failure (a full device): the text did not arrive.
pub fn print(text: &str) -> Result<()> {
    // On a terminal both streams meet.
    logging::flush();
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("standard output cannot be written"),
    }
}
