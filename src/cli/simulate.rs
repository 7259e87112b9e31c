//! `exitfetch simulate`: plays a scenario file against the scheduler, without any network.
//!
//! The file's `run` table holds flags of `run` and is read by the same parser, so the defaults
//! are those of a run and exist once.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::{Args, CommandFactory, Parser};
use toml::Value;

use super::args::RunArgs;
use super::config::{OriginConfig, Site};
use super::layers::as_words;
use super::{Cli, Code, Command, Stopped, logging, settings, stdout};
use crate::model::Time;
use crate::schedule::{Note, Rules};
use crate::simulate::{self, Limits, Outcome, Scenario, Setting};

/// Shown under `simulate --help`.
pub(super) const EXAMPLES: &str = "\
Example:
  exitfetch simulate fixtures/sim/one-bad-exit.json

A scenario is a JSON file: `exits`, `origins` and `jobs` as figures, `run` with flags of `run`, and
under `expect` what the result must be. Time is virtual: hours pass in seconds.

Exit status: 0 all as expected, 2 the file cannot be used, 3 something is not as expected.";

/// `exitfetch simulate`.
#[derive(Args, Debug)]
pub(super) struct SimulateArgs {
    /// Scenario file
    #[arg(value_name = "SCENARIO.json")]
    scenario: PathBuf,
    /// Seed of all chance [default: the scenario's, else 1]
    #[arg(long, value_name = "N", value_parser = super::values::whole(0u64..))]
    seed: Option<u64>,
    /// Print all figures, not only those that the scenario has expectations about
    #[arg(long)]
    figures: bool,
    /// Tell each change of an exit or a site, with its virtual time
    #[arg(short, long)]
    verbose: bool,
}

impl SimulateArgs {
    fn shown(&self) -> Shown {
        match self.figures {
            true => Shown::All,
            false => Shown::Expected,
        }
    }
}

/// Which figures are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Those that the scenario has expectations about.
    Expected,
    All,
}

/// Flags of `run` that mean something without a network.
const FLAGS: [&str; 15] = [
    "rate",
    "burst",
    "per_origin",
    "per_exit",
    "max_in_flight",
    "retries",
    "max_pause",
    "origin_patience",
    "no_exit_timeout",
    "accept",
    "connect_timeout",
    "first_byte_timeout",
    "stall_timeout",
    "timeout",
    "max_time",
];

pub(super) fn simulate(args: &SimulateArgs) -> Result<Code, Stopped> {
    let path = args.scenario.display();
    let text = std::fs::read_to_string(&args.scenario);
    let text = text
        .with_context(|| format!("{path}: cannot be read"))
        .map_err(Stopped::usage)?;
    let rehearsal = Rehearsal::read(&text, args.seed)
        .map_err(|mistake| anyhow!("{path}:{}: {}", mistake.line, mistake.message))
        .map_err(Stopped::usage)?;
    let mut tell = |now: Time, note: &Note| {
        if args.verbose {
            logging::say(&format!("{:>10.3} s  {note}", now.as_secs_f64()));
        }
    };
    let outcome = simulate::run(&rehearsal.setting(), &mut tell);
    let (report, as_expected) = rehearsal.report(&outcome, args.shown());
    stdout::print(&report).map_err(Stopped::local)?;
    Ok(if as_expected {
        Code::Ok
    } else {
        Code::SomeFailed
    })
}

/// A scenario with its flags resolved.
struct Rehearsal {
    scenario: Scenario,
    args: Box<RunArgs>,
    rules: Rules,
}

impl Rehearsal {
    fn read(text: &str, seed: Option<u64>) -> Result<Rehearsal, simulate::Mistake> {
        let scenario = Scenario::parse(text)?;
        let mistake = |word: &str, error: anyhow::Error| simulate::Mistake {
            line: Scenario::line_of(text, word),
            message: format!("{error:#}"),
        };
        if let Some(key) = scenario.run.keys().find(|key| !is_flag(key)) {
            let error = anyhow!(
                "`run` has no key `{key}` that means something here: it can have {}",
                FLAGS.join(", ")
            );
            return Err(mistake(key, error));
        }
        let args = flags(&scenario).map_err(|(key, error)| mistake(&key, error))?;
        let rules = rules(&scenario, &args, seed).map_err(|error| mistake("rate", error))?;
        Ok(Rehearsal {
            scenario,
            args,
            rules,
        })
    }

