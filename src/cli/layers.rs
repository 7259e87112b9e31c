//! Where each setting of `run` comes from: a flag, the environment, the settings file, else
//! the default; the first of these that has it wins.
//!
//! A layer is read as more words of the command line, in front of the user's own: one
//! definition of each flag, its values and its default, whichever way it is given. Owns the
//! order of the layers and the names (`per_exit`, `EXITFETCH_PER_EXIT`) of flags in them.
//! Leaves what the values mean to clap and `values`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, Parser};
use toml::Value;

use super::config::{Config, File};
use super::{Cli, keys};

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
            words: words_of_variable(arg, &value).with_context(|| name.to_owned())?,
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
        let (arg, words) = as_words(key.get_ref(), value, &command).context(place.clone())?;
        Ok(Given {
            arg: arg.clone(),
            source: Source::File(place),
            words,
        })
    });
    given.collect()
}

/// The flag of `command` that a key of `[run]` is, and the words that it stands for.
///
/// # Errors
/// A key that is no flag, with the nearest one; a value of the wrong shape.
pub fn as_words<'c>(
    key: &str,
    value: &Value,
    command: &'c Command,
) -> Result<(&'c Arg, Vec<OsString>)> {
    let arg = arg_of_key(key, command)?;
    Ok((arg, words_of_key(arg, key, value)?))
}

