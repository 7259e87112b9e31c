//! The binding limit in one sentence: where the time went, what stood idle meanwhile, and the
//! one setting that would help, with its price.
//!
//! Owns: that sentence. A reader acts on it, so where nothing would help it says so. The stage
//! that took most of the jobs' time is the limit, but for the disk: file calls of the
//! run's loop block it, so while one lasts every job in flight seems to wait for its exit or site
//! (those of other threads do not, until they fall behind and the loop has to help). A disk that
//! the loop waited for in most of the run is the limit whatever the jobs' time says.

use super::end::RunEnd;
use super::origins::OriginRow;
use super::spent::{Spent, Stage};
use super::summary::{ExitFacts, GroupRow, Hint};

/// Below this share of the time a wait is no reason to change anything.
const NOTEWORTHY: f64 = 0.05;
/// A disk that is busy for this share of the run holds all of it.
const DISK_HOLDS: f64 = 0.5;
/// With this share of the waiting for budgets one site is named for all.
const ONE_SITE: f64 = 0.5;
/// A site that got this share of its budget was not slowed by its own wishes.
const KEPT: f64 = 0.8;
/// A phase with this share of the time in flight is what fills the exits.
const FILLS: f64 = 0.6;

/// Exits that were busy for less of the run, while jobs waited for them, must have rested.
const RESTED: f64 = 0.5;

/// What the run was limited by.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    /// More than half of the attempts were faults of exits.
    exits_fail: bool,
    /// Every exit that was used belongs to a group that reached its cap.
    groups_full: bool,
    /// No exit ever carried its cap.
    exits_free: bool,
    /// Most of the waiting for budgets was for sites that asked for less, or were paused.
    slowed: bool,
    /// Share of the run in which nothing but file calls went on.
    disk_busy: f64,
    /// Share of all slots' time that was used; `None`: not known.
    exits_busy: Option<f64>,
    /// Some attempts were no answer that is kept: exits may have rested after them.
    some_failed: bool,
    /// The site that most of the waiting for budgets was for.
    site: Option<OriginRow>,
}

impl Limits {
    pub(super) fn of(parts: &Parts<'_>) -> Limits {
        let used = || parts.exits.iter().filter(|exit| exit.row.attempts > 0);
        let attempts: u64 = used().map(|exit| exit.row.attempts).sum();
        let faults: u64 = used().map(|exit| exit.row.faults).sum();
        let ok: u64 = used().map(|exit| exit.row.ok).sum();
        let full = |name: &str| {
            parts
                .groups
                .iter()
                .any(|g| g.name == name && g.peak >= g.cap)
        };
        let wall = parts.end.wall.as_secs_f64();
        let slots = parts.end.slots as f64 * wall;
        Limits {
            exits_fail: 2 * faults > attempts,
            some_failed: ok < attempts,
            groups_full: used().all(|exit| exit.row.group.as_deref().is_some_and(full)),
            exits_free: used().all(|exit| exit.row.peak < exit.row.cap),
            slowed: slowed(parts.origins),
            disk_busy: parts.end.disk_alone.as_secs_f64() / wall.max(1e-3),
            exits_busy: (slots > 0.0)
                .then(|| (parts.spent.in_flight_ms() / 1e3 / slots).clamp(0.0, 1.0)),
            site: most_waited(parts.origins),
        }
    }
}

/// What limits are read from.
pub(super) struct Parts<'a> {
    pub(super) exits: &'a [ExitFacts],
    pub(super) groups: &'a [GroupRow],
    pub(super) origins: &'a [OriginRow],
    pub(super) spent: &'a Spent,
    pub(super) end: &'a RunEnd,
}

fn slowed(origins: &[OriginRow]) -> bool {
    let waited = |of: &dyn Fn(&&OriginRow) -> bool| -> f64 {
        origins
            .iter()
            .filter(of)
            .map(|origin| origin.waited_s)
            .sum()
    };
    origins.iter().any(|origin| asked_for_less(&origin))
        && 2.0 * waited(&asked_for_less) >= waited(&|_| true)
}

/// It did, and that shows in the rate it got.
fn asked_for_less(origin: &&OriginRow) -> bool {
    let kept = match (origin.rate, origin.reached) {
        (Some(rate), Some(reached)) => reached >= KEPT * rate,
        _ => false,
    };
    origin.status_429 + origin.pauses > 0 && !kept
}

fn most_waited(origins: &[OriginRow]) -> Option<OriginRow> {
    let all: f64 = origins.iter().map(|origin| origin.waited_s).sum();
    let by_wait = |a: &&OriginRow, b: &&OriginRow| a.waited_s.total_cmp(&b.waited_s);
    let most = origins.iter().max_by(by_wait)?;
    (most.waited_s > ONE_SITE * all).then(|| most.clone())
}