    fn setting(&self) -> Setting<'_> {
        let args = &self.args;
        Setting {
            scenario: &self.scenario,
            rules: self.rules.clone(),
            per_exit: args.per_exit,
            limits: Limits {
                connect: args.connection.connect_timeout.0,
                first_byte: args.connection.first_byte_timeout.0,
                stall: args.connection.stall_timeout.0,
                total: args.connection.timeout.0,
            },
            max_time: args.max_time.map(|span| span.0),
        }
    }

    /// What is printed, and whether all is as it must be.
    fn report(&self, outcome: &Outcome, shown: Shown) -> (String, bool) {
        let figures = &outcome.figures;
        let mut out = String::from("SIMULATION: nothing was fetched, all times are virtual\n");
        if !self.scenario.about.is_empty() {
            out += &format!("{}\n", self.scenario.about);
        }
        out += &format!("\n{}\n", outcome.summary.table());
        out += &format!(
            "time {:.1} s, ideal {:.1} s (× {:.3}); slots in use {:.1} %\n",
            figures.get("makespan_s"),
            figures.get("ideal_s"),
            figures.get("over_ideal"),
            figures.get("utilisation") * 100.0
        );
        if self.scenario.contrast.is_some() {
            out += &format!(
                "choose an exit, then wait at it: {:.1} s (× {:.3}), {:.1} % longer\n",
                figures.get("contrast.makespan_s"),
                figures.get("contrast.over_ideal"),
                figures.get("contrast.loss") * 100.0
            );
        }
        if shown == Shown::All {
            let lines = figures
                .iter()
                .map(|(name, value)| format!("{name} = {value}\n"));
            out.extend(std::iter::once("\n".to_owned()).chain(lines));
        }
        let lines = simulate::judge(&self.scenario.expect, figures);
        if !lines.is_empty() {
            out.push('\n');
        }
        for line in &lines {
            out += &format!("{line}\n");
        }
        for broken in &outcome.broken {
            out += &format!("FAIL  must hold in every run: {broken}\n");
        }
        let met = lines.iter().all(simulate::Line::is_met) && outcome.broken.is_empty();
        (out, met)
    }
}

fn is_flag(key: &str) -> bool {
    FLAGS.contains(&key) || key == "seed"
}

/// The file's flags, with the defaults of `run` for the rest. A mistake comes with its key.
fn flags(scenario: &Scenario) -> Result<Box<RunArgs>, (String, anyhow::Error)> {
    let mut cli = Cli::command();
    let run = cli.find_subcommand_mut("run");
    let mut words = Vec::new();
    for (key, value) in &scenario.run {
        let flag = || {
            let run = run.as_deref().context("there is no `run`")?;
            let value = Value::try_from(value).context("write text or a number")?;
            let (_, words) = as_words(key, &value, run)?;
            parsed(words.clone()).map(|_| words)
        };
        words.extend(flag().map_err(|error| (key.clone(), error))?);
    }
    parsed(words).map_err(|error| ("run".to_owned(), error))
}

fn parsed(flags: Vec<OsString>) -> Result<Box<RunArgs>> {
    let words = ["exitfetch", "run"].map(OsString::from);
    let parsed = Cli::try_parse_from(words.into_iter().chain(flags)).map_err(|error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        anyhow!("{}", line.trim_start_matches("error: "))
    })?;
    match parsed.command {
        Command::Run(args) => Ok(args),
        _ => Err(anyhow!("`run` is another command")),
    }
}

fn rules(scenario: &Scenario, args: &RunArgs, seed: Option<u64>) -> Result<Rules> {
    let own = scenario.budgets().into_iter().map(|budget| {
        let mut table = toml::Table::new();
        if let Some(rate) = budget.rate {
            let rate = Value::try_from(rate).context("a rate is a number or text")?;
            table.insert("rate".to_owned(), rate);
        }
        for (key, value) in [("burst", budget.burst), ("per_origin", budget.per_origin)] {
            table.extend(value.map(|value| (key.to_owned(), Value::from(value))));
        }
        let config: OriginConfig = table.try_into()?;
        Ok((Site(budget.origin), config))
    });
    let own = own.collect::<Result<BTreeMap<_, _>>>()?;
    let rules = settings::rules(args, &own, args.max_in_flight.unwrap_or(u32::MAX));
    Ok(Rules {
        seed: seed.or(args.seed).unwrap_or(1),
        ..rules
    })
}

#[cfg(test)]
mod tests;
