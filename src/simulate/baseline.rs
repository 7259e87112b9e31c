//! The other way, for contrast only: choose an exit, then wait at it.
//!
//! As many workers as the fleet has slots, as a program would have that bounds its jobs and
//! each exit by a semaphore. A worker takes the next job, chooses an exit at random and waits
//! for a slot there, while slots elsewhere may be free. Budgets of origins are left out, which
//! only helps it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

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
    let lines = load.len() as u64;
    let mut waiting = vec![0_u64; count];
    let mut free: Vec<u32> = exits.all.iter().map(|exit| exit.cap).collect();
    let mut changed = Vec::new();
    let mut ends = BinaryHeap::new();
    let (mut now, mut line) = (Time::ZERO, 0);
    let mut idle = workers;
    loop {
        // Each idle worker takes a job and commits itself to an exit.
        while idle > 0 && line < lines {
            idle -= 1;
            line += 1;
            let exit = rng.random_range(0..count);
            waiting[exit] += 1;
            changed.push(exit);
        }
        for exit in changed.drain(..) {
            // Which job the worker that waits here has is all the same to the time it takes.
            while waiting[exit] > 0 && free[exit] > 0 {
                waiting[exit] -= 1;
                free[exit] -= 1;
                let took = takes(&mut exits, origins, load.host(line), exit, rng);
                ends.push(Reverse((now + took, exit)));
            }
        }
        let Some(Reverse((at, exit))) = ends.pop() else {
            return now;
        };
        now = at;
        exits.leave(exit);
        free[exit] += 1;
        changed.push(exit);
        idle += 1;
    }
}

fn takes(
    exits: &mut Exits<'_>,
    origins: &Origins<'_>,
    host: usize,
    exit: usize,
    rng: &mut impl Rng,
) -> Duration {
    exits.enter(exit);
    let (at, to) = (exits.spec(exit), origins.spec(host));
    let wait = (at.latency.draw(rng) + to.latency.draw(rng)).mul_f64(exits.slowdown(exit));
    at.dial.0 + wait + to.body.0
}
