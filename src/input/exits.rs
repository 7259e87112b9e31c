//! The exit list, read as a whole before anything is sent.
//!
//! Owns which rows make which exits, duplicates and names; leaves the fields of a row to
//! `fields` and `candidates`, the address to `address`, `${VAR}` to `variables`. Invariants: an exit is
//! listed once, whatever its spelling; ids are unique and hold no secret; a row that
//! cannot be used is named by its line number, never by its content.

mod address;
mod candidates;
mod fields;
mod names;
mod place;
mod variables;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use anyhow::bail;

use self::fields::{Columns, Field, Fields};
use self::names::Candidate;
use self::variables::Variables;
use super::Reason;
use super::format::ListFormat;
use super::list::{List, More};
use super::rows::{Content, Row};
use super::source::ListSource;
use crate::model::{Exit, Scheme, Secret};

/// What an exit list holds.
#[derive(Clone, Debug, Default)]
pub struct ExitList {
    /// Usable exits in the order of the list, each once.
    pub exits: Vec<Exit>,
    /// Rows that cannot be used, in the order of the list.
    pub refused: Vec<RefusedExit>,
    /// How many times an exit was listed again. The first listing counts, with all its
    /// attributes.
    pub duplicates: u64,
    /// By line, the variables that an address or a login is made of, as in `${USER}, ${PASS}`.
    pub variables: BTreeMap<u64, Arc<str>>,
}

/// A row of the exit list that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedExit {
    /// Line of the list, from 1.
    pub line: u64,
    /// Completes "line 7 …". Of the row's content it holds at most the name of an
    /// attribute or of an environment variable.
    pub reason: String,
}

/// Reads the whole list. `format` wins over what the name tells; `variable` looks up a
/// `${VAR}`, normally in the environment.
///
/// # Errors
/// The list as a whole cannot be used: missing, broken off, UTF-16, a CSV list without a
/// usable header. A list without a usable exit is no error here: the caller decides.
pub async fn read(
    source: ListSource,
    format: Option<ListFormat>,
    variable: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<ExitList> {
    let mut list = List::open(source, format).await?;
    let mut reading = Reading::new(Variables::new(&variable));
    loop {
        let more = list.read().await?;
        while let Some(row) = list.next_row() {
            let line = row.line;
            if let Err(reason) = reading.take(row) {
                bail!("{}: the CSV header in line {line} {reason}", list.source());
            }
        }
        if more == More::End {
            return Ok(reading.finish());
        }
    }
}

/// What makes an exit the same one: its identity (`ARCHITECTURE.md`, Words).
type Identity = (Scheme, Box<str>, u16, Option<Secret>);

struct Reading<'a> {
    variables: Variables<'a>,
    columns: Columns,
    seen: HashSet<Identity>,
    names: HashSet<Box<str>>,
    candidates: Vec<Candidate>,
    refused: Vec<RefusedExit>,
    duplicates: u64,
    named: BTreeMap<u64, Arc<str>>,
}

impl<'a> Reading<'a> {
    fn new(variables: Variables<'a>) -> Reading<'a> {
        Reading {
            variables,
            columns: Columns::default(),
            seen: HashSet::new(),
            names: HashSet::new(),
            candidates: Vec::new(),
            refused: Vec::new(),
            duplicates: 0,
            named: BTreeMap::new(),
        }
    }

    /// Takes one row.
    ///
    /// # Errors
    /// A CSV header that cannot be used; any other fault is kept as a refusal.
    fn take(&mut self, row: Row) -> Result<(), Reason> {
        let fields = match row.content {
            Content::Header(names) => {
                self.columns = Columns::new(&names?)?;
                return Ok(());
            }
            Content::Text(text) => Fields::from_text(&text),
            Content::Cells(cells) => Fields::from_cells(cells, &self.columns),
            Content::Object(members) => Fields::from_object(members),
            Content::Unreadable(reason) => Err(reason),
        };
        let added = fields
            .and_then(|fields| {
                self.note_variables(row.line, &fields);
                candidates::of(row.line, &fields, &self.variables)
            })
            .and_then(|candidates| self.add(candidates));
        if let Err(reason) = added {
            self.refused.push(RefusedExit {
                line: row.line,
                reason: reason.into_owned(),
            });
        }
        Ok(())
    }

    /// Keeps where a login comes from. Lines that name the same variables share the text.
    fn note_variables(&mut self, line: u64, fields: &Fields) {
        let parts = [Field::Address, Field::Username, Field::Password];
        let texts = parts.into_iter().filter_map(|field| fields.get(field));
        let names: Vec<String> = texts.flat_map(Variables::named).collect();
        if names.is_empty() {
            return;
        }
        let names = names.join(", ");
        let names = match self.named.last_key_value() {
            Some((_, last)) if **last == *names => Arc::clone(last),
            _ => names.into(),
        };
        self.named.insert(line, names);
    }

    /// Takes the exits of one row, all or none.
    fn add(&mut self, candidates: Vec<Candidate>) -> Result<(), Reason> {
        let (listed, new): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .partition(|candidate| self.seen.contains(&identity(&candidate.exit)));
        let mut names = new.iter().filter_map(|candidate| candidate.name.as_deref());
        if names.any(|name| self.names.contains(name)) {
            return Err("gives a name that another exit has".into());
        }
        self.duplicates += listed.len() as u64;
        for candidate in new {
            self.seen.insert(identity(&candidate.exit));
            self.names.extend(candidate.name.clone());
            self.candidates.push(candidate);
        }
        Ok(())
    }

    fn finish(self) -> ExitList {
        ExitList {
            exits: names::named(self.candidates, self.names),
            refused: self.refused,
            duplicates: self.duplicates,
            variables: self.named,
        }
    }
}

fn identity(exit: &Exit) -> Identity {
    let username = exit.login.as_ref().map(|login| login.username.clone());
    (exit.scheme, exit.host.clone(), exit.port, username)
}

#[cfg(test)]
mod tests;
