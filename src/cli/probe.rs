//! `exitfetch probe`: which exits are probed, in which order, what is shown and written.
//!
//! Owns the flags and the course of a probe; `pick` chooses exits, `show` has the words. How an
//! exit is measured is `crate::probe`'s.

mod pick;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;

use super::config::Config;
use super::connection::ConnectionArgs;
use super::run::{code_of, end_here, no_usable_exit};
use super::values::{Levels, Rate};
use super::{Code, Stopped, logging, settings, stdout};
use crate::engine::{self, Signals};
use crate::fetch::Fetcher;
use crate::input::{ListSource, exits, target};
use crate::model::{Clock, Exit, Origin};
use crate::probe::{
    Found, GroupEntry, Obstacle, ProbeFile, Prober, Setup, Target, TierEntry, Together, Verdict,
    page,
};
use crate::report::write_whole;
use crate::schedule::budget::Allowance;
use crate::threads;
use pick::{Class, Sample};
use show::{Failed, Outcome};

/// Shown under `probe --help`.
pub(super) const EXAMPLES: &str = "\
DUR: 10s, 1m30s, 250ms. R: a number per second, or /m, /h.

Example:
  exitfetch probe --exits exits.txt --target https://you.example/ping --own-target

Choose a small page that answers fast and that you may ask for some hundred times. What
is found is written beside the exit list (exits.txt.probe.json), and `exitfetch run`
takes its caps from there. Rehearse it without any site: `exitfetch lab`.

Exit status: 0 all exits measured, 1 local failure, 2 usage, 3 some without a verdict,
4 no exit served, 130 or 143 interrupted.";

/// Requests per second to a target that is not the user's own.
const USUAL_RATE: f64 = 10.0;
/// Exits of a group that are probed together.
const TOGETHER: usize = 5;

/// `exitfetch probe`.
#[derive(Args, Debug)]
pub(super) struct ProbeArgs {
    /// Exits, one a line: a file, an https:// address, or - for standard input
    #[arg(long, value_name = "FILE|URL|-", help_heading = "Lists")]
    exits: Option<String>,
    /// A page to ask for; several are asked in turn
    #[arg(long, value_name = "URL", help_heading = "Lists")]
    target: Vec<String>,

    /// Requests at a time to try, from 1 upwards
    #[arg(
        long,
        value_name = "N,N,…",
        default_value = "1,2,4,8,16",
        help_heading = "Exits"
    )]
    levels: Levels,
    /// Exits to probe of each tier, region and group; the 25th percentile counts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Exits")]
    sample: u32,
    /// Probe every exit
    #[arg(long, conflicts_with = "sample", help_heading = "Exits")]
    all: bool,
    /// Then probe exits of a group together, to find what the group carries
    #[arg(long, help_heading = "Exits")]
    joint: bool,

    /// Requests per second to one site through all exits together [default: 10]
    #[arg(
        long,
        value_name = "R",
        allow_negative_numbers = true,
        help_heading = "Sites"
    )]
    rate: Option<Rate>,
    /// The targets are yours: no rate holds unless --rate is given
    #[arg(long, help_heading = "Sites")]
    own_target: bool,
    /// Most requests of the whole probe
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Sites")]
    max_requests: u32,

    #[command(flatten)]
    connection: ConnectionArgs,

    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write a page with drawings
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    /// Settings file [default: ./exitfetch.toml, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) config: Option<PathBuf>,
}

pub(super) fn probe(args: ProbeArgs, config: Config) -> Result<Code, Stopped> {
    let clock = engine::start_clock();
    let runtime = threads::event_loop().map_err(Stopped::local)?;
    let code = runtime.block_on(async {
        let mut signals = Signals::catch(end_here).map_err(Stopped::local)?;
        let course = async {
            let mut course = Course::prepare(args, config, clock).await?;
            course.singles().await?;
            course.joints().await?;
            course.conclude()
        };
        tokio::select! {
            code = course => code,
            ended = signals.next() => Err(Stopped {
                code: code_of(&ended),
                error: anyhow!("stopped; what was measured to its end is in the file"),
            }),
        }
    });
    // A read of standard input that still blocks cannot be cancelled, only left behind.
    runtime.shutdown_background();
    code
}

