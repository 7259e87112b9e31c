//! What the journal costs: reading an earlier run's, deciding an entry that is known, and
//! all that a new one takes (decision and record).
//!
//! All on a journal of 200,000 records. Each decision on a known entry reads its record and
//! looks for the body, for which one file stands. Making jobs is left out of the time.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use exitfetch::model::record::{Phases, Waits};
use exitfetch::model::{Clock, Job, Outcome, Record};
use exitfetch::store::{Decision, FailedBefore, OpenOptions, Store};
use http::Method;
use url::Url;

const RECORDS: u64 = 200_000;
/// An empty file.
const BODY: &str = "bodies/9f/86/9f86d081884c7d65.html";

fn open(dir: &Path) -> Store {
    let options = OpenOptions {
        fresh: false,
        failed_before: FailedBefore::TryAgain,
        min_free: 0,
        name_template: None,
        clock: clock(),
    };
    Store::open(dir, options).expect("a directory of our own")
}

#[expect(
    clippy::disallowed_methods,
    reason = "what the clock shows does not matter, but the store needs one"
)]
fn clock() -> Clock {
    Clock::new(Instant::now(), Duration::ZERO)
}

fn job(line: u64) -> Job {
    let url = format!("http://site-{}.test/page/{line}", line % 1000);
    Job {
        id: Job::default_id("GET", &url, b""),
        id_given: false,
        line,
        method: Method::GET,
        url: Url::parse(&url).expect("a URL"),
        listed: None,
        authorization: None,
        headers: None,
        body: None,
        extra: None,
    }
}

fn record(job: &Job) -> Record {
    Record {
        id: job.id.to_string(),
        line: job.line,
        url: job.url.to_string(),
        status: Some(200),
        file: Some(BODY.into()),
        bytes: Some(0),
        wire_bytes: Some(1024),
        sha256: Some(job.id.repeat(4)),
        content_type: Some("text/html; charset=utf-8".into()),
        exit: Some("127.0.0.1:8080~0a1b2c".into()),
        attempts: 1,
        waits: Some(Waits {
            budget_ms: 12.25,
            exit_ms: 0.5,
        }),
        phases: Some(Phases {
            first_byte_ms: Some(81.125),
            body_ms: Some(3.5),
            ..Phases::default()
        }),
        ..Record::empty(Outcome::Ok, "2026-01-01T00:00:00.000Z".into())
    }
}

fn fill(dir: &Path) {
    let mut store = open(dir);
    for line in 1..=RECORDS {
        store.journal.append(&record(&job(line))).expect("written");
    }
    store.close().expect("written");
    let body = dir.join(BODY);
    std::fs::create_dir_all(body.parent().expect("it has one")).expect("made");
    std::fs::write(body, "").expect("written");
}

fn load(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fill(dir.path());
    let mut group = c.benchmark_group("journal");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(RECORDS));
    group.bench_function("load", |bench| bench.iter(|| drop(open(dir.path()))));
    group.finish();
}

fn one_by_one(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fill(dir.path());
    let store = RefCell::new(open(dir.path()));
    let line = Cell::new(0);
    let next = || line.replace(line.get() + 1);
    let mut group = c.benchmark_group("journal");
    group.throughput(Throughput::Elements(1));
    group.bench_function("known", |bench| {
        bench.iter_batched(
            || job(next() % RECORDS + 1),
            |job| store.borrow_mut().journal.decide(&job),
            BatchSize::SmallInput,
        );
    });
    line.set(RECORDS + 1);
    group.bench_function("new", |bench| {
        bench.iter_batched(
            || job(next()),
            |job| {
                let journal = &mut store.borrow_mut().journal;
                let decision = journal.decide(&job);
                assert!(matches!(decision, Ok(Decision::Fetch)));
                journal.settle(&record(&job))
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, load, one_by_one);
criterion_main!(benches);
