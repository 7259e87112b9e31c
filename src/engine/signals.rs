//! SIGINT and SIGTERM, which end a run, SIGUSR1, which asks how it stands, and SIGXFSZ, which is
//! to end nothing.
//!
//! The first two are caught on a thread of their own, handed to whoever waits for them.
//!
//! A thread, because the run's task may be blocked for ever in a call that no signal ends (a
//! pipe that nobody reads or writes, a file system that is gone) and would then never hear
//! of them: the thread ends the program instead.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

use super::stop::Ended;
use crate::threads;

/// A signal that nobody takes within this time finds the program blocked.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// What a run does after the first signal takes less: its grace, then the waits of its end.
const ENDED_WITHIN: Duration = Duration::from_secs(60);

/// The signals that end a run, caught from the moment this is made.
pub struct Signals {
    caught: Receiver<Caught>,
}

/// What was caught.
#[derive(Clone, Copy, Debug)]
enum Caught {
    Interrupt,
    Terminate,
}

impl Signals {
    /// Catches SIGINT and SIGTERM from now on. `last_resort` ends the program with what the
    /// first of them asked for; it is called where signals do not, on another thread.
    ///
    /// # Errors
    /// The system has no room for a handler or a thread.
    pub fn catch(last_resort: impl FnOnce(Ended) + Send + 'static) -> io::Result<Signals> {
        let (tell, caught) = channel(1);
        let (begin, begun) = std::sync::mpsc::sync_channel(1);
        threads::start("signals", move || {
            // Made there: dropped for want of the thread, in a task, the runtime would panic.
            let (runtime, source) = match Source::new() {
                Ok(made) => made,
                Err(error) => return drop(begin.send(Err(error))),
            };
            let _ = begin.send(Ok(()));
            last_resort(runtime.block_on(watch(source, tell)).into());
        })?;
        begun.recv().map_err(io::Error::other)??;
        Ok(Signals { caught })
    }

    /// The next one, as the end it asks for. Cancel-safe.
    pub async fn next(&mut self) -> Ended {
        match self.caught.recv().await {
            Some(caught) => caught.into(),
            // The thread has ended: the program is about to.
            None => std::future::pending().await,
        }
    }
}

/// A write that meets a file-size limit (`ulimit -f`) fails from now on, like one that meets a
/// full disk. Until then SIGXFSZ ends the program without a word.
///
/// # Errors
/// The system has no descriptor for it.
pub fn outlive_file_size_limits() -> io::Result<()> {
    let runtime = threads::signal_loop()?;
    let _inside = runtime.enter();
    let limit = rustix::process::Signal::XFSZ;
    // Caught is enough; the handler stays when the loop that asked for it goes.
    signal(SignalKind::from_raw(limit.as_raw())).map(drop)
}

/// SIGUSR1, caught from the moment this is made: uncaught it would end the program.
pub struct StatusRequests(Signal);

impl StatusRequests {
    /// Catches SIGUSR1 from now on, inside a runtime.
    ///
    /// # Errors
    /// The system has no room for a handler.
    pub fn catch() -> io::Result<StatusRequests> {
        Ok(StatusRequests(signal(SignalKind::user_defined1())?))
    }

    /// The next request; several that come together are one. Cancel-safe.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // The runtime is about to end.
            std::future::pending().await
        }
    }
}

struct Source {
    interrupt: Signal,
    terminate: Signal,
}

impl Source {
    /// With the event loop that it is heard in.
    fn new() -> io::Result<(Runtime, Source)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let source = {
            let _inside = runtime.enter();
            Source {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            }
        };
        Ok((runtime, source))
    }

    async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
        }
    }
}

/// Hands signals on. Returns the first one when the program should have ended and has not.
async fn watch(mut source: Source, tell: Sender<Caught>) -> Caught {
    let first = source.next().await;
    let hand_on = async {
        let mut next = first;
        loop {
            let _ = tell.try_send(next);
            match timeout(TAKEN_WITHIN, tell.reserve()).await {
                Ok(Ok(_)) => next = source.next().await,
                // The run is over: the rest of the program has this long.
                Ok(Err(_)) => return sleep(TAKEN_WITHIN).await,
                Err(_) => return,
            }
        }
    };
    let _ = timeout(ENDED_WITHIN, hand_on).await;
    first
}

impl From<Caught> for Ended {
    fn from(caught: Caught) -> Ended {
        match caught {
            Caught::Interrupt => Ended::Interrupted,
            Caught::Terminate => Ended::Terminated,
        }
    }
}
