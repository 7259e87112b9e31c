//! What a package is made of: version, licences, completions, manual page, units, and the
//! example of a program of one's own. Tools that are not installed leave their check out,
//! and it says so.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

#[path = "../../examples/own_loop.rs"]
mod own_loop;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn exitfetch(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_exitfetch"))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a tool. `None`, and a note, where it is not installed.
fn tool(program: &str, words: &[&str], dir: &Path) -> Option<(bool, String)> {
    let ran = Command::new(program)
        .args(words)
        .current_dir(dir)
        .env("XDG_RUNTIME_DIR", dir)
        .stdin(Stdio::null())
        .output();
    match ran {
        Ok(output) => Some((
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )),
        Err(_) => {
            eprintln!("left out, because {program} is not installed: {words:?}");
            None
        }
    }
}

#[track_caller]
fn passes(program: &str, words: &[&str], dir: &Path) {
    if let Some((passed, said)) = tool(program, words, dir) {
        assert!(
            passed && said.trim().is_empty(),
            "{program} {words:?}: {said}"
        );
    }
}

#[test]
fn completions_of_every_shell_are_scripts_that_know_the_flags() {
    let dir = tempfile::tempdir().unwrap();
    for (shell, check) in [
        ("bash", Some(("bash", "-n"))),
        ("zsh", Some(("zsh", "-n"))),
        ("fish", Some(("fish", "--no-execute"))),
        ("elvish", None),
        ("powershell", None),
    ] {
        let script = exitfetch(&["completions", shell]);
        for word in ["per-exit", "print-config", "urls", "completions"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        std::fs::write(dir.path().join(shell), script).unwrap();
        if let Some((program, flag)) = check {
            passes(program, &[flag, shell], dir.path());
        }
    }
    let asks = "source ./bash; COMP_WORDS=(exitfetch run --per-e); COMP_CWORD=2; \
        _exitfetch exitfetch --per-e run; echo \"${COMPREPLY[@]}\"";
    if let Some((passed, said)) = tool("bash", &["-c", asks], dir.path()) {
        assert!(passed && said.trim() == "--per-exit", "{said}");
    }
}

#[test]
fn the_manual_page_is_one_without_warnings() {
    let dir = tempfile::tempdir().unwrap();
    for (words, parts) in [
        (
            &["man"][..],
            [".TH exitfetch 1", ".SH SUBCOMMANDS", "exitfetch\\-run"],
        ),
        (
            &["man", "run"],
            [
                ".TH exitfetch-run 1  \"exitfetch 0",
                "\\-\\-per\\-exit",
                "Exit status",
            ],
        ),
    ] {
        let page = exitfetch(words);
        for part in parts {
            assert!(page.contains(part), "{part}: {page}");
        }
        std::fs::write(dir.path().join("page.1"), page).unwrap();
        passes(
            "groff",
            &["-man", "-Tutf8", "-ww", "-z", "page.1"],
            dir.path(),
        );
        passes(
            "mandoc",
            &["-T", "lint", "-W", "error", "page.1"],
            dir.path(),
        );
    }
}

/// groff knows no other characters than these without help.
#[test]
fn manual_pages_are_ascii() {
    for of in [
        "run", "probe", "report", "cat", "demo", "lab", "simulate", "urls",
    ] {
        let page = exitfetch(&["man", of]);
        let odd = page.lines().find(|line| !line.is_ascii());
        assert_eq!(odd, None, "{of}");
    }
}

#[test]
fn the_units_are_valid_and_run_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["exitfetch.service", "exitfetch.timer"] {
        std::fs::copy(root().join("contrib").join(name), dir.path().join(name)).unwrap();
    }
    let words = [
        "verify",
        "--user",
        "./exitfetch.service",
        "./exitfetch.timer",
    ];
    passes("systemd-analyze", &words, dir.path());
    let unit = std::fs::read_to_string(root().join("contrib/exitfetch.service")).unwrap();
    let (_, start) = unit.split_once("\nExecStart=").unwrap();
    let (start, _) = start.split_once('\n').unwrap();
    let world = crate::world::World::new(exitfetch_lab());
    world.urls(["http://o.test/ok/1"]);
    let bin = world.dir().join(".cargo/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_exitfetch"), bin.join("exitfetch")).unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", start])
        .current_dir(world.dir())
        .env_clear()
        .env("HOME", world.dir())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    world.finish(command).expect(0);
    assert!(world.dir().join("pages/results.jsonl").is_file());
}

fn exitfetch_lab() -> exitfetch::lab::LabConfig {
    exitfetch::lab::LabConfig::with([exitfetch::lab::ExitConfig::http()])
}

#[test]
fn the_example_of_an_own_loop_fetches_everything_within_the_caps() {
    own_loop::main().unwrap();
}

