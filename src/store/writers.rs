//! Threads that hash and write long bodies, one per core.
//!
//! A thread that has done a piece takes the next that waits, of whichever body. With the
//! runtime's own threads and a limit on how many write, each turn went by way of the event loop,
//! and a core was idle a fifth of the time (20 bodies of 64 MiB on two cores). Started with the
//! first long body.

use std::sync::OnceLock;

use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::threads;

/// The threads, if the system has any for us.
#[derive(Debug, Default)]
pub(super) struct Writers(OnceLock<Option<Runtime>>);

impl Writers {
    /// Does `work` on one of them, after what was given before. It is done even if nobody waits
    /// for the answer.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match self.0.get_or_init(start) {
            Some(threads) => threads.spawn_blocking(work),
            None => spawn_blocking(work),
        }
    }
}

fn start() -> Option<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    threads::blocking(cores, "bodies").ok()
}

impl Drop for Writers {
    fn drop(&mut self) {
        // Waiting for its threads is not allowed where tasks run.
        if let Some(threads) = self.0.take().flatten() {
            threads.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_takes_no_thread_with_it() {
        let writers = Writers::default();
        let cores = std::thread::available_parallelism().unwrap().get();
        let panics = (0..2 * cores).map(|_| writers.run(|| panic!("on purpose")));
        let panics: Vec<JoinHandle<()>> = panics.collect();
        assert_eq!(writers.run(|| 1).await.unwrap(), 1);
        for panicked in panics {
            assert!(panicked.await.is_err());
        }
    }

    #[tokio::test]
    async fn all_that_was_given_is_done_though_nobody_waits() {
        let writers = Writers::default();
        let (sender, receiver) = std::sync::mpsc::channel();
        for n in 0..100 {
            let sender = sender.clone();
            drop(writers.run(move || sender.send(n)));
        }
        drop(sender);
        let mut done: Vec<i32> = receiver.iter().collect();
        done.sort_unstable();
        assert_eq!(done, Vec::from_iter(0..100));
    }
}
