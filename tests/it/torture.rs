//! Every file, socket and thread call that can fail, made to fail from outside, once or from then
//! on: the run gets over it, or ends with status 1 and one line that says why; what it leaves is
//! whole, and the same command again completes it.
//!
//! `strace` puts the errors in the place of the calls. Here a sample of them; all of them, and
//! other samples, by `bench/torture.sh`.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::job::hex;
use exitfetch::model::{Outcome, Record};
use exitfetch::store::open_body;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{SeedableRng, rngs::StdRng};
use sha2::{Digest, Sha256};

use crate::shells::{can_trace, tree, whole_records};
use crate::world::World;

/// Failures that are tried unless `TORTURE_SAMPLE` says otherwise (a number, or `all`).
const SAMPLE: usize = 60;
/// Of the sample, unless `TORTURE_SEED` gives another.
const SEED: u64 = 1;

const JOBS: [&str; 6] = [
    "http://a.test/bytes/1000/1",
    "https://a.test/bytes/300000/2",
    "http://b.test/redirect/1",
    "https://b.test/chunked/5000",
    "http://c.test/flaky/1/5?how=reset",
    "http://a.test/bytes/0/6",
];

/// How bodies are stored.
const LAYOUTS: [&[&str]; 3] = [&[], &["--warc"], &["--warc-gz"]];

/// The calls, and what each may fail with.
const CALLS: [(&str, &[&str]); 46] = [
    ("openat", &["EIO", "EMFILE", "ENFILE", "ENOSPC", "EACCES"]),
    ("read", &["EIO", "EINTR"]),
    ("pread64", &["EIO", "EINTR"]),
    ("write", &["EIO", "ENOSPC", "EINTR"]),
    ("writev", &["EIO", "ECONNRESET", "EPIPE", "EINTR"]),
    ("pwrite64", &["EIO", "ENOSPC", "EINTR"]),
    ("copy_file_range", &["EIO", "ENOSPC"]),
    ("sendfile", &["EIO", "ENOSPC"]),
    ("lseek", &["EIO"]),
    ("linkat", &["EIO", "ENOSPC", "EPERM"]),
    ("rename", &["EIO", "ENOSPC"]),
    ("renameat", &["EIO", "ENOSPC"]),
    ("renameat2", &["EIO", "ENOSPC"]),
    ("mkdir", &["EIO", "ENOSPC"]),
    ("mkdirat", &["EIO", "ENOSPC"]),
    ("rmdir", &["EIO"]),
    ("unlink", &["EIO"]),
    ("unlinkat", &["EIO"]),
    ("fallocate", &["EIO", "ENOSPC", "EOPNOTSUPP"]),
    ("ftruncate", &["EIO", "ENOSPC"]),
    ("statfs", &["EIO"]),
    ("fstatfs", &["EIO"]),
    ("statx", &["EIO", "EACCES"]),
    ("getdents64", &["EIO"]),
    ("flock", &["EIO", "ENOLCK"]),
    ("socketpair", &["EMFILE", "ENFILE"]),
    ("socket", &["EMFILE", "ENFILE", "ENOBUFS"]),
    (
        "connect",
        &["ECONNREFUSED", "ECONNRESET", "EADDRNOTAVAIL", "ENETUNREACH"],
    ),
    ("getsockopt", &["EIO", "ENOBUFS"]),
    ("sendto", &["ECONNRESET", "EPIPE", "EINTR", "ENOBUFS"]),
    ("recvfrom", &["ECONNRESET", "EINTR", "EIO"]),
    ("shutdown", &["ENOTCONN"]),
    ("setsockopt", &["ENOBUFS", "EINVAL"]),
    ("close", &["EINTR"]),
    ("fcntl", &["EMFILE", "EINVAL"]),
    ("newfstatat", &["EIO", "EACCES"]),
    ("getcwd", &["ENOENT"]),
    ("epoll_create1", &["EMFILE", "ENFILE"]),
    ("epoll_ctl", &["ENOMEM", "ENOSPC"]),
    ("epoll_wait", &["EINTR"]),
    ("eventfd2", &["EMFILE", "ENFILE"]),
    ("timerfd_create", &["EMFILE", "ENFILE"]),
    ("timerfd_settime", &["EINVAL"]),
    ("poll", &["EINTR", "ENOMEM"]),
    ("clone3", &["EAGAIN"]),
    ("prlimit64", &["EPERM"]),
];