/// The limit and its sentence; `None` where no time was spent.
pub(super) fn binding(spent: &Spent, limits: &Limits) -> Option<Hint> {
    let most = spent.most()?;
    let stage = if limits.disk_busy >= DISK_HOLDS {
        Stage::Disk
    } else {
        most
    };
    let said = Said { spent, limits };
    let knob = match stage {
        Stage::ExitSlot | Stage::Group | Stage::Dial | Stage::Handshake | Stage::FirstByte
            if limits.exits_fail =>
        {
            format!(
                "{} {}, and most tries failed at exits: mend or remove those that show faults",
                stage.as_str(),
                said.held(stage)
            )
        }
        Stage::Budget => said.budget(),
        Stage::ExitSlot | Stage::Group => said.slots(stage),
        Stage::Dial | Stage::Handshake | Stage::Tls => said.connecting(stage),
        Stage::FirstByte | Stage::Body => said.answers(stage),
        Stage::Disk if limits.disk_busy < DISK_HOLDS => format!(
            "writing {}: a faster disk for --out would help, more exits or a higher --rate would not",
            said.held(stage)
        ),
        Stage::Disk => format!(
            "the disk was busy {} of the run and everything waits for it: a faster disk for --out \
             would help, more exits or a higher --rate would not",
            percent(limits.disk_busy.min(1.0))
        ),
    };
    Some(Hint { stage, knob })
}

struct Said<'a> {
    spent: &'a Spent,
    limits: &'a Limits,
}

