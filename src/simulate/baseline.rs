//! The other way, for contrast only: choose an exit, then wait at it.
//!
//! As many workers as the fleet has slots, as a program would have that bounds its jobs and
//! each exit by a semaphore. A worker takes the next job, chooses an exit at random and waits
//! for a slot there, while slots elsewhere may be free. Budgets of origins are left out, which
//! only helps it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{Rng, RngExt};

use super::exits::Exits;
use super::load::Load;
use super::origins::Origins;
use crate::model::Time;

/// How long it takes.
pub(super) fn makespan(
    mut exits: Exits<'_>,
    origins: &Origins<'_>,
    load: &Load,
    rng: &mut impl Rng,
) -> Time {
    let count = exits.all.len();
    let workers: u64 = exits.all.iter().map(|exit| u64::from(exit.cap)).sum();
    let mut busy = vec![0_u32; count];
    let mut waiting = vec![0_u64; count];
    let mut ends = BinaryHeap::new();
    let (mut now, mut line) = (Time::ZERO, 0_u64);
    let lines = load.len() as u64;
    let mut idle = workers.min(lines);
    loop {
        // Each idle worker takes a job and commits itself.
        while idle > 0 && line < lines {
            idle -= 1;
            line += 1;
            let exit = rng.random_range(0..count);
            waiting[exit] += 1;
            begin(exit, &mut waiting, &mut busy, |busy| {
                busy < exits.all[exit].cap
            })
            .then(|| {
                ends.push(Reverse((
                    now + takes(&mut exits, origins, load.host(line), exit, rng),
                    exit,
                )))
            });
        }
        let Some(Reverse((at, exit))) = ends.pop() else {
            return now;
        };
        now = at;
        exits.leave(exit);
        busy[exit] -= 1;
        idle += 1;
        // The worker that waits here longest; which job it has is all the same.
        if begin(exit, &mut waiting, &mut busy, |busy| {
            busy < exits.all[exit].cap
        }) {
            let host = load.host(line.max(1));
            ends.push(Reverse((
                now + takes(&mut exits, origins, host, exit, rng),
                exit,
            )));
        }
    }
}

fn begin(exit: usize, waiting: &mut [u64], busy: &mut [u32], room: impl Fn(u32) -> bool) -> bool {
    let begins = waiting[exit] > 0 && room(busy[exit]);
    if begins {
        waiting[exit] -= 1;
        busy[exit] += 1;
    }
    begins
}

fn takes(
    exits: &mut Exits<'_>,
    origins: &Origins<'_>,
    host: usize,
    exit: usize,
    rng: &mut impl Rng,
) -> std::time::Duration {
    exits.enter(exit);
    let (at, to) = (exits.spec(exit), origins.spec(host));
    let wait = (at.latency.draw(rng) + to.latency.draw(rng)).mul_f64(exits.slowdown(exit));
    at.dial.0 + wait + to.body.0
}