/// Puts the layers under the user's own words, the lowest first.
///
/// # Errors
/// A value that cannot be used, with where it stands.
pub fn resolve(words: &[OsString], file: Vec<Given>, environment: Vec<Given>) -> Result<Resolved> {
    let (front, back) = words.split_at(words.len().min(2));
    let mut stack = Stack::new(front, back);
    stack.put_under(environment)?;
    stack.put_under(file)?;
    let matches = Cli::command().try_get_matches_from(stack.words())?;
    Ok(Resolved {
        matches,
        sources: stack.sources,
    })
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
            let run = matches.subcommand_matches("run");
            stack.sources = run.map(typed_sources).unwrap_or_default();
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
        kept.retain(|given| is_repeatable(&given.arg) || !self.sources.contains_key(given.key()));
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

fn is_repeatable(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

fn typed_sources(run: &ArgMatches) -> BTreeMap<String, Vec<Source>> {
    let ids = run.ids().map(|id| id.as_str());
    let typed = ids.filter(|id| run.value_source(id) == Some(ValueSource::CommandLine));
    typed
        .map(|id| {
            let values = run.get_raw(id).map_or(1, Iterator::count);
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

fn word(arg: &Arg, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(format!("--{}=", arg.get_long().unwrap_or_default()));
    word.push(value);
    word
}

/// A switch takes words for yes and no; what is repeatable has one value per line.
fn words_of_variable(arg: &Arg, value: &OsStr) -> Result<Vec<OsString>> {
    if !arg.get_action().takes_values() {
        return switch(arg, value.to_str().and_then(yes_or_no));
    }
    if is_repeatable(arg) {
        let text = value.to_str().context("it is not UTF-8")?;
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        return Ok(lines.map(|line| word(arg, line)).collect());
    }
    Ok(vec![word(arg, value)])
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn switch(arg: &Arg, on: Option<bool>) -> Result<Vec<OsString>> {
    let flag = arg.get_long().unwrap_or_default();
    match on {
        Some(true) => Ok(vec![format!("--{flag}").into()]),
        Some(false) => Ok(Vec::new()),
        None => bail!("write true or false"),
    }
}

/// The flag that a key of `[run]` is.
fn arg_of_key<'c>(key: &str, command: &'c Command) -> Result<&'c Arg> {
    let id = key.replace('-', "_");
    if ABOUT_SETTINGS.contains(&id.as_str()) {
        bail!("[run] {key} is for the command line: remove it here");
    }
    if let Some(arg) = flags(command).find(|arg| arg.get_id() == id.as_str()) {
        return Ok(arg);
    }
    let known = flags(command).map(|arg| arg.get_id().as_str());
    let known = known.filter(|id| !ABOUT_SETTINGS.contains(id));
    match keys::nearest(&id, known) {
        Some(meant) => bail!("[run] has no key `{key}`: did you mean `{meant}`?"),
        None => bail!("[run] has no key `{key}`: see `exitfetch run --help` for the flags"),
    }
}

/// `rate = 5` is `--rate=5`, `fresh = true` is `--fresh`.
fn words_of_key(arg: &Arg, key: &str, value: &Value) -> Result<Vec<OsString>> {
    if !arg.get_action().takes_values() {
        return switch(arg, value.as_bool()).with_context(|| format!("[run] {key}"));
    }
    match value {
        Value::String(text) => Ok(vec![word(arg, text)]),
        Value::Integer(number) => Ok(vec![word(arg, number.to_string())]),
        Value::Float(number) => Ok(vec![word(arg, number.to_string())]),
        Value::Array(items) if is_repeatable(arg) => {
            let texts = items.iter().map(|item| {
                let text = item.as_str();
                text.with_context(|| format!("[run] {key}: write a list of texts"))
            });
            texts.map(|text| Ok(word(arg, text?))).collect()
        }
        _ => bail!("[run] {key}: write text or a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Result<Vec<Given>> {
        let file = File::new("own.toml", format!("[run]\n{line}"));
        of_file(&file.read()?, &file)
    }

    fn words(line: &str) -> Result<Vec<OsString>> {
        Ok(given(line)?.into_iter().flat_map(|g| g.words).collect())
    }

    fn variables(pairs: &[(&str, &str)]) -> Result<Vec<Given>> {
        of_environment(pairs.iter().map(|(n, v)| (n.into(), v.into())))
    }

    fn resolved(typed: &[&str], variable: &[(&str, &str)], file: &str) -> Result<Resolved> {
        let words = ["exitfetch", "run"].iter().chain(typed);
        let words: Vec<OsString> = words.map(OsString::from).collect();
        resolve(&words, given(file)?, variables(variable)?)
    }

    fn shown(resolved: &Resolved, key: &str) -> (Vec<String>, Source) {
        let run = resolved.run().unwrap();
        let raw = run.get_raw(key).into_iter().flatten();
        let raw = raw.map(|value| value.to_str().unwrap().to_owned());
        (raw.collect(), resolved.source(key))
    }

    #[test]
    fn keys_become_the_flags_they_are_named_after() {
        assert_eq!(words("rate = 0.5").unwrap(), ["--rate=0.5"]);
        assert_eq!(words("per_exit = 4").unwrap(), ["--per-exit=4"]);
        assert_eq!(words("per-exit = \"4\"").unwrap(), ["--per-exit=4"]);
        assert_eq!(words("fresh = true").unwrap(), ["--fresh"]);
        assert!(words("fresh = false").unwrap().is_empty());
        let headers = words("header = ['A: b', 'C: d']").unwrap();
        assert_eq!(headers, ["--header=A: b", "--header=C: d"]);
    }

    #[test]
    fn a_mistake_in_the_file_is_told_with_its_place() {
        for (text, said) in [
            (
                "rate = 0",
                "own.toml:2: [run] invalid value '0' for '--rate",
            ),
            (
                "\nburts = 1",
                "own.toml:3: [run] has no key `burts`: did you mean `burst`?",
            ),
            (
                "quiet = true\nverbose = true",
                "own.toml: [run] the argument",
            ),
            ("header = 'x'", "own.toml:2: [run] --header: "),
            (
                "config = 'x'",
                "own.toml:2: [run] config is for the command line",
            ),
            ("fresh = 3", "own.toml:2: [run] fresh: write true or false"),
            (
                "rate = true",
                "own.toml:2: [run] rate: write text or a number",
            ),
            ("rate = ['1', '2']", "own.toml:2: [run] rate: write text"),
            ("header = [1]", "own.toml:2: [run] header: write a list"),
            (
                "zzzzzzzz = 4",
                "own.toml:2: [run] has no key `zzzzzzzz`: see",
            ),
        ] {
            let error = format!("{:#}", resolved(&[], &[], text).unwrap_err());
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn a_mistake_in_the_environment_is_told_with_the_variable() {
        for (name, value, said) in [
            (
                "EXITFETCH_RATE",
                "fast",
                "EXITFETCH_RATE: invalid value 'fast' for",
            ),
            (
                "EXITFETCH_QUIET",
                "maybe",
                "EXITFETCH_QUIET: write true or false",
            ),
            (
                "EXITFETCH_PER_EXITS",
                "3",
                "EXITFETCH_PER_EXITS is no setting: did you mean EXITFETCH_PER_EXIT?",
            ),
            (
                "EXITFETCH_HEADER",
                "hunter2",
                "EXITFETCH_HEADER: --header: a header is written",
            ),
        ] {
            let error = format!("{:#}", resolved(&[], &[(name, value)], "").unwrap_err());
            assert!(error.starts_with(said), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let others = [
            ("EXITFETCH_PORT", "x"),
            ("OTHER", "y"),
            ("EXITFETCH_RATE", ""),
        ];
        assert!(variables(&others).unwrap().is_empty());
    }

    #[test]
    fn flag_beats_environment_beats_file_beats_default() {
        let rate = |typed: &[&str], variable: &[(&str, &str)], file| {
            shown(&resolved(typed, variable, file).unwrap(), "rate")
        };
        let variable = [("EXITFETCH_RATE", "2")];
        let is = |value: &str, source| (vec![value.to_owned()], source);
        assert_eq!(rate(&[], &[], ""), is("10", Source::Default));
        let file = Source::File("own.toml:2".into());
        assert_eq!(rate(&[], &[], "rate = 3"), is("3", file));
        let environment = Source::Environment("EXITFETCH_RATE".into());
        assert_eq!(rate(&[], &variable, "rate = 3"), is("2", environment));
        assert_eq!(
            rate(&["--rate", "1"], &variable, "rate = 3"),
            is("1", Source::Flag)
        );
    }

    #[test]
    fn an_upper_layer_can_turn_a_switch_off() {
        let off = resolved(&[], &[("EXITFETCH_QUIET", "no")], "quiet = true").unwrap();
        assert!(!off.run().unwrap().get_flag("quiet"));
        let source = Source::Environment("EXITFETCH_QUIET".into());
        assert_eq!(off.source("quiet"), source);
    }

    #[test]
    fn what_an_upper_layer_excludes_gives_way() {
        let quiet = |typed: &[&str], variable: &[(&str, &str)], file| {
            let resolved = resolved(typed, variable, file).unwrap();
            let run = resolved.run().unwrap();
            (run.get_flag("quiet"), run.get_flag("verbose"))
        };
        let variable = [("EXITFETCH_VERBOSE", "1")];
        assert_eq!(quiet(&["-v"], &[], "quiet = true"), (false, true));
        assert_eq!(quiet(&[], &variable, "quiet = true"), (false, true));
        assert_eq!(quiet(&["-q"], &variable, ""), (true, false));
    }

    #[test]
    fn headers_of_all_layers_are_there_and_the_upper_ones_come_last() {
        let variable = [("EXITFETCH_HEADER", "B: 1\nC: 2\n")];
        let all = resolved(&["-H", "D: 3"], &variable, "header = ['A: 0']").unwrap();
        assert_eq!(shown(&all, "header").0, ["A: 0", "B: 1", "C: 2", "D: 3"]);
        let sources: Vec<String> = all
            .sources("header")
            .iter()
            .map(|s| s.to_string())
            .collect();
        let variable = "environment EXITFETCH_HEADER";
        assert_eq!(sources, ["own.toml:2", variable, variable, "flag"]);
    }
}
