//! Which layer wins, how a key or a variable is read, how a mistake is told.

use anyhow::Result;

use super::*;

fn given(line: &str) -> Result<Vec<Given>> {
    let file = File::new("own.toml", format!("[run]\n{line}"));
    of_file(&file.read()?, &file)
}

fn words(line: &str) -> Result<Vec<OsString>> {
    Ok(given(line)?.into_iter().flat_map(|g| g.words).collect())
}

fn variables(pairs: &[(&str, &str)]) -> Result<Vec<Given>> {
    of_environment(pairs.iter().map(|(n, v)| (n.into(), v.into())))
}

fn resolved(typed: &[&str], variable: &[(&str, &str)], file: &str) -> Result<Resolved> {
    let words = ["exitfetch", "run"].iter().chain(typed);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    resolve(&words, given(file)?, variables(variable)?)
}

fn shown(resolved: &Resolved, key: &str) -> (Vec<String>, Source) {
    let run = resolved.run().unwrap();
    let raw = run.get_raw(key).into_iter().flatten();
    let raw = raw.map(|value| value.to_str().unwrap().to_owned());
    (raw.collect(), resolved.source(key))
}

#[test]
fn keys_become_the_flags_they_are_named_after() {
    assert_eq!(words("rate = 0.5").unwrap(), ["--rate=0.5"]);
    assert_eq!(words("per_exit = 4").unwrap(), ["--per-exit=4"]);
    assert_eq!(words("per-exit = \"4\"").unwrap(), ["--per-exit=4"]);
    assert_eq!(words("fresh = true").unwrap(), ["--fresh"]);
    assert!(words("fresh = false").unwrap().is_empty());
    let headers = words("header = ['A: b', 'C: d']").unwrap();
    assert_eq!(headers, ["--header=A: b", "--header=C: d"]);
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_place() {
    for (text, said) in [
        (
            "rate = 0",
            "own.toml:2: [run] invalid value '0' for '--rate",
        ),
        (
            "\nburts = 1",
            "own.toml:3: [run] has no key `burts`: did you mean `burst`?",
        ),
        (
            "quiet = true\nverbose = true",
            "own.toml: [run] the argument",
        ),
        ("header = 'x'", "own.toml:2: [run] --header: "),
        (
            "config = 'x'",
            "own.toml:2: [run] config is for the command line",
        ),
        ("fresh = 3", "own.toml:2: [run] fresh: write true or false"),
        (
            "rate = true",
            "own.toml:2: [run] rate: write text or a number",
        ),
        ("rate = ['1', '2']", "own.toml:2: [run] rate: write text"),
        ("header = [1]", "own.toml:2: [run] header: write a list"),
        (
            "zzzzzzzz = 4",
            "own.toml:2: [run] has no key `zzzzzzzz`: see",
        ),
    ] {
        let error = format!("{:#}", resolved(&[], &[], text).unwrap_err());
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn a_mistake_in_the_environment_is_told_with_the_variable() {
    for (name, value, said) in [
        (
            "EXITFETCH_RATE",
            "fast",
            "EXITFETCH_RATE: invalid value 'fast' for",
        ),
        (
            "EXITFETCH_QUIET",
            "maybe",
            "EXITFETCH_QUIET: write true or false",
        ),
        (
            "EXITFETCH_PER_EXITS",
            "3",
            "EXITFETCH_PER_EXITS is no setting: did you mean EXITFETCH_PER_EXIT?",
        ),
        (
            "EXITFETCH_HEADER",
            "hunter2",
            "EXITFETCH_HEADER: --header: a header is written",
        ),
    ] {
        let error = format!("{:#}", resolved(&[], &[(name, value)], "").unwrap_err());
        assert!(error.starts_with(said), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    let others = [
        ("EXITFETCH_PORT", "x"),
        ("OTHER", "y"),
        ("EXITFETCH_RATE", ""),
    ];
    assert!(variables(&others).unwrap().is_empty());
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let rate = |typed: &[&str], variable: &[(&str, &str)], file| {
        shown(&resolved(typed, variable, file).unwrap(), "rate")
    };
    let variable = [("EXITFETCH_RATE", "2")];
    let is = |value: &str, source| (vec![value.to_owned()], source);
    assert_eq!(rate(&[], &[], ""), is("10", Source::Default));
    let file = Source::File("own.toml:2".into());
    assert_eq!(rate(&[], &[], "rate = 3"), is("3", file));
    let environment = Source::Environment("EXITFETCH_RATE".into());
    assert_eq!(rate(&[], &variable, "rate = 3"), is("2", environment));
    assert_eq!(
        rate(&["--rate", "1"], &variable, "rate = 3"),
        is("1", Source::Flag)
    );
}

#[test]
fn an_upper_layer_can_turn_a_switch_off() {
    let off = resolved(&[], &[("EXITFETCH_QUIET", "no")], "quiet = true").unwrap();
    assert!(!off.run().unwrap().get_flag("quiet"));
    let source = Source::Environment("EXITFETCH_QUIET".into());
    assert_eq!(off.source("quiet"), source);
}

#[test]
fn what_an_upper_layer_excludes_gives_way() {
    let quiet = |typed: &[&str], variable: &[(&str, &str)], file| {
        let resolved = resolved(typed, variable, file).unwrap();
        let run = resolved.run().unwrap();
        (run.get_flag("quiet"), run.get_flag("verbose"))
    };
    let variable = [("EXITFETCH_VERBOSE", "1")];
    assert_eq!(quiet(&["-v"], &[], "quiet = true"), (false, true));
    assert_eq!(quiet(&[], &variable, "quiet = true"), (false, true));
    assert_eq!(quiet(&["-q"], &variable, ""), (true, false));
}

#[test]
fn headers_of_all_layers_are_there_and_the_upper_ones_come_last() {
    let variable = [("EXITFETCH_HEADER", "B: 1\nC: 2\n")];
    let all = resolved(&["-H", "D: 3"], &variable, "header = ['A: 0']").unwrap();
    assert_eq!(shown(&all, "header").0, ["A: 0", "B: 1", "C: 2", "D: 3"]);
    let sources: Vec<String> = all
        .sources("header")
        .iter()
        .map(|s| s.to_string())
        .collect();
    let variable = "environment EXITFETCH_HEADER";
    assert_eq!(sources, ["own.toml:2", variable, variable, "flag"]);
}