impl Said<'_> {
    fn held(&self, stage: Stage) -> String {
        format!("held {} of the time", percent(self.spent.share(stage)))
    }

    /// `; exits were idle 71 %`.
    fn idle(&self) -> String {
        let idle = self.limits.exits_busy.map(|busy| 1.0 - busy);
        idle.map_or(String::new(), |idle| {
            format!("; exits were idle {}", percent(idle))
        })
    }

    fn budget(&self) -> String {
        let (held, idle) = (self.held(Stage::Budget), self.idle());
        let site = self.limits.site.as_ref();
        let slowed = match site {
            Some(site) => asked_for_less(&site) || site.rate.is_none(),
            None => self.limits.slowed,
        };
        if slowed {
            let who = site.map_or("sites", |site| &site.origin);
            return format!(
                "what {who} asked for (429, pauses, back-off) {held}{idle}: a lower --rate may even end sooner"
            );
        }
        match site.map(|site| (&site.origin, site.rate)) {
            Some((name, Some(rate))) => format!(
                "the budget of {name} at {rate}/s {held}{idle}: raise --rate (or --per-origin, if set) \
                 only if the site allows it"
            ),
            _ => format!(
                "the budgets of the sites {held}{idle}: raise --rate (or --per-origin, if set) only \
                 where they allow it; more exits would not help"
            ),
        }
    }

    fn slots(&self, stage: Stage) -> String {
        let held = self.held(stage);
        if stage == Stage::Group || self.limits.groups_full {
            return format!(
                "full groups {held}: a higher cap= of the groups would help, if their plan allows it, \
                 or exits of another plan"
            );
        }
        if self.limits.exits_free {
            return format!(
                "the bound on all requests {held} and no exit was full: a higher --max-in-flight would \
                 help, for more open files; more exits would not"
            );
        }
        if let Some(busy) = self.limits.exits_busy
            && busy < RESTED
            && self.limits.some_failed
        {
            return format!(
                "exit slots {held}, yet exits were busy only {}: they rested after failures, their own \
                 or those of sites; leave out what fails, more exits would help little",
                percent(busy)
            );
        }
        let busy = self.limits.exits_busy.map_or(String::new(), |busy| {
            format!("; exits were busy {}{}", percent(busy), self.filled_by())
        });
        format!(
            "exit slots {held}{busy}: more exits would help, or a higher --per-exit if they carry \
             it, which loads each of them more"
        )
    }

    /// What exits are busy with, if it is one thing above all.
    fn filled_by(&self) -> String {
        let in_flight = self.spent.in_flight_ms().max(1e-9);
        let filling = Stage::IN_FLIGHT
            .into_iter()
            .find(|stage| self.spent.ms(*stage) / in_flight >= FILLS);
        filling.map_or(String::new(), |stage| {
            let share = self.spent.ms(stage) / in_flight;
            format!(", {} of it with {}", percent(share), stage.as_str())
        })
    }

    fn connecting(&self, stage: Stage) -> String {
        let held = self.held(stage);
        match stage {
            Stage::Tls => format!(
                "TLS with sites {held}: a higher --per-exit, if the exits carry it, keeps more \
                 connections for the next request"
            ),
            _ => format!(
                "{} {held}: exits that answer sooner would help; a lower --connect-timeout gives up on \
                 dead ones sooner, and on slow ones too",
                stage.as_str()
            ),
        }
    }

    fn answers(&self, stage: Stage) -> String {
        let held = self.held(stage);
        let idle = self.idle();
        let what = match stage {
            Stage::Body => format!("reading bodies {held}{idle}: sites or exits send slowly"),
            _ => format!("waiting for first bytes {held}{idle}: sites or exits answer slowly"),
        };
        if self.spent.share(Stage::ExitSlot) >= NOTEWORTHY {
            return format!("{what}; a higher --per-exit, if they carry it, asks more at a time");
        }
        if !self.limits.slowed && self.spent.share(Stage::Budget) >= NOTEWORTHY {
            return format!(
                "{what}; a higher --rate, where the sites allow it, asks more at a time"
            );
        }
        match stage {
            Stage::Body => {
                format!("{what}; --compressed would help for text, no other setting much")
            }
            _ => format!("{what}; no setting would help much"),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
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

    fn advice(spent: &Spent, limits: Limits) -> String {
        binding(spent, &limits).unwrap().knob
    }

    #[test]
    fn a_wait_for_slots_names_the_limit_that_was_met() {
        let mut spent = spent(0.0, 900.0, 100);
        let none = Limits::default();
        let groups_full = true;
        let exits_free = true;
        let busy = Limits {
            exits_busy: Some(0.97),
            ..none.clone()
        };
        assert_eq!(
            advice(&spent, busy),
            "exit slots held 90 % of the time; exits were busy 97 %, 100 % of it with first byte: more \
             exits would help, or a higher --per-exit if they carry it, which loads each of them more"
        );
        let grouped = Limits {
            groups_full,
            exits_free,
            ..none.clone()
        };
        assert!(advice(&spent, grouped).contains("of the groups"));
        let bounded = Limits {
            exits_free,
            ..none.clone()
        };
        assert!(advice(&spent, bounded).contains("--max-in-flight"));
        let rested = Limits {
            exits_busy: Some(0.14),
            some_failed: true,
            ..none.clone()
        };
        assert_eq!(
            advice(&spent, rested),
            "exit slots held 90 % of the time, yet exits were busy only 14 %: they rested after failures, \
             their own or those of sites; leave out what fails, more exits would help little"
        );
        let dead = Limits {
            exits_fail: true,
            ..none.clone()
        };
        assert!(advice(&spent, dead).contains("mend or remove"));
        spent.share_with_groups(0.8);
        assert!(advice(&spent, none).starts_with("full groups held 72 %"));
    }

    #[test]
    fn a_budget_is_named_with_its_site_its_rate_and_what_was_idle() {
        let spent = spent(920.0, 0.0, 80);
        let one = Limits {
            site: Some(OriginRow {
                origin: "img.example".into(),
                rate: Some(10.0),
                ..OriginRow::default()
            }),
            exits_busy: Some(0.29),
            ..Limits::default()
        };
        assert_eq!(
            advice(&spent, one.clone()),
            "the budget of img.example at 10/s held 92 % of the time; exits were idle 71 %: raise --rate \
             (or --per-origin, if set) only if the site allows it"
        );
        let many = Limits { site: None, ..one };
        assert!(advice(&spent, many).starts_with("the budgets of the sites held 92 %"));
    }

    #[test]
    fn a_disk_that_was_busy_most_of_the_run_is_the_limit_whatever_jobs_waited_for() {
        let limits = Limits {
            disk_busy: 0.8,
            ..Limits::default()
        };
        let hint = binding(&spent(0.0, 500.0, 500), &limits).unwrap();
        assert_eq!(hint.stage, Stage::Disk);
        assert!(hint.knob.starts_with("the disk was busy 80 % of the run"));
    }

    #[test]
    fn slow_answers_ask_for_slots_only_where_jobs_waited_for_them() {
        let none = Limits::default();
        assert!(advice(&spent(100.0, 100.0, 800), none.clone()).contains("--per-exit"));
        assert!(advice(&spent(100.0, 1.0, 899), none.clone()).contains("--rate"));
        assert!(advice(&spent(1.0, 1.0, 998), none.clone()).contains("no setting"));
        let slowed = Limits {
            slowed: true,
            ..none
        };
        assert!(advice(&spent(100.0, 1.0, 899), slowed).contains("no setting"));
    }

    #[test]
    fn the_site_that_held_most_is_named_whatever_others_asked_for() {
        let row = |origin: &str, waited_s, pauses| OriginRow {
            origin: origin.to_owned(),
            rate: Some(5.0),
            waited_s,
            pauses,
            ..OriginRow::default()
        };
        let limits = Limits {
            site: most_waited(&[row("large", 90.0, 0), row("busy", 10.0, 3)]),
            slowed: true,
            ..Limits::default()
        };
        assert!(advice(&spent(900.0, 0.0, 100), limits).starts_with("the budget of large at 5/s"));
        assert_eq!(most_waited(&[row("a", 1.0, 0), row("b", 1.0, 0)]), None);
        let busy = row("busy", 90.0, 3);
        let reached = |reached| OriginRow {
            reached: Some(reached),
            ..busy.clone()
        };
        assert!(!slowed(&[reached(4.5)]) && slowed(&[reached(2.0)]));
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
