//! Every row of the blame table (ALGORITHMS section 4) end to end: a scripted behaviour, what
//! the records say of it, what the exit's row says.
//!
//! A bad exit stands beside a good one, with enough jobs at once that both are used. With
//! `--retries 0` the table's two ways on part: an exit's or a pair's fault goes to the other
//! exit all the same, an unclear one ends the job and shows its kind and blame.

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig, Over, Page};
use exitfetch::model::{Blame, Outcome};

use crate::world::World;

const LIMITS: [&str; 12] = [
    "--rate",
    "unlimited",
    "--per-exit",
    "4",
    "--connect-timeout",
    "2s",
    "--first-byte-timeout",
    "2s",
    "--stall-timeout",
    "1s",
    "--cacert",
    "lab-ca.pem",
];
const JOBS: usize = 8;

/// What is to be seen of a bad exit beside a good one.
enum Way {
    /// Charged to the exit, which is in one of these states with this in its reason or last
    /// error; jobs go to the other exit, uncounted.
    Exit(&'static [&'static str], &'static str),
    /// Charged to nobody: this exit does not reach this origin.
    Pair(&'static str),
    /// Unclear: counted against the tries, then tried elsewhere; kind of its record.
    Unclear(&'static str),
}

const SUSPECT: &[&str] = &["healthy", "limited", "ejected", "probation"];

/// `behaviour` at an exit beside a good one of the same kind.
fn beside(exit: &ExitConfig, behaviour: impl Into<Word>, scheme: &str, way: &Way) {
    let behaviour = behaviour.into().0;
    let what = format!("{behaviour} at {:?} for {scheme}", exit.scheme);
    let exits = [exit.clone().behaving(behaviour), exit.clone()];
    // One host: four that an exit refuses would be its own fault.
    judge(&what, LabConfig::with(exits), scheme, way);
}

fn judge(what: &str, config: LabConfig, scheme: &str, way: &Way) {
    judge_list(what, World::new(config), scheme, way);
}

fn judge_list(what: &str, world: World, scheme: &str, way: &Way) {
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
struct Word(Behaviour);

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
struct Row {
    id: String,
    attempts: String,
    faults: String,
    state: String,
    /// Reason and last error.
    said: String,
}

/// What is written about the first exit.
fn row(world: &World) -> Row {
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

/// Rows 1: resolve, dial, TLS of the exit.
#[test]
fn an_exit_that_cannot_be_reached_is_at_fault() {
    for exit in [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ] {
        beside(&exit, "refuse", "http", &Way::Exit(SUSPECT, "refused"));
    }
    beside(
        &ExitConfig::http(),
        "refuse",
        "https",
        &Way::Exit(SUSPECT, "refused"),
    );
    beside(
        &ExitConfig::http(),
        "drop-syn",
        "http",
        &Way::Exit(SUSPECT, ""),
    );
    // No TLS where TLS was said, and a silent one.
    for word in ["mail", "hang", "close"] {
        beside(&ExitConfig::https(), word, "http", &Way::Exit(SUSPECT, ""));
    }
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    let good = world.exit(1).line();
    let no_tls = format!("https://{} name=lab-1\n{good}\n", world.exit(0).address());
    world.write("exits.txt", no_tls);
    judge_list(
        "no TLS",
        world,
        "http",
        &Way::Exit(SUSPECT, "TLS with the exit"),
    );
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    let lost = format!(
        "http://nowhere.invalid:1 name=lab-1\n{}\n",
        world.exit(1).line()
    );
    world.write("exits.txt", lost);
    judge_list("no address", world, "http", &Way::Exit(SUSPECT, ""));
}

/// Row 2: 407.
#[test]
fn an_exit_that_wants_another_login_is_evicted() {
    let way = Way::Exit(&["evicted"], "credentials refused");
    for scheme in ["http", "https"] {
        for exit in [
            ExitConfig::http(),
            ExitConfig::https(),
            ExitConfig::socks5(),
        ] {
            beside(&exit, "407", scheme, &way);
        }
    }
}

/// Row 3: refusals because of the number of connections lower the ceiling.
#[test]
fn an_exit_that_refuses_more_at_once_is_limited() {
    let limited = Way::Exit(&["limited"], "refuses more than");
    let full = Page::with(503, "Proxy-Status: lab; error=connection_limit_reached");
    let full = Behaviour::Limit {
        sockets: 2,
        over: Over::Page(full),
    };
    beside(&ExitConfig::http(), "limit:2:429", "https", &limited);
    beside(&ExitConfig::http(), full.clone(), "https", &limited);
    beside(&ExitConfig::http(), full, "http", &limited);
}

/// Row 4: a refusal of this target is nobody's fault but the pair's.
#[test]
fn an_exit_that_refuses_the_target_is_held_off_there_only() {
    let denied = |status, error: &str| {
        Behaviour::Connect(Page::with(
            status,
            &format!("Proxy-Status: lab; error={error}"),
        ))
    };
    let http = ExitConfig::http();
    beside(&http, "connect:403", "https", &Way::Pair("403"));
    beside(
        &ExitConfig::https(),
        "connect:403",
        "https",
        &Way::Pair("403"),
    );
    beside(
        &http,
        denied(502, "http_request_denied"),
        "https",
        &Way::Pair("502"),
    );
    beside(
        &http,
        denied(400, "destination_ip_prohibited"),
        "https",
        &Way::Pair("400"),
    );
    let squid = Page::with(403, "X-Squid-Error: ERR_ACCESS_DENIED 0");
    beside(&http, Behaviour::Forward(squid), "http", &Way::Pair(""));
    for scheme in ["http", "https"] {
        beside(&ExitConfig::socks5(), "socks:2", scheme, &Way::Pair(""));
    }
}

/// Row 4: four origins refused are the exit's own fault.
#[test]
fn an_exit_that_refuses_many_targets_is_at_fault() {
    for (exit, word) in [
        (ExitConfig::http(), "connect:403"),
        (ExitConfig::socks5(), "socks:2"),
    ] {
        let bad = exit.clone().behaving(word.parse().unwrap());
        let world = World::new(LabConfig::with([bad, exit]));
        world.urls((0..24).map(|n| format!("https://o-{n}.test/ok/{n}?wait=50")));
        world
            .run(&[&LIMITS[..], &["--retries", "0"]].concat())
            .expect(0);
        let row = row(&world);
        assert_ne!(row.faults, "0", "{row:?}");
    }
}

/// Row 5: tunnels that do not come about.
#[test]
fn a_tunnel_that_does_not_come_about_is_unclear() {
    let unclear = Way::Unclear("handshake");
    for status in [500, 502, 503, 504] {
        beside(
            &ExitConfig::http(),
            &*format!("connect:{status}"),
            "https",
            &unclear,
        );
    }
    beside(&ExitConfig::https(), "connect:502", "https", &unclear);
}

/// Row 5: an exit that never worked and stays mute carries the larger part itself.
#[test]
fn an_exit_that_stays_mute_in_handshakes_carries_that_itself() {
    let mute = Way::Exit(SUSPECT, "");
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        beside(&exit, "close-handshake", "https", &mute);
        beside(&exit, "hang-handshake", "https", &mute);
    }
    beside(&ExitConfig::https(), "close-handshake", "https", &mute);
    beside(&ExitConfig::socks5(), "hang-handshake", "http", &mute);
}

/// Row 5, SOCKS5.
#[test]
fn a_socks_request_that_fails_is_unclear() {
    let unclear = Way::Unclear("handshake");
    for code in [1, 3, 4, 5, 6] {
        beside(
            &ExitConfig::socks5(),
            &*format!("socks:{code}"),
            "http",
            &unclear,
        );
    }
}

/// Rows 8, 9: no answer, or one that is none.
#[test]
fn an_exit_that_spoils_the_answer_is_unclear() {
    beside(
        &ExitConfig::http(),
        "hang",
        "http",
        &Way::Unclear("first_byte_timeout"),
    );
    beside(
        &ExitConfig::http(),
        "close",
        "http",
        &Way::Unclear("no_answer"),
    );
    beside(
        &ExitConfig::http(),
        "garbage",
        "http",
        &Way::Unclear("not_http"),
    );
    beside(
        &ExitConfig::http(),
        "mail",
        "http",
        &Way::Unclear("not_http"),
    );
}

/// Row 11: plain requests: the exit's own pages by their marks; bare ones are unclear.
#[test]
fn a_page_in_the_origins_place_is_judged_by_its_mark() {
    let http = ExitConfig::http();
    let page = |status, field: &str| Behaviour::Forward(Page::with(status, field));
    let vendor = page(502, "X-Luminati-Error: no peer");
    beside(&http, vendor, "http", &Way::Exit(SUSPECT, "502"));
    let own = page(502, "Proxy-Status: lab; error=proxy_internal_error");
    beside(&http, own, "http", &Way::Exit(SUSPECT, "502"));
    let lost = page(502, "Proxy-Status: lab; error=dns_error");
    beside(&http, lost, "http", &Way::Unclear("status"));
    for status in [500, 502, 503, 504] {
        beside(
            &http,
            &*format!("page:{status}"),
            "http",
            &Way::Unclear("status"),
        );
    }
}

/// Row 11: 401 and 403 are asked again elsewhere, whatever `--retries` says.
#[test]
fn a_bare_refusal_through_a_plain_exit_is_checked_through_another() {
    for status in [401, 403] {
        let bad = ExitConfig::http().behaving(Behaviour::Forward(Page::bare(status)));
        let world = World::new(LabConfig::with([bad, ExitConfig::http()]));
        world.urls((0..JOBS).map(|n| format!("http://o.test/ok/{n}?wait=150")));
        let run = world
            .run(&[&LIMITS[..], &["--retries", "0"]].concat())
            .expect(0);
        assert_eq!(run.count(Outcome::Ok), JOBS, "{status}");
        assert_ne!(row(&world).attempts, "0");
    }
}

/// Row 12: bodies cut on the way.
#[test]
fn an_exit_that_cuts_bodies_is_unclear() {
    for (exit, scheme) in [(ExitConfig::http(), "http"), (ExitConfig::socks5(), "http")] {
        let bad = exit.clone().behaving(Behaviour::Cut);
        let world = World::new(LabConfig::with([bad, exit]));
        world.urls((0..JOBS).map(|n| format!("{scheme}://o.test/ok/{}?wait=150", 1000 + n)));
        let run = world
            .run(&[&LIMITS[..], &["--retries", "0"]].concat())
            .expect(3);
        let mut failed = run.records.iter().filter(|r| r.outcome == Outcome::Failed);
        let error = failed.next().unwrap().error.clone().unwrap();
        assert_eq!(
            (&*error.kind.as_str(), error.blame),
            ("truncated", Blame::Unclear)
        );
        world
            .run(&[&LIMITS[..], &["--retries", "2"]].concat())
            .expect(0);
        world.assert_whole();
    }
}

/// What is seen when the origin does it through every exit: target, kind, blame, attempts with
/// `--retries 1`.
type OriginRow = (&'static str, &'static str, &'static [Blame], u32);

fn everywhere(rows: &[OriginRow], args: &[&str]) {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::alike(3, &exit));
        world.urls(rows.iter().map(|row| row.0));
        let run = world
            .run(&[&LIMITS[..], &["--retries", "1"], args].concat())
            .expect(3);
        for ((url, kind, blames, attempts), line) in rows.iter().zip(1..) {
            let record = run.line(line);
            let error = record.error.as_ref().unwrap();
            let what = format!("{url} through {:?}: {record:?}", exit.scheme);
            assert_eq!(error.kind.as_str(), *kind, "{what}");
            assert!(blames.contains(&error.blame), "{what}");
            assert_eq!(record.attempts, *attempts, "{what}");
        }
        for row in world.exits_csv() {
            assert!(!["ejected", "evicted"].contains(&&*row["state"]), "{row:?}");
        }
        assert!(world.stored().is_empty());
        world.assert_whole();
    }
}

const ORIGIN: &[Blame] = &[Blame::Origin];
/// The table says unclear; a second exit with the same may make it the origin's.
const NOT_THE_EXITS: &[Blame] = &[Blame::Unclear, Blame::Origin];

/// Rows 6 and 7: TLS with the origin.
#[test]
fn tls_faults_of_an_origin_are_not_the_exits() {
    everywhere(
        &[
            ("https://untrusted.a.test/ok/1", "certificate", ORIGIN, 2),
            ("https://wrong-name.b.test/ok/1", "certificate", ORIGIN, 2),
            ("https://tls-alert.c.test/ok/1", "tls", ORIGIN, 2),
            ("https://tls-close.d.test/ok/1", "tls", NOT_THE_EXITS, 2),
            ("https://tls-garbage.e.test/ok/1", "tls", NOT_THE_EXITS, 2),
            (
                "https://tls-silent.f.test/ok/1",
                "connect_timeout",
                NOT_THE_EXITS,
                2,
            ),
        ],
        &[],
    );
}

/// Rows 8 to 10: the head.
#[test]
fn faults_before_the_head_of_an_origin_are_not_the_exits() {
    everywhere(
        &[
            (
                "http://a.test/silent",
                "first_byte_timeout",
                NOT_THE_EXITS,
                2,
            ),
            (
                "https://b.test/silent",
                "first_byte_timeout",
                NOT_THE_EXITS,
                2,
            ),
            ("http://c.test/close", "no_answer", NOT_THE_EXITS, 2),
            ("https://d.test/close", "no_answer", NOT_THE_EXITS, 2),
            ("http://e.test/reset", "no_answer", NOT_THE_EXITS, 2),
            ("http://f.test/no-http", "not_http", NOT_THE_EXITS, 2),
            (
                "https://g.test/head/5000000",
                "head_too_large",
                NOT_THE_EXITS,
                2,
            ),
            ("https://h.test/status/500", "status", ORIGIN, 2),
            ("http://i.test/status/502", "status", ORIGIN, 2),
            ("https://j.test/status/503", "status", ORIGIN, 2),
            ("http://k.test/status/504", "status", ORIGIN, 2),
            ("https://l.test/status/408", "status", ORIGIN, 2),
            ("http://m.test/status/425", "status", ORIGIN, 2),
            ("https://n.test/status/404", "status", ORIGIN, 1),
            ("https://o.test/status/407", "status", ORIGIN, 1),
            ("https://p.test/status/403", "status", ORIGIN, 1),
        ],
        &[],
    );
}

/// Row 10: 429 through a tunnel is the origin's wish, not a fault of an exit.
#[test]
fn too_many_requests_is_the_origins() {
    everywhere(
        &[("https://a.test/status/429", "origin_paused", ORIGIN, 5)],
        &[],
    );
}

/// Rows 12, 13: the body.
#[test]
fn faults_inside_a_body_are_told_apart() {
    everywhere(
        &[
            ("http://a.test/truncated/100", "truncated", NOT_THE_EXITS, 2),
            (
                "https://b.test/truncated/100",
                "truncated",
                NOT_THE_EXITS,
                2,
            ),
            (
                "http://c.test/chunked-cut/100",
                "truncated",
                NOT_THE_EXITS,
                2,
            ),
            ("https://d.test/half/100", "stall_timeout", NOT_THE_EXITS, 2),
            (
                "http://e.test/reset-body/100000",
                "body_broken",
                NOT_THE_EXITS,
                2,
            ),
            ("https://f.test/bytes/200000", "too_large", &[Blame::Job], 1),
            ("http://g.test/endless", "too_large", &[Blame::Job], 1),
            ("https://h.test/gzip-lie", "decode", &[Blame::Job], 1),
        ],
        &["--max-body", "100000", "--compressed"],
    );
}
