//! Threads that hash and write long bodies, one per core.
//!
//! A thread that has done a piece takes the next that waits, of whichever body. With the
//! runtime's own threads and a limit on how many write, each turn went by way of the event loop,
//! and a core was idle a fifth of the time (20 bodies of 64 MiB on two cores). Started with the
//! first long body.

use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::threads::{self, OnDemand};

/// The threads, if the system has any for us.
#[derive(Debug, Default)]
pub(super) struct Writers(OnDemand);

impl Writers {
    /// Does `work` on one of them, begun after what was given before; without them, on one of the
    /// runtime's. It is done even if nobody waits for the answer.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match self.0.get(start) {
            Some(threads) => threads.spawn_blocking(work),
            None => spawn_blocking(work),
        }
    }
}

fn start() -> Option<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    threads::blocking(cores, "bodies").ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, mpsc};

    use super::*;

    #[tokio::test]
    async fn no_more_is_done_at_a_time_than_there_are_cores_whatever_panics() {
        let writers = Writers::default();
        let cores = std::thread::available_parallelism().unwrap().get();
        let running = Arc::new(AtomicUsize::new(0));
        let all = (0..8 * cores).map(|n| {
            let running = Arc::clone(&running);
            writers.run(move || {
                let at_a_time = running.fetch_add(1, Ordering::SeqCst) + 1;
                (0..1000).for_each(|_| std::thread::yield_now());
                running.fetch_sub(1, Ordering::SeqCst);
                assert!(n % 2 == 0, "on purpose");
                at_a_time
            })
        });
        let all: Vec<JoinHandle<usize>> = all.collect();
        for (n, done) in all.into_iter().enumerate() {
            match done.await {
                Ok(at_a_time) => assert!(at_a_time <= cores, "{at_a_time}"),
                Err(_) => assert!(n % 2 == 1),
            }
        }
    }

    #[test]
    fn all_that_was_given_is_done_in_its_order_though_nobody_waits() {
        let writers = Writers::default();
        writers.0.get(|| threads::blocking(1, "test").ok());
        let (sender, receiver) = mpsc::channel();
        for n in 0..100 {
            let sender = sender.clone();
            drop(writers.run(move || sender.send(n)));
        }
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), Vec::from_iter(0..100));
    }

    /// As the last clone of `Bodies` does, when a body is given up while it is written.
    #[tokio::test]
    async fn they_may_go_on_a_thread_of_their_own() {
        let writers = Arc::new(Writers::default());
        let (sender, receiver) = mpsc::channel::<()>();
        let own = Arc::clone(&writers);
        let done = writers.run(move || {
            let _ = receiver.recv();
            drop(own);
        });
        drop(writers);
        drop(sender);
        assert!(done.await.is_ok());
    }
}
