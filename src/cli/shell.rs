//! `completions` and `man`: what a packager installs beside the program; and short help.

use clap::Command;
use clap_complete::Shell;

use super::{Code, Stopped, stdout};

pub(super) fn completions(shell: Shell, command: &mut Command) -> Result<Code, Stopped> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "exitfetch", &mut script);
    show(&script)
}

pub(super) fn man(command: Command) -> Result<Code, Stopped> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(Stopped::local)?;
    show(&page)
}

/// The flags of `command` that are not hidden.
pub(super) fn help(mut command: Command) -> Result<Code, Stopped> {
    show(command.render_help().to_string().as_bytes())
}

fn show(text: &[u8]) -> Result<Code, Stopped> {
    stdout::print(&String::from_utf8_lossy(text)).map_err(Stopped::local)?;
    Ok(Code::Ok)
}
