//! The lists as flags name them, and the exit list read: what `run` and `probe` have in common.

use anyhow::{Context, anyhow, bail};

use super::args::RunArgs;
use super::ends::Stopped;
use crate::input::{ExitList, ListSource, exits as exit_list};

/// Where the exits and the URLs of a run are listed.
pub(super) fn both(args: &RunArgs) -> anyhow::Result<(ListSource, ListSource)> {
    let exits = source("--exits", args.exits.as_deref())?;
    let urls = source("--urls", args.urls.as_deref())?;
    if exits == ListSource::Stdin && urls == ListSource::Stdin {
        bail!("--exits and --urls cannot both be standard input\nhint: put one list into a file");
    }
    Ok((exits, urls))
}

/// What `flag` names.
pub(super) fn source(flag: &str, given: Option<&str>) -> anyhow::Result<ListSource> {
    let given = given.filter(|text| !text.is_empty());
    let text =
        given.with_context(|| format!("{flag} is missing\nhint: name a file, an address or -"))?;
    Ok(text.parse().unwrap_or_else(|never| match never {}))
}

/// Reads an exit list; `warn` hears of each line that cannot be used. Without any that can be
/// there is nothing to do.
pub(super) async fn exits(source: ListSource, warn: impl Fn(&str)) -> Result<ExitList, Stopped> {
    let name = source.to_string();
    let variable = |name: &str| std::env::var(name).ok();
    let list = exit_list::read(source, None, variable).await;
    let list = list.map_err(Stopped::usage)?;
    for refused in &list.refused {
        warn(&format!("{name}:{}: {}", refused.line, refused.reason));
    }
    match list.exits.is_empty() {
        true => Err(no_usable_exit(&name, &list)),
        false => Ok(list),
    }
}

/// Says why a list without a usable exit has none.
fn no_usable_exit(name: &str, list: &ExitList) -> Stopped {
    let first = list.refused.first();
    let why = first.map_or("it is empty".to_owned(), |refused| {
        format!("line {}: {}", refused.line, refused.reason)
    });
    Stopped::usage(anyhow!(
        "{name} has no usable exit ({why}); nothing was sent\nhint: write one per line, such as http://user:pass@host:port"
    ))
}
