use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::input::urls;
use crate::input::{Entry, ListSource};
use crate::model::Secret;
use crate::store::test_job;

const SMALL: Limits = Limits {
    segment: 4 << 10,
    most: 1 << 30,
    block: 512,
    min_free: 0,
};

fn spill(dir: &Path, limits: Limits) -> Spill {
    Spill {
        limits,
        ..Spill::new(dir.to_owned(), 0)
    }
}

/// Everything in a job, logins too.
fn whole(job: &Job) -> String {
    let login = job.authorization.as_ref().map(Secret::expose);
    let headers = job.headers.iter().flat_map(|headers| headers.iter());
    let headers: Vec<_> = headers
        .map(|(name, value)| (name, value.as_bytes(), value.is_sensitive()))
        .collect();
    let Job { id, line, url, .. } = job;
    format!(
        "{id} {} {line} {} {url} {:?} {login:?} {headers:?} {:?} {:?}",
        job.id_given, job.method, job.listed, job.body, job.extra
    )
}

/// The jobs of a list in each of its forms, read as a run reads them.
fn listed(name: &str, content: &str) -> Vec<Job> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, content).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut list = urls::open(ListSource::File(path), None).await.unwrap();
        let mut jobs = Vec::new();
        while let Some(batch) = list.next().await {
            jobs.extend(batch.unwrap().into_iter().map(|entry| match entry {
                Entry::Job(job) => job,
                Entry::Refused(refusal) => panic!("{refusal:?}"),
            }));
        }
        jobs
    })
}

#[test]
fn a_job_comes_back_as_it_was_read_from_any_list() {
    let text = "http://o.test/a%2fb?q=%zz|^`{}\nhttps://user:p%40ss@o.test/\nhttp://Bücher.test:8080/ü#x\n\
                http://[::1]:81/..//x\nhttp://o.test./?\n";
    let rows = [
        json!({"url": "http://o.test/1", "id": "given", "method": "POST", "body": "a\u{0}b",
               "headers": {"X-A": "1", "Cookie": "c=\u{fc}"}, "deep": {"z": [1, -2, 0.1, 1e300, null, true, "ü"], "a": {}}}),
        json!({"url": "http://o.test/2", "method": "PURGE", "body_base64": "/wD+", "n": u64::MAX, "m": i64::MIN,
               "f": 0.300_000_000_000_000_04, "e": ""}),
    ];
    let rows = rows.map(|row| row.to_string() + "\n").concat();
    let csv = "url,id,method,header:X-A,other\nhttp://o.test/3,x,PUT,v,kept\nhttp://o.test/4,,,,\n";
    let mut jobs = listed("list.txt", text);
    jobs.extend(listed("list.jsonl", &rows));
    jobs.extend(listed("list.csv", csv));
    assert_eq!(jobs.len(), 9);
    for job in jobs {
        let mut bytes = Vec::new();
        record::encode(&job, &mut bytes);
        let back = record::decode(&bytes).unwrap();
        assert_eq!(whole(&back), whole(&job));
        assert!(record::decode(&bytes[..bytes.len() - 1]).is_none());
    }
}

#[test]
fn numbers_of_other_columns_keep_their_last_bit() {
    for bits in (0..2000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2) {
        let mut job = test_job("a");
        let value = Value::from(f64::from_bits(bits));
        job.extra = Some(Box::new([("n".to_owned(), value)].into_iter().collect()));
        let mut bytes = Vec::new();
        record::encode(&job, &mut bytes);
        let back = record::decode(&bytes).unwrap().extra.unwrap();
        let back = back["n"].as_f64().map(f64::to_bits);
        assert_eq!(back, job.extra.unwrap()["n"].as_f64().map(f64::to_bits));
    }
}

#[test]
fn a_segment_goes_with_its_last_record_and_leaves_no_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut spill = spill(dir.path(), SMALL);
    let mut head = None;
    for n in 0..1000 {
        head = Some(spill.put(head, &test_job(&n.to_string())).unwrap());
    }
    let held = spill.segments.len();
    assert!(held > 5, "{held}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let mut left = 1000;
    while let Some(at) = head {
        let batch = spill.take(at, 64).unwrap();
        for job in &batch.jobs {
            left -= 1;
            assert_eq!(*job.id, *left.to_string());
        }
        head = batch.rest;
        assert!(spill.segments.len() <= 1 + held * left / 1000 + 1);
    }
    assert_eq!(left, 0);
    assert!(spill.segments.is_empty() && spill.tail.is_empty());
}

#[test]
fn what_is_not_taken_is_the_callers_and_what_was_taken_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut spill = spill(
        dir.path(),
        Limits {
            most: 8 << 10,
            ..SMALL
        },
    );
    let mut head = None;
    let mut taken = 0;
    while let Ok(at) = spill.put(head, &test_job(&taken.to_string())) {
        head = Some(at);
        taken += 1;
    }
    assert!(spill.is_full() && taken > 50, "{taken}");
    // Room again once something was read.
    let batch = spill.take(head.unwrap(), taken - 10).unwrap();
    assert!(spill.put(None, &test_job("new")).is_ok() && !spill.is_full());
    let rest = spill.take(batch.rest.unwrap(), 100).unwrap();
    let back = batch
        .jobs
        .iter()
        .chain(&rest.jobs)
        .map(|job| job.id.to_string());
    let all = (0..taken).rev().map(|n| n.to_string());
    assert!(back.eq(all));
    assert_eq!(rest.rest, None);
}

#[test]
fn no_more_is_taken_than_is_left_free() {
    let dir = tempfile::tempdir().unwrap();
    let min_free = u64::MAX / 2;
    let mut spill = spill(dir.path(), Limits { min_free, ..SMALL });
    let puts = (0..1000).take_while(|_| spill.put(None, &test_job("a")).is_ok());
    assert!(puts.count() < 20);
    // A directory that is gone takes nothing either.
    let mut spill = super::Spill::new(dir.path().join("gone"), 0);
    let body = vec![b'x'; BLOCK];
    let mut job = test_job("a");
    job.body = Some(body.into());
    assert!(
        spill
            .put(None, &job)
            .unwrap_err()
            .to_string()
            .contains("gone")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_job_comes_back_once_in_its_own_chain(
        steps in prop::collection::vec((0usize..5, prop::option::weighted(0.3, 1usize..20), 0usize..900), 1..400)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut spill = spill(dir.path(), SMALL);
        let mut chains: Vec<(Option<u64>, Vec<u64>)> = vec![(None, Vec::new()); 5];
        for (line, (chain, take, body)) in (0..).zip(steps) {
            let (head, waiting) = &mut chains[chain];
            match (take, *head) {
                (Some(most), Some(at)) => {
                    let batch = spill.take(at, most).unwrap();
                    for job in batch.jobs {
                        prop_assert_eq!(Some(job.line), waiting.pop());
                    }
                    *head = batch.rest;
                }
                _ => {
                    let mut job = test_job("a");
                    job.line = line;
                    job.body = Some(vec![b'x'; body].into());
                    *head = Some(spill.put(*head, &job).unwrap());
                    waiting.push(line);
                }
            }
            prop_assert_eq!(head.is_none(), waiting.is_empty());
        }
        let left: u64 = chains.iter().map(|(_, waiting)| waiting.len() as u64).sum();
        let unread: u64 = spill.segments.values().map(|segment| segment.unread).sum();
        prop_assert_eq!(unread, left);
    }
}
