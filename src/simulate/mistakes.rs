//! Reading a scenario file, and the mistakes that can be told from it alone, each with its line.

use std::collections::BTreeSet;

use super::figures;
use super::scenario::Scenario;

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line of the file, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Scenario {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(text: &str) -> Result<Scenario, Mistake> {
        let scenario: Scenario = serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            Mistake {
                line: error.line().max(1),
                message: message.trim_end_matches(&place).to_owned(),
            }
        })?;
        match scenario.mistake() {
            None => Ok(scenario),
            Some((word, message)) => Err(Mistake {
                line: line_of(text, &word),
                message,
            }),
        }
    }

    /// The word to look for and what is wrong with it.
    fn mistake(&self) -> Option<(String, String)> {
        let mut names = BTreeSet::new();
        let exits = self.exits.iter().map(|exit| (&exit.name, exit.count));
        let origins = self
            .origins
            .iter()
            .map(|origin| (&origin.name, origin.count));
        for (name, count) in exits.chain(origins) {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let host = url::Url::parse(&format!("http://{name}.test/"));
            if name.is_empty() || !name.chars().all(plain) || host.is_err() {
                let message = format!("`{name}` is no name: write a-z, 0-9 and -");
                return Some((name.clone(), message));
            }
            if !names.insert(name) {
                return Some((name.clone(), format!("`{name}` is the name of two")));
            }
            if count == 0 || count > 1_000_000 {
                let message = format!("`{name}`: a count is 1 to 1000000");
                return Some((name.clone(), message));
            }
        }
        for exit in &self.exits {
            let group = exit.group.as_ref();
            if let Some(group) = group.filter(|group| self.group(group).is_none()) {
                let message = format!("`{group}` is no group: list it under `groups`");
                return Some((group.clone(), message));
            }
        }
        for name in self.expect.keys() {
            if !figures::is_known(self, name) {
                let message = format!("`{name}` is no figure: {}", figures::KNOWN);
                return Some((name.clone(), message));
            }
        }
        let (word, message) = self.bad_number()?;
        Some((word.to_owned(), message.to_owned()))
    }

    fn bad_number(&self) -> Option<(&str, &'static str)> {
        if self.exits.is_empty() {
            return Some(("exits", "there is no exit"));
        }
        if http::Method::from_bytes(self.jobs.method.as_bytes()).is_err() {
            return Some(("method", "a method is a word, such as GET"));
        }
        let counted = self.origins.iter().all(|origin| origin.jobs.is_some());
        if self.origins.is_empty() || (self.jobs.count.is_none() && !counted) {
            return Some((
                "jobs",
                "say how many jobs: `jobs.count`, or `jobs` of each origin",
            ));
        }
        for origin in &self.origins {
            if !origin.weight.is_finite() || origin.weight < 0.0 {
                return Some(("weight", "a weight is 0 or more"));
            }
            let limit = origin.limit.as_ref();
            if limit.is_some_and(|limit| !limit.rate.is_finite() || limit.rate <= 0.0) {
                return Some(("limit", "the rate of a limit lies above 0"));
            }
        }
        let latencies = self.origins.iter().map(|origin| origin.latency);
        let mut latencies = latencies.chain(self.exits.iter().map(|exit| exit.latency));
        if latencies.any(|latency| !(0.0..=4.0).contains(&latency.sigma)) {
            return Some(("sigma", "sigma is 0 to 4"));
        }
        let troubled = self.exits.iter().any(|exit| !exit.faults.is_empty())
            || self
                .origins
                .iter()
                .any(|origin| !origin.faults.is_empty() || origin.limit.is_some());
        if self.contrast.is_some() && troubled {
            return Some((
                "contrast",
                "a contrast shows waiting alone: leave out faults and limits",
            ));
        }
        None
    }

    /// Index of a group.
    pub(super) fn group(&self, name: &str) -> Option<u32> {
        let at = self.groups.iter().position(|group| group.name == name)?;
        u32::try_from(at).ok()
    }

    /// The line of a word of the file, for a mistake that was found after reading it.
    pub fn line_of(text: &str, word: &str) -> usize {
        line_of(text, word)
    }
}

fn line_of(text: &str, word: &str) -> usize {
    let quoted = format!("\"{word}\"");
    let before = text.rfind(&quoted).map_or("", |at| &text[..at]);
    before.matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
  "exits": [{"name": "a", "count": 2}],
  "origins": [{"name": "site"}],
  "jobs": {"count": 10},
  "expect": {"ok": 10, "exits.a.ejections": 0}
}"#;

    #[test]
    fn a_scenario_says_what_its_figures_must_be() {
        let scenario = Scenario::parse(GOOD).unwrap();
        assert_eq!(scenario.exits[0].count, 2);
        assert_eq!(scenario.expect.len(), 2);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (good, bad, line, says) in [
            ("\"count\": 2", "\"cuont\": 2", 2, "unknown field `cuont`"),
            ("\"name\": \"site\"", "\"name\": \"a\"", 3, "name of two"),
            ("exits.a.ejections", "exits.b.ejections", 5, "is no figure"),
            ("\"ok\"", "\"okay\"", 5, "is no figure"),
            ("{\"count\": 10}", "{}", 4, "how many jobs"),
        ] {
            let mistake = Scenario::parse(&GOOD.replace(good, bad)).unwrap_err();
            assert!(mistake.message.contains(says), "{mistake:?}");
            assert_eq!(mistake.line, line, "{mistake:?}");
        }
    }
}