/// A probe under way.
struct Course {
    args: ProbeArgs,
    config: Config,
    clock: Clock,
    exits: Vec<Exit>,
    prober: Prober,
    /// Where results go, with what is there already; `None`: the list is no file.
    file: Option<(PathBuf, ProbeFile)>,
    outcome: Outcome,
}

impl Course {
    async fn prepare(args: ProbeArgs, config: Config, clock: Clock) -> Result<Course, Stopped> {
        let targets = targets(&args, &config).map_err(Stopped::usage)?;
        let (source, exits) = read_exits(&args).await?;
        let file = match &source {
            ListSource::File(list) => {
                let path = ProbeFile::beside(list);
                let old = ProbeFile::read(&path);
                let old =
                    old.map_err(|error| anyhow!("{error:#}\nhint: mend this file or remove it"));
                Some((path, old.map_err(Stopped::usage)?.unwrap_or_default()))
            }
            ListSource::Stdin | ListSource::Url(_) => None,
        };
        let options = settings::connection(&args.connection, &config.origins);
        let options = options.map_err(Stopped::usage)?;
        let fetcher = Fetcher::new(options, exits.clone().into(), clock).map_err(Stopped::usage)?;
        if args.connection.insecure {
            logging::say("warning: --insecure: no certificate is verified");
        }
        let prober = Prober::new(Setup {
            fetcher,
            clock,
            keep_alive: shares_connections(&targets, &args.connection),
            targets: targets.iter().map(|(target, _)| target.clone()).collect(),
            levels: args.levels.0.clone(),
            max_requests: args.max_requests,
        });
        let outcome = Outcome {
            targets: targets.into_iter().map(|(_, shown)| shown).collect(),
            file: file.as_ref().map(|(path, _)| path.display().to_string()),
            ..Outcome::default()
        };
        Ok(Course {
            args,
            config,
            clock,
            exits,
            prober,
            file,
            outcome,
        })
    }

    /// One exit after the other; a tier and region is done when its exits are.
    async fn singles(&mut self) -> Result<(), Stopped> {
        let sample = if self.args.all {
            Sample::All
        } else {
            Sample::Each(self.args.sample)
        };
        let classes = pick::classes(&self.exits, sample);
        let count: usize = classes.iter().map(|class| class.exits.len()).sum();
        let takes = u64::from(self.prober.ladder_takes()) * count as u64;
        if count > 1 && takes > u64::from(self.args.max_requests) {
            logging::say(&format!(
                "note: {count} exits may take {takes} requests, --max-requests is {}: what it is not enough for is not measured",
                self.args.max_requests
            ));
        }
        for class in classes {
            self.class(&class).await?;
        }
        Ok(())
    }

    async fn class(&mut self, class: &Class) -> Result<(), Stopped> {
        let mut found = Vec::new();
        for &at in &class.exits {
            let exit = &self.exits[at];
            let cap = self.cap_of(exit);
            let title = show::exit_title(exit, cap);
            let mut screen = show::Screen::new(self.args.json, &title)?;
            let one = self
                .prober
                .single(at, cap, &mut |row| screen.row(row))
                .await;
            screen.verdict(&one)?;
            found.push((at, one));
        }
        let highest = self.args.levels.0.last().copied().unwrap_or(1);
        let Some((counts, carries)) = pick::counts(&found, highest) else {
            let names = found.iter().map(|(at, _)| self.name(*at)).collect();
            let last = found.into_iter().next_back();
            self.outcome
                .failed
                .extend(last.map(|(_, found)| Failed::new(names, &found)));
            return Ok(());
        };
        let (_, one) = &found[counts];
        let (knee, reason) = knee_of(one);
        let entry = TierEntry {
            tier: class.tier.clone(),
            region: class.region.clone(),
            per_exit: carries,
            knee,
            reason,
            verdict: one.sentence(),
            date: self.date(),
            targets: self.outcome.targets.clone(),
            exits: found.iter().map(|(at, _)| self.name(*at)).collect(),
            levels: one.rows.clone(),
        };
        self.say(&format!("  per_exit {carries}\n"))?;
        if let Some((_, file)) = &mut self.file {
            file.put_tier(entry.clone());
        }
        self.outcome.tiers.push(entry);
        self.save()
    }

