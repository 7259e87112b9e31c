//! The rows of the blame table that an exit can cause, end to end: a
//! scripted behaviour, what the records say of it, what the exit's row says.

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig, Over, Page};
use exitfetch::model::{Blame, Outcome};

use crate::verdicts::{JOBS, LIMITS, SUSPECT, Way, beside, judge_list, row};
use crate::world::World;

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
