//! The keys of the settings file: which there are, where one stands, which one was meant.
//!
//! Owns the names of tables and of their keys, and the guess at a misspelt name, for keys,
//! flags and variables alike. Leaves the keys of `[run]` to `layers`: they are the flags.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The tables of the file.
const TABLES: [&str; 4] = ["run", "tiers", "groups", "origins"];

/// The keys of each table below one of these.
const KEYS: [(&str, &[&str]); 3] = [
    ("tiers", &["per_exit", "keep_alive"]),
    ("groups", &["cap"]),
    ("origins", &["rate", "burst", "per_origin", "headers"]),
];

/// A key that means nothing.
#[derive(Debug)]
pub struct Unknown {
    /// Where it stands.
    pub span: Range<usize>,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// The first key that means nothing, those of `[run]` left out.
pub fn unknown(table: &DeTable<'_>) -> Option<Unknown> {
    unknown_of(table, &TABLES, "the settings file").or_else(|| {
        KEYS.iter().find_map(|(section, known)| {
            let named = table_in(table, section)?;
            named.iter().find_map(|(name, value)| {
                let place = format!("[{section}.{}]", quoted(name.get_ref()));
                unknown_of(as_table(value.get_ref())?, known, &place)
            })
        })
    })
}

/// Where the key stands that these names lead to.
pub fn span_of(table: &DeTable<'_>, names: &[&str]) -> Option<Range<usize>> {
    let (last, before) = names.split_last()?;
    let table = before.iter().try_fold(table, |at, name| table_in(at, name));
    let (key, _) = table?.iter().find(|(key, _)| key.get_ref() == last)?;
    Some(key.span())
}

/// The one of `known` that `name` is a slip of the pen of, if any. Half of the letters, at
/// most three, may be wrong: else everything would be like everything.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let best = known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .min()?;
    let (far, known) = best;
    let allowed = 3.min(name.len().min(known.len()) / 2);
    (far <= allowed).then_some(known)
}

/// A name as TOML writes it in a key: bare where that is enough.
pub fn quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) {
        return name.to_owned();
    }
    toml::Value::String(name.to_owned()).to_string()
}

fn unknown_of(table: &DeTable<'_>, known: &[&str], place: &str) -> Option<Unknown> {
    let key = table
        .keys()
        .filter(|key| !known.contains(&key.get_ref().as_ref()))
        .min_by_key(|key| key.span().start)?;
    let name = key.get_ref();
    let hint = match nearest(&name.replace('-', "_"), known.iter().copied()) {
        Some(meant) => format!(": did you mean `{meant}`?"),
        None => format!(": it has {}", known.join(", ")),
    };
    Some(Unknown {
        span: key.span(),
        reason: format!("{place} has no key `{name}`{hint}"),
    })
}

fn table_in<'t, 'i>(table: &'t DeTable<'i>, name: &str) -> Option<&'t DeTable<'i>> {
    let (_, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    as_table(value.get_ref())
}

fn as_table<'t, 'i>(value: &'t DeValue<'i>) -> Option<&'t DeTable<'i>> {
    match value {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<String> {
        let table = DeTable::parse(text).unwrap();
        unknown(table.get_ref()).map(|unknown| unknown.reason)
    }

    #[test]
    fn a_misspelt_key_is_answered_with_the_nearest_one_at_every_level() {
        for (text, meant) in [
            ("[rum]\nrate = 1", "`run`"),
            ("[teirs.a]\nper_exit = 1", "`tiers`"),
            ("[tiers.a]\nper_exits = 1", "`per_exit`"),
            ("[tiers.a]\nkeep-alive = true", "`keep_alive`"),
            ("[groups.a]\ncaps = 1", "`cap`"),
            ("[origins.'a.test']\nbrust = 1", "`burst`"),
            ("[origins.'a.test']\nheader = {}", "`headers`"),
        ] {
            let told = told(text).unwrap();
            assert!(told.ends_with(&format!("did you mean {meant}?")), "{told}");
        }
    }

    #[test]
    fn a_key_like_none_is_answered_with_all_there_are() {
        let told = told("[groups.a]\nsize = 1").unwrap();
        assert_eq!(told, "[groups.a] has no key `size`: it has cap");
    }

    #[test]
    fn known_keys_are_left_alone_and_the_first_unknown_one_counts() {
        let text = "[run]\nanything = 1\n[tiers.a]\nper_exit = 1\n[origins.'a.test']\nrate = 1";
        assert_eq!(told(text), None);
        let told = told("zzzz = 1\naaaa = 2").unwrap();
        assert!(told.contains("`zzzz`"), "{told}");
    }

    #[test]
    fn a_key_is_found_by_its_names() {
        let text = "[tiers.a]\nper_exit = 1\n[origins.'a.test']\nrate = 1";
        let table = DeTable::parse(text).unwrap();
        let at = |names: &[&str]| span_of(table.get_ref(), names).map(|span| &text[span]);
        assert_eq!(at(&["tiers", "a", "per_exit"]), Some("per_exit"));
        assert_eq!(at(&["origins", "a.test", "rate"]), Some("rate"));
        assert_eq!(at(&["tiers", "b", "per_exit"]), None);
    }

    #[test]
    fn short_names_are_not_alike_by_being_short() {
        assert_eq!(nearest("port", ["out", "rate"]), None);
        assert_eq!(nearest("per_exits", ["per_exit", "out"]), Some("per_exit"));
    }
}