    /// Several exits of each group at a time.
    async fn joints(&mut self) -> Result<(), Stopped> {
        if !self.args.joint {
            return Ok(());
        }
        let groups = pick::groups(&self.exits, TOGETHER);
        if groups.is_empty() {
            logging::say("note: --joint: no group has two exits in the list");
        }
        for (group, exits) in groups {
            self.group(group, &exits).await?;
        }
        Ok(())
    }

    async fn group(&mut self, group: String, exits: &[usize]) -> Result<(), Stopped> {
        let names: Vec<String> = exits.iter().map(|at| self.name(*at)).collect();
        let each = exits.iter().map(|at| {
            let exit = &self.exits[*at];
            let carries = self.outcome.per_exit(exit)?;
            Some(carries.min(self.cap_of(exit).unwrap_or(u32::MAX)))
        });
        let Some(each) = each.collect::<Option<Vec<u32>>>() else {
            let verdict = "no verdict: its exits alone have none".to_owned();
            self.outcome.failed.push(Failed {
                exits: names,
                verdict,
                is_dead: false,
            });
            return Ok(());
        };
        let bounds = Together {
            each: each.into_iter().min().unwrap_or(1),
            cap: self.config.groups.get(&group).map(|config| config.cap),
        };
        let title = show::group_title(&group, exits.len());
        let mut screen = show::Screen::new(self.args.json, &title)?;
        let found = self
            .prober
            .joint(exits, bounds, &mut |row| screen.row(row))
            .await;
        screen.verdict(&found)?;
        if found.carries().is_none() {
            if found.verdict == Verdict::None(Obstacle::Spent) {
                let most = self.prober.joint_takes(exits.len(), bounds);
                self.say(&format!("  together they may take {most} requests more\n"))?;
            }
            self.outcome.failed.push(Failed::new(names, &found));
            return Ok(());
        }
        let (knee, reason) = knee_of(&found);
        let cap = knee.and(found.carries());
        let entry = GroupEntry {
            group,
            cap,
            knee,
            reason,
            verdict: found.sentence(),
            date: self.date(),
            targets: self.outcome.targets.clone(),
            exits: names,
            levels: found.rows,
        };
        self.say(&match cap {
            Some(cap) => format!("  group cap {cap}: less than {} from each\n", bounds.each),
            None => "  no cap of the group below that of its exits\n".to_owned(),
        })?;
        if let Some((_, file)) = &mut self.file {
            file.put_group(entry.clone());
        }
        self.outcome.groups.push(entry);
        self.save()
    }

    fn conclude(mut self) -> Result<Code, Stopped> {
        let spent = self.prober.spent();
        let took = self.clock.now().as_secs_f64();
        self.outcome.close(spent, took, self.date());
        if let Some(status) = self.prober.odd_status() {
            logging::say(&format!(
                "note: a target answered {status}; such answers were measured like any other"
            ));
        }
        if let Some(path) = &self.args.html {
            let page = page(&self.outcome.tiers, &self.outcome.groups);
            write_whole(path, page.as_bytes()).map_err(Stopped::local)?;
        }
        let text = if self.args.json {
            self.outcome.json().map_err(Stopped::local)?
        } else {
            self.outcome.last_lines()
        };
        stdout::print(&text).map_err(Stopped::local)?;
        Ok(self.outcome.code())
    }

    /// What the contract allows this exit: its own cap, and its group's.
    fn cap_of(&self, exit: &Exit) -> Option<u32> {
        let group = exit.group.as_deref();
        let group = group.and_then(|name| self.config.groups.get(name));
        exit.cap
            .into_iter()
            .chain(group.map(|group| group.cap))
            .min()
    }

