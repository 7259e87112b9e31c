//! A timer exact to some ten microseconds, for the loop of a run and the pauses of the lab.
//!
//! The runtime's own timers count in milliseconds and ring up to two of them late. A site that is
//! asked every 50 ms would then get 19.4 requests a second of the 20 it allows, because a late
//! start moves all later ones (`schedule/budget`); and an exit that takes 50 ms would take 51.5.
//! So the kernel's timer is asked directly.

use std::io::{self, Read};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::model::Time;

/// See the module's text.
pub(crate) struct Wake {
    timer: AsyncFd<std::fs::File>,
    /// When it rings, unless it has.
    set_for: Option<Time>,
}

impl Wake {
    /// One that is not set.
    ///
    /// # Errors
    /// The system has no descriptor to spare.
    pub(crate) fn new() -> io::Result<Wake> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe; a `File` keeps its descriptor, which is what that is about"
        )]
        let timer = AsyncFd::new(timer.into())?;
        Ok(Wake {
            timer,
            set_for: None,
        })
    }

    /// Lets it ring at `at`, at once if that is over. `now` is asked for only if this is new.
    ///
    /// # Errors
    /// The system refuses, which it has no reason to.
    pub(crate) fn set(&mut self, at: Time, now: impl FnOnce() -> Time) -> io::Result<()> {
        if self.set_for == Some(at) {
            return Ok(());
        }
        // Zero would unset it.
        let left = (at - now()).max(Duration::from_nanos(1));
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec::try_from(left).map_err(io::Error::other)?,
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        self.set_for = Some(at);
        Ok(())
    }

    /// Done when it has rung.
    pub(crate) async fn rung(&mut self) {
        // An error here means that there is no reactor any more: the program ends.
        while let Ok(mut ready) = self.timer.readable().await {
            if ready
                .try_io(|timer| timer.get_ref().read(&mut [0; 8]))
                .is_ok()
            {
                self.set_for = None;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_rings_once_for_each_instant_past_ones_at_once() {
        let mut wake = Wake::new().unwrap();
        let start = Time::from_secs(5);
        for at in [start, Time::ZERO, start + Duration::from_millis(3)] {
            wake.set(at, || start).unwrap();
            wake.rung().await;
        }
        // Set anew before it rang: the later instant counts.
        wake.set(start, || start).unwrap();
        wake.set(start + Duration::from_secs(3600), || start)
            .unwrap();
        let short = Duration::from_millis(20);
        assert!(tokio::time::timeout(short, wake.rung()).await.is_err());
    }
}
