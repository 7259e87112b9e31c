//! How many requests may be in flight, by the descriptors this process may open.

use anyhow::{Result, bail};

use crate::model::counted;

/// For the lists, the journal, the terminal, the runtime.
const SPARE: u64 = 32;
/// A job in flight: its socket, the one it closes first, its body's file.
const PER_JOB: u64 = 3;

/// What the descriptor limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Requests in flight.
    pub in_flight: u32,
    /// Idle sockets in all.
    pub idle: usize,
}

/// Raises the soft limit to the hard one and divides it up.
///
/// # Errors
/// Not even one job fits; the text says what would be enough.
pub(super) fn room(wanted: Option<u32>, most_useful: u64) -> Result<Room> {
    let limit = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(1024);
    divide(limit, wanted, most_useful)
}

fn divide(limit: u64, wanted: Option<u32>, most_useful: u64) -> Result<Room> {
    let free = limit.saturating_sub(SPARE);
    // A fourth part of each job is kept for an idle socket that saves the next handshake.
    let fits = (free / (PER_JOB + 1)).max(u64::from(free >= PER_JOB));
    if fits == 0 {
        bail!(
            "the limit of open files is {limit}: at least {} are needed\nhint: raise it (ulimit -n)",
            SPARE + PER_JOB
        );
    }
    let in_flight = u64::from(wanted.unwrap_or(u32::MAX))
        .min(fits)
        .min(most_useful.max(1));
    if wanted.is_some_and(|wanted| u64::from(wanted) > fits) {
        tracing::warn!(
            "the limit of open files ({limit}) allows {} in flight: raise it (ulimit -n)",
            counted(fits, "request", "requests")
        );
    }
    Ok(Room {
        in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
        idle: usize::try_from(free - in_flight * PER_JOB).unwrap_or(usize::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_idle_sockets_never_pass_the_limit() {
        for limit in 35..4096 {
            let room = divide(limit, None, u64::MAX).unwrap();
            let used = u64::from(room.in_flight) * PER_JOB + room.idle as u64 + SPARE;
            assert!(used <= limit && room.in_flight >= 1, "{limit}: {room:?}");
        }
    }

    #[test]
    fn a_limit_too_low_for_one_job_says_what_is_needed() {
        let error = divide(34, None, 10).unwrap_err().to_string();
        assert!(error.contains("34") && error.contains("35"), "{error}");
    }

    #[test]
    fn the_user_s_bound_and_the_fleet_s_size_hold() {
        assert_eq!(divide(100_000, Some(7), 180).unwrap().in_flight, 7);
        assert_eq!(divide(100_000, None, 180).unwrap().in_flight, 180);
        assert_eq!(divide(64, Some(1000), 180).unwrap().in_flight, 8);
    }
}
