//! Whether each of many sites is asked at just the rate it allows, by the sites' own clock.
//!
//! `cargo run --release --example rates [SITES] [RATE] [SECONDS]`: the built program fetches
//! through 20 exits of a lab; printed are the slowest and the fastest site and the most requests
//! that one site got in a tenth of a second (burst 1: two at most would be exact at 20 a second).

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use exitfetch::lab::{ExitConfig, Lab, LabConfig};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (sites, rate, seconds) = (next(50)?, next(20)?, next(30)?);
    let each = rate * seconds;
    let runtime = tokio::runtime::Runtime::new()?;
    let config = LabConfig::alike(20, &ExitConfig::http()).logging((sites * each) as usize);
    let lab = runtime.block_on(Lab::start(config))?;
    let dir = tempfile::tempdir()?;
    lab.write(dir.path())?;
    let urls = (0..each).flat_map(|n| (0..sites).map(move |site| (site, n)));
    let lines: Vec<String> = urls
        .map(|(site, n)| format!("http://o{site}.test/ok/1000/{n}\n"))
        .collect();
    std::fs::write(dir.path().join("urls.txt"), lines.concat())?;
    run(dir.path(), rate)?;

    let mut arrivals: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for seen in lab.log() {
        let at = seen.at_ns as f64 / 1e9;
        arrivals.entry(seen.host).or_default().push(at);
    }
    let rates = arrivals.values().map(|at| {
        let span = at.last().unwrap_or(&0.0) - at.first().unwrap_or(&0.0);
        (at.len() as f64 - 1.0) / span
    });
    let (slowest, fastest) = rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    let most = arrivals.values().map(|at| most_within(at, 0.1)).max();
    println!(
        "{} sites: {slowest:.2} to {fastest:.2} requests/s each, at most {} in 100 ms",
        arrivals.len(),
        most.unwrap_or(0)
    );
    Ok(())
}

/// The program that was built beside this example.
fn run(dir: &Path, rate: u64) -> anyhow::Result<()> {
    let own = std::env::current_exe()?;
    let built = own.parent().and_then(Path::parent);
    let program = built.context("no target directory")?.join("exitfetch");
    let status = std::process::Command::new(&program)
        .args(["run", "--exits", "exits.txt", "--urls", "urls.txt"])
        .args(["--rate", &rate.to_string(), "--per-exit", "10"])
        .args(["--summary", "none", "--quiet", "--min-free", "0"])
        .current_dir(dir)
        .status()
        .with_context(|| format!("cannot run {}: build it first", program.display()))?;
    anyhow::ensure!(status.success(), "the run ended with {status}");
    Ok(())
}

/// The most instants within any `window` seconds.
fn most_within(at: &[f64], window: f64) -> usize {
    let mut first = 0;
    (0..at.len())
        .map(|last| {
            while at[last] - at[first] > window {
                first += 1;
            }
            last - first + 1
        })
        .max()
        .unwrap_or(0)
}
