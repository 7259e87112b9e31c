//! Threads for TLS handshakes, so that they use the cores that the engine's thread leaves idle.
//!
//! A handshake costs some hundred times the processor time of a small request, and a run over
//! many sites makes one for nearly every request. The sockets stay with the engine's runtime:
//! only the arithmetic moves. Started with the first handshake; a machine of one core has none.

use tokio::runtime::Runtime;
use tokio_util::task::AbortOnDropHandle;

use super::alarm::{Alarm, Passed};
use crate::threads::{self, OnDemand};

/// The threads, if there are any.
#[derive(Default)]
pub(super) struct Workers(OnDemand);

impl Workers {
    /// Runs `work` on one of them, or here, until a limit of `alarm` passes. `None` if it
    /// panicked. Whichever way it ends, what it held is gone when this returns: a socket that
    /// was given up must be closed before the next one is dialled.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        alarm: &mut Alarm,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<Option<T>, Passed> {
        let Some(threads) = self.0.get(start) else {
            return alarm.bound(work).await.map(Some);
        };
        let mut running = AbortOnDropHandle::new(threads.spawn(work));
        let done = alarm.bound(&mut running).await;
        if done.is_err() {
            running.abort();
            let _ = running.await;
        }
        done.map(Result::ok)
    }
}

/// One for each core but the engine's.
fn start() -> Option<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores == 1 {
        return None;
    }
    // Without them the engine's thread does it.
    threads::pool(cores - 1, "handshakes").ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::fetch::testing::clock;

    fn alarm(limit: Duration) -> Alarm {
        Alarm::new(clock(), limit)
    }

    #[tokio::test]
    async fn work_runs_elsewhere_where_there_is_another_core() {
        let here = std::thread::current().id();
        let mut alarm = alarm(Duration::from_secs(60));
        let work = async { std::thread::current().id() };
        let there = Workers::default().run(&mut alarm, work).await.unwrap();
        let cores = std::thread::available_parallelism().unwrap().get();
        assert_eq!(there == Some(here), cores == 1);
    }

    #[tokio::test]
    async fn work_that_takes_too_long_is_gone_with_what_it_held() {
        let socket = Arc::new(());
        let held = Arc::clone(&socket);
        let work = async move {
            std::future::pending::<()>().await;
            drop(held);
        };
        let mut alarm = alarm(Duration::from_millis(5));
        assert!(Workers::default().run(&mut alarm, work).await.is_err());
        assert_eq!(Arc::strong_count(&socket), 1);
    }
}
