//! `simulate`: what it prints, and its exit codes.

use std::process::{Command, Output};

const SCENARIO: &str = r#"{
  "run": {"rate": "unlimited"},
  "exits": [{"name": "a", "count": 2, "latency": {"median": "100ms"}}],
  "origins": [{"name": "site"}],
  "jobs": {"count": 30},
  "expect": {"ok": 30}
}"#;

fn simulate(scenario: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scenario.json");
    std::fs::write(&file, scenario).unwrap();
    Command::new(env!("CARGO_BIN_EXE_exitfetch"))
        .arg("simulate")
        .arg(file)
        .output()
        .unwrap()
}

#[test]
fn a_simulation_prints_the_summary_of_a_run_and_says_that_it_is_none() {
    let output = simulate(SCENARIO);
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.starts_with("SIMULATION"), "{out}");
    assert!(
        out.contains("peak in flight never above the cap: yes"),
        "{out}"
    );
    assert!(out.contains("30 entries: 30 ok"), "{out}");
    assert!(out.contains("PASS  ok = 30"), "{out}");
}

#[test]
fn an_expectation_that_is_not_met_is_exit_code_3() {
    let output = simulate(&SCENARIO.replace("\"ok\": 30", "\"ok\": 31"));
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{out}");
    assert!(out.contains("FAIL  ok = 30, wanted 31"), "{out}");
}

#[test]
fn an_unknown_key_is_refused_with_file_and_line() {
    let output = simulate(&SCENARIO.replace("\"median\"", "\"medium\""));
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(
        err.contains("scenario.json:3: unknown field `medium`"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "{err}");
}
