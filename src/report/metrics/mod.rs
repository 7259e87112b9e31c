//! `--metrics`: the run in figures for Prometheus, in the OpenMetrics text format.
//!
//! Owns: names and labels of the figures; leaves answering to `server`. Invariants: every label
//! has a fixed set of values (outcomes, kinds of fault, phases, places, states), so neither the
//! list nor the fleet can make it grow, and no name, address or login is among them.

mod server;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::net::TcpListener;

use super::Snapshot;
use crate::model::{Attempt, ErrorKind, PhaseTimes};
use server::Server;

/// Upper bounds of the histograms, in seconds: from a warm socket to the longest usual limit.
const BUCKETS: [f64; 15] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];
/// The phases of an attempt, in the order of [`times`].
const PHASES: [&str; 5] = ["dial", "handshake", "tls", "first_byte", "body"];

type Label = [(&'static str, Cow<'static, str>); 1];

/// The figures of a run, served while it lives.
pub struct Metrics {
    figures: Figures,
    server: Server,
}

impl Metrics {
    /// Serves figures at `address` from now until this is dropped. Port 0: any free one.
    ///
    /// # Errors
    /// The address is not ours or taken.
    pub async fn serve(address: SocketAddr) -> anyhow::Result<Metrics> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot serve --metrics at {address}"))?;
        let mut registry = Registry::with_prefix("exitfetch");
        let figures = Figures::new(&mut registry);
        Ok(Metrics {
            figures,
            server: Server::start(listener, Arc::new(registry))?,
        })
    }

    /// Where they are.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Counts an attempt that has ended.
    pub fn attempt(&self, attempt: &Attempt) {
        self.figures.attempt(attempt);
    }

    /// Takes over how the run stands.
    pub fn update(&self, now: &Snapshot) {
        self.figures.update(now);
    }
}

struct Figures {
    entries: Family<Label, Counter>,
    read: Counter,
    attempts: Family<Label, Counter>,
    /// The one that every attempt needs.
    no_fault: Counter,
    in_flight: Family<Label, Gauge>,
    waiting: Family<Label, Gauge>,
    exits: Family<Label, Gauge>,
    received: Counter,
    phases: [Histogram; PHASES.len()],
}

impl Figures {
    fn new(registry: &mut Registry) -> Figures {
        let attempts = Family::default();
        let phases: Family<Label, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(BUCKETS));
        let figures = Figures {
            entries: Family::default(),
            read: Counter::default(),
            no_fault: attempts.get_or_create_owned(&label("fault", "none")),
            attempts,
            in_flight: Family::default(),
            waiting: Family::default(),
            exits: Family::default(),
            received: Counter::default(),
            phases: PHASES.map(|phase| phases.get_or_create_owned(&label("phase", phase))),
        };
        let Figures {
            entries,
            read,
            attempts,
            in_flight,
            waiting,
            exits,
            received,
            ..
        } = &figures;
        registry.register(
            "entries",
            "Entries that have ended, by outcome",
            entries.clone(),
        );
        registry.register(
            "entries_read",
            "Entries of the list read so far",
            read.clone(),
        );
        let help = "Attempts that have ended, by what went wrong; an answer of any status is none";
        registry.register("attempts", help, attempts.clone());
        registry.register(
            "in_flight",
            "Attempts under way, by phase",
            in_flight.clone(),
        );
        registry.register("waiting", "Jobs that wait, by what for", waiting.clone());
        registry.register("exits", "Exits, by state", exits.clone());
        let help = "Body bytes received, as on the wire";
        registry.register_with_unit("received", help, Unit::Bytes, received.clone());
        let help = "How long the phases of attempts took";
        registry.register_with_unit("phase_duration", help, Unit::Seconds, phases);
        figures.update(&Snapshot::default());
        figures
    }

    fn attempt(&self, attempt: &Attempt) {
        match &attempt.fault {
            None => self.no_fault.inc(),
            Some(fault) => {
                let kind = ErrorKind::of(fault).as_str();
                self.attempts
                    .get_or_create(&[("fault", Cow::Owned(kind))])
                    .inc()
            }
        };
        for (histogram, took) in self.phases.iter().zip(times(&attempt.phases)) {
            if let Some(took) = took {
                histogram.observe(took.as_secs_f64());
            }
        }
    }

    fn update(&self, now: &Snapshot) {
        let counts = &now.counts;
        for (outcome, count) in [
            ("ok", counts.ok),
            ("failed", counts.failed),
            ("refused", counts.refused),
        ] {
            let entries = self.entries.get_or_create(&label("outcome", outcome));
            entries.inner().store(count, Ordering::Relaxed);
        }
        self.read.inner().store(now.read, Ordering::Relaxed);
        self.received.inner().store(now.received, Ordering::Relaxed);
        for (phase, (_, count)) in PHASES.into_iter().zip(now.under_way.named()) {
            set(&self.in_flight, label("phase", phase), u64::from(count));
        }
        set(&self.waiting, label("for", "budget"), now.waiting_budget);
        set(&self.waiting, label("for", "exit"), now.waiting_exit);
        for (state, count) in &now.exits {
            set(&self.exits, label("state", state), u64::from(*count));
        }
    }
}

fn label(name: &'static str, value: &'static str) -> Label {
    [(name, Cow::Borrowed(value))]
}

fn set(gauges: &Family<Label, Gauge>, label: Label, value: u64) {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    gauges.get_or_create(&label).set(value);
}

fn times(phases: &PhaseTimes) -> [Option<Duration>; PHASES.len()] {
    let PhaseTimes {
        dial,
        handshake,
        tls,
        first_byte,
        body,
    } = *phases;
    [dial, handshake, tls, first_byte, body]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fault, FaultKind, Phase, PhaseCounts};

    #[test]
    fn the_figures_are_named_labelled_and_ended_as_the_format_wants() {
        let mut registry = Registry::with_prefix("exitfetch");
        let figures = Figures::new(&mut registry);
        figures.attempt(&Attempt {
            phases: PhaseTimes {
                dial: Some(Duration::from_millis(30)),
                ..PhaseTimes::default()
            },
            fault: Some(Fault {
                phase: Phase::Handshake,
                kind: FaultKind::Credentials,
                detail: "a detail".to_owned(),
            }),
            ..Attempt::default()
        });
        figures.attempt(&Attempt::default());
        figures.update(&Snapshot {
            under_way: PhaseCounts {
                body: 3,
                ..PhaseCounts::default()
            },
            received: 77,
            waiting_exit: 5,
            exits: vec![("healthy", 2), ("evicted", 1)],
            ..Snapshot::default()
        });
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE exitfetch_attempts counter",
            "exitfetch_attempts_total{fault=\"credentials\"} 1",
            "exitfetch_attempts_total{fault=\"none\"} 1",
            "exitfetch_entries_total{outcome=\"refused\"} 0",
            "exitfetch_in_flight{phase=\"body\"} 3",
            "exitfetch_waiting{for=\"exit\"} 5",
            "exitfetch_exits{state=\"evicted\"} 1",
            "exitfetch_received_bytes_total 77",
            "exitfetch_phase_duration_seconds_bucket{le=\"0.025\",phase=\"dial\"} 0",
            "exitfetch_phase_duration_seconds_bucket{le=\"0.05\",phase=\"dial\"} 1",
            "exitfetch_phase_duration_seconds_count{phase=\"tls\"} 0",
        ] {
            assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        assert!(!text.contains("a detail"));
    }
}
