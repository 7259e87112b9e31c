//! The files that make a running lab usable from another terminal.

use std::path::Path;

use anyhow::{Context, bail};

use super::Parts;

const SAMPLE: usize = 60;
const SITES: usize = 12;

/// How both lists begin.
const MARK: &str = "# A loopback lab";

/// `count` URLs of about a second each, over a dozen sites that exist behind the exits only.
pub fn sample_urls(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| {
            // 600 to 1400 ms in no visible order, 1000 on average.
            let wait = 600 + n * 370 % 900 / 100 * 100;
            format!("http://site-{}.test/delay/{wait}/{}", n % SITES + 1, n + 1)
        })
        .collect()
}

/// What `urls.txt` holds.
pub(super) fn urls_txt() -> String {
    let mut text = String::from(
        "# A loopback lab: these sites exist behind its exits only. Any other name works too,\n\
         # and https:// with --cacert lab-ca.pem. The routes are listed at http://any.test/\n",
    );
    for url in sample_urls(SAMPLE) {
        text += &url;
        text.push('\n');
    }
    text
}

/// A list that somebody wrote, logins and all, is not replaced; that of an earlier lab is.
fn spare_lists_of_others(path: &Path) -> anyhow::Result<()> {
    match std::fs::read(path) {
        Ok(text) if !text.is_empty() && !text.starts_with(MARK.as_bytes()) => bail!(
            "{} is there already, and no lab wrote it\nhint: name another directory with --write",
            path.display()
        ),
        _ => Ok(()),
    }
}

impl Parts {
    /// What `exits.txt` holds.
    pub(super) fn exits_txt(&self) -> String {
        let mut text = format!(
            "# A loopback lab's exits. What they count: http://{}/stats\n",
            self.control
        );
        for exit in &self.exits {
            text += &exit.line();
            text.push('\n');
        }
        text
    }

    /// Writes all three into `dir`, which is made if it is not there.
    pub(super) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("make the directory {}", dir.display()))?;
        for name in ["exits.txt", "urls.txt"] {
            spare_lists_of_others(&dir.join(name))?;
        }
        for (name, text) in [
            ("exits.txt", self.exits_txt()),
            ("urls.txt", urls_txt()),
            ("lab-ca.pem", self.authority.pem().to_owned()),
        ] {
            let path = dir.join(name);
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_urls_are_all_different_and_take_about_a_second() {
        let urls = sample_urls(60);
        let distinct: std::collections::HashSet<_> = urls.iter().collect();
        assert_eq!(distinct.len(), 60);
        let waits: Vec<u32> = urls
            .iter()
            .map(|url| url.split('/').nth(4).unwrap().parse().unwrap())
            .collect();
        assert!(waits.iter().all(|wait| (600..=1400).contains(wait)));
        let mean = waits.iter().sum::<u32>() / 60;
        assert!((950..=1050).contains(&mean), "{mean}");
    }

    #[test]
    fn lists_of_a_lab_are_replaced_and_those_of_people_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("urls.txt");
        spare_lists_of_others(&list).unwrap();
        std::fs::write(&list, urls_txt()).unwrap();
        spare_lists_of_others(&list).unwrap();
        std::fs::write(&list, "https://example.com/\n").unwrap();
        let error = spare_lists_of_others(&list).unwrap_err().to_string();
        assert!(error.contains("\nhint: "), "{error}");
    }
}
