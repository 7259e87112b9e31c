//! At which exits an idle tunnel to an origin is open.
//!
//! Owns: a hint, not the truth: `fetch` owns the sockets. A wrong hint costs a dial, a right
//! one saves dial, handshake and TLS. Two exits per origin are enough: an origin with many
//! requests has open tunnels everywhere, one with few is served by the latest.

use std::time::Duration;

use crate::model::Time;

use super::ExitIx;

/// Idle sockets are closed after this long.
const OPEN_FOR: Duration = Duration::from_secs(15);
const KNOWN: usize = 2;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Warm([Option<(ExitIx, Time)>; KNOWN]);

impl Warm {
    /// A tunnel was left open at `exit`.
    pub(super) fn add(&mut self, exit: ExitIx, now: Time) {
        self.remove(exit);
        self.0.rotate_right(1);
        self.0[0] = Some((exit, now));
    }

    /// The tunnel at `exit` is in use, or gone.
    pub(super) fn remove(&mut self, exit: ExitIx) {
        for slot in &mut self.0 {
            slot.take_if(|(known, _)| *known == exit);
        }
    }

    /// Exits with an open tunnel, the latest first.
    pub(super) fn exits(&self, now: Time) -> impl Iterator<Item = ExitIx> {
        let known = self.0.into_iter().flatten();
        known
            .filter(move |&(_, since)| now - since < OPEN_FOR)
            .map(|(exit, _)| exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_is_known_until_it_is_used_closed_or_pushed_out() {
        let mut warm = Warm::default();
        let known = |warm: &Warm, at| -> Vec<usize> {
            warm.exits(Time::from_secs(at)).map(ExitIx::index).collect()
        };
        for exit in [1, 2, 3, 2] {
            warm.add(ExitIx::new(exit), Time::from_secs(u64::from(exit)));
        }
        assert_eq!(known(&warm, 4), [2, 3]);
        assert_eq!(known(&warm, 17), [3]);
        warm.remove(ExitIx::new(3));
        assert_eq!(known(&warm, 4), [2]);
    }
}
