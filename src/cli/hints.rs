//! What a person can do about an error: the lines that begin `hint:`.
//!
//! Owns: hints that follow from how a run ended, and from errors whose cause says what would
//! help. An error made where the help is known carries its hint as the last line of its text.
//! Invariant: a hint names places (file, line, variable), never a value.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::args::{LogFormat, RunArgs};
use super::logging;
use crate::model::{ErrorKind, Exit, counted};
use crate::report::{FailureRow, Summary};
use crate::schedule::health::Reason;
use crate::store::StoreError;

/// Exits that are named one by one.
const NAMED: usize = 3;

/// What hints at a run's end need beside its summary.
pub(super) struct Lists {
    /// How messages name the exit list.
    pub exit_list: String,
    /// How messages name the URL list.
    pub url_list: String,
    /// In the order of the summary's rows.
    pub exits: Arc<[Exit]>,
    /// The variables that a line's login is made of, by line.
    pub variables: BTreeMap<u64, Arc<str>>,
}

/// An error in words: its message, then a hint if one is known.
pub(super) fn describe(error: &anyhow::Error) -> String {
    let text = format!("error: {error:#}");
    if text.contains("\nhint: ") {
        return text;
    }
    match hint(error) {
        Some(hint) => format!("{text}\nhint: {hint}"),
        None => text,
    }
}

fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        let own = cause.downcast_ref::<io::Error>();
        match cause.downcast_ref::<StoreError>() {
            Some(store) if store.is_full() => {
                Some("make room, then run the same command again: it goes on".to_owned())
            }
            Some(StoreError::Io { cause, .. }) => of_io(cause),
            Some(StoreError::LowSpace { .. }) => None,
            None => of_io(own?),
        }
    })
}

fn of_io(error: &io::Error) -> Option<String> {
    let out_of_files = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    let code = error.raw_os_error()?;
    out_of_files
        .iter()
        .any(|errno| errno.raw_os_error() == code)
        .then(open_files)
}

/// The limit in force, and what to do about it.
fn open_files() -> String {
    let limit = rlimit::Resource::NOFILE.get_soft().unwrap_or_default();
    format!(
        "the limit of open files in force is {limit}: raise it (ulimit -n), or lower --max-in-flight"
    )
}

/// Shows what the end of a run calls for, behind its summary; not to those who want errors only.
pub(super) fn show(args: &RunArgs, summary: &Summary, lists: &Lists) {
    if args.quiet {
        return;
    }
    for hint in of_end(summary, lists) {
        match args.log_format {
            LogFormat::Text => logging::say(&format!("hint: {hint}")),
            LogFormat::Json => tracing::warn!("hint: {hint}"),
        }
    }
}

fn of_end(summary: &Summary, lists: &Lists) -> Vec<String> {
    let mut hints = Vec::new();
    hints.extend(all_refused(summary, &lists.url_list));
    hints.extend(logins(summary, lists));
    if summary
        .failures
        .iter()
        .any(|row| row.kind == ErrorKind::Local)
    {
        hints.push(open_files());
    }
    hints.extend(untrusted(summary));
    hints
}

/// A site whose certificate is of an authority that this machine does not know.
fn untrusted(summary: &Summary) -> Option<String> {
    let mut failures = summary.failures.iter();
    let of_sites = |row: &&FailureRow| {
        let mut examples = row.examples.iter();
        row.kind == ErrorKind::Certificate
            && examples.any(|example| example.detail.contains("UnknownIssuer"))
    };
    failures.find(of_sites).map(|_| {
        "UnknownIssuer: no root that is trusted stands behind the certificate; if it is your own site's, name its root with --cacert".to_owned()
    })
}

fn all_refused(summary: &Summary, list: &str) -> Option<String> {
    let totals = &summary.totals;
    if totals.entries == 0 || totals.refused < totals.entries {
        return None;
    }
    let examples = summary.failures.iter().flat_map(|row| &row.examples);
    let first = examples.min_by_key(|example| example.line)?;
    Some(format!(
        "no entry can be used; the first of them: {list}:{}: {}",
        first.line, first.detail
    ))
}

fn logins(summary: &Summary, lists: &Lists) -> Vec<String> {
    let refused = Reason::CredentialsRefused.to_string();
    let rows = summary.exits.iter().zip(lists.exits.iter());
    let mut refused = rows.filter(|(facts, _)| facts.row.reason.as_ref() == Some(&refused));
    let mut hints: Vec<String> = refused
        .by_ref()
        .take(NAMED)
        .map(|(_, exit)| login(exit, lists))
        .collect();
    let more = refused.count();
    if more > 0 {
        hints.push(counted(
            more,
            "more exit does not take its login",
            "more exits do not take their logins",
        ));
    }
    hints
}

fn login(exit: &Exit, lists: &Lists) -> String {
    let (id, line, list) = (&exit.id, exit.line, &lists.exit_list);
    match (&exit.login, lists.variables.get(&line)) {
        (None, _) => format!("exit {id} asks for a login, and {list}:{line} gives none"),
        (Some(_), Some(names)) => {
            format!("exit {id} does not take the login of {list}:{line}, which comes from {names}")
        }
        (Some(_), None) => {
            format!("exit {id} does not take the login that stands in {list}:{line}")
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_hint_stands_on_a_line_of_its_own_and_only_once() {
        let own = anyhow::anyhow!("x is missing\nhint: name it").context("cannot begin");
        let text = "error: cannot begin: x is missing\nhint: name it";
        assert_eq!(describe(&own), text);
        let plain = anyhow::anyhow!("odd");
        assert_eq!(describe(&plain), "error: odd");
    }

    #[test]
    fn out_of_files_tells_the_limit_in_force_and_a_full_disk_how_to_go_on() {
        let error = Err::<(), _>(io::Error::from_raw_os_error(24)).context("cannot open x");
        let text = describe(&error.unwrap_err());
        assert!(
            text.contains("\nhint: the limit of open files in force is "),
            "{text}"
        );
        let full = StoreError::Io {
            doing: "write",
            file: "x".into(),
            cause: io::Error::from_raw_os_error(28),
        };
        let text = describe(&full.into());
        assert!(text.ends_with("\nhint: make room, then run the same command again: it goes on"));
    }
}
