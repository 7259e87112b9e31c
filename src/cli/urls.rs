//! `exitfetch urls DIR`: the URLs of a run, by how they ended, as a list for the next run.
//!
//! What a record does not hold cannot be listed again: logins of URLs, bodies of requests,
//! an entry's own headers. Entries whose record shows that something is missing (a masked
//! login, a method that mostly has a body) are left out and told, never printed as if whole.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::{Code, Stopped, logging};
use crate::model::{ErrorKind, Outcome, Record};
use crate::store::{self, Kept};

/// Shown under `urls --help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  exitfetch urls exitfetch-out --outcome failed > again.txt
  exitfetch urls exitfetch-out --kind timeout --kind stall_timeout
  exitfetch urls exitfetch-out --outcome ok --format jsonl

The last record of each id counts. With --format jsonl, ids, methods and other columns of the
list come along. Entries whose URL holds a login, or whose method is not GET (with jsonl: nor
HEAD), cannot be made again from their records: they are left out and counted on stderr.
Records hold no headers or bodies of entries: a GET or HEAD is listed without those it had.

Exit status: 0 all listed, 1 the records cannot be read or the list not be written, 2 usage or
no output directory of a run, 3 some were left out.";

/// Lines of the list named in a message.
const NAMED: usize = 5;

/// `exitfetch urls`.
#[derive(Args, Debug)]
pub(super) struct UrlsArgs {
    /// Output directory of a run
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Only those that ended like this: ok, failed or refused
    #[arg(long, value_name = "OUTCOME", value_enum, hide_possible_values = true)]
    outcome: Option<Ending>,
    /// Only those with this error.kind, repeatable
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<ErrorKind>,
    /// text: a URL per line; jsonl: with id, method and columns
    #[arg(
        long,
        value_name = "FORM",
        value_enum,
        hide_possible_values = true,
        default_value = "text"
    )]
    format: Form,
}

/// How an entry ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ending {
    Ok,
    Failed,
    Refused,
}

/// How the list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Text,
    Jsonl,
}

/// Prints the list.
pub(super) fn urls(args: &UrlsArgs) -> Result<Code, Stopped> {
    if !args.dir.join("results.jsonl").exists() {
        return Err(Stopped::usage(anyhow!(
            "{} is no output directory of a run: it has no results.jsonl",
            args.dir.display()
        )));
    }
    let mut left_out = LeftOut::default();
    let mut out = BufWriter::new(io::stdout().lock());
    let listed = store::latest(&args.dir, |record| {
        if !args.wants(&record) {
            return Ok(Kept::Continue(()));
        }
        match args.entry(&record) {
            Ok(line) => write(&mut out, &line),
            Err(lack) => {
                left_out.note(lack, record.line);
                Ok(Kept::Continue(()))
            }
        }
    });
    listed.map_err(Stopped::local)?;
    match out.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        flushed => flushed
            .context("standard output cannot be written")
            .map_err(Stopped::local)?,
    }
    Ok(left_out.tell())
}

fn kind(text: &str) -> Result<ErrorKind, String> {
    serde_json::from_value(text.into()).map_err(|_| {
        format!("`{text}` is no kind of error: write one as records have it in error.kind, such as timeout")
    })
}

/// A reader that went away wants no more; that is no error.
fn write(out: &mut impl Write, line: &str) -> Result<Kept> {
    match writeln!(out, "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Kept::Break(())),
        written => {
            written.context("standard output cannot be written")?;
            Ok(Kept::Continue(()))
        }
    }
}

impl UrlsArgs {
    fn wants(&self, record: &Record) -> bool {
        let ended = match record.outcome {
            Outcome::Ok => Ending::Ok,
            Outcome::Failed => Ending::Failed,
            Outcome::Refused => Ending::Refused,
        };
        let kind = record.error.as_ref().map(|error| error.kind);
        self.outcome.is_none_or(|wanted| wanted == ended)
            && (self.kind.is_empty() || kind.is_some_and(|kind| self.kind.contains(&kind)))
    }

    /// The record's entry of a list, or what it lacks for one.
    fn entry(&self, record: &Record) -> Result<String, Lack> {
        let method = record.method.as_deref();
        if record.url.contains("***@") {
            return Err(Lack::Login);
        }
        // A text list asks by GET; others than these two mostly have a body.
        if method.is_some_and(|method| method != "HEAD" || self.format == Form::Text) {
            return Err(Lack::Request);
        }
        Ok(match self.format {
            Form::Text => record.url.clone(),
            Form::Jsonl => {
                let mut entry = Map::new();
                entry.insert("url".into(), record.url.clone().into());
                entry.insert("id".into(), record.id.clone().into());
                if let Some(method) = method {
                    entry.insert("method".into(), method.into());
                }
                entry.extend(record.extra.clone().unwrap_or_default());
                Value::Object(entry).to_string()
            }
        })
    }
}

/// What a record lacks to be asked for again.
#[derive(Clone, Copy)]
enum Lack {
    Login,
    Request,
}

/// Entries that were to be listed and cannot be.
#[derive(Default)]
struct LeftOut {
    logins: Vec<u64>,
    requests: Vec<u64>,
}

impl LeftOut {
    fn note(&mut self, lack: Lack, line: u64) {
        match lack {
            Lack::Login => self.logins.push(line),
            Lack::Request => self.requests.push(line),
        }
    }

    fn tell(&self) -> Code {
        for (lines, lack) in [
            (
                &self.logins,
                "the URL holds a login, which records do not show",
            ),
            (
                &self.requests,
                "no plain GET, and records do not hold requests",
            ),
        ] {
            if lines.is_empty() {
                continue;
            }
            let named: Vec<String> = lines.iter().take(NAMED).map(u64::to_string).collect();
            let more = if lines.len() > NAMED { ", …" } else { "" };
            logging::say(&format!(
                "left out {} ({lack}): take line {}{more} from the list itself",
                lines.len(),
                named.join(", ")
            ));
        }
        match self.logins.is_empty() && self.requests.is_empty() {
            true => Code::Ok,
            false => Code::SomeFailed,
        }
    }
}
