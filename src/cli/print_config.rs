//! `--print-config`: all settings of a run as they are meant, as a settings file.
//!
//! What is printed can be saved and used: it gives the same run. So defaults are comments
//! (a default that is written down would be a choice, and win over tiers), and so is
//! whatever holds a secret, without it. Behind each value stands where it comes from.

use std::fmt::Write;
use std::str::FromStr;

use clap::{Arg, ArgMatches};
use http::{HeaderName, header};
use toml::{Table, Value};

use super::config::File;
use super::fleet::TIERS;
use super::layers::{self, Resolved, Source};
use super::{Code, Meant, Stopped, keys, stdout};
use crate::input::ListSource;

/// Headers whose values are no secrets. All others may be.
const HARMLESS: [HeaderName; 10] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_TYPE,
    header::DNT,
    header::IF_MODIFIED_SINCE,
    header::PRAGMA,
    header::RANGE,
    header::USER_AGENT,
];

/// Column in which the comments begin, where the values leave room.
const COMMENT: usize = 40;

/// Prints them.
pub(super) fn show(meant: &Meant) -> Result<Code, Stopped> {
    stdout::print(&text(meant)).map_err(Stopped::local)?;
    Ok(Code::Ok)
}

fn text(meant: &Meant) -> String {
    let mut page = Page::default();
    page.comment("Settings of `exitfetch run`. Save it as exitfetch.toml to get the same again.");
    page.comment("What is commented out is a default, or holds a secret.");
    if let Some(file) = &meant.file {
        page.comment(&format!("Settings file: {file}"));
    }
    page.table("run");
    if let Some(run) = meant.resolved.run() {
        for arg in layers::flags(&layers::run_command()) {
            setting(&mut page, arg, run, &meant.resolved);
        }
    }
    tables(&mut page, meant.file.as_ref());
    page.0
}

/// The lines of a settings file.
#[derive(Default)]
struct Page(String);

impl Page {
    fn comment(&mut self, text: &str) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.0, "# {text}");
    }

    fn table(&mut self, name: &str) {
        let _ = writeln!(self.0, "\n[{name}]");
    }

    fn line(&mut self, code: &str, comment: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{code:COMMENT$}# {comment}");
    }
}

fn setting(page: &mut Page, arg: &Arg, run: &ArgMatches, resolved: &Resolved) {
    let key = arg.get_id().as_str();
    let source = resolved.source(key);
    if key == "config" {
        return;
    }
    if key == "header" {
        return headers_of_run(page, run, resolved);
    }
    let value = if arg.get_action().takes_values() {
        run.get_raw(key).and_then(Iterator::last).map(|raw| {
            let text = raw.to_string_lossy();
            match text.parse::<i64>() {
                Ok(number) if number.to_string() == text => Value::Integer(number),
                _ => Value::String(text.into_owned()),
            }
        })
    } else {
        Some(Value::Boolean(run.get_flag(key)))
    };
    match (value, source) {
        (None, source) => page.line(&format!("# {key} is not set"), source),
        (Some(value), Source::Default) => {
            page.line(&format!("# {key} = {value}"), Source::Default);
        }
        (Some(value), source) => match masked(key, &value) {
            Some(shown) => page.line(
                &format!("# {key} = {shown}"),
                format!("{source}; a secret is left out"),
            ),
            None => page.line(&format!("{key} = {value}"), source),
        },
    }
}

/// An address of a list that may hold a secret, as it is shown.
fn masked(key: &str, value: &Value) -> Option<String> {
    let text = value.as_str()?;
    if !["exits", "urls"].contains(&key) {
        return None;
    }
    match ListSource::from_str(text) {
        Ok(source @ (ListSource::Url(_) | ListSource::File(_))) if source.to_string() != text => {
            Some(Value::String(source.to_string()).to_string())
        }
        _ => None,
    }
}

/// Of the values of one name the last is the one that is sent.
fn headers_of_run(page: &mut Page, run: &ArgMatches, resolved: &Resolved) {
    let raw = run.get_raw("header").into_iter().flatten();
    let parts = raw
        .zip(resolved.sources("header"))
        .filter_map(|(raw, source)| {
            let (name, value) = raw.to_str()?.split_once(':')?;
            let name = name.trim().parse::<HeaderName>().ok()?;
            Some((name, value.trim().to_owned(), source))
        });
    let mut sent: Vec<(HeaderName, String, &Source)> = Vec::new();
    for (name, value, source) in parts {
        sent.retain(|(before, ..)| *before != name);
        sent.push((name, value, source));
    }
    if sent.is_empty() {
        return page.line("# header is not set", Source::Default);
    }
    page.0.push_str("header = [\n");
    for (name, value, source) in &sent {
        if is_secret(name, value) {
            page.line(
                &format!("  # \"{name}: ***\","),
                format!("{source}; a secret is left out"),
            );
        } else {
            let text = Value::String(format!("{name}: {value}"));
            page.line(&format!("  {text},"), source);
        }
    }
    page.0.push_str("]\n");
}

fn is_secret(name: &HeaderName, value: &str) -> bool {
    !value.is_empty() && !HARMLESS.contains(name)
}

fn tables(page: &mut Page, file: Option<&File>) {
    let all = file.map(File::table).unwrap_or_default();
    let of = |section: &str| {
        let table = all.get(section).and_then(Value::as_table);
        table.cloned().unwrap_or_default()
    };
    let mut tiers = of("tiers");
    for (name, _) in TIERS {
        tiers.entry(name).or_insert_with(|| Table::new().into());
    }
    for (section, named) in [
        ("tiers", tiers),
        ("groups", of("groups")),
        ("origins", of("origins")),
    ] {
        for (name, table) in &named {
            page.table(&format!("{section}.{}", keys::quoted(name)));
            for (key, value) in table.as_table().into_iter().flatten() {
                let place = file.map(|file| file.place_of(&[section, name, key]));
                let place = place.unwrap_or_default();
                match value.as_table() {
                    Some(headers) => headers_of_site(page, headers, &place),
                    None => page.line(&format!("{key} = {value}"), place),
                }
            }
            if section == "tiers" {
                default_of_tier(page, name, table);
            }
        }
    }
}

fn headers_of_site(page: &mut Page, headers: &Table, place: &str) {
    for (name, value) in headers {
        let parsed = name.parse::<HeaderName>().ok();
        let text = value.as_str().unwrap_or_default();
        let key = format!("headers.{}", keys::quoted(name));
        if parsed.is_none_or(|name| is_secret(&name, text)) {
            page.line(
                &format!("# {key} = \"***\""),
                format!("{place}; a secret is left out"),
            );
        } else {
            page.line(&format!("{key} = {value}"), place);
        }
    }
}

/// What a tier carries of itself, where the file does not say otherwise.
fn default_of_tier(page: &mut Page, name: &str, own: &Value) {
    let built_in = TIERS.iter().find(|(known, _)| *known == name);
    if let (Some((_, carries)), None) = (built_in, own.get("per_exit")) {
        page.line(&format!("# per_exit = {carries}"), Source::Default);
    }
}
