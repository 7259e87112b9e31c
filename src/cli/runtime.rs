//! The runtime of a command: one thread, timers, sockets, signals.
//!
//! Why not tokio's builder alone: where no descriptor is left for the pipe that signals go
//! through, tokio panics. That is a fault of this machine like any other, so it is told as one.

use std::io;
use std::panic;

use tokio::runtime::{Builder, Runtime};

use super::Stopped;

/// Builds it.
///
/// # Errors
/// The system has no descriptor for it.
pub(super) fn start() -> Result<Runtime, Stopped> {
    let told = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let built = panic::catch_unwind(|| Builder::new_current_thread().enable_all().build());
    panic::set_hook(told);
    let built = built.unwrap_or_else(|_| Err(io::Error::other("no descriptor to spare")));
    built.map_err(|error| {
        Stopped::local(anyhow::Error::from(error).context("cannot start the event loop"))
    })
}
