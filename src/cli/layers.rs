//! Where each setting of `run` comes from: a flag, the environment, the settings file, else
//! the default; the first of these that has it wins. `probe` takes those that it has, too.
//!
//! A layer is read as more words of the command line, in front of the user's own: one
//! definition of each flag, its values and its default, whichever way it is given. Owns the
//! order of the layers and the names (`per_exit`, `EXITFETCH_PER_EXIT`) of flags in them.
//! Leaves what the values mean to clap and `values`.

mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, Parser};

use super::config::{Config, File};
use super::{Cli, keys};

pub use words::as_words;

/// What a variable's name begins with.
const PREFIX: &str = "EXITFETCH_";

/// Flags that say which settings are meant, and so are no settings.
const ABOUT_SETTINGS: [&str; 2] = ["config", "print_config"];

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The settings file, with path and line.
    File(String),
    /// This variable.
    Environment(String),
    /// The command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File(place) => f.write_str(place),
            Source::Environment(variable) => write!(f, "environment {variable}"),
            Source::Flag => f.write_str("flag"),
        }
    }
}

/// One setting as a layer gives it.
#[derive(Clone, Debug)]
pub struct Given {
    arg: Arg,
    source: Source,
    /// The words of a command line; none where a switch is turned off.
    words: Vec<OsString>,
}

/// All flags of `run` as they are meant.
#[derive(Debug)]
pub struct Resolved {
    /// The whole command line's.
    pub matches: ArgMatches,
    /// Where the values of each key come from, in the order of the values.
    sources: BTreeMap<String, Vec<Source>>,
}

impl Resolved {
    /// The flags of `run` alone.
    pub fn run(&self) -> Option<&ArgMatches> {
        self.matches.subcommand_matches("run")
    }

    /// Where the value of `key` comes from; of several the last one.
    pub fn source(&self, key: &str) -> Source {
        let sources = self.sources.get(key).and_then(|sources| sources.last());
        sources.cloned().unwrap_or(Source::Default)
    }

    /// Where each value of a repeatable flag comes from.
    pub fn sources(&self, key: &str) -> &[Source] {
        self.sources.get(key).map_or(&[], Vec::as_slice)
    }
}

/// The settings that variables hold.
///
/// # Errors
/// A variable that is misspelt, or whose value no switch can have.
pub fn of_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<Given>> {
    let command = run_command();
    let known: Vec<String> = flags(&command).map(variable_of).collect();
    let mut given = Vec::new();
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
            continue;
        };
        let Some(arg) = flags(&command).find(|arg| variable_of(arg) == name) else {
            // Anybody may have variables of this prefix; one that is almost a setting is a slip.
            match keys::nearest(name, known.iter().map(String::as_str)) {
                Some(meant) if is_slip(name, meant) => {
                    bail!("{name} is no setting: did you mean {meant}?")
                }
                _ => continue,
            }
        };
        if value.is_empty() {
            continue;
        }
        given.push(Given {
            source: Source::Environment(name.to_owned()),
            words: words::of_variable(arg, &value).with_context(|| name.to_owned())?,
            arg: arg.clone(),
        });
    }
    given.sort_by(|a, b| a.key().cmp(b.key()));
    Ok(given)
}

/// The settings file that the environment names.
pub fn config_of_environment() -> Option<PathBuf> {
    let named = std::env::var_os(format!("{PREFIX}CONFIG"))?;
    (!named.is_empty()).then(|| named.into())
}

/// The settings of `[run]`.
///
/// # Errors
/// A key that is no flag, or whose value has the wrong shape, with its place in the file.
pub fn of_file(config: &Config, file: &File) -> Result<Vec<Given>> {
    let command = run_command();
    let given = config.run.iter().map(|(key, value)| {
        let place = file.place(key.span());
        let (arg, words) =
            words::as_words(key.get_ref(), value, &command).context(place.clone())?;
        Ok(Given {
            arg: arg.clone(),
            source: Source::File(place),
            words,
        })
    });
    given.collect()
}

/// Puts the layers under the user's own words, the lowest first.
///
/// # Errors
/// A value that cannot be used, with where it stands.
pub fn resolve(words: &[OsString], file: Vec<Given>, environment: Vec<Given>) -> Result<Resolved> {
    let (front, back) = words.split_at(words.len().min(2));
    let mut stack = Stack::new(front, back);
    let own = |layer: Vec<Given>| own(layer, front.last());
    stack.put_under(own(environment))?;
    stack.put_under(own(file))?;
    let matches = Cli::command().try_get_matches_from(stack.words())?;
    Ok(Resolved {
        matches,
        sources: stack.sources,
    })
}

