//! `exitfetch demo`: the main job on a loopback lab in this process, seen from both sides;
//! then the same jobs the usual way, for contrast.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::ends::{Code, Stopped, code_of, end_here};
use super::fleet::{Fleet, FleetConfig, PerExit};
use super::{Cli, Command, run, settings, stdout};
use crate::engine::{self, Signals};
use crate::fetch::{ConnRule, Conns, Fetcher, Request};
use crate::input::{ListSource, exits};
use crate::lab::{ExitConfig, Lab, LabConfig, sample_urls};
use crate::threads;

const EXITS: usize = 6;
const CAP: u32 = 3;
const JOBS: usize = 60;

pub(super) fn demo() -> Result<Code, Stopped> {
    let runtime = threads::event_loop().map_err(Stopped::local)?;
    runtime.block_on(async {
        // From here to the end: what the main job catches would be deaf after it.
        let mut signals = Signals::catch(end_here).map_err(Stopped::local)?;
        tokio::select! {
            shown = show() => shown,
            ended = signals.next() => Ok(code_of(&ended)),
        }
    })
}

async fn show() -> Result<Code, Stopped> {
    let dir = tempfile::tempdir().map_err(Stopped::local)?;
    let exit = ExitConfig::http().capacity(CAP);
    let lab = Lab::start(LabConfig::alike(EXITS, &exit))
        .await
        .map_err(Stopped::local)?;
    lab.write(dir.path()).map_err(Stopped::local)?;
    say(&format!(
        "{JOBS} URLs of about a second each, {EXITS} exits, at most {CAP} requests through each:\n\n"
    ))?;
    let code = main_job(dir.path()).await?;
    let seen = peaks(&lab);
    say("\nthe same peaks as the exits counted them (requests, sockets):\n")?;
    for (name, requests, sockets) in &seen {
        say(&format!("  {name:<6} {requests:>3} {sockets:>3}\n"))?;
    }
    lab.reset();
    say(&format!(
        "\nfor contrast, the same {JOBS} URLs the usual way: one semaphore of {}, a random exit per job\n",
        EXITS as u32 * CAP
    ))?;
    usual_way(dir.path()).await.map_err(Stopped::local)?;
    for (name, requests, _) in peaks(&lab) {
        let note = if requests > CAP {
            "  above the cap"
        } else {
            ""
        };
        say(&format!("  {name:<6} {requests:>3}{note}\n"))?;
    }
    let kept = seen
        .iter()
        .all(|(_, requests, sockets)| *requests.max(sockets) <= CAP);
    Ok(if kept { code } else { Code::Local })
}

async fn main_job(dir: &Path) -> Result<Code, Stopped> {
    let path = |name: &str| dir.join(name).into_os_string();
    let words = [
        "exitfetch",
        "run",
        "--per-exit",
        "3",
        "--progress",
        "never",
        "--exits",
    ];
    let words = words.map(Into::into).into_iter().chain([
        path("exits.txt"),
        "--urls".into(),
        path("urls.txt"),
        "--out".into(),
        path("out"),
    ]);
    match Cli::try_parse_from(words).map_err(Stopped::usage)?.command {
        Command::Run(args) => run::run_here(*args, engine::start_clock()).await,
        _ => Ok(Code::Usage),
    }
}

/// Name, most requests and most sockets at a time of each exit, by its own count.
fn peaks(lab: &Lab) -> Vec<(String, u32, u32)> {
    let stats = lab.exits().iter().map(|exit| exit.stats());
    stats
        .map(|exit| (exit.name, exit.in_flight.peak, exit.sockets.peak))
        .collect()
}

/// What most scripts do: bound the jobs, not the exits.
async fn usual_way(dir: &Path) -> Result<()> {
    let (fetcher, count) = fetcher(dir).await?;
    let places = Arc::new(Semaphore::new(EXITS * CAP as usize));
    let mut random = StdRng::seed_from_u64(1);
    let mut jobs = JoinSet::new();
    for url in sample_urls(JOBS) {
        let exit = random.random_range(0..count);
        let (fetcher, places) = (fetcher.clone(), Arc::clone(&places));
        let target = url.parse()?;
        jobs.spawn(async move {
            let _place = places.acquire().await;
            let rule = ConnRule {
                ceiling: 1,
                keep_alive: false,
            };
            let seat = Conns::new(&[rule], 0).take(0, &target, crate::model::Time::ZERO);
            let request = Request {
                method: http::Method::GET,
                target,
                authorization: None,
                headers: None,
                body: None,
                left_origin: false,
                validators: None,
            };
            let mut exchange = fetcher.start(exit, seat, &request).await;
            while exchange.chunk().await.is_some() {}
            exchange.finish().await;
        });
    }
    let all = async { while jobs.join_next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .context("the usual way took more than a minute")
}

async fn fetcher(dir: &Path) -> Result<(Fetcher, usize)> {
    let source = ListSource::File(dir.join("exits.txt"));
    let list = exits::read(source, None, |_| None).await?;
    let none = Default::default();
    let config = FleetConfig {
        tiers: &Default::default(),
        groups: &none,
        probed: &Default::default(),
    };
    let fleet = Fleet::new(list.exits, PerExit::Default(CAP), &config);
    let words = ["exitfetch", "run"];
    let Command::Run(args) = Cli::try_parse_from(words)?.command else {
        anyhow::bail!("`run` is another command");
    };
    let options = settings::fetch(&args, &Default::default())?;
    let count = fleet.exits.len();
    let fetcher = Fetcher::new(options, fleet.exits, engine::start_clock())?;
    Ok((fetcher, count))
}

fn say(text: &str) -> Result<(), Stopped> {
    stdout::print(text).map_err(Stopped::local)
}
