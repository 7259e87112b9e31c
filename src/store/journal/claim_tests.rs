//! Jobs that are kept on disk until their turn comes.

use proptest::prelude::*;

use super::tests::{entry, failed_record, open, open_with, records, store_body};
use super::*;
use crate::model::Job;
use crate::store::tests::ok_record;

#[test]
fn a_claimed_job_is_new_again_when_it_is_read_back_and_is_fetched_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    for line in 1..=3 {
        let decision = journal.claim(&entry("a", line)).unwrap();
        assert_eq!(decision, Decision::Fetch);
    }
    assert!(journal.under_way.is_empty());
    // In any order.
    assert_eq!(journal.decide(&entry("a", 3)).unwrap(), Decision::Fetch);
    assert_eq!(journal.decide(&entry("a", 1)).unwrap(), Decision::Wait);
    store_body(dir.path(), &ok_record("a", 3));
    let twins = journal.settle(&ok_record("a", 3)).unwrap();
    assert_eq!(twins.iter().map(|twin| twin.line).collect::<Vec<_>>(), [1]);
    let twin = journal.decide(&entry("a", 2)).unwrap();
    assert!(matches!(twin, Decision::Twin(record) if record.line == 2));
    // Known to later claims, too.
    let twin = journal.claim(&entry("a", 4)).unwrap();
    assert!(matches!(twin, Decision::Twin(record) if record.line == 4));
}

#[test]
fn a_claimed_id_is_refused_to_another_request_by_the_line_that_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    let mut other = entry("a", 8);
    other.url.set_path("elsewhere");
    let refused = Decision::DuplicateId { line: 7 };
    assert_eq!(journal.claim(&entry("a", 7)).unwrap(), Decision::Fetch);
    assert_eq!(journal.claim(&other).unwrap(), refused);
    assert_eq!(journal.decide(&other).unwrap(), refused);
    assert_eq!(journal.decide(&entry("a", 7)).unwrap(), Decision::Fetch);
    assert_eq!(journal.claim(&other).unwrap(), refused);
    assert_eq!(journal.lookup("a").unwrap(), None);
}

#[test]
fn a_job_given_up_on_disk_answers_further_entries_of_its_url() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.claim(&entry("a", 1)).unwrap();
    journal.settle(&failed_record("a", 1)).unwrap();
    let twin = journal.decide(&entry("a", 2)).unwrap();
    assert!(matches!(twin, Decision::Twin(record) if record.line == 2));
    let mut other = entry("a", 3);
    other.url.set_path("elsewhere");
    let refused = Decision::DuplicateId { line: 1 };
    assert_eq!(journal.claim(&other).unwrap(), refused);
}

#[test]
fn records_of_earlier_runs_answer_claims_one_each() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    store_body(dir.path(), &ok_record("ok", 1));
    for record in [
        ok_record("ok", 1),
        ok_record("ok", 2),
        failed_record("f", 3),
    ] {
        journal.append(&record).unwrap();
    }
    journal.flush().unwrap();
    drop(journal);
    let mut journal = open_with(dir.path(), FailedBefore::TryAgain);
    let mut claim = |id, line| journal.claim(&entry(id, line)).unwrap();
    assert!(matches!(claim("ok", 1), Decision::Done(_)));
    assert!(matches!(claim("ok", 2), Decision::Done(_)));
    assert!(matches!(claim("ok", 3), Decision::Twin(_)));
    assert_eq!(claim("f", 4), Decision::Fetch);
    assert_eq!(journal.decide(&entry("f", 4)).unwrap(), Decision::Fetch);
    let mut journal = {
        drop(journal);
        open_with(dir.path(), FailedBefore::LeaveAlone)
    };
    let done = journal.claim(&entry("f", 4)).unwrap();
    assert!(matches!(done, Decision::Done(_)));
}

