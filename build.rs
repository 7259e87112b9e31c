//! Tells the program which commit it is of, for `--version`.
//!
//! Only where optimised builds are made: while one works on it, every commit would compile
//! everything again. A package carries its commit in `.cargo_vcs_info.json`; a clone has
//! git; without either the version stands alone. Nothing of the time or the machine goes in.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Digits of the commit: enough to be unique for long.
const DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PROFILE");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let released = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = released.then(|| packaged().or_else(cloned)).flatten();
    let shown = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=SHOWN_VERSION={shown}");
}

/// From the file that `cargo package` puts into a package.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, from) = text.split_once("\"sha1\"")?;
    let commit = from.split('"').nth(1)?;
    is_commit(commit).then(|| commit[..DIGITS].to_owned())
}

/// From git, if this directory is the repository itself and not a part of another one.
fn cloned() -> Option<String> {
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    let here = std::env::current_dir().ok()?;
    if top.canonicalize().ok()? != here.canonicalize().ok()? {
        return None;
    }
    // What changes when another commit is checked out or made.
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    is_commit(&commit).then(|| commit[..DIGITS].to_owned())
}

fn is_commit(text: &str) -> bool {
    text.len() >= DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
