//! Pauses that take as long as they are meant to, never less and some ten microseconds more.
//!
//! What an exit or a route takes is what a run is measured against, so it must not be the
//! runtime's timers that are measured: they ring up to two milliseconds late. Those wait for all
//! but the end, cheaply; the end is the kernel's, so that few of its timers are open where pauses are long.

use std::time::{Duration, Instant};

use crate::model::Time;
use crate::wake::Wake;

/// What the kernel's timer waits for: more than the runtime's are ever late.
const END: Duration = Duration::from_millis(3);

/// Waits for `time`.
#[expect(clippy::disallowed_methods, reason = "the lab has a clock of its own")]
pub(super) async fn sleep(time: Duration) {
    let began = Instant::now();
    if let Some(most) = time.checked_sub(END) {
        tokio::time::sleep(most).await;
    }
    if began.elapsed() < time && end(time, began).await.is_err() {
        // No descriptor to spare.
        tokio::time::sleep(time.saturating_sub(began.elapsed())).await;
    }
}

async fn end(time: Duration, began: Instant) -> std::io::Result<()> {
    let mut wake = Wake::new()?;
    wake.set(Time::ZERO + time, || Time::ZERO + began.elapsed())?;
    wake.rung().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test of the lab, which reads clocks"
    )]
    async fn a_pause_is_never_shorter_than_it_is_meant() {
        for micros in [0, 1, 999, 2_999, 3_000, 3_001, 7_400] {
            let time = Duration::from_micros(micros);
            let began = Instant::now();
            sleep(time).await;
            assert!(began.elapsed() >= time, "{time:?}");
        }
    }
}
