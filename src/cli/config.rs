//! `exitfetch.toml`: the flags under `[run]`, and tables for tiers, groups and origins.
//!
//! The keys of `[run]` *are* the long flags, so they are read by handing them to the same
//! parser in front of the user's own words: one definition of each flag and its default,
//! and a flag on the command line wins because it comes later. Unknown keys are refused.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Command;
use serde::Deserialize;
use toml::{Table, Value};

/// The file's tables, `[run]` left as key and value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The flags of `run`.
    #[serde(default)]
    pub run: Table,
    /// `[tiers.NAME]`.
    #[serde(default)]
    pub tiers: BTreeMap<String, TierConfig>,
    /// `[groups.NAME]`.
    #[serde(default)]
    pub groups: BTreeMap<String, GroupConfig>,
    /// `[origins."host"]`.
    #[serde(default)]
    pub origins: BTreeMap<String, OriginConfig>,
}

/// Defaults of a class of exits.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierConfig {
    /// Cap of each of its exits. Larger: more at once through one exit.
    pub per_exit: Option<u32>,
    /// `false`: no socket outlives its request (gateways that rotate per connection).
    pub keep_alive: Option<bool>,
}

/// Capacity that the exits of a group share.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Requests in flight through all exits of the group together.
    pub cap: u32,
}

/// What one site is asked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginConfig {
    /// As `--rate`; a number or text.
    pub rate: Option<Value>,
    /// As `--burst`.
    pub burst: Option<u32>,
    /// As `--per-origin`.
    pub per_origin: Option<u32>,
    /// Request headers for this site only.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// The file that holds: `named`, else `exitfetch.toml` where there is one.
pub fn load(named: Option<&Path>) -> Result<(Config, Option<PathBuf>)> {
    const DEFAULT: &str = "exitfetch.toml";
    let path = match named {
        Some(path) => path,
        None if Path::new(DEFAULT).is_file() => Path::new(DEFAULT),
        None => return Ok((Config::default(), None)),
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    let config = toml::from_str(&text)
        .map_err(|error| anyhow::anyhow!("{}{}", path.display(), explain(&error, &text)))?;
    Ok((config, Some(path.to_owned())))
}

/// `:LINE: message`, without the excerpt of the file: it may hold a header's secret.
fn explain(error: &toml::de::Error, text: &str) -> String {
    let line = error
        .span()
        .map(|span| text[..span.start.min(text.len())].lines().count().max(1));
    let message = error.message().replace('\n', " ");
    match line {
        Some(line) => format!(":{line}: {message}"),
        None => format!(": {message}"),
    }
}

/// The words that `[run]` stands for: `rate = 5` is `--rate 5`, `fresh = true` is `--fresh`.
///
/// # Errors
/// A key that is no flag of `command`, with the nearest one; a value of the wrong shape.
pub fn as_words(run: &Table, command: &Command) -> Result<Vec<OsString>> {
    let mut words = Vec::new();
    for (key, value) in run {
        let flag = key.replace('_', "-");
        let Some(arg) = command
            .get_arguments()
            .find(|arg| arg.get_long() == Some(&flag))
        else {
            bail!("[run] has no key `{key}`{}", nearest(&flag, command));
        };
        if flag == "config" {
            bail!("[run] cannot name another settings file: remove `{key}`");
        }
        let takes_value = arg.get_action().takes_values();
        let mut push = |value: String| words.push(OsString::from(format!("--{flag}={value}")));
        match value {
            Value::Boolean(on) if !takes_value => {
                if *on {
                    words.push(OsString::from(format!("--{flag}")));
                }
            }
            Value::String(text) if takes_value => push(text.clone()),
            Value::Integer(number) if takes_value => push(number.to_string()),
            Value::Float(number) if takes_value => push(number.to_string()),
            Value::Array(items) if takes_value => {
                for item in items {
                    push(
                        item.as_str()
                            .with_context(|| format!("[run] {key}: write a list of texts"))?
                            .to_owned(),
                    );
                }
            }
            _ if takes_value => bail!("[run] {key}: write text or a number"),
            _ => bail!("[run] {key}: write true or false"),
        }
    }
    Ok(words)
}

fn nearest(flag: &str, command: &Command) -> String {
    let longs = command.get_arguments().filter_map(|arg| arg.get_long());
    let best = longs
        .map(|long| (strsim::levenshtein(flag, long), long))
        .min();
    match best {
        Some((far, long)) if far <= 3 => format!(": did you mean `{}`?", long.replace('-', "_")),
        _ => ": see `exitfetch run --help` for the flags".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};

    fn command() -> Command {
        Command::new("run")
            .arg(Arg::new("rate").long("rate"))
            .arg(Arg::new("per-exit").long("per-exit"))
            .arg(Arg::new("fresh").long("fresh").action(ArgAction::SetTrue))
            .arg(Arg::new("header").long("header").action(ArgAction::Append))
    }

    fn words(text: &str) -> Result<Vec<String>> {
        let config: Config = toml::from_str(text)?;
        Ok(as_words(&config.run, &command())?
            .into_iter()
            .map(|w| w.into_string().unwrap())
            .collect())
    }

    #[test]
    fn keys_become_the_flags_they_are_named_after() {
        let text = "[run]\nrate = 0.5\nper_exit = 4\nfresh = true\nheader = ['A: b', 'C: d']";
        assert_eq!(
            words(text).unwrap(),
            [
                "--rate=0.5",
                "--per-exit=4",
                "--fresh",
                "--header=A: b",
                "--header=C: d"
            ]
        );
        assert!(words("[run]\nfresh = false").unwrap().is_empty());
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_one() {
        let message = words("[run]\nper_exits = 4").unwrap_err().to_string();
        assert!(message.contains("did you mean `per_exit`?"), "{message}");
        assert!(words("[run]\nzzzzzzzz = 4").is_err());
        assert!(toml::from_str::<Config>("[rum]\nrate = 1").is_err());
        assert!(toml::from_str::<Config>("[tiers.a]\nperexit = 1").is_err());
    }

    #[test]
    fn values_of_the_wrong_shape_are_refused() {
        assert!(words("[run]\nfresh = 3").is_err());
        assert!(words("[run]\nrate = true").is_err());
        assert!(words("[run]\nheader = [1]").is_err());
    }
}
