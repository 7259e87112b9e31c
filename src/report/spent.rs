//! Where the time of jobs went, stage by stage.

use std::time::Duration;

use serde::Serialize;

use crate::model::PhaseTimes;
use crate::model::record::Waits;

/// What a job spends time on, and where it is meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waiting for the origin's budget, pauses and back-off included.
    Budget,
    /// Waiting for a free slot of an exit.
    ExitSlot,
    /// Waiting for exits whose group was full.
    Group,
    /// Looking up and connecting to the exit.
    Dial,
    /// TLS with the exit, CONNECT or SOCKS5.
    Handshake,
    /// TLS with the origin.
    Tls,
    /// Waiting for the answer's head.
    FirstByte,
    /// Reading the body.
    Body,
    /// Writing it.
    Disk,
}

impl Stage {
    /// All, in the order of a job's life.
    pub const ALL: [Stage; 9] = [
        Stage::Budget,
        Stage::ExitSlot,
        Stage::Group,
        Stage::Dial,
        Stage::Handshake,
        Stage::Tls,
        Stage::FirstByte,
        Stage::Body,
        Stage::Disk,
    ];

    /// Those that a lease is held for.
    pub(super) const IN_FLIGHT: [Stage; 5] = [
        Stage::Dial,
        Stage::Handshake,
        Stage::Tls,
        Stage::FirstByte,
        Stage::Body,
    ];

    /// As shown to people.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Budget => "budget",
            Stage::ExitSlot => "exit slot",
            Stage::Group => "group",
            Stage::Dial => "dial",
            Stage::Handshake => "handshake",
            Stage::Tls => "tls",
            Stage::FirstByte => "first byte",
            Stage::Body => "body",
            Stage::Disk => "disk",
        }
    }
}

/// A stage and its part of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// On what.
    pub stage: Stage,
    /// Milliseconds, summed over jobs.
    pub ms: f64,
    /// 0 to 1.
    pub share: f64,
}

/// Time by stage, summed over jobs and attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent([f64; Stage::ALL.len()]);

impl Spent {
    pub(super) fn waits(&mut self, waits: &Waits) {
        self.add_ms(Stage::Budget, waits.budget_ms);
        self.add_ms(Stage::ExitSlot, waits.exit_ms);
    }

    pub(super) fn phases(&mut self, phases: &PhaseTimes) {
        let parts = [
            (Stage::Dial, phases.dial),
            (Stage::Handshake, phases.handshake),
            (Stage::Tls, phases.tls),
            (Stage::FirstByte, phases.first_byte),
            (Stage::Body, phases.body),
        ];
        for (stage, time) in parts {
            self.add(stage, time.unwrap_or_default());
        }
    }

    pub(super) fn add(&mut self, stage: Stage, time: Duration) {
        self.add_ms(stage, time.as_secs_f64() * 1e3);
    }

    fn add_ms(&mut self, stage: Stage, ms: f64) {
        if ms.is_finite() && ms > 0.0 {
            self.0[stage as usize] += ms;
        }
    }

    /// Counts this part of the waiting for exits, 0 to 1, as waiting for groups.
    pub(super) fn share_with_groups(&mut self, share: f64) {
        let group = self.0[Stage::ExitSlot as usize] * share.clamp(0.0, 1.0);
        self.0[Stage::ExitSlot as usize] -= group;
        self.0[Stage::Group as usize] += group;
    }

    /// Milliseconds in one stage.
    pub(super) fn ms(&self, stage: Stage) -> f64 {
        self.0[stage as usize]
    }

    /// Milliseconds that leases were held.
    pub(super) fn in_flight_ms(&self) -> f64 {
        Stage::IN_FLIGHT.iter().map(|stage| self.ms(*stage)).sum()
    }

    /// One stage's part of the whole, 0 to 1.
    pub(super) fn share(&self, stage: Stage) -> f64 {
        let whole: f64 = self.0.iter().sum();
        if whole > 0.0 {
            self.0[stage as usize] / whole
        } else {
            0.0
        }
    }

    /// Every stage with its share; all shares are 0 where no time was spent.
    pub fn shares(&self) -> Vec<Share> {
        Stage::ALL
            .iter()
            .map(|&stage| Share {
                stage,
                ms: self.0[stage as usize].round(),
                share: self.share(stage),
            })
            .collect()
    }

    /// The stage that took most, unless none took anything.
    pub fn most(&self) -> Option<Stage> {
        let by_time = |a: &Stage, b: &Stage| self.0[*a as usize].total_cmp(&self.0[*b as usize]);
        let most = Stage::ALL.into_iter().max_by(by_time)?;
        (self.0[most as usize] > 0.0).then_some(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_the_largest_is_found() {
        let mut spent = Spent::default();
        assert_eq!(spent.most(), None);
        spent.waits(&Waits {
            budget_ms: 600.0,
            exit_ms: f64::NAN,
        });
        spent.phases(&PhaseTimes {
            first_byte: Some(Duration::from_millis(300)),
            ..PhaseTimes::default()
        });
        spent.add(Stage::Disk, Duration::from_millis(100));
        let shares: Vec<f64> = spent.shares().iter().map(|s| s.share).collect();
        assert_eq!(shares, [0.6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.0, 0.1]);
        assert_eq!(spent.most(), Some(Stage::Budget));
    }
}
