//! What a decision of the scheduler costs, and that the fleet's size hardly matters.
//!
//! A steady state: three quarters of all slots are busy, every step ends one attempt at
//! random and starts what can start. That is two decisions: an end and a start. Making jobs
//! and filing them is left out of the time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use exitfetch::model::{Attempt, Codes, Head, Job, PhaseTimes, Time};
use exitfetch::schedule::{Next, Rules, Scheduler, Seat, Start, Verdict};
use http::{HeaderMap, Method};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use url::Url;

/// Between two ends: 50,000 attempts per second.
const STEP: Duration = Duration::from_micros(20);

struct Steady {
    scheduler: Scheduler,
    running: Vec<Start>,
    urls: Vec<Url>,
    rng: Xoshiro256PlusPlus,
    now: Time,
    line: u64,
    answer: Attempt,
}

impl Steady {
    fn new(exits: u32, ceiling: u32, origins: usize, rate: Option<f64>) -> Steady {
        let seat = |index| Seat {
            id: format!("exit-{index}").into(),
            ceiling,
            group: None,
            credentials: None,
        };
        let rules = Rules {
            rate,
            burst: 1,
            per_origin: None,
            max_in_flight: u32::MAX,
            retries: 3,
            max_redirects: 10,
            max_pause: Duration::from_secs(900),
            origin_patience: Duration::from_secs(120),
            no_exit_timeout: Duration::from_secs(60),
            accept: Codes::default(),
            origins: HashMap::new(),
            seed: 1,
        };
        let seats: Vec<Seat> = (0..exits).map(seat).collect();
        let url = |index| Url::parse(&format!("http://o{index}.test/"));
        let mut steady = Steady {
            scheduler: Scheduler::new(rules, &seats, &[]),
            running: Vec::new(),
            urls: (0..origins).filter_map(|index| url(index).ok()).collect(),
            rng: Xoshiro256PlusPlus::seed_from_u64(2),
            now: Time::ZERO,
            line: 0,
            answer: Attempt {
                phases: PhaseTimes {
                    first_byte: Some(Duration::from_millis(80)),
                    ..PhaseTimes::default()
                },
                head: Some(Head {
                    status: 200,
                    headers: HeaderMap::new(),
                }),
                ..Attempt::default()
            },
        };
        let busy = exits as usize * ceiling as usize * 3 / 4;
        while steady.running.len() < busy {
            steady.push();
            steady.start();
            steady.now = steady.now + Duration::from_millis(1);
        }
        steady
    }

    fn push(&mut self) {
        self.line += 1;
        let url = &self.urls[self.rng.random_range(0..self.urls.len())];
        let job = Job {
            id: "1".into(),
            id_given: false,
            line: self.line,
            method: Method::GET,
            url: url.clone(),
            listed: None,
            authorization: None,
            headers: None,
            body: None,
            extra: None,
        };
        self.scheduler.push(job, self.now);
    }

    fn start(&mut self) {
        while let Next::Start(start) = self.scheduler.next(self.now) {
            self.running.push(start);
        }
    }

    fn step(&mut self) -> Verdict {
        self.now = self.now + STEP;
        // A small fleet can run out of work while all jobs wait for their origins.
        while self.running.is_empty() {
            self.now = self.now + STEP;
            self.start();
        }
        let ended = self.rng.random_range(0..self.running.len());
        let Start { lease, work, .. } = self.running.swap_remove(ended);
        let verdict = self.scheduler.finish(lease, work, &self.answer, self.now);
        self.start();
        verdict
    }
}

fn decisions(c: &mut Criterion) {
    let mut group = c.benchmark_group("decision");
    group.throughput(Throughput::Elements(2));
    // The first shows what a decision costs where all is in the processor's caches. The third
    // has as many exits as origins; the second the same jobs in flight through few exits, so the
    // two differ in the fleet's size alone.
    let worlds = [
        (100, 4, 100_000),
        (100, 4000, 100_000),
        (100_000, 4, 100_000),
    ];
    for (exits, ceiling, origins) in worlds {
        // Twice what the steps ask for: every start waits a moment for its origin's budget.
        let limited = 2.0 / STEP.as_secs_f64() / origins as f64;
        for (name, rate) in [("unlimited", None), ("limited", Some(limited))] {
            let steady = RefCell::new(Steady::new(exits, ceiling, origins, rate));
            group.bench_function(
                BenchmarkId::new(name, format!("{exits}x{ceiling}x{origins}")),
                |bench| {
                    bench.iter_batched(
                        || steady.borrow_mut().push(),
                        |()| steady.borrow_mut().step(),
                        BatchSize::NumIterations(1000),
                    );
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
