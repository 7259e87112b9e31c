//! `exitfetch probe`: which exits are probed, in which order, what is shown and written.
//!
//! Owns the course of a probe; `args` has the flags, `targets` what is asked for, `pick` chooses
//! exits, `show` has the words. How an exit is measured is `crate::probe`'s.

mod args;
mod pick;
mod show;
mod targets;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;

use super::config::Config;
use super::ends::{Code, Stopped, code_of, end_here, ended_before};
use super::{lists, logging, settings, stdout};
use crate::engine::{self, Ended, Signals};
use crate::fetch::Fetcher;
use crate::input::ListSource;
use crate::model::{Clock, Exit};
use crate::probe::{
    Found, GroupEntry, Obstacle, ProbeFile, Prober, Setup, TierEntry, Together, Verdict, page,
};
use crate::report::write_whole;
use crate::threads;
use pick::Class;
use show::{Failed, Form, Outcome, Screen};
use targets::{shares_connections, targets};

pub(super) use args::{EXAMPLES, ProbeArgs};

/// Exits of a group that are probed together.
const TOGETHER: usize = 5;

pub(super) fn probe(args: ProbeArgs, config: Config) -> Result<Code, Stopped> {
    let clock = engine::start_clock();
    let runtime = threads::event_loop().map_err(Stopped::local)?;
    let code = runtime.block_on(async {
        let mut signals = Signals::catch(end_here).map_err(Stopped::local)?;
        let mut course = tokio::select! {
            course = Course::prepare(args, config, clock) => course?,
            ended = signals.next() => return Err(ended_before(&ended, "the first request")),
        };
        let ended = tokio::select! {
            measured = course.measure() => {
                measured?;
                None
            }
            ended = signals.next() => Some(ended),
        };
        match ended {
            Some(ended) => Err(course.stopped(&ended)),
            None => course.conclude(),
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
        let source = lists::source("--exits", args.exits.as_deref()).map_err(Stopped::usage)?;
        let warn = |warning: &str| logging::say(&format!("warning: {warning}"));
        let exits = lists::exits(source.clone(), warn).await?.exits;
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

    async fn measure(&mut self) -> Result<(), Stopped> {
        self.singles().await?;
        self.joints().await
    }

    /// A signal came in between.
    fn stopped(&self, ended: &Ended) -> Stopped {
        let error = match &self.outcome.file {
            Some(file) if !self.outcome.is_empty() => {
                anyhow!("stopped; what was measured to its end is in {file}")
            }
            _ => anyhow!("stopped; nothing was written"),
        };
        Stopped {
            code: code_of(ended),
            error,
        }
    }

    /// One exit after the other; a tier and region is done when its exits are.
    async fn singles(&mut self) -> Result<(), Stopped> {
        let classes = pick::classes(&self.exits, self.args.sample());
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
            let mut screen = Screen::new(self.args.form(), &title)?;
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
        let kept = self
            .file
            .as_mut()
            .map(|(_, file)| file.put_tier(entry.clone()));
        self.say(&match kept {
            Some(kept) if kept != carries => {
                format!("  per_exit {kept} stays, of an earlier probe: this one met no knee\n")
            }
            _ => format!("  per_exit {carries}\n"),
        })?;
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
        let mut screen = Screen::new(self.args.form(), &title)?;
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
        let text = match self.args.form() {
            Form::Table => self.outcome.last_lines(),
            Form::Json => self.outcome.json().map_err(Stopped::local)?,
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
        match self.args.form() {
            Form::Table => stdout::print(text).map_err(Stopped::local),
            Form::Json => Ok(()),
        }
    }
}

fn knee_of(found: &Found) -> (Option<u32>, Option<String>) {
    match found.verdict {
        Verdict::Knee { knee, reason, .. } => (Some(knee), Some(reason.as_str().to_owned())),
        Verdict::NoKnee { .. } | Verdict::None(_) => (None, None),
    }
}
