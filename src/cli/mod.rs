//! The command line: what was typed, resolved into what is meant, one file per subcommand.
//!
//! Exit codes are made here and nowhere else. Standard output is data; everything said to
//! people on the way goes to standard error.

mod args;
mod cat;
mod config;
mod connection;
mod demo;
mod descriptors;
mod dry_run;
mod fleet;
mod hints;
mod lab;
mod logging;
mod metrics;
mod probe;
mod probed;
mod report;
mod run;
mod settings;
mod shell;
mod simulate;
mod stdout;
mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use config::{Config, File};

/// Shown under `--help`.
const EXAMPLES: &str = "\
Start here:
  exitfetch demo                                     see it work, on this machine alone
  exitfetch probe --exits exits.txt --target URL     find how much an exit carries
  exitfetch run --exits exits.txt --urls urls.txt    fetch
  exitfetch run --help                               every setting of a run";

/// Bulk fetcher for long URL lists through a fleet of proxies
#[derive(Debug, Parser)]
#[command(
    name = "exitfetch",
    version,
    max_term_width = 100,
    args_override_self = true
)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Fetch a URL list through a list of exits
    #[command(after_help = run::EXAMPLES)]
    #[command(override_usage = "exitfetch run --exits <FILE|URL|-> --urls <FILE|URL|-> [OPTIONS]")]
    Run(Box<args::RunArgs>),
    /// Make an HTML page of an output directory: what a run did and what held it back
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Print one stored body, from files and WARC alike
    #[command(after_help = cat::EXAMPLES)]
    Cat(cat::CatArgs),
    /// Find how much an exit carries, for the caps of a run
    #[command(after_help = probe::EXAMPLES)]
    #[command(override_usage = "exitfetch probe --exits <FILE|URL|-> --target <URL>... [OPTIONS]")]
    Probe(Box<probe::ProbeArgs>),
    /// Show the main job on a loopback lab in this process
    Demo,
    /// Keep a loopback lab running: origins and exits to rehearse on
    #[command(after_help = lab::EXAMPLES)]
    Lab(lab::LabArgs),
    /// Rehearse a fleet without any network: a scenario file against the scheduler
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(simulate::SimulateArgs),
    /// Print a completion script for a shell
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    Man,
}

/// How the program ends; see DESIGN "Exit codes".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Ok = 0,
    Local = 1,
    Usage = 2,
    SomeFailed = 3,
    NoExit = 4,
    OutOfTime = 5,
    Interrupted = 130,
    ReaderGone = 141,
    Terminated = 143,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// An error with the exit code it means.
struct Stopped {
    code: Code,
    error: anyhow::Error,
}

impl Stopped {
    /// The command line, the settings or a list cannot be used.
    fn usage(error: impl Into<anyhow::Error>) -> Stopped {
        Stopped {
            code: Code::Usage,
            error: error.into(),
        }
    }

    /// This machine cannot do it.
    fn local(error: impl Into<anyhow::Error>) -> Stopped {
        Stopped {
            code: Code::Local,
            error: error.into(),
        }
    }
}

/// Parses the command line, runs the command, answers with its exit code.
pub fn main() -> ExitCode {
    // One provider for all of TLS; a second call could only find it set.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let result = parse(std::env::args_os().collect()).and_then(execute);
    let code = match result {
        Ok(code) => code.into(),
        Err(stopped) => {
            logging::say(&hints::describe(&stopped.error));
            stopped.code.into()
        }
    };
    logging::flush();
    code
}

/// What is meant: the command, and for `run` the settings file behind it.
struct Parsed {
    command: Command,
    config: Config,
    /// `--per-exit` was given, in words or in the file.
    per_exit_given: bool,
}

fn parse(words: Vec<OsString>) -> Result<Parsed, Stopped> {
    let typed = Cli::parse_from(&words);
    let (command, named) = match &typed.command {
        Command::Run(args) => ("run", args.config.as_deref()),
        Command::Probe(args) => ("probe", args.config.as_deref()),
        _ => {
            return Ok(Parsed {
                command: typed.command,
                config: Config::default(),
                per_exit_given: false,
            });
        }
    };
    let (config, file) = config::load(named).map_err(Stopped::usage)?;
    let words = match file {
        None => words,
        Some(file) => with_file(words, &config, &file, command).map_err(Stopped::usage)?,
    };
    // The file's words were tried above, the user's own before: both are known to be good.
    let matches = Cli::command().get_matches_from(words);
    let per_exit_given = matches.subcommand_matches("run").is_some_and(|run| {
        run.value_source("per_exit") == Some(clap::parser::ValueSource::CommandLine)
    });
    let command = Cli::from_arg_matches(&matches)
        .map_err(Stopped::usage)?
        .command;
    Ok(Parsed {
        command,
        config,
        per_exit_given,
    })
}

