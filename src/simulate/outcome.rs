//! What came of a simulation: the summary of a run, and the figures by name.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::baseline;
use super::exits::Exits;
use super::figures::{EXITS, Figures, ORIGINS, WINDOWS};
use super::ideal;
use super::scenario::GroupSpec;
use super::tracks::ExitTrack;
use super::world::{Ending, World};
use crate::model::Time;
use crate::report::{ExitEnd, GroupRow, RunEnd, Summary};
use crate::schedule::{ExitIx, State};

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// As a run would show it.
    pub summary: Summary,
    /// The same and more, by name.
    pub figures: Figures,
    /// What did not hold that must hold in every run; empty, or there is a fault in the scheduler.
    pub broken: Vec<String>,
}

impl World<'_> {
    /// The end.
    pub(super) fn finish(self, ending: Ending) -> Outcome {
        let figures = self.figures();
        let over = self.scheduler.is_over();
        let exit = |number: u32| {
            let state = self.scheduler.exit(ExitIx::new(number), self.now);
            ExitEnd {
                cap: state.ceiling,
                cap_now: state.cap,
                peak: state.peak,
                // Here a lease is a socket.
                peak_sockets: state.peak,
                attempts: state.attempts,
                ok: state.ok,
                faults: state.faults,
                status_429: state.status_429,
                state: state.state.as_str(),
                reason: Some(state.reason.clone()).filter(|reason| !reason.is_empty()),
                last_error: state.last_error.map(str::to_owned),
            }
        };
        let group = |(number, spec): (u32, &GroupSpec)| GroupRow {
            name: spec.name.clone(),
            cap: spec.cap.max(1),
            peak: self.scheduler.group_peak(number),
        };
        let end = RunEnd {
            exits: (0..self.scheduler.exits()).map(exit).collect(),
            groups: (0..)
                .zip(&self.setting.scenario.groups)
                .map(group)
                .collect(),
            entries: self.load.len() as u64,
            wall: self.now - Time::ZERO,
            disk: Duration::ZERO,
            disk_alone: Duration::ZERO,
            slots: 0,
            group_share: 0.0,
            stopped: match (over, ending) {
                (true, _) => Some("no usable exit was left".to_owned()),
                (false, Ending::Complete) => None,
                (false, Ending::Early) => Some("--max-time was reached".to_owned()),
            },
        };
        Outcome {
            summary: self.tally.finish(end),
            broken: self.checks.finish(ending, self.now),
            figures,
        }
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        self.totals(&mut figures);
        for (class, spec) in self.setting.scenario.exits.iter().enumerate() {
            let prefix = format!("exits.{}", spec.name);
            figures.class(&prefix, EXITS, self.exits_of(class));
        }
        for (class, spec) in self.setting.scenario.origins.iter().enumerate() {
            let prefix = format!("origins.{}", spec.name);
            figures.class(&prefix, ORIGINS, self.origins_of(class));
        }
        let slots = self.slots();
        for (name, &(from, until)) in &self.setting.scenario.windows {
            let part = self.usage.part(from, until);
            let values = [part.in_flight / slots, part.started, part.ok];
            figures.class(&format!("windows.{name}"), WINDOWS, values);
        }
        for (kind, &count) in &self.tracks.failures {
            figures.set(format!("failures.{kind}"), count as f64);
        }
        if self.setting.scenario.contrast.is_some() {
            self.contrast(&mut figures);
        }
        figures
    }

    fn totals(&self, figures: &mut Figures) {
        let counts = self.tally.counts();
        let makespan = self.last_end.as_secs_f64();
        let jobs = self.load.by_host(self.origins.all.len());
        let ideal = ideal::seconds(
            &self.exits,
            &self.groups,
            &self.origins,
            &jobs,
            &self.allowed,
        );
        let busy: f64 = self
            .tracks
            .exits
            .iter()
            .map(|exit| exit.busy.as_secs_f64())
            .sum();
        let ejections: u64 = self.tracks.exits.iter().map(|exit| exit.ejections).sum();
        let cut: u64 = self.tracks.exits.iter().map(|exit| exit.cut).sum();
        for (name, value) in [
            ("jobs", self.load.len() as f64),
            ("ok", counts.ok as f64),
            ("failed", counts.failed as f64),
            ("attempts", counts.attempts as f64),
            ("cut", cut as f64),
            ("makespan_s", makespan),
            ("ideal_s", ideal),
            ("over_ideal", makespan / ideal.max(1e-9)),
            ("utilisation", busy / (self.slots() * makespan.max(1e-9))),
            ("utilisation_spread", self.spread(makespan)),
            ("ejections", ejections as f64),
            ("most_out", f64::from(self.tracks.most_out)),
            ("panics", self.tracks.panics as f64),
            ("no_exit", f64::from(u8::from(self.scheduler.is_over()))),
        ] {
            figures.set(name, value);
        }
    }

    /// Standard deviation of the exits' own utilisation.
    fn spread(&self, makespan: f64) -> f64 {
        let both = self.exits.all.iter().zip(&self.tracks.exits);
        let shares = both.map(|(exit, track)| {
            track.busy.as_secs_f64() / (f64::from(exit.cap) * makespan.max(1e-9))
        });
        let shares: Vec<f64> = shares.collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let squares = shares.iter().map(|share| (share - mean).powi(2));
        (squares.sum::<f64>() / shares.len() as f64).sqrt()
    }

    /// In the order of [`EXITS`].
    fn exits_of(&self, class: usize) -> [f64; EXITS.len()] {
        let members = (0..self.exits.all.len()).filter(|&exit| self.exits.all[exit].class == class);
        let members: Vec<usize> = members.collect();
        let ends = members
            .iter()
            .map(|&exit| self.scheduler.exit(ExitIx::new(exit as u32), self.now));
        let ends: Vec<_> = ends.collect();
        let tracks = || members.iter().map(|&exit| &self.tracks.exits[exit]);
        let attempts: u64 = tracks().map(|exit| exit.attempts).sum();
        let ejections: u64 = tracks().map(|exit| exit.ejections).sum();
        let in_state = |state| ends.iter().filter(|end| end.state == state).count() as f64;
        // One that was never ejected was not ejected after any number.
        let after = |exit: &ExitTrack| exit.ejected_after.map_or(f64::INFINITY, |n| n as f64);
        [
            attempts as f64,
            tracks().map(|exit| exit.attempts).max().unwrap_or(0) as f64,
            tracks().map(|exit| exit.cut).sum::<u64>() as f64,
            ends.iter().map(|end| end.ok).sum::<u64>() as f64,
            ends.iter().map(|end| end.faults).sum::<u64>() as f64,
            ejections as f64,
            ejections as f64 / (attempts as f64).max(1.0),
            tracks().filter(|exit| exit.ejected_after.is_some()).count() as f64,
            tracks().map(after).fold(0.0, f64::max),
            in_state(State::Evicted),
            in_state(State::Healthy),
            f64::from(ends.iter().map(|end| end.peak).max().unwrap_or(0)),
        ]
    }

    /// In the order of [`ORIGINS`].
    fn origins_of(&self, class: usize) -> [f64; ORIGINS.len()] {
        let members = self.origins.all.iter().zip(&self.tracks.hosts);
        let members = members.filter(|(host, _)| host.class == class);
        members.fold([0.0; ORIGINS.len()], |sums, (_, host)| {
            let counts = [
                host.ok,
                host.failed,
                host.requests,
                host.refused,
                host.pauses,
                host.given_up,
            ];
            std::array::from_fn(|at| sums[at] + counts[at] as f64)
        })
    }

    fn contrast(&self, figures: &mut Figures) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.setting.rules.seed);
        let exits = Exits::new(self.setting.scenario, self.setting.per_exit);
        let other = baseline::makespan(exits, &self.origins, &self.load, &mut rng).as_secs_f64();
        let (ours, ideal) = (figures.get("makespan_s"), figures.get("ideal_s"));
        figures.set("contrast.makespan_s", other);
        figures.set("contrast.over_ideal", other / ideal.max(1e-9));
        figures.set("contrast.loss", other / ours.max(1e-9) - 1.0);
    }

    fn slots(&self) -> f64 {
        self.exits.all.iter().map(|exit| f64::from(exit.cap)).sum()
    }
}
