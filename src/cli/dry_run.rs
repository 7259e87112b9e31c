//! `--dry-run`: what would run, and the least time it can take. Sends nothing, writes nothing.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use super::fleet::Fleet;
use super::{Code, Stopped, stdout};
use crate::input::{Entry, Urls};
use crate::model::Origin;
use crate::schedule::Rules;

/// What one request is taken to last where nothing is known yet.
const LATENCY: Duration = Duration::from_secs(1);

/// `list` is how messages name the URL list.
pub(super) async fn show(
    mut urls: Urls,
    list: &str,
    rules: &Rules,
    fleet: &Fleet,
) -> Result<Code, Stopped> {
    let mut origins: HashMap<Origin, u64> = HashMap::new();
    let mut refused = 0_u64;
    while let Some(batch) = urls.next().await {
        for entry in batch.map_err(Stopped::usage)? {
            match entry {
                Entry::Job(job) => *origins.entry(Origin::of(&job.url)).or_default() += 1,
                Entry::Refused(refusal) => {
                    tracing::warn!("{list}:{}: {}", refusal.line, refusal.reason);
                    refused += 1;
                }
            }
        }
    }
    let text = describe(&origins, refused, rules, fleet);
    stdout::print(&text).map_err(Stopped::local)?;
    Ok(if refused > 0 {
        Code::SomeFailed
    } else {
        Code::Ok
    })
}

fn describe(origins: &HashMap<Origin, u64>, refused: u64, rules: &Rules, fleet: &Fleet) -> String {
    let jobs: u64 = origins.values().sum();
    let slots = fleet.slots().min(u64::from(rules.max_in_flight));
    let by_exits = LATENCY.as_secs_f64() * jobs as f64 / slots.max(1) as f64;
    let slowest = origins
        .iter()
        .filter_map(|(origin, &jobs)| {
            let rate = rules.rate_of(origin)?;
            // A rested site gives the burst at once; every further request waits its turn.
            let waiting = jobs.saturating_sub(u64::from(rules.burst_of(origin).max(1)));
            Some((origin, waiting as f64 / rate))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(a.0)));
    let mut text = format!(
        "{} entries: {jobs} to fetch from {} sites, {refused} refused\n\
         {} exits carry {slots} requests at a time\n",
        jobs + refused,
        origins.len(),
        fleet.exits.len(),
    );
    let span = |seconds: f64| {
        let whole = Duration::try_from_secs_f64(seconds.ceil()).unwrap_or(Duration::MAX);
        humantime::format_duration(whole).to_string()
    };
    // Writing to a String cannot fail.
    let _ = match slowest {
        Some((origin, by_rate)) if by_rate > by_exits => writeln!(
            text,
            "at least {}: the rate allowed at {origin} binds, not the exits (they alone: {})",
            span(by_rate),
            span(by_exits)
        ),
        // How long requests take is not known, so only the rates give a least time.
        slowest => writeln!(
            text,
            "about {} where a request takes {}: the exits bind; the rates alone allow {}",
            span(by_exits),
            humantime::format_duration(LATENCY),
            span(slowest.map_or(0.0, |(_, by_rate)| by_rate)),
        ),
    };
    text
}
