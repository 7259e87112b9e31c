//! The one setting that would help most: what the stage that took most time says, unless the run
//! met a limit that makes it wrong.
//!
//! Owns: that advice. A reader acts on it, so where nothing would help it says so.

use super::origins::OriginRow;
use super::spent::{Spent, Stage};
use super::summary::{ExitFacts, GroupRow};

/// Below this share of the time a wait is no reason to change anything.
const NOTEWORTHY: f64 = 0.05;

/// What the run was limited by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// More than half of the attempts were faults of exits.
    exits_fail: bool,
    /// Every exit that was used belongs to a group that reached its cap.
    groups_full: bool,
    /// No exit ever carried its cap.
    exits_free: bool,
    /// Sites asked for less, or were paused.
    slowed: bool,
}

impl Limits {
    pub(super) fn of(exits: &[ExitFacts], groups: &[GroupRow], origins: &[OriginRow]) -> Limits {
        let used = || exits.iter().filter(|exit| exit.row.attempts > 0);
        let attempts: u64 = used().map(|exit| exit.row.attempts).sum();
        let faults: u64 = used().map(|exit| exit.row.faults).sum();
        let full = |name: &str| groups.iter().any(|g| g.name == name && g.peak >= g.cap);
        Limits {
            exits_fail: 2 * faults > attempts,
            groups_full: used().all(|exit| exit.row.group.as_deref().is_some_and(full)),
            exits_free: used().all(|exit| exit.row.peak < exit.row.cap),
            slowed: origins.iter().any(|o| o.status_429 + o.pauses > 0),
        }
    }
}

pub(super) fn knob(most: Stage, spent: &Spent, limits: &Limits) -> &'static str {
    match most {
        Stage::ExitSlot | Stage::Dial | Stage::Handshake | Stage::FirstByte
            if limits.exits_fail =>
        {
            "most tries failed at exits: mend or remove those that show faults"
        }
        Stage::Budget if limits.slowed => {
            "the sites set the pace (429, pauses): a lower --rate may even end sooner"
        }
        Stage::ExitSlot if limits.groups_full => {
            "a higher cap= of the groups would help, if their plan allows it, or exits of another plan"
        }
        Stage::ExitSlot if limits.exits_free => {
            "no exit was full: a higher --max-in-flight would help, not more exits"
        }
        Stage::FirstByte if spent.share(Stage::ExitSlot) < NOTEWORTHY => {
            if limits.slowed || spent.share(Stage::Budget) < NOTEWORTHY {
                "sites or exits answer slowly; no setting would help much"
            } else {
                "sites or exits answer slowly: a higher --rate, where the sites allow it, asks more at a time"
            }
        }
        stage => stage.knob(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::PhaseTimes;
    use crate::model::record::Waits;

    fn spent(budget_ms: f64, exit_ms: f64, first_byte_ms: u64) -> Spent {
        let mut spent = Spent::default();
        spent.waits(&Waits { budget_ms, exit_ms });
        spent.phases(&PhaseTimes {
            first_byte: Some(Duration::from_millis(first_byte_ms)),
            ..PhaseTimes::default()
        });
        spent
    }

    fn advice(spent: &Spent, limits: Limits) -> &'static str {
        knob(spent.most().unwrap(), spent, &limits)
    }

    #[test]
    fn a_wait_for_slots_names_the_limit_that_was_met() {
        let spent = spent(0.0, 900.0, 100);
        let none = Limits::default();
        assert!(advice(&spent, none).contains("more exits would help"));
        let groups_full = true;
        let exits_free = true;
        let grouped = Limits {
            groups_full,
            exits_free,
            ..none
        };
        assert!(advice(&spent, grouped).contains("of the groups"));
        let bounded = Limits { exits_free, ..none };
        assert!(advice(&spent, bounded).contains("--max-in-flight"));
        let dead = Limits {
            exits_fail: true,
            ..none
        };
        assert!(advice(&spent, dead).contains("mend or remove"));
    }

    #[test]
    fn slow_answers_ask_for_slots_only_where_jobs_waited_for_them() {
        let none = Limits::default();
        assert!(advice(&spent(100.0, 100.0, 800), none).contains("--per-exit"));
        assert!(advice(&spent(100.0, 1.0, 899), none).contains("--rate"));
        assert!(advice(&spent(1.0, 1.0, 998), none).contains("no setting"));
        let slowed = Limits {
            slowed: true,
            ..none
        };
        assert!(advice(&spent(100.0, 1.0, 899), slowed).contains("no setting"));
    }

    #[test]
    fn sites_that_ask_for_less_are_not_to_be_asked_for_more() {
        let slowed = Limits {
            slowed: true,
            ..Limits::default()
        };
        assert!(advice(&spent(900.0, 0.0, 100), slowed).contains("lower --rate"));
    }
}
