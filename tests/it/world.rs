//! What every test needs: a lab, a directory with both lists, the program run in it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use exitfetch::lab::{ExitHandle, ExitStats, Lab, LabConfig};
use exitfetch::model::{Outcome, Record};
use tokio::runtime::Runtime;

/// No run of a test takes longer than this; one that does is killed and fails the test.
const LIMIT: Duration = Duration::from_secs(180);

/// At once, one more try, the lab's certificates trusted.
pub const ONE_RETRY: [&str; 6] = [
    "--rate",
    "unlimited",
    "--retries",
    "1",
    "--cacert",
    "lab-ca.pem",
];

/// The program that worlds run: the one that was built for the tests, or `$EXITFETCH`, as the long
/// runs of `bench/` judge another build.
pub fn program() -> PathBuf {
    let given = std::env::var_os("EXITFETCH").map(PathBuf::from);
    given.unwrap_or_else(|| env!("CARGO_BIN_EXE_exitfetch").into())
}

/// A lab and a directory of its own. Everything goes when it is dropped.
pub struct World {
    pub lab: Lab,
    pub runtime: Runtime,
    dir: tempfile::TempDir,
}

impl World {
    /// Starts a lab and writes its `exits.txt` (and `lab-ca.pem`).
    pub fn new(config: LabConfig) -> World {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let lab = runtime.block_on(Lab::start(config)).unwrap();
        let dir = tempfile::tempdir().unwrap();
        lab.write(dir.path()).unwrap();
        World { lab, runtime, dir }
    }

    /// The directory that the program runs in.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes `urls.txt`, one line each.
    pub fn urls<T: AsRef<str>>(&self, urls: impl IntoIterator<Item = T>) {
        let lines: Vec<String> = urls
            .into_iter()
            .map(|u| u.as_ref().to_owned() + "\n")
            .collect();
        self.write("urls.txt", lines.concat());
    }

    /// The exit at this position.
    pub fn exit(&self, position: usize) -> &ExitHandle {
        &self.lab.exits()[position]
    }

    /// What that exit counted, once it has seen every socket close: the program's end and the
    /// lab's notice of it are two events. Fails the test if one stays open.
    #[track_caller]
    pub fn exit_at_rest(&self, position: usize) -> ExitStats {
        let start = Instant::now();
        loop {
            let stats = self.exit(position).stats();
            if stats.sockets.now == 0 && stats.in_flight.now == 0 {
                return stats;
            }
            assert!(start.elapsed() < LIMIT, "still open: {stats:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// `exitfetch run --exits exits.txt --urls urls.txt ARGS`, to its end.
    pub fn run(&self, args: &[&str]) -> Run {
        self.finish(self.command(args))
    }

    /// The same, not started yet. Standard input is empty; no proxy variable is set.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.exitfetch(["run", "--exits", "exits.txt", "--urls", "urls.txt"]);
        command.args(args);
        command
    }

    /// The program with these words, in this directory.
    pub fn exitfetch<T: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = T>) -> Command {
        let mut command = Command::new(program());
        command
            .args(words)
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `command` to its end and reads what it left in `exitfetch-out`.
    pub fn finish(&self, mut command: Command) -> Run {
        self.wait(command.spawn().unwrap())
    }

    /// The same for a program that was started already; its pipes are read from here on.
    pub fn wait(&self, child: Child) -> Run {
        let start = Instant::now();
        let id = i32::try_from(child.id()).unwrap();
        let (done, watch) = std::sync::mpsc::channel::<()>();
        let guard = std::thread::spawn(move || {
            if watch.recv_timeout(LIMIT).is_err()
                && let Some(id) = rustix::process::Pid::from_raw(id)
            {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
        });
        let output = child.wait_with_output().unwrap();
        let _ = done.send(());
        guard.join().unwrap();
        Run::new(output, start.elapsed(), self.records())
    }

    /// The records of `exitfetch-out`, in the order they were written.
    pub fn records(&self) -> Vec<Record> {
        let text = std::fs::read_to_string(self.out().join("results.jsonl")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// `exitfetch-out`.
    pub fn out(&self) -> PathBuf {
        self.dir.path().join("exitfetch-out")
    }

    /// The body that a record points to.
    pub fn body(&self, record: &Record) -> Vec<u8> {
        std::fs::read(self.out().join(record.file.as_ref().unwrap())).unwrap()
    }

    /// `exits.csv` as rows of column name and value.
    pub fn exits_csv(&self) -> Vec<std::collections::HashMap<String, String>> {
        let mut reader = csv::Reader::from_path(self.out().join("exits.csv")).unwrap();
        reader.deserialize().map(Result::unwrap).collect()
    }
}

/// A run that has ended.
pub struct Run {
    /// Exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
    pub records: Vec<Record>,
}

impl Run {
    fn new(output: Output, took: Duration, records: Vec<Record>) -> Run {
        Run {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            took,
            records,
        }
    }

    /// Fails the test with everything that was printed unless the status is this one.
    #[track_caller]
    pub fn expect(self, status: i32) -> Run {
        assert_eq!(
            self.status,
            Some(status),
            "stdout:\n{}\nstderr:\n{}\nrecords: {:#?}",
            self.stdout,
            self.stderr,
            self.records
                .iter()
                .filter(|r| r.outcome != Outcome::Ok)
                .take(5)
                .collect::<Vec<_>>()
        );
        self
    }

    /// How many records ended like this.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.records
            .iter()
            .filter(|record| record.outcome == outcome)
            .count()
    }

    /// The record of a line of the list.
    #[track_caller]
    pub fn line(&self, line: u64) -> &Record {
        self.records
            .iter()
            .rfind(|record| record.line == line)
            .unwrap_or_else(|| panic!("no record of line {line}; stderr:\n{}", self.stderr))
    }
}
