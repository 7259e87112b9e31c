//! Where the time of jobs went, and which one knob would help most.

use std::time::Duration;

use serde::Serialize;

use crate::model::PhaseTimes;
use crate::model::record::Waits;

/// What a job spends time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waiting for the origin's budget, pauses and back-off included.
    Budget,
    /// Waiting for a free slot of an exit.
    ExitSlot,
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
    pub const ALL: [Stage; 8] = [
        Stage::Budget,
        Stage::ExitSlot,
        Stage::Dial,
        Stage::Handshake,
        Stage::Tls,
        Stage::FirstByte,
        Stage::Body,
        Stage::Disk,
    ];

    /// As shown to people.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Budget => "budget",
            Stage::ExitSlot => "exit slot",
            Stage::Dial => "dial",
            Stage::Handshake => "handshake",
            Stage::Tls => "tls",
            Stage::FirstByte => "first byte",
            Stage::Body => "body",
            Stage::Disk => "disk",
        }
    }

    /// What would help when most time goes here: one sentence, one knob.
    pub fn knob(self) -> &'static str {
        match self {
            Stage::Budget => {
                "a higher --rate (or --per-origin, if it is set) would help, where the sites allow it; more exits would not"
            }
            Stage::ExitSlot => "more exits would help, or a higher --per-exit if they carry it",
            Stage::Dial => {
                "nearer exits would help; a lower --connect-timeout gives up on dead ones sooner"
            }
            Stage::Handshake => {
                "exits that answer sooner would help; a lower --connect-timeout gives up on slow ones"
            }
            Stage::Tls => {
                "a higher --per-exit, if the exits carry it, keeps more connections for the next request"
            }
            Stage::FirstByte => {
                "sites or exits answer slowly: a higher --per-exit, if they carry it, asks more at a time"
            }
            Stage::Body => "--compressed would help for text, --max-body against giants",
            Stage::Disk => "a faster disk for --out would help",
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

    /// Milliseconds inside attempts, from dial to body.
    pub(super) fn in_attempts(&self) -> f64 {
        let from = Stage::Dial as usize;
        self.0[from..=Stage::Body as usize].iter().sum()
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
    fn shares_add_up_and_the_largest_names_the_knob() {
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
        assert_eq!(shares, [0.6, 0.0, 0.0, 0.0, 0.0, 0.3, 0.0, 0.1]);
        assert_eq!(spent.most(), Some(Stage::Budget));
        assert!(Stage::Budget.knob().contains("--rate"));
    }
}
