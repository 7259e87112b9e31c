//! The scenarios of the folder, and how a scenario file is read and reported.

mod any_world;

use std::path::Path;
use std::sync::Mutex;

use super::*;

const LEAST: &str = r#"{
  "run": {"rate": "unlimited"},
  "exits": [{"name": "a", "latency": {"median": "100ms", "sigma": 0.3}}],
  "origins": [{"name": "site", "faults": [{"what": "answer 503", "share": 0.1}]}],
  "jobs": {"count": 50}
}"#;

fn play(text: &str, seed: Option<u64>) -> (Rehearsal, Outcome) {
    let rehearsal = Rehearsal::read(text, seed).unwrap_or_else(|mistake| panic!("{mistake:?}"));
    let outcome = simulate::run(&rehearsal.setting(), &mut |_, _| {});
    (rehearsal, outcome)
}

/// Scenarios of the folder, the largest first.
fn folder() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sim");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

#[test]
fn each_scenario_of_the_folder_comes_out_as_it_says() {
    let files = folder();
    assert!(!files.is_empty());
    let left = Mutex::new(files);
    let failed = Mutex::new(String::new());
    let work = || {
        while let Some(file) = { left.lock().unwrap().pop() } {
            let text = std::fs::read_to_string(&file).unwrap();
            let (rehearsal, outcome) = play(&text, None);
            assert!(!rehearsal.scenario.expect.is_empty(), "{}", file.display());
            let (report, met) = rehearsal.report(&outcome, Shown::Expected);
            if !met {
                *failed.lock().unwrap() += &format!("{}\n{report}\n", file.display());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn the_same_seed_gives_the_same_figures_and_another_one_does_not() {
    let figures = |seed| play(LEAST, Some(seed)).1.figures;
    assert_eq!(figures(7), figures(7));
    assert_ne!(figures(7), figures(8));
}

#[test]
fn an_expectation_that_is_not_met_is_a_failure() {
    let text = LEAST.replace("\"jobs\":", "\"expect\": {\"ok\": 51},\n  \"jobs\":");
    let (rehearsal, outcome) = play(&text, None);
    let (report, met) = rehearsal.report(&outcome, Shown::Expected);
    assert!(
        !met && report.contains("FAIL  ok = 50, wanted 51"),
        "{report}"
    );
    assert!(report.starts_with("SIMULATION"), "{report}");
}

#[test]
fn flags_that_mean_nothing_here_are_refused_with_their_line() {
    for (run, says) in [
        (r#"{"out": "x"}"#, "has no key `out`"),
        (r#"{"retris": 2}"#, "has no key `retris`"),
        (r#"{"rate": 0}"#, "--rate"),
        (r#"{"rate": null}"#, "write text or a number"),
    ] {
        let text = LEAST.replace(r#"{"rate": "unlimited"}"#, run);
        let Err(mistake) = Rehearsal::read(&text, None) else {
            panic!("{run}");
        };
        assert_eq!(mistake.line, 2, "{mistake:?}");
        assert!(mistake.message.contains(says), "{mistake:?}");
    }
}
