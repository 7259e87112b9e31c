//! The least time that a scenario can take: every slot always in use, or the largest origin
//! asked at its full rate, whichever binds. Faults, limits of the origins and the last
//! attempts, which no other job follows, are left out.

use super::exits::Exits;
use super::origins::Origins;
use super::pace::Allowed;

/// In seconds.
pub(super) fn seconds(
    exits: &Exits<'_>,
    groups: &[u32],
    origins: &Origins<'_>,
    jobs: &[u64],
    allowed: &[Allowed],
) -> f64 {
    let all = jobs.iter().sum::<u64>() as f64;
    let at_origins = |host: usize| {
        let spec = origins.spec(host);
        (spec.latency.mean(), spec.body.0.as_secs_f64())
    };
    let (mut wait, mut body) = (0.0, 0.0);
    for (host, &count) in jobs.iter().enumerate() {
        let (first, rest) = at_origins(host);
        wait += first * count as f64 / all.max(1.0);
        body += rest * count as f64 / all.max(1.0);
    }
    // Jobs per second of each exit, then of each group.
    let mut rates = vec![(0.0, 0_u32); groups.len() + 1];
    for (at, exit) in exits.all.iter().enumerate() {
        let spec = exits.spec(at);
        let slowdown = f64::from(exit.cap) / f64::from(spec.capacity.unwrap_or(u32::MAX));
        let wait = (spec.latency.mean() + wait) * slowdown.max(1.0);
        let takes = spec.dial.0.as_secs_f64() + wait + body;
        let group = exit.group.map_or(groups.len(), |group| group as usize);
        rates[group].0 += f64::from(exit.cap) / takes.max(1e-9);
        rates[group].1 += exit.cap;
    }
    let shared = |(at, &(rate, slots)): (usize, &(f64, u32))| {
        let cap = groups.get(at).copied().unwrap_or(slots);
        rate * (f64::from(cap) / f64::from(slots.max(1))).min(1.0)
    };
    let rate: f64 = rates.iter().enumerate().map(shared).sum();
    let paced = jobs.iter().zip(allowed).filter_map(|(&count, allowed)| {
        Some(count.saturating_sub(u64::from(allowed.burst)) as f64 / allowed.rate?)
    });
    paced.fold(all / rate.max(1e-9), f64::max)
}
