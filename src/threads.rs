//! Threads and event loops, or an error where this machine has none to spare.
//!
//! Why not tokio's builders alone: where a thread, or a descriptor for the pipe that signals go
//! through, is refused, tokio panics. That is a fault of this machine like any other, so it is
//! told as one.

use std::fmt::Display;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::runtime::{self, Runtime};

/// A thread of tokio's pool that has nothing to do for 10 s ends; half of that.
const KEPT_AWAKE: Duration = Duration::from_secs(5);
/// Longer than any run.
const FOR_GOOD: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A thread of this name.
///
/// # Errors
/// The system has none.
pub(crate) fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let started = Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(|error| none_left(&error))
}

/// One thread's event loop with timers, sockets and signals. It has a thread for what blocks
/// (files, names) from the start, and keeps one: another that is refused later is then no more
/// than missing.
///
/// # Errors
/// The system has no descriptor, or no thread, for it.
pub(crate) fn event_loop() -> io::Result<Runtime> {
    built(|| {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.spawn_blocking(|| {});
        runtime.spawn(async {
            loop {
                tokio::time::sleep(KEPT_AWAKE).await;
                let _ = tokio::task::spawn_blocking(|| {}).await;
            }
        });
        Ok(runtime)
    })
}

/// So many threads, for arithmetic only.
///
/// # Errors
/// The system has fewer.
pub(crate) fn pool(threads: usize, name: &str) -> io::Result<Runtime> {
    built(|| {
        runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name(name)
            .build()
    })
}

/// At most so many threads, for what blocks; more work than that waits its turn. They stay.
///
/// # Errors
/// The system has not even one.
pub(crate) fn blocking(threads: usize, name: &str) -> io::Result<Runtime> {
    built(|| {
        let runtime = runtime::Builder::new_current_thread()
            .max_blocking_threads(threads)
            .thread_keep_alive(FOR_GOOD)
            .thread_name(name)
            .build()?;
        runtime.spawn_blocking(|| {});
        Ok(runtime)
    })
}

/// Threads that are started when they are first wanted, and may be refused.
#[derive(Debug, Default)]
pub(crate) struct OnDemand(OnceLock<Option<Runtime>>);

impl OnDemand {
    /// The threads, which `start` has started.
    pub(crate) fn get(&self, start: impl FnOnce() -> Option<Runtime>) -> Option<&Runtime> {
        self.0.get_or_init(start).as_ref()
    }
}

impl Drop for OnDemand {
    fn drop(&mut self) {
        // Waiting for them is not allowed where tasks run.
        if let Some(threads) = self.0.take().flatten() {
            threads.shutdown_background();
        }
    }
}

/// An event loop for signals alone, without threads.
///
/// # Errors
/// The system has no descriptor for it.
pub(crate) fn signal_loop() -> io::Result<Runtime> {
    built(|| runtime::Builder::new_current_thread().enable_io().build())
}

/// What `build` makes; its panic is an error.
fn built(build: impl FnOnce() -> io::Result<Runtime>) -> io::Result<Runtime> {
    // There is one hook: of two that come together the second would put the silent one back.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    let told = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let built = panic::catch_unwind(AssertUnwindSafe(build));
    panic::set_hook(told);
    built.unwrap_or_else(|_| Err(none_left(&"no descriptor to spare, or no thread")))
}

/// Of the kind that the system's own word has.
fn none_left(why: &dyn Display) -> io::Error {
    let text = format!(
        "cannot start a thread: {why}\n\
         hint: raise the limit of processes (ulimit -u, or the container's) or of files (ulimit -n)"
    );
    io::Error::new(io::ErrorKind::WouldBlock, text)
}