/// Which calls are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Aim {
    /// Those of the main thread.
    Main,
    /// Those of each thread, so that more than one may fail.
    Threads,
    /// Those of each thread on this file or directory.
    Path(&'static str),
}

/// One failure: the `nth` call of this name, and perhaps all after it.
#[derive(Clone, Debug)]
struct Failure {
    layout: &'static [&'static str],
    aim: Aim,
    call: &'static str,
    nth: usize,
    error: &'static str,
    /// Every later one fails, too: a disk that stays full, a limit that stays reached.
    lasts: bool,
}

/// Calls that may fail for good, and with what: files and threads only. Without sockets, or a
/// list that can be read, a run has nothing to say before its patience ends.
const LASTING_CALLS: &str = "openat pread64 pwrite64 copy_file_range lseek linkat rename renameat \
     renameat2 mkdir mkdirat rmdir unlink unlinkat fallocate ftruncate statfs fstatfs getdents64 \
     flock clone3";
const LASTING_ERRORS: &str = "EIO EMFILE ENFILE ENOSPC EACCES EPERM ENOLCK EAGAIN";

fn may_last(call: &str, error: &str) -> bool {
    let among = |words: &str, word| words.split_whitespace().any(|one| one == word);
    among(LASTING_CALLS, call) && among(LASTING_ERRORS, error)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { layout, aim, .. } = self;
        let (call, nth, error) = (self.call, self.nth, self.error);
        let lasts = if self.lasts { "+" } else { "" };
        write!(f, "{call} {nth}{lasts} {error} {aim:?} {}", layout.concat())
    }
}