/// The user's words with those of the file before them, so that the user's win. `command` is
/// `run`, or another one that takes those keys of `[run]` that are its own flags as well.
///
/// # Errors
/// A key or a value that cannot be used, with its place in the file.
fn with_file(
    words: Vec<OsString>,
    config: &Config,
    file: &File,
    command: &str,
) -> anyhow::Result<Vec<OsString>> {
    let mut cli = Cli::command();
    let own_flag = {
        let own = cli.find_subcommand(command).cloned();
        move |key: &str| {
            let flag = key.replace('_', "-");
            let mut flags = own.iter().flat_map(|own| own.get_arguments());
            command == "run" || flags.any(|arg| arg.get_long() == Some(&flag))
        }
    };
    let run = cli
        .find_subcommand_mut("run")
        .ok_or_else(|| anyhow::anyhow!("there is no `run`"))?;
    let (front, back) = words.split_at(words.len().min(2));
    let mut all = front.to_vec();
    for (key, value) in &config.run {
        let place = || file.place(key.span());
        let own = config::as_words(key.get_ref(), value, run).with_context(place)?;
        if !own_flag(key.get_ref()) {
            continue;
        }
        let alone = front.iter().chain(&own).chain(back);
        match Cli::try_parse_from(alone) {
            Ok(_) => all.extend(own),
            // The user asks for what this key excludes, and the user wins.
            Err(error) if error.kind() == ErrorKind::ArgumentConflict => {}
            Err(error) => return Err(first_line(&error)).with_context(place),
        }
    }
    // What is left are keys that exclude each other.
    Cli::try_parse_from(&all)
        .map_err(|error| first_line(&error))
        .with_context(|| file.to_string())?;
    all.extend_from_slice(back);
    Ok(all)
}

/// What is wrong, without the hints for a command line.
fn first_line(error: &clap::Error) -> anyhow::Error {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    anyhow::anyhow!("[run] {}", line.trim_start_matches("error: "))
}

fn execute(parsed: Parsed) -> Result<Code, Stopped> {
    match parsed.command {
        Command::Run(args) => run::run(*args, parsed.config, parsed.per_exit_given),
        Command::Report(args) => report::report(&args),
        Command::Cat(args) => cat::cat(&args),
        Command::Probe(args) => probe::probe(*args, parsed.config),
        Command::Demo => demo::demo(),
        Command::Lab(args) => lab::lab(args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Completions { shell } => shell::completions(shell, &mut Cli::command()),
        Command::Man => shell::man(Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn joined(typed: &[&str], text: &str) -> anyhow::Result<Vec<OsString>> {
        let file = File::new("own.toml", text);
        let words = ["exitfetch", "run"].iter().chain(typed);
        let words = words.map(OsString::from).collect();
        with_file(words, &file.read()?, &file, "run")
    }

    fn meant(typed: &[&str], text: &str) -> Box<args::RunArgs> {
        let words = joined(typed, text).unwrap();
        match Cli::parse_from(words).command {
            Command::Run(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_file_s_words_come_before_the_user_s() {
        let args = meant(&["--rate", "9"], "[run]\nrate = 2\nper_exit = 5");
        assert_eq!((args.rate.0, args.per_exit), (Some(9.0), 5));
    }

    #[test]
    fn a_key_that_the_user_s_flag_excludes_gives_way() {
        let args = meant(&["-v"], "[run]\nquiet = true\nrate = 2");
        assert_eq!((args.quiet, args.verbose), (false, true));
        assert_eq!(args.rate.0, Some(2.0));
    }

    #[test]
    fn a_mistake_in_the_file_is_told_with_its_place() {
        for (text, said) in [
            (
                "[run]\nrate = 0",
                "own.toml:2: [run] invalid value '0' for '--rate",
            ),
            ("[run]\n\nburts = 1", "own.toml:3: [run] has no key `burts`"),
            (
                "[run]\nquiet = true\nverbose = true",
                "own.toml: [run] the argument",
            ),
            ("[run]\nheader = 'x'", "own.toml:2: [run] --header: "),
        ] {
            let error = format!("{:#}", joined(&[], text).unwrap_err());
            assert!(error.starts_with(said), "{error}");
        }
    }
}