#[test]
fn ids_of_one_hash_are_told_apart_by_their_records() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.append(&ok_record("other", 1)).unwrap();
    // As if the ids' hashes were the same in the 40 bits that matter here.
    let key = journal.index.keys().of("mine") ^ 1;
    journal
        .index
        .insert(key, Entry::Settled { offset: 0, what: 5 });
    assert_eq!(journal.lookup("mine").unwrap(), None);
    assert_eq!(journal.decide(&entry("mine", 2)).unwrap(), Decision::Fetch);
    journal.settle(&ok_record("mine", 2)).unwrap();
    journal.append(&ok_record("mine", 3)).unwrap();
    assert_eq!(journal.lookup("mine").unwrap().unwrap().record.line, 3);
    let kept = journal.index.of(key).map(|(_, entry)| entry);
    assert!(
        kept.into_iter()
            .any(|entry| entry == Entry::Settled { offset: 0, what: 5 })
    );
}

/// A run over a list of which some entries are kept on disk for a while.
struct Run<'a> {
    dir: &'a Path,
    journal: Journal,
    /// Entries still to come, the next one last.
    list: Vec<Job>,
    /// A bit for each line that will be kept on disk.
    claimed: u16,
    on_disk: Vec<Job>,
    running: Vec<Record>,
}

impl<'a> Run<'a> {
    fn new(dir: &'a Path, list: &[u8], claimed: u16) -> Run<'a> {
        let jobs = (1..)
            .zip(list)
            .map(|(line, id)| entry(&id.to_string(), line));
        let mut list: Vec<Job> = jobs.collect();
        list.reverse();
        Run {
            dir,
            journal: open(dir),
            list,
            claimed,
            on_disk: Vec::new(),
            running: Vec::new(),
        }
    }

    /// Does one thing; `false` when nothing is left.
    fn step(&mut self, number: usize) -> bool {
        if number % 3 == 2
            && let Some(record) = self.running.pop()
        {
            store_body(self.dir, &record);
            self.journal.settle(&record).unwrap();
        } else if (number % 4 == 1 || self.list.is_empty())
            && let Some(job) = self.on_disk.pop()
        {
            let decision = self.journal.decide(&job).unwrap();
            self.follow(decision, &job);
        } else if let Some(job) = self.list.pop() {
            if self.claimed & 1 << job.line != 0 {
                match self.journal.claim(&job).unwrap() {
                    Decision::Fetch => self.on_disk.push(job),
                    decision => self.follow(decision, &job),
                }
            } else {
                let decision = self.journal.decide(&job).unwrap();
                self.follow(decision, &job);
            }
        } else {
            return !self.running.is_empty();
        }
        self.journal.flush().unwrap();
        true
    }

    fn follow(&mut self, decision: Decision, job: &Job) {
        match decision {
            Decision::Fetch => self.running.push(ok_record(&job.id, job.line)),
            Decision::Twin(record) => self.journal.append(&record).unwrap(),
            Decision::Done(_) | Decision::Wait => {}
            Decision::DuplicateId { .. } => panic!("every id has one URL"),
        }
    }

    /// Takes `steps` steps and dies, the last one's write cut by `torn` bytes.
    fn die(mut self, steps: usize, torn: u64) {
        let mut before = self.journal.written;
        for number in 0..steps {
            before = self.journal.written;
            if !self.step(number) {
                break;
            }
        }
        let left = self.journal.written.saturating_sub(torn).max(before);
        self.journal.file.set_len(left).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn however_often_a_run_dies_each_entry_has_one_record_in_the_end(
        list in prop::collection::vec(0u8..6, 0..14),
        deaths in prop::collection::vec((1usize..30, 0u64..400, any::<u16>()), 0..4),
        claimed: u16,
    ) {
        let dir = tempfile::tempdir().unwrap();
        for (steps, torn, claimed) in deaths {
            Run::new(dir.path(), &list, claimed).die(steps, torn);
        }
        Run::new(dir.path(), &list, claimed).die(usize::MAX, 0);
        let mut wanted = list.clone();
        wanted.sort_unstable();
        let mut got: Vec<u8> = records(dir.path()).iter().map(|r| r.id.parse().unwrap()).collect();
        got.sort_unstable();
        prop_assert_eq!(got, wanted);
        // A further run has nothing to do, wherever its jobs would be kept.
        let mut journal = open(dir.path());
        for (line, id) in (1..).zip(&list) {
            let job = entry(&id.to_string(), line);
            let decision = match claimed & 1 << line {
                0 => journal.decide(&job),
                _ => journal.claim(&job),
            };
            prop_assert!(matches!(decision, Ok(Decision::Done(_))));
        }
    }
}
