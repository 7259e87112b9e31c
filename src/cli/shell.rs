//! `completions` and `man`: what a packager installs beside the program; and short help.

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

use super::{Code, Stopped, keys, stdout};

pub(super) fn completions(shell: Shell, command: &mut Command) -> Result<Code, Stopped> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "exitfetch", &mut script);
    show(&script)
}

pub(super) fn man(mut cli: Command, of: Option<&str>) -> Result<Code, Stopped> {
    cli.build();
    let command = match of {
        None => cli,
        Some(name) => page_of(&cli, name).map_err(Stopped::usage)?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .source(concat!("exitfetch ", env!("SHOWN_VERSION")))
        .render(&mut page)
        .map_err(Stopped::local)?;
    show(&page)
}

/// The subcommand, under the name of its page.
fn page_of(cli: &Command, name: &str) -> anyhow::Result<Command> {
    let command = cli.find_subcommand(name);
    let command = command.with_context(|| {
        let known = cli.get_subcommands().map(Command::get_name);
        match keys::nearest(name, known) {
            Some(meant) => format!("there is no command `{name}`: did you mean `{meant}`?"),
            None => format!("there is no command `{name}`: see `exitfetch --help`"),
        }
    })?;
    Ok(command.clone().version(env!("SHOWN_VERSION")))
}

/// The flags of `command` that are not hidden.
pub(super) fn help(mut command: Command) -> Result<Code, Stopped> {
    show(command.render_help().to_string().as_bytes())
}

fn show(text: &[u8]) -> Result<Code, Stopped> {
    stdout::print(&String::from_utf8_lossy(text)).map_err(Stopped::local)?;
    Ok(Code::Ok)
}
