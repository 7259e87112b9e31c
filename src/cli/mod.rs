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
mod keys;
mod lab;
mod layers;
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
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use config::{Config, File};
use layers::Resolved;

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
    /// The command line, the settings or a list cannot be used; or this machine failed over it,
    /// which the same command may get over.
    fn usage(error: impl Into<anyhow::Error>) -> Stopped {
        let error = error.into();
        let code = match error.chain().any(is_of_machine) {
            true => Code::Local,
            false => Code::Usage,
        };
        Stopped { code, error }
    }

    /// This machine cannot do it.
    fn local(error: impl Into<anyhow::Error>) -> Stopped {
        Stopped {
            code: Code::Local,
            error: error.into(),
        }
    }
}

/// The system had no room for a file, or its disk failed; no file was named wrongly.
fn is_of_machine(cause: &(dyn std::error::Error + 'static)) -> bool {
    use rustix::io::Errno;
    const MACHINE: [Errno; 5] = [
        Errno::IO,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOSPC,
    ];
    let own = cause.downcast_ref::<std::io::Error>();
    let code = own.and_then(std::io::Error::raw_os_error);
    code.is_some_and(|code| MACHINE.iter().any(|errno| errno.raw_os_error() == code))
        // No thread.
        || own.is_some_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Parses the command line, runs the command, answers with its exit code.
pub fn main() -> ExitCode {
    // One provider for all of TLS; a second call could only find it set.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let words: Vec<OsString> = std::env::args_os().collect();
    let code = match execute(Cli::parse_from(&words).command, &words) {
        Ok(code) => code.into(),
        Err(stopped) => {
            logging::say(&hints::describe(&stopped.error));
            stopped.code.into()
        }
    };
    logging::flush();
    code
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
    fn a_list_that_the_machine_cannot_read_is_no_mistake_of_the_user() {
        let code = |errno| {
            let error = std::io::Error::from_raw_os_error(errno);
            Stopped::usage(anyhow::Error::from(error).context("cannot open urls.txt")).code
        };
        assert_eq!(code(2), Code::Usage, "ENOENT");
        assert_eq!(code(13), Code::Usage, "EACCES");
        assert_eq!(code(5), Code::Local, "EIO");
        assert_eq!(code(24), Code::Local, "EMFILE");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
