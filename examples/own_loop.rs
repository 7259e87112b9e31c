//! A fetching loop of one's own around the scheduler and the fetcher of this crate.
//!
//! `cargo run --example own_loop` fetches thirty URLs through three exits of a lab that this
//! process starts, two at a time through each, twenty a second at each site, and prints what
//! the exits counted. Put your own list of exits and your own jobs in the lab's place.
//!
//! The scheduler decides and does nothing; the fetcher does and decides nothing. What is
//! left is this loop: start what may start, hand back what came, sleep until time changes
//! something. It owns the clock.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use exitfetch::engine::start_clock;
use exitfetch::fetch::{
    Coding, Conn, ConnRule, Conns, Fetcher, Limits, Options, Request, TlsRoots, Tunnel,
};
use exitfetch::input::{ListSource, exits, urls};
use exitfetch::lab::{ExitConfig, Lab, LabConfig};
use exitfetch::model::{Attempt, Codes, Exit};
use exitfetch::schedule::{Lease, Next, Rules, Scheduler, Seat, Start, Verdict, Work};
use tokio::task::JoinSet;

const CAP: u32 = 2;

/// Fetches the list.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> anyhow::Result<()> {
    let lab = Lab::start(LabConfig::alike(3, &ExitConfig::http())).await?;
    let dir = tempfile::tempdir()?;
    lab.write(dir.path())?;
    let list: String = (0..30)
        .map(|n| format!("http://site-{}.test/bytes/{}\n", n % 5, 100 + n))
        .collect();
    std::fs::write(dir.path().join("urls.txt"), list)?;
    let path = |name: &str| ListSource::from_str(&dir.path().join(name).to_string_lossy());

    let exits = exits::read(path("exits.txt")?, None, |_| None).await?.exits;
    let mut fetching = Loop::new(exits)?;
    let mut list = urls::spawn(path("urls.txt")?, None)?;
    while let Some(batch) = list.next().await {
        for entry in batch? {
            match entry {
                urls::Entry::Job(job) => fetching.scheduler.push(job, fetching.clock.now()),
                urls::Entry::Refused(refusal) => {
                    println!("line {}: {}", refusal.line, refusal.reason)
                }
            }
        }
    }
    let ok = fetching.run().await;

    println!("{ok} of 30 ok");
    anyhow::ensure!(ok == 30, "the lab answers everything");
    for exit in lab.exits() {
        let stats = exit.stats();
        anyhow::ensure!(stats.sockets.peak <= CAP, "the scheduler keeps the cap");
        println!(
            "{}: {} requests, at most {} sockets at a time",
            exit.name(),
            stats.requests,
            stats.sockets.peak
        );
    }
    Ok(())
}

/// What an attempt's task brings back.
struct Landed {
    lease: Lease,
    work: Box<Work>,
    exit: usize,
    attempt: Box<Attempt>,
    conn: Option<Conn>,
    body: Vec<u8>,
}

struct Loop {
    clock: exitfetch::model::Clock,
    scheduler: Scheduler,
    fetcher: Fetcher,
    conns: Conns,
    tasks: JoinSet<Landed>,
}

impl Loop {
    fn new(exits: Vec<Exit>) -> anyhow::Result<Loop> {
        let clock = start_clock();
        let seats: Vec<Seat> = exits
            .iter()
            .map(|exit| Seat {
                id: Arc::clone(&exit.id),
                ceiling: CAP,
                group: None,
                credentials: None,
            })
            .collect();
        let sockets = exits.iter().map(|_| ConnRule {
            ceiling: CAP,
            keep_alive: true,
        });
        Ok(Loop {
            clock,
            scheduler: Scheduler::new(rules(), &seats, &[]),
            conns: Conns::new(&sockets.collect::<Vec<_>>(), 100),
            fetcher: Fetcher::new(options()?, exits.into(), clock)?,
            tasks: JoinSet::new(),
        })
    }

    /// Fetches all jobs; answers how many were ok.
    async fn run(&mut self) -> usize {
        let mut ok = 0;
        loop {
            let now = self.clock.now();
            let wake = loop {
                match self.scheduler.next(now) {
                    Next::Start(start) => self.start(start),
                    Next::GiveUp(work, failure) => {
                        println!("{}: {}", work.target(), failure.detail)
                    }
                    Next::At(time) => break time,
                    // Attempts of this loop wait for as long as their limits allow.
                    Next::Cut(_) | Next::LastCall => {}
                    // For loops that keep jobs on disk; this one has put none there.
                    Next::Refill(_) => break now,
                    // Nothing but an attempt's end can change that.
                    Next::Idle => break now + Duration::from_secs(3600),
                }
            };
            if self.scheduler.is_empty() {
                return ok;
            }
            tokio::select! {
                Some(Ok(landed)) = self.tasks.join_next() => ok += usize::from(self.land(landed)),
                () = tokio::time::sleep_until(self.clock.instant(wake).into()) => {}
            }
        }
    }

    fn start(&mut self, start: Start) {
        let Start { lease, exit, work } = start;
        let exit = exit.index();
        let seat = self.conns.take(exit, work.target(), self.clock.now());
        let request = Request {
            method: work.method().clone(),
            target: work.target().clone(),
            authorization: work.authorization().cloned(),
            headers: work.headers().map(std::borrow::Cow::into_owned),
            body: work.body().cloned(),
            left_origin: work.left_origin(),
            validators: None,
        };
        let fetcher = self.fetcher.clone();
        self.tasks.spawn(async move {
            let mut exchange = fetcher.start(exit, seat, &request).await;
            let mut body = Vec::new();
            while let Some(piece) = exchange.chunk().await {
                body.extend_from_slice(&piece);
            }
            let (attempt, conn) = exchange.finish().await;
            Landed {
                lease,
                work,
                exit,
                attempt,
                conn,
                body,
            }
        });
    }

    /// Gives everything back that the attempt held. Answers whether its job is done.
    fn land(&mut self, landed: Landed) -> bool {
        let now = self.clock.now();
        self.conns.give_back(landed.exit, landed.conn, now);
        let verdict = self
            .scheduler
            .finish(landed.lease, landed.work, &landed.attempt, now);
        match verdict {
            Verdict::Ok(work) => {
                println!("{}: {} bytes", work.target(), landed.body.len());
                true
            }
            Verdict::Failed(work, failure) => {
                println!("{}: {}", work.target(), failure.detail);
                false
            }
            // A retry or a redirect: `next` hands it out again when its time has come.
            Verdict::Again => false,
        }
    }
}

fn rules() -> Rules {
    Rules {
        rate: Some(20.0),
        burst: 1,
        per_origin: None,
        max_in_flight: 100,
        retries: 3,
        max_redirects: 10,
        max_pause: Duration::from_secs(900),
        origin_patience: Duration::from_secs(120),
        no_exit_timeout: Duration::from_secs(60),
        accept: Codes::default(),
        origins: std::collections::HashMap::new(),
        seed: 1,
    }
}

fn options() -> anyhow::Result<Options> {
    Ok(Options {
        limits: Limits {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(30),
            stall: Duration::from_secs(15),
            total: Duration::from_secs(300),
            max_body: Some(1 << 20),
        },
        tunnel_http: Tunnel::Https,
        coding: Coding::Identity,
        tls: TlsRoots::load(None)?,
        headers: http::HeaderMap::new(),
        user_agent: "own-loop/1.0 (ops@example.com)".to_owned(),
        per_origin_headers: std::collections::HashMap::new(),
        tapes: false,
    })
}
