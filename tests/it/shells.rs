//! Programs that are not simply waited for: pipelines of a shell, signals on the way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use exitfetch::model::{Outcome, Record};
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{World, program};

impl World {
    /// `script` for bash, in which `$EXITFETCH` is the program and `$RUN` is its
    /// `run --exits exits.txt --urls urls.txt`.
    pub fn shell(&self, script: &str) -> Command {
        let program = program();
        let like = self.command(&[]);
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .current_dir(self.dir())
            .env_clear()
            .envs(like.get_envs().filter_map(|(k, v)| Some((k, v?))))
            .env("EXITFETCH", &program)
            .env(
                "RUN",
                format!(
                    "{} run --exits exits.txt --urls urls.txt",
                    program.display()
                ),
            )
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        command
    }

    /// Starts `exitfetch run` with these arguments and leaves it running.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// Waits until the origin has been asked this often.
    #[track_caller]
    pub fn until_asked(&self, requests: u64) {
        until("the origin is asked", || {
            self.lab.origin_stats().requests >= requests
        });
    }

    /// All files of `exitfetch-out/bodies` by path relative to the output directory.
    pub fn stored(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        tree(&self.out(), "bodies")
    }

    /// Fails unless the output directory holds a whole file for each ok record of the last
    /// word on each id, and nothing temporary.
    #[track_caller]
    pub fn assert_whole(&self) {
        for record in self.records() {
            if record.outcome == Outcome::Ok {
                let body = self.body(&record);
                assert_eq!(body.len() as u64, record.bytes.unwrap(), "{}", record.url);
            } else {
                assert_eq!(record.file, None, "{}", record.url);
            }
        }
        assert_eq!(tree(&self.out(), ".tmp").len(), 0, "temporary files");
    }
}

/// All files below `out/part`, by path relative to `out`.
pub fn tree(out: &Path, part: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut left = vec![out.join(part)];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
            } else {
                let path = entry.path();
                let content = std::fs::read(&path).unwrap();
                files.insert(path.strip_prefix(out).unwrap().to_owned(), content);
            }
        }
    }
    files
}

/// The whole lines of a `results.jsonl` that may end torn.
pub fn whole_records(out: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(out.join("results.jsonl")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Sends `signal` to a child that runs still.
pub fn send(child: &Child, signal: Signal) {
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, signal).unwrap();
}

/// Waits until something holds, at most 30 s.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "not yet: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks until there is something, at most 30 s.
#[track_caller]
pub fn found<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut thing = None;
    until(what, || {
        thing = look();
        thing.is_some()
    });
    thing.unwrap()
}

/// Whether system calls can be traced here; says so if not.
pub fn can_trace() -> bool {
    let tried = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("left out: strace is not installed or may not trace");
    }
    can
}
