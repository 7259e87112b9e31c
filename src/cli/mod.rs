//! The command line: what was typed, resolved into what is meant, one file per subcommand.
//!
//! Standard output is data; everything said to people on the way goes to standard error. `ends`
//! makes the exit codes.

mod args;
mod cat;
mod config;
mod connection;
mod demo;
mod descriptors;
mod dry_run;
mod ends;
mod fleet;
mod hints;
mod keys;
mod lab;
mod layers;
mod lists;
mod logging;
mod metrics;
mod print_config;
mod probe;
mod probed;
mod report;
mod run;
mod settings;
mod shell;
mod simulate;
mod stdout;
mod urls;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use config::{Config, File};
use ends::{Code, Stopped};
use layers::Resolved;

use crate::engine;

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
    version = env!("SHOWN_VERSION"),
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
    #[command(disable_help_flag = true)]
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
    /// List the URLs of a run's output directory, by how they ended
    #[command(after_help = urls::EXAMPLES)]
    Urls(urls::UrlsArgs),
    /// Print a completion script for a shell
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print a manual page (roff)
    Man {
        /// The page of this command, such as run
        command: Option<String>,
    },
}

/// Parses the command line, runs the command, answers with its exit code.
pub fn main() -> ExitCode {
    // One provider for all of TLS; a second call could only find it set.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Where that is refused, only such a limit is met differently.
    let _ = engine::outlive_file_size_limits();
    let words: Vec<OsString> = std::env::args_os().collect();
    let code = match execute(parsed(&words).command, &words) {
        Ok(code) => code.into(),
        Err(stopped) => {
            logging::say(&hints::describe(&stopped.error));
            stopped.code.into()
        }
    };
    logging::flush();
    code
}

/// What was typed; ends the program if that is help, or wrong.
fn parsed(words: &[OsString]) -> Cli {
    Cli::try_parse_from(words).unwrap_or_else(|error| match stray_word(&error, words) {
        Some((at, wrong)) => {
            let told = format!("word {at} {wrong} (it is not shown, as it may be a secret)\n");
            clap::Error::raw(error.kind(), told).exit()
        }
        None => error.exit(),
    })
}

/// Where the word stands that clap does not know what to do with, if it is no flag, and what to
/// do. Such a word may be the rest of a header, or an exit with its login.
fn stray_word(error: &clap::Error, words: &[OsString]) -> Option<(usize, &'static str)> {
    let (kind, wrong) = match error.kind() {
        ErrorKind::UnknownArgument => (
            ContextKind::InvalidArg,
            "belongs to no flag: quote a value that holds blanks",
        ),
        ErrorKind::InvalidSubcommand => (
            ContextKind::InvalidSubcommand,
            "is no command: exitfetch --help lists them",
        ),
        _ => return None,
    };
    let Some(ContextValue::String(stray)) = error.get(kind) else {
        return None;
    };
    // A command's name that was misspelt is shown, with those that are like it.
    let may_be_secret = match kind {
        ContextKind::InvalidSubcommand => stray.contains([':', '@']),
        _ => !stray.starts_with('-'),
    };
    let at = words.iter().position(|word| word == stray.as_str());
    at.filter(|_| may_be_secret).map(|at| (at, wrong))
}

/// A command as it is meant.
struct Meant<Args = args::RunArgs> {
    args: Args,
    config: Config,
    /// The settings file that was read, if any.
    file: Option<File>,
    resolved: Resolved,
}

/// The user's words, with what environment and settings file say besides. `own` takes the
/// command's flags out.
fn meant<Args>(
    words: &[OsString],
    named: Option<PathBuf>,
    own: impl FnOnce(Command) -> Option<Box<Args>>,
) -> anyhow::Result<Meant<Args>> {
    let environment = layers::of_environment(std::env::vars_os())?;
    let named = named.or_else(layers::config_of_environment);
    let (config, file) = config::load(named.as_deref())?;
    let given = match &file {
        Some(file) => layers::of_file(&config, file)?,
        None => Vec::new(),
    };
    let resolved = layers::resolve(words, given, environment)?;
    let args = own(Cli::from_arg_matches(&resolved.matches)?.command);
    Ok(Meant {
        args: *args.context("the command changed")?,
        config,
        file,
        resolved,
    })
}

fn execute(command: Command, words: &[OsString]) -> Result<Code, Stopped> {
    match command {
        Command::Run(typed) if typed.brief => shell::help(args::brief(layers::run_command())),
        Command::Run(typed) => {
            let own = |command| match command {
                Command::Run(args) => Some(args),
                _ => None,
            };
            let meant = meant(words, typed.config, own).map_err(Stopped::usage)?;
            match meant.args.print_config {
                true => print_config::show(&meant),
                false => run::run(meant),
            }
        }
        Command::Probe(typed) => {
            let own = |command| match command {
                Command::Probe(args) => Some(args),
                _ => None,
            };
            let meant = meant(words, typed.config, own).map_err(Stopped::usage)?;
            probe::probe(meant.args, meant.config)
        }
        Command::Report(args) => report::report(&args),
        Command::Cat(args) => cat::cat(&args),
        Command::Demo => demo::demo(),
        Command::Lab(args) => lab::lab(args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Urls(args) => urls::urls(&args),
        Command::Completions { shell } => shell::completions(shell, &mut Cli::command()),
        Command::Man { command } => shell::man(Cli::command(), command.as_deref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
