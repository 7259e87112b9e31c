//! What a run says of one bad exit beside a good one: for the rows of the blame table.
//!
//! There are enough jobs at once that both exits are used. With `--retries 0` the table's
//! two ways on part: an exit's or a pair's fault goes to the other exit all the same, an
//! unclear one ends the job and shows its kind and blame.

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};
use exitfetch::model::{Blame, Outcome};

use crate::world::World;

/// Short limits, and places for both exits at once. An exit's first answer is waited for at least
/// two seconds before others take the job: the limits are to pass before.
pub const LIMITS: [&str; 12] = [
    "--rate",
    "unlimited",
    "--per-exit",
    "4",
    "--connect-timeout",
    "1500ms",
    "--first-byte-timeout",
    "1500ms",
    "--stall-timeout",
    "1s",
    "--cacert",
    "lab-ca.pem",
];
pub const JOBS: usize = 8;

/// What is to be seen of a bad exit beside a good one.
pub enum Way {
    /// Charged to the exit, which is in one of these states with this in its reason or last
    /// error; jobs go to the other exit, uncounted.
    Exit(&'static [&'static str], &'static str),
    /// Charged to nobody: this exit does not reach this origin.
    Pair(&'static str),
    /// Unclear: counted against the tries, then tried elsewhere; kind of its record.
    Unclear(&'static str),
}

/// Any state but evicted: how far it went depends on what came first.
pub const SUSPECT: &[&str] = &["healthy", "limited", "ejected", "probation"];

/// `behaviour` at an exit beside a good one of the same kind.
pub fn beside(exit: &ExitConfig, behaviour: impl Into<Word>, scheme: &str, way: &Way) {
    let behaviour = behaviour.into().0;
    let what = format!("{behaviour} at {:?} for {scheme}", exit.scheme);
    let exits = [exit.clone().behaving(behaviour), exit.clone()];
    // One host: four that an exit refuses would be its own fault.
    judge(&what, LabConfig::with(exits), scheme, way);
}

fn judge(what: &str, config: LabConfig, scheme: &str, way: &Way) {
    judge_list(what, World::new(config), scheme, way);
}

pub fn judge_list(what: &str, world: World, scheme: &str, way: &Way) {
    world.urls((0..JOBS).map(|n| format!("{scheme}://o.test/ok/{n}?wait=150")));
    let with = |retries| [&LIMITS[..], &["--retries", retries]].concat();
    match way {
        Way::Exit(states, reason) => {
            let run = world.run(&with("0")).expect(0);
            assert_eq!(run.count(Outcome::Ok), JOBS, "{what}");
            let row = row(&world);
            assert_ne!(row.faults, "0", "{what}: {row:?}");
            assert!(states.contains(&&*row.state), "{what}: {row:?}");
            assert!(row.said.contains(reason), "{what}: {row:?}");
            let tried = run.records.iter().filter(|r| r.tried.contains(&row.id));
            assert_ne!(tried.count(), 0, "{what}: tried nowhere else");
        }
        Way::Pair(said) => {
            let run = world.run(&with("0")).expect(0);
            assert_eq!(run.count(Outcome::Ok), JOBS, "{what}");
            let row = row(&world);
            assert_eq!(
                (&*row.faults, &*row.state),
                ("0", "healthy"),
                "{what}: {row:?}"
            );
            assert_ne!(row.attempts, "0", "{what}");
            assert!(row.said.contains(said), "{what}: {row:?}");
        }
        Way::Unclear(kind) => {
            let run = world.run(&with("0"));
            assert_eq!(run.status, Some(3), "{what}:\n{}", run.stdout);
            let mut failed = run.records.iter().filter(|r| r.outcome == Outcome::Failed);
            let first = failed.next().unwrap();
            assert_eq!(first.exit.as_deref(), Some("lab-1"), "{what}");
            let error = first.error.as_ref().unwrap();
            assert_eq!(
                (&*error.kind.as_str(), error.blame, first.attempts),
                (*kind, Blame::Unclear, 1),
                "{what}: {error:?}"
            );
            assert_eq!(world.exits_csv()[1]["state"], "healthy", "{what}");
            // With a try more they are all ok, the failed ones of the first run included.
            let run = world.run(&with("2")).expect(0);
            assert_eq!(run.count(Outcome::Ok), JOBS, "{what}");
        }
    }
    world.assert_whole();
}

/// A behaviour or the word for one.
pub struct Word(Behaviour);

impl From<&str> for Word {
    fn from(word: &str) -> Word {
        Word(word.parse().unwrap())
    }
}

impl From<Behaviour> for Word {
    fn from(behaviour: Behaviour) -> Word {
        Word(behaviour)
    }
}

#[derive(Debug)]
pub struct Row {
    id: String,
    pub attempts: String,
    pub faults: String,
    state: String,
    /// Reason and last error.
    said: String,
}

/// What is written about the first exit.
pub fn row(world: &World) -> Row {
    let row = &world.exits_csv()[0];
    let summary = std::fs::read_to_string(world.out().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let last = summary["exits"][0]["last_error"]
        .as_str()
        .unwrap_or_default();
    Row {
        id: row["id"].clone(),
        attempts: row["attempts"].clone(),
        faults: row["faults"].clone(),
        state: row["state"].clone(),
        said: format!("{} / {last}", row["reason"]),
    }
}
