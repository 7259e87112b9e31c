//! `exitfetch lab`: a loopback lab that runs until it is interrupted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::values::{Span, Unshown, whole};
use super::{Code, Stopped, stdout};
use crate::engine::Signals;
use crate::lab::{Account, Behaviour, ExitConfig, Lab, LabConfig};
use crate::model::{Scheme, counted};
use crate::threads;

/// Shown under `lab --help`.
pub(super) const EXAMPLES: &str = "\
Example, in two terminals:
  exitfetch lab --exits 6 --capacity 3 --write .
  exitfetch run --exits exits.txt --urls urls.txt --per-exit 3

Behaviours: good, refuse, drop-syn, reset, close, hang, hang-handshake, close-handshake,
mail, garbage, intercept, cut, a status such as 407 or 502, page:STATUS, connect:STATUS,
socks:CODE, limit:N:STATUS, limit:N:reset, at:HOST:WORD, first:N:WORD, flap:GOOD:BAD:WORD,
swing:MS:MS:WORD.

Any host name leads to the lab through its exits; http://any.test/ lists the routes.
What the exits counted is served as JSON at the address printed at the start (/stats).";

/// `exitfetch lab`.
#[derive(Args, Debug)]
pub(super) struct LabArgs {
    /// How many exits
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = whole(1u16..=20_000))]
    exits: u16,
    /// Requests an exit serves at full speed; with more it slows down in proportion. 0: any
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole(0u32..))]
    capacity: u32,
    /// Requests all exits together serve at full speed, as one group [default: any]
    #[arg(long, value_name = "N", value_parser = whole(0u32..))]
    account: Option<u32>,
    /// Time an exit adds to each request
    #[arg(long, value_name = "DUR")]
    delay: Option<Span>,
    /// How exits are spoken to: http, https or socks5
    #[arg(long, value_name = "SCHEME", default_value = "http", value_parser = scheme)]
    scheme: Scheme,
    /// Login that the exits want
    #[arg(long, value_name = "USER:PASS", value_parser = Unshown(login))]
    login: Option<(String, String)>,
    /// How the last exits behave, one flag each; the words are below
    #[arg(long, value_name = "WORD")]
    behaviour: Vec<Behaviour>,
    /// First port: control address, origin http and https, then the exits [default: any free]
    #[arg(long, value_name = "PORT", value_parser = whole(0u16..=65_535))]
    port: Option<u16>,
    /// Write exits.txt, urls.txt and lab-ca.pem there
    #[arg(long, value_name = "DIR", default_value = ".")]
    write: PathBuf,
}

fn scheme(text: &str) -> Result<Scheme, String> {
    [Scheme::Http, Scheme::Https, Scheme::Socks5]
        .into_iter()
        .find(|scheme| scheme.as_str() == text)
        .ok_or_else(|| "write http, https or socks5".to_owned())
}

fn login(text: &str) -> Result<(String, String), String> {
    let (user, pass) = text.split_once(':').ok_or("write USER:PASS")?;
    Ok((user.to_owned(), pass.to_owned()))
}

impl LabArgs {
    fn config(&self) -> LabConfig {
        let mut exit = ExitConfig::new(self.scheme)
            .capacity(self.capacity)
            .base(self.delay.map_or(Duration::ZERO, |span| span.0));
        if let Some(capacity) = self.account {
            exit = exit
                .account(&Account::of(capacity))
                .attributes("group=account");
        }
        if let Some((user, pass)) = &self.login {
            exit = exit.login(user, pass);
        }
        let mut config = LabConfig::alike(usize::from(self.exits), &exit);
        for (exit, behaviour) in config
            .exits
            .iter_mut()
            .rev()
            .zip(self.behaviour.iter().rev())
        {
            exit.behaviour = behaviour.clone();
        }
        config.base_port = self.port;
        config
    }
}

/// The command that uses the lists of `dir`, from where the lab was started.
fn run_line(dir: &Path) -> String {
    let dir = dir.strip_prefix(".").unwrap_or(dir);
    let (exits, urls) = (dir.join("exits.txt"), dir.join("urls.txt"));
    format!(
        "exitfetch run --exits {} --urls {} --per-exit 3",
        exits.display(),
        urls.display()
    )
}

pub(super) fn lab(args: LabArgs) -> Result<Code, Stopped> {
    // Every exit has a port, every request a socket at each end.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let runtime = threads::event_loop().map_err(Stopped::local)?;
    runtime.block_on(serve(args))
}

async fn serve(args: LabArgs) -> Result<Code, Stopped> {
    let mut signals = Signals::catch(super::ends::end_here).map_err(Stopped::local)?;
    let lab = Lab::start(args.config()).await.map_err(Stopped::local)?;
    lab.write(&args.write).map_err(Stopped::local)?;
    let text = format!(
        "lab: {}; exits.txt, urls.txt and lab-ca.pem are in {}\n\
         what they count: http://{}/stats\n\
         origin without exit: http://{} and https://{}\n\
         run: {}\n\
         Ctrl-C ends it\n",
        counted(lab.exits().len(), "exit", "exits"),
        args.write.display(),
        lab.control(),
        lab.origin_http(),
        lab.origin_https(),
        run_line(&args.write),
    );
    stdout::print(&text).map_err(Stopped::local)?;
    signals.next().await;
    Ok(Code::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_lists_as_they_are_from_here() {
        let here = "exitfetch run --exits exits.txt --urls urls.txt --per-exit 3";
        assert_eq!(run_line(Path::new(".")), here);
        let there = "exitfetch run --exits /tmp/a/exits.txt --urls /tmp/a/urls.txt --per-exit 3";
        assert_eq!(run_line(Path::new("/tmp/a")), there);
    }
}