/// Of the settings of a run those that are flags of this command as well.
fn own(mut layer: Vec<Given>, command: Option<&OsString>) -> Vec<Given> {
    let cli = Cli::command();
    if let Some(command) = command.and_then(|name| cli.find_subcommand(name)) {
        layer.retain(|given| flags(command).any(|arg| arg.get_id() == given.arg.get_id()));
    }
    layer
}

/// The settings so far, the upper layers first.
struct Stack<'a> {
    front: &'a [OsString],
    back: Vec<OsString>,
    sources: BTreeMap<String, Vec<Source>>,
}

impl<'a> Stack<'a> {
    fn new(front: &'a [OsString], typed: &[OsString]) -> Stack<'a> {
        let mut stack = Stack {
            front,
            back: typed.to_vec(),
            sources: BTreeMap::new(),
        };
        // They were tried before: what is wrong with them has been told.
        if let Ok(matches) = Cli::command().try_get_matches_from(stack.words()) {
            let typed = matches.subcommand().map(|(_, typed)| typed_sources(typed));
            stack.sources = typed.unwrap_or_default();
        }
        stack
    }

    fn words(&self) -> impl Iterator<Item = &OsString> {
        self.front.iter().chain(&self.back)
    }

    fn put_under(&mut self, layer: Vec<Given>) -> Result<()> {
        let mut kept = Vec::new();
        for given in layer {
            let alone = self.front.iter().chain(&given.words).chain(&self.back);
            match Cli::try_parse_from(alone) {
                Ok(_) => kept.push(given),
                // What stands above asks for what this excludes, and wins.
                Err(error) if error.kind() == ErrorKind::ArgumentConflict => {}
                Err(error) => bail!("{}{}", given.place(), first_line(&error)),
            }
        }
        kept.retain(|given| {
            words::is_repeatable(&given.arg) || !self.sources.contains_key(given.key())
        });
        let mut back: Vec<OsString> = kept.iter().flat_map(|g| g.words.clone()).collect();
        // What is left are settings of one layer that exclude each other.
        if let Err(error) = Cli::try_parse_from(self.front.iter().chain(&back)) {
            let layer = kept.first().map(Given::layer).unwrap_or_default();
            bail!("{layer}{}", first_line(&error));
        }
        back.append(&mut self.back);
        self.back = back;
        for given in kept.into_iter().rev() {
            let sources = self.sources.entry(given.key().to_owned()).or_default();
            let values = given.words.len().max(1);
            sources.splice(0..0, vec![given.source; values]);
        }
        Ok(())
    }
}

fn typed_sources(typed: &ArgMatches) -> BTreeMap<String, Vec<Source>> {
    let ids = typed.ids().map(|id| id.as_str());
    ids.filter(|id| typed.value_source(id) == Some(ValueSource::CommandLine))
        .map(|id| {
            let values = typed.get_raw(id).map_or(1, Iterator::count);
            (id.to_owned(), vec![Source::Flag; values.max(1)])
        })
        .collect()
}

impl Given {
    fn key(&self) -> &str {
        self.arg.get_id().as_str()
    }

    /// Where it stands, as the start of a message about it.
    fn place(&self) -> String {
        match &self.source {
            Source::File(place) => format!("{place}: [run] "),
            Source::Environment(variable) => format!("{variable}: "),
            Source::Default | Source::Flag => String::new(),
        }
    }

    /// Where the whole layer stands.
    fn layer(&self) -> String {
        match &self.source {
            Source::File(place) => {
                let path = place.rsplit_once(':').map_or("", |(path, _)| path);
                format!("{path}: [run] ")
            }
            Source::Environment(_) => "the environment: ".to_owned(),
            Source::Default | Source::Flag => String::new(),
        }
    }
}

/// What is wrong, without the hints for a command line.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// `run` with all its flags.
pub fn run_command() -> Command {
    let cli = Cli::command();
    let run = cli.find_subcommand("run").cloned();
    run.unwrap_or_default()
}

/// The flags that are settings.
pub fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| {
        let id = arg.get_id().as_str();
        arg.get_long().is_some() && id != "help" && id != "print_config"
    })
}

fn variable_of(arg: &Arg) -> String {
    format!("{PREFIX}{}", arg.get_id().as_str().to_uppercase())
}

fn is_slip(name: &str, meant: &str) -> bool {
    let (name, meant) = (&name[PREFIX.len()..], &meant[PREFIX.len()..]);
    keys::nearest(name, [meant]).is_some()
}

#[cfg(test)]
mod tests;
