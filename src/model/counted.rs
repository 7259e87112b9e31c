//! Numbers with their nouns, as people write them.

/// `1 entry`, `2 entries`: `n` with the word for one or for many. The word may bring its verb along
/// (`exit carries`, `exits carry`).
pub fn counted(n: impl TryInto<u64>, one: &str, many: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_has_a_word_of_its_own() {
        let entries = |n: u64| counted(n, "entry", "entries");
        assert_eq!(
            [entries(0), entries(1), entries(2)],
            ["0 entries", "1 entry", "2 entries"]
        );
    }
}