/// `build.rs` as cargo runs it, in a directory of its own.
fn shown_version(dir: &Path, profile: &str) -> String {
    let script = dir.parent().unwrap().join("build-script");
    if !script.exists() {
        let source = root().join("build.rs");
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
        let built = Command::new(rustc)
            .args(["--edition", "2024", "-o"])
            .args([&script, &source])
            .status();
        assert!(built.unwrap().success());
    }
    let output = Command::new(script)
        .current_dir(dir)
        .env("PROFILE", profile)
        .env("CARGO_PKG_VERSION", "1.2.3")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, shown) = text.split_once("cargo::rustc-env=SHOWN_VERSION=").unwrap();
    shown.trim_end().to_owned()
}

#[test]
fn the_version_names_the_commit_of_a_clone_and_of_a_package() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let bare = place("bare");
    assert_eq!(shown_version(&bare, "release"), "1.2.3");

    let package = place("package");
    let info =
        "{\n  \"git\": {\n    \"sha1\": \"0123456789abcdef0123456789abcdef01234567\"\n  }\n}";
    std::fs::write(package.join(".cargo_vcs_info.json"), info).unwrap();
    assert_eq!(shown_version(&package, "release"), "1.2.3 (0123456789ab)");
    assert_eq!(shown_version(&package, "debug"), "1.2.3");

    let clone = place("clone");
    let git = |words: &[&str]| {
        let own = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        tool("git", &[&own, words].concat(), &clone)
    };
    if git(&["init", "-q"]).is_none() {
        return;
    }
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    let (_, commit) = git(&["rev-parse", "HEAD"]).unwrap();
    let expected = format!("1.2.3 ({})", &commit[..12]);
    assert_eq!(shown_version(&clone, "release"), expected);
    // A package unpacked inside of somebody's repository is not of that repository.
    let inside = clone.join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::rename(dir.path().join("build-script"), clone.join("build-script")).unwrap();
    assert_eq!(shown_version(&inside, "release"), "1.2.3");
}

#[test]
fn the_program_shows_its_version() {
    let shown = exitfetch(&["--version"]);
    let expected = concat!("exitfetch ", env!("CARGO_PKG_VERSION"));
    assert!(shown.starts_with(expected), "{shown}");
}

/// Whether a licence expression (SPDX, or the older `A/B`) is met by what is allowed.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = any_of(&words, allowed);
    assert!(rest.is_empty(), "not understood: {expression}");
    met
}

fn any_of<'w>(words: &'w [&'w str], allowed: &BTreeSet<String>) -> (bool, &'w [&'w str]) {
    let (mut met, mut rest) = all_of(words, allowed);
    while let ["OR", more @ ..] = rest {
        let (other, left) = all_of(more, allowed);
        (met, rest) = (met || other, left);
    }
    (met, rest)
}

fn all_of<'w>(words: &'w [&'w str], allowed: &BTreeSet<String>) -> (bool, &'w [&'w str]) {
    let (mut met, mut rest) = one_of(words, allowed);
    while let ["AND", more @ ..] = rest {
        let (other, left) = one_of(more, allowed);
        (met, rest) = (met && other, left);
    }
    (met, rest)
}

fn one_of<'w>(words: &'w [&'w str], allowed: &BTreeSet<String>) -> (bool, &'w [&'w str]) {
    match words {
        ["(", inner @ ..] => {
            let (met, rest) = any_of(inner, allowed);
            (met, rest.strip_prefix(&[")"]).expect("a closing bracket"))
        }
        [name, "WITH", exception, rest @ ..] => {
            (allowed.contains(&format!("{name} WITH {exception}")), rest)
        }
        [name, rest @ ..] => (allowed.contains(*name), rest),
        [] => (false, &[]),
    }
}

/// A release of Rust as numbers.
fn release(text: &str) -> Vec<u32> {
    text.split('.').map(|part| part.parse().unwrap()).collect()
}

#[test]
fn every_dependency_has_an_allowed_licence_and_works_with_the_declared_rust() {
    let deny: toml::Table = std::fs::read_to_string(root().join("deny.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let allowed: BTreeSet<String> = deny["licenses"]["allow"].clone().try_into().unwrap();
    assert!(is_allowed("(MIT OR GPL-3.0) AND Zlib", &allowed));
    assert!(!is_allowed("MIT AND GPL-3.0", &allowed) && !is_allowed("GPL-3.0/X", &allowed));
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let words = ["metadata", "--format-version", "1", "--locked", "--offline"];
    let output = Command::new(cargo)
        .args(words)
        .args(["--filter-platform", &platform])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "{}", packages.len());
    let banned: Vec<&str> = deny["bans"]["deny"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ban| ban["crate"].as_str().unwrap())
        .collect();
    let own = packages
        .iter()
        .find(|package| package["name"] == "exitfetch")
        .unwrap();
    let ours = release(own["rust_version"].as_str().unwrap());
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(is_allowed(licence, &allowed), "{name}: {licence}");
        assert!(!banned.contains(&name), "{name} is banned");
        let needs = package["rust_version"].as_str();
        assert!(
            needs.is_none_or(|needs| release(needs) <= ours),
            "{name} needs Rust {needs:?}: raise rust-version"
        );
        let source = package["source"].as_str().unwrap_or("registry+path");
        assert!(source.starts_with("registry+"), "{name}: {source}");
    }
}