/// What nobody disturbed.
struct Clean {
    /// By line.
    records: BTreeMap<u64, Record>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

fn args(layout: &[&'static str]) -> Vec<&'static str> {
    let fast = ["--rate", "unlimited", "--cacert", "lab-ca.pem"];
    // Small enough that no answer of the list is missed, large enough to be looked up.
    let least = ["--min-free", "1MB", "--per-exit", "2", "--timeout", "20s"];
    [&fast[..], &least, layout].concat()
}

/// This command in this world, killed (status 124) if it hangs.
fn in_time(world: &World, command: &Command) -> Command {
    let mut timed = Command::new("timeout");
    timed
        .args(["--kill-after", "5", "60"])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(world.dir())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        // The system's certificates are hundreds of files, and of no use here.
        .env("SSL_CERT_FILE", "lab-ca.pem")
        .stdin(Stdio::null());
    timed
}

impl World {
    /// The run under strace with these words before it, whatever comes of it.
    fn traced(&self, layout: &[&'static str], words: &[String]) -> Output {
        let _ = std::fs::remove_dir_all(self.out());
        self.lab.reset();
        let mut strace = Command::new("strace");
        let run = self.command(&args(layout));
        strace
            .args(["-o", "trace.txt"])
            .args(words)
            .arg(run.get_program())
            .args(run.get_args());
        in_time(self, &strace).output().unwrap()
    }

    fn clean(&self, layout: &[&'static str]) -> Clean {
        let _ = std::fs::remove_dir_all(self.out());
        self.lab.reset();
        let run = self.run(&args(layout)).expect(0);
        Clean {
            records: run.records.into_iter().map(|r| (r.line, r)).collect(),
            files: self.stored(),
        }
    }

    /// What can fail in a run of this layout, by a run in which nothing does.
    fn failures(&self, layout: &'static [&'static str]) -> Vec<Failure> {
        let names = CALLS.map(|(name, _)| name).join(",");
        let run = self.traced(
            layout,
            &["-f".into(), "-e".into(), format!("trace={names}")],
        );
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        let trace = std::fs::read_to_string(self.dir().join("trace.txt")).unwrap();
        let counts = Counts::of(&trace);
        let mut failures = Vec::new();
        for (call, errors) in CALLS {
            let mut aims: Vec<(Aim, usize)> = Vec::new();
            let (before, main) = counts.main(call);
            aims.extend((before + 1..=main).map(|nth| (Aim::Main, nth)));
            let threads = counts.threads(call);
            aims.extend((before + 1..=threads).map(|nth| (Aim::Threads, nth)));
            if ["openat", "read", "statx"].contains(&call) {
                let paths = ["urls.txt", "exits.txt", "exitfetch-out/.tmp"];
                aims.extend(paths.map(|path| (Aim::Path(path), 1)));
                aims.extend(paths.map(|path| (Aim::Path(path), 2)));
            }
            for (aim, nth) in aims {
                for (error, lasts) in errors.iter().flat_map(|e| [(e, false), (e, true)]) {
                    if !lasts || may_last(call, error) {
                        failures.push(Failure {
                            layout,
                            aim: aim.clone(),
                            call,
                            nth,
                            error,
                            lasts,
                        });
                    }
                }
            }
        }
        failures
    }
}

/// How often each thread made each call, those before the program's own beginning apart.
struct Counts<'a>(
    BTreeMap<&'a str, BTreeMap<&'a str, (usize, usize)>>,
    &'a str,
);

impl<'a> Counts<'a> {
    fn of(trace: &'a str) -> Counts<'a> {
        let main = trace.split_whitespace().next().unwrap_or_default();
        let mut counts = Counts(BTreeMap::new(), main);
        // The loader's and the C library's calls are not ours to get over.
        let mut begun = false;
        for line in trace.lines() {
            let Some((thread, call)) = line.split_once(' ') else {
                continue;
            };
            begun |= call.contains("exitfetch.toml");
            let Some((name, _)) = call.trim_start().split_once('(') else {
                continue;
            };
            let of_thread = counts.0.entry(thread).or_default();
            let (before, all) = of_thread.entry(name).or_default();
            *all += 1;
            *before += usize::from(!begun);
        }
        counts
    }

    /// Before the beginning, and in all.
    fn main(&self, call: &str) -> (usize, usize) {
        let main = self.0.get(self.1).and_then(|calls| calls.get(call));
        main.copied().unwrap_or_default()
    }

    /// The most that another thread made.
    fn threads(&self, call: &str) -> usize {
        let others = self.0.iter().filter(|(thread, _)| **thread != self.1);
        let counts = others.filter_map(|(_, calls)| Some(calls.get(call)?.1));
        counts.max().unwrap_or(0)
    }
}

impl Failure {
    fn words(&self, dir: &Path) -> Vec<String> {
        let Failure {
            call, nth, error, ..
        } = self;
        let on = if self.lasts { "+" } else { "" };
        let mut words = Vec::new();
        match self.aim {
            Aim::Main => {}
            Aim::Threads => words.push("-f".to_owned()),
            Aim::Path(path) => {
                // By name, and by what a descriptor stands for.
                let whole = dir.join(path).to_string_lossy().into_owned();
                words.extend(["-f", "-P", path, "-P", &whole].map(str::to_owned));
            }
        }
        let inject = format!("inject={call}:error={error}:when={nth}{on}");
        words.extend([
            "-e".to_owned(),
            format!("trace={call}"),
            "-e".to_owned(),
            inject,
        ]);
        words
    }

    /// Lets it happen. Answers whether it came to that.
    fn happen(&self, world: &World, clean: &Clean) -> Result<bool> {
        let output = world.traced(self.layout, &self.words(world.dir()));
        let trace = std::fs::read_to_string(world.dir().join("trace.txt"))?;
        // Waking the own event loop, neither a file nor a socket.
        let woken = |line: &str| line.contains(r#""\1\0\0\0\0\0\0\0", 8)"#);
        if trace
            .lines()
            .any(|line| line.contains("(INJECTED)") && woken(line))
        {
            return Ok(false);
        }
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let status = output.status.code();
        let judged = self.judge_end(status, &stderr, &trace);
        judged
            .and_then(|()| check_left(world, clean, status))
            .and_then(|()| self.check_resumed(world, clean))
            .with_context(|| format!("{self}: status {status:?}, stderr:\n{stderr}"))?;
        Ok(trace.contains("(INJECTED)"))
    }

    fn judge_end(&self, status: Option<i32>, stderr: &str, trace: &str) -> Result<()> {
        ensure!(!stderr.contains("panic"), "a panic");
        let errors = stderr.lines().filter(|line| line.starts_with("error: "));
        // Where words could not be written, they are not there.
        let unsaid = trace
            .lines()
            .any(|l| l.contains("write(2,") && l.contains("(INJECTED)"));
        match (status, errors.count()) {
            (Some(0 | 3), 0) | (Some(1), 1) => Ok(()),
            (Some(1), 0) if unsaid => Ok(()),
            // A file that may not be read was named wrongly, like one that is not there.
            (Some(2), 1) if self.error == "EACCES" => Ok(()),
            (_, errors) => bail!("{errors} errors were said"),
        }
    }

    /// The same command again has nothing left to complain of.
    fn check_resumed(&self, world: &World, clean: &Clean) -> Result<()> {
        let run = world.command(&args(self.layout));
        let output = in_time(world, &run).output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        let status = output.status.code();
        ensure!(status == Some(0), "resumed with {status:?}: {stderr}");
        check_left(world, clean, status).context("resumed")?;
        let left = temporary(&world.out());
        ensure!(left.is_empty(), "resumed, but {left:?} are left");
        Ok(())
    }
}

/// What a run has left: whole records, each of them true, and no body that is not whole.
fn check_left(world: &World, clean: &Clean, status: Option<i32>) -> Result<()> {
    let text = std::fs::read(world.out().join("results.jsonl")).unwrap_or_default();
    ensure!(text.last().is_none_or(|byte| *byte == b'\n'), "a torn line");
    let records = whole_records(&world.out());
    let mut ok = HashSet::new();
    for record in &records {
        if record.outcome != Outcome::Ok {
            ensure!(record.file.is_none(), "a file of a failed job: {record:?}");
            continue;
        }
        ensure!(ok.insert(record.line), "recorded twice: {record:?}");
        check_record(world, clean, record).with_context(|| format!("{record:?}"))?;
    }
    let failed = records.len() - ok.len();
    ensure!(
        status != Some(0) || ok.len() == JOBS.len(),
        "{} of the jobs",
        ok.len()
    );
    ensure!(status != Some(3) || failed > 0, "nothing failed");
    for (file, content) in world.stored() {
        let whole = clean.files.get(&file) == Some(&content);
        ensure!(
            whole || file.ends_with(".writable"),
            "{} is not whole",
            file.display()
        );
    }
    Ok(())
}

fn check_record(world: &World, clean: &Clean, record: &Record) -> Result<()> {
    let whole = &clean.records[&record.line];
    ensure!(
        (record.bytes, &record.sha256) == (whole.bytes, &whole.sha256),
        "not what was sent"
    );
    ensure!(
        record.offset.is_some() || record.file == whole.file,
        "another file than {:?}",
        whole.file
    );
    let mut body = Vec::new();
    open_body(&world.out(), record)?.read_to_end(&mut body)?;
    let digest = hex(&Sha256::digest(&body));
    ensure!(
        Some(&digest) == whole.sha256.as_ref(),
        "the stored body is another one"
    );
    Ok(())
}

/// What only a run that is under way may have.
fn temporary(out: &Path) -> Vec<PathBuf> {
    let all = tree(out, "").into_keys();
    let unfinished = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".part") || name.ends_with(".open") || name.ends_with(".writable")
    };
    let mut left: Vec<PathBuf> = all.filter(unfinished).collect();
    left.extend(out.join(".tmp").exists().then(|| ".tmp".into()));
    left
}

/// One failure of each call in each layout at least, then any.
fn sample(all: Vec<Failure>) -> Vec<Failure> {
    let wanted = std::env::var("TORTURE_SAMPLE").unwrap_or_default();
    if wanted == "all" {
        return all;
    }
    let seed = std::env::var("TORTURE_SEED").ok();
    let mut rng = StdRng::seed_from_u64(seed.map_or(SEED, |seed| seed.parse().unwrap()));
    let mut by_call: BTreeMap<&str, Vec<Failure>> = BTreeMap::new();
    for failure in &all {
        by_call
            .entry(failure.call)
            .or_default()
            .push(failure.clone());
    }
    let each = by_call
        .values()
        .filter_map(|of_call| of_call.choose(&mut rng));
    let mut chosen: Vec<Failure> = each.cloned().collect();
    let mut all = all;
    all.shuffle(&mut rng);
    chosen.extend(all);
    chosen.truncate(wanted.parse().unwrap_or(SAMPLE));
    chosen
}

fn world() -> World {
    let world = World::new(LabConfig::with([ExitConfig::http(), ExitConfig::socks5()]));
    world.urls(JOBS);
    world
}

/// Failures that are tried side by side: most of a run's time is waiting.
const LANES: usize = 4;

/// What came of trying them.
#[derive(Default)]
struct Outcomes {
    tried: usize,
    happened: usize,
    wrong: Vec<String>,
}

/// Tries what the others have left, in a world of its own.
fn try_next_ones(tried: &[Failure], next: &AtomicUsize) -> Outcomes {
    let world = world();
    let clean: Vec<Clean> = LAYOUTS.iter().map(|layout| world.clean(layout)).collect();
    let mut outcomes = Outcomes::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(failure) = tried.get(number) else {
            break;
        };
        let layout = LAYOUTS.iter().position(|layout| *layout == failure.layout);
        match failure.happen(&world, &clean[layout.unwrap()]) {
            Ok(came) => outcomes.happened += usize::from(came),
            Err(error) => {
                println!("{error:#}\n");
                outcomes.wrong.push(failure.to_string());
            }
        }
        outcomes.tried += 1;
        if number % 100 == 99 {
            println!("{} of {} begun", number + 1, tried.len());
        }
    }
    outcomes
}

/// E04 and E05, for every call that this machine may refuse.
#[test]
fn whichever_call_fails_the_run_gets_over_it_or_says_so() {
    if !can_trace() {
        return;
    }
    let world = world();
    let all: Vec<Failure> = LAYOUTS
        .iter()
        .flat_map(|layout| world.failures(layout))
        .collect();
    let possible = all.len();
    let planned = sample(all);
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Outcomes> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES)
            .map(|_| scope.spawn(|| try_next_ones(&planned, &next)))
            .collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
    });
    let tried: usize = outcomes.iter().map(|lane| lane.tried).sum();
    let happened: usize = outcomes.iter().map(|lane| lane.happened).sum();
    let wrong: Vec<String> = outcomes.into_iter().flat_map(|lane| lane.wrong).collect();
    println!(
        "{possible} failures are possible, {} were chosen, {tried} were tried, {happened} happened, \
         {} came out wrong",
        planned.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "wrong:\n{}", wrong.join("\n"));
    assert_eq!(tried, planned.len());
    assert!(happened * 2 > tried, "{happened} of {tried} happened");
}
