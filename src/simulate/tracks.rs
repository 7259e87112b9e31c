//! What is counted of each exit and origin beyond the summary: how often and how soon an exit
//! was ejected, what an origin really got.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::exits::Exits;
use super::origins::Origins;
use crate::model::Failure;
use crate::schedule::health::Throttled;
use crate::schedule::{Change, Note, State};

/// All counts.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    pub(super) exits: Vec<ExitTrack>,
    pub(super) hosts: Vec<HostTrack>,
    /// Jobs by how they failed.
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) panics: u64,
    /// Most exits that were ejected or evicted at one time.
    pub(super) most_out: u32,
    out: u32,
    by_exit: HashMap<Arc<str>, usize>,
    by_host: HashMap<String, usize>,
}

/// One exit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExitTrack {
    pub(super) attempts: u64,
    pub(super) busy: Duration,
    pub(super) ejections: u64,
    /// Attempts that were not waited for any longer.
    pub(super) cut: u64,
    /// Attempts that had ended when it was ejected for the first time.
    pub(super) ejected_after: Option<u64>,
    pub(super) state: State,
}

/// One origin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostTrack {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) requests: u64,
    pub(super) refused: u64,
    pub(super) pauses: u64,
    pub(super) given_up: u64,
}

impl Tracks {
    pub(super) fn new(exits: &Exits<'_>, origins: &Origins<'_>) -> Tracks {
        Tracks {
            exits: vec![ExitTrack::default(); exits.all.len()],
            hosts: vec![HostTrack::default(); origins.all.len()],
            by_exit: (0..)
                .zip(&exits.all)
                .map(|(at, exit)| (exit.id.clone(), at))
                .collect(),
            by_host: (0..)
                .zip(&origins.all)
                .map(|(at, host)| (host.name.clone(), at))
                .collect(),
            ..Tracks::default()
        }
    }

    /// An attempt has ended.
    pub(super) fn attempt(&mut self, exit: usize, took: Duration) {
        self.exits[exit].attempts += 1;
        self.exits[exit].busy += took;
    }

    /// A request reached its origin, which answered with its limit or not.
    pub(super) fn request(&mut self, host: usize, throttled: Throttled) {
        self.hosts[host].requests += 1;
        self.hosts[host].refused += u64::from(throttled == Throttled::Yes);
    }

    /// A job has its end.
    pub(super) fn end(&mut self, host: usize, failure: Option<&Failure>) {
        match failure {
            None => self.hosts[host].ok += 1,
            Some(failure) => {
                self.hosts[host].failed += 1;
                *self.failures.entry(failure.kind.as_str()).or_default() += 1;
            }
        }
    }

    /// Something changed.
    pub(super) fn note(&mut self, note: &Note) {
        match note {
            Note::Exit {
                id, change, state, ..
            } => {
                if let Some(&exit) = self.by_exit.get(id) {
                    self.exit_changed(exit, *change, *state);
                }
            }
            Note::OriginPaused { origin, .. } => {
                if let Some(&host) = self.by_host.get(origin.as_str()) {
                    self.hosts[host].pauses += 1;
                }
            }
            Note::OriginDead { origin } => {
                if let Some(&host) = self.by_host.get(origin.as_str()) {
                    self.hosts[host].given_up += 1;
                }
            }
            Note::Panic => self.panics += 1,
            Note::TriesSpent { .. } | Note::PanicOver | Note::NoExit => {}
        }
    }

    fn exit_changed(&mut self, exit: usize, change: Change, state: State) {
        let is_out = |state| matches!(state, State::Ejected | State::Evicted);
        let track = &mut self.exits[exit];
        let before = std::mem::replace(&mut track.state, state);
        match (is_out(before), is_out(state)) {
            (false, true) => self.out += 1,
            (true, false) => self.out -= 1,
            (true, true) | (false, false) => {}
        }
        if matches!(change, Change::Ejected | Change::Evicted) {
            track.ejections += 1;
            let after = track.attempts;
            track.ejected_after.get_or_insert(after);
        }
        self.most_out = self.most_out.max(self.out);
    }
}