    fn save(&mut self) -> Result<(), Stopped> {
        match &mut self.file {
            Some((path, file)) => file.write(path).map_err(Stopped::local),
            None => Ok(()),
        }
    }

    fn name(&self, exit: usize) -> String {
        self.exits[exit].id.to_string()
    }

    /// Now, as files write it.
    fn date(&self) -> String {
        let unix: Duration = self.clock.unix(self.clock.now());
        let seconds = i64::try_from(unix.as_secs()).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(seconds)
            .unwrap_or_default()
            .to_string()
    }

    fn say(&self, text: &str) -> Result<(), Stopped> {
        if self.args.json {
            return Ok(());
        }
        stdout::print(text).map_err(Stopped::local)
    }
}

fn knee_of(found: &Found) -> (Option<u32>, Option<String>) {
    match found.verdict {
        Verdict::Knee { knee, reason, .. } => (Some(knee), Some(reason.as_str().to_owned())),
        Verdict::NoKnee { .. } | Verdict::None(_) => (None, None),
    }
}

/// Targets with their budgets, and how they are shown.
fn targets(args: &ProbeArgs, config: &Config) -> anyhow::Result<Vec<(Target, String)>> {
    if args.target.is_empty() {
        bail!(
            "--target is missing\nhint: name a page that you may load some hundred times, such as a ping page of your own; `exitfetch lab` rehearses it without any site"
        );
    }
    let usual = match (args.rate, args.own_target) {
        (Some(rate), _) => rate.0,
        (None, true) => None,
        (None, false) => Some(USUAL_RATE),
    };
    let one = |text: &String| {
        let parsed = target::parse(text.trim());
        let parsed = parsed.map_err(|reason| anyhow!("--target: the URL {reason}"))?;
        let origin = Origin::of(&parsed.url);
        let own = config.origins.iter().find(|(site, _)| site.0 == origin);
        let own = own.map(|(_, config)| config);
        let allowance = Allowance {
            rate: own.and_then(|own| own.rate).map_or(usual, |rate| rate.0),
            burst: own.and_then(|own| own.burst).unwrap_or(1),
            per_origin: own.and_then(|own| own.per_origin),
        };
        let shown = parsed
            .listed
            .as_deref()
            .unwrap_or(parsed.url.as_str())
            .to_owned();
        let target = Target {
            url: parsed.url,
            authorization: parsed.authorization,
            allowance,
        };
        Ok((target, shown))
    };
    args.target.iter().map(one).collect()
}

/// Whether one connection can serve all targets: then levels do not differ in how often they
/// dial, and connections are kept.
fn shares_connections(targets: &[(Target, String)], connection: &ConnectionArgs) -> bool {
    let forwarded =
        |(target, _): &(Target, String)| target.url.scheme() == "http" && !connection.tunnel;
    let place =
        |(target, _): &(Target, String)| (target.url.scheme().to_owned(), Origin::of(&target.url));
    let same = targets
        .windows(2)
        .all(|pair| place(&pair[0]) == place(&pair[1]));
    same || targets.iter().all(forwarded)
}

async fn read_exits(args: &ProbeArgs) -> Result<(ListSource, Vec<Exit>), Stopped> {
    let given = args.exits.as_deref().filter(|text| !text.is_empty());
    let text = given.context("--exits is missing\nhint: name a file, an address or -");
    let text = text.map_err(Stopped::usage)?;
    let source: ListSource = text.parse().unwrap_or_else(|never| match never {});
    let name = source.to_string();
    let variable = |name: &str| std::env::var(name).ok();
    let list = exits::read(source.clone(), None, variable).await;
    let list = list.map_err(Stopped::usage)?;
    for refused in &list.refused {
        logging::say(&format!(
            "warning: {name}:{}: {}",
            refused.line, refused.reason
        ));
    }
    if list.exits.is_empty() {
        return Err(no_usable_exit(&name, &list));
    }
    Ok((source, list.exits))
}
