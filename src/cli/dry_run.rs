//! `--dry-run`: what would run, and the least time it can take. Sends nothing, writes nothing.

use std::collections::HashMap;
use std::time::Duration;

use super::fleet::Fleet;
use super::{Code, Stopped, stdout};
use crate::input::{Entry, Urls};
use crate::model::{Origin, counted};
use crate::schedule::{Floor, Rules};

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
    let counts = origins.iter().map(|(origin, &jobs)| (origin, jobs));
    let floor = Floor::new(counts, rules, slots as f64, LATENCY);
    format!(
        "{}: {jobs} to fetch from {}, {refused} refused\n\
         {} {} at a time\n\
         {floor}\n",
        counted(jobs + refused, "entry", "entries"),
        counted(origins.len(), "site", "sites"),
        counted(fleet.exits.len(), "exit carries", "exits carry"),
        counted(slots, "request", "requests"),
    )
}
