//! One setting as words of the command line, from a key of `[run]` or a variable.
//!
//! Owns how their values are written: switches, numbers, lists. Leaves what the values mean
//! to clap.

use std::ffi::{OsStr, OsString};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, Command};
use toml::Value;

use super::{ABOUT_SETTINGS, flags};
use crate::cli::keys;

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

/// Whether values of several layers stand beside each other.
pub fn is_repeatable(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

fn word(arg: &Arg, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(format!("--{}=", arg.get_long().unwrap_or_default()));
    word.push(value);
    word
}

/// A switch takes words for yes and no; what is repeatable has one value per line.
pub fn of_variable(arg: &Arg, value: &OsStr) -> Result<Vec<OsString>> {
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
