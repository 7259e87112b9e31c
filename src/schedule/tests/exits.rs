//! What exits do to jobs: bad ones, full ones, resting ones, none at all.

use std::time::Duration;

use crate::model::{Attempt, Blame, ErrorKind, FaultKind, Phase, Time};

use super::super::*;
use super::world::*;

/// The four ways in which the bad exit of a fleet fails at once.
fn bad_ways() -> Vec<Attempt> {
    let mut refused = fault(Phase::Handshake, FaultKind::ConnectStatus(502));
    refused.refusal = answer(502).head;
    vec![
        refused,
        fault(Phase::Handshake, FaultKind::Reset),
        fault(Phase::Dial, FaultKind::Refused),
        fault(Phase::Handshake, FaultKind::Credentials),
        forward(502),
    ]
}

#[test]
fn an_exit_that_fails_at_once_does_not_eat_the_list() {
    for bad in bad_ways() {
        let shown = format!("{:?}", bad.fault);
        let mut world = World::new(rules(), &[2; 4], move |exit, _, _| match exit {
            2 => (secs(0.001), bad.clone()),
            _ => (secs(0.5), answer(200)),
        });
        world.push(0..90, "http://o.test/");
        world.run(Time::NEVER);
        assert_eq!(world.ok(), 90, "{shown}");
        assert!(world.begun_at(2) <= 10, "{shown}: {}", world.begun_at(2));
        // Without the bad exit: 15 rounds of 0.5 s.
        assert!(
            world.now < Time::from_millis(7_500 * 13 / 10),
            "{shown}: {:?}",
            world.now
        );
        let row = world.exit(2);
        assert!(row.ok == 0 && row.faults > 0, "{shown}");
        assert!(row.last_error.is_some());
        for good in [0, 1, 3] {
            let row = world.exit(good);
            assert_eq!((row.state, row.faults), (State::Healthy, 0), "{shown}");
            assert_eq!(row.ok, row.attempts);
        }
    }
}

#[test]
fn a_login_that_was_never_taken_puts_the_exit_out_for_good() {
    let mut world = World::new(rules(), &[2, 2], |exit, _, _| match exit {
        0 => (secs(0.01), fault(Phase::Handshake, FaultKind::Credentials)),
        _ => (secs(0.1), answer(200)),
    });
    world.push(0..50, "http://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 50);
    let row = world.exit(0);
    assert_eq!(row.state, State::Evicted);
    assert_eq!(row.reason, "credentials refused (407)");
    assert_eq!(row.cap, 0);
    assert!(world.begun_at(0) <= 2);
}

#[test]
fn with_all_exits_dead_every_job_is_given_up_those_pushed_later_too() {
    let mut world = World::new(rules(), &[3; 4], |exit, _, _| match exit {
        0 => (secs(0.01), fault(Phase::Dial, FaultKind::Refused)),
        1 => (secs(0.01), fault(Phase::Handshake, FaultKind::Reset)),
        2 => (secs(0.01), fault(Phase::Handshake, FaultKind::Credentials)),
        _ => (secs(2.0), fault(Phase::Handshake, FaultKind::Timeout)),
    });
    world.push(0..50, "http://o.test/");
    world.run(Time::NEVER);
    assert!(world.scheduler.is_over());
    assert_eq!(world.ends.len(), 50);
    assert!(world.now < Time::from_secs(60), "{:?}", world.now);
    for line in 0..50 {
        let failure = world.failure(line);
        assert_ne!(failure.blame, Blame::Job, "{failure:?}");
        assert_ne!(failure.blame, Blame::Origin, "{failure:?}");
    }
    assert!(world.begun_at(2) <= 3);
    for exit in 0..4 {
        assert!(world.exit(exit).last_error.is_some());
        assert_ne!(world.exit(exit).reason, "");
    }
    let before = world.begun.len();
    world.push(50..60, "http://other.test/");
    world.run(Time::NEVER);
    assert_eq!(world.failure(59).kind, ErrorKind::NoUsableExit);
    assert_eq!(world.begun.len(), before);
    assert!(world.scheduler.wants_more());
}

#[test]
fn a_fleet_that_is_dead_in_one_way_ends_the_run_and_condemns_no_origin() {
    for dead in [
        fault(Phase::Dial, FaultKind::Refused),
        fault(Phase::Dial, FaultKind::Timeout),
        fault(Phase::Handshake, FaultKind::Reset),
        fault(Phase::Handshake, FaultKind::Timeout),
        fault(Phase::Handshake, FaultKind::Credentials),
    ] {
        let shown = format!("{:?}", dead.fault);
        // A larger fleet is paused as a whole and probed in rounds before it is given up.
        for (exits, limit) in [(1, 60), (4, 60), (30, 150)] {
            let dead = dead.clone();
            let mut world = World::new(rules(), &vec![3; exits], move |_, _, _| {
                (secs(0.1), dead.clone())
            });
            world.push(0..50, "http://o.test/");
            world.run(Time::NEVER);
            assert_eq!((world.ends.len(), world.ok()), (50, 0));
            assert!(world.scheduler.is_over(), "{exits} exits: {shown}");
            assert!(
                world.now < Time::from_secs(limit),
                "{exits} exits: {shown}: {:?}",
                world.now
            );
            for line in 0..50 {
                let blame = world.failure(line).blame;
                assert!(!matches!(blame, Blame::Origin | Blame::Job), "{blame:?}");
            }
        }
    }
}

#[test]
fn a_shorter_patience_ends_a_run_without_exits_sooner() {
    let rules = Rules {
        no_exit_timeout: Duration::from_secs(5),
        ..rules()
    };
    let mut world = World::new(rules, &[3; 4], |_, _, _| {
        (secs(0.01), fault(Phase::Dial, FaultKind::Refused))
    });
    world.push(0..50, "http://o.test/");
    world.run(Time::NEVER);
    assert!(world.now <= Time::from_secs(15), "{:?}", world.now);
    assert_eq!(world.ends.len(), 50);
}

#[test]
fn the_only_exit_comes_back_after_it_was_broken_for_a_while() {
    let mut begun = 0;
    let rules = Rules {
        retries: 8,
        ..rules()
    };
    let mut world = World::new(rules, &[3], move |_, _, _| {
        begun += 1;
        match begun {
            1..=6 => (secs(0.01), forward(502)),
            _ => (secs(0.05), forward(200)),
        }
    });
    world.push(0..20, "http://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 20);
    assert!(world.now < Time::from_secs(170), "{:?}", world.now);
    assert!(!world.scheduler.is_over());
}

#[test]
fn a_silent_origin_does_not_put_the_only_exit_out_of_use() {
    let rules = Rules {
        retries: 8,
        ..rules()
    };
    let mut world = World::new(rules, &[3], |_, work, _| match work.job.line {
        0..5 => (secs(0.02), answer(404)),
        5..7 => (secs(2.0), fault(Phase::Head, FaultKind::Timeout)),
        _ => (secs(0.02), answer(200)),
    });
    world.push(0..20, "http://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 13);
    assert_eq!(world.failure(0).kind, ErrorKind::Status);
    assert!(matches!(
        world.exit(0).state,
        State::Healthy | State::Limited
    ));
}

#[test]
fn an_exits_own_page_is_not_taken_for_the_sites() {
    for status in [401, 403, 503] {
        let mut world = World::new(rules(), &[2, 2], move |exit, _, _| match exit {
            0 => (secs(0.01), forward(status)),
            _ => (secs(0.1), forward(200)),
        });
        world.push(0..20, "http://o.test/");
        world.run(Time::NEVER);
        assert_eq!(world.ok(), 20, "{status}");
    }
}

#[test]
fn a_status_that_two_exits_give_is_the_origins() {
    let mut world = World::new(rules(), &[2, 2], |_, _, _| (secs(0.01), forward(403)));
    world.push(0..1, "http://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.failure(0).kind, ErrorKind::Status);
    assert_eq!(world.failure(0).blame, Blame::Origin);
    assert_eq!(world.attempts[&0], 2);
    assert_eq!(world.exit(0).faults + world.exit(1).faults, 0);
}

#[test]
fn what_two_exits_fail_alike_is_charged_to_the_origin() {
    let mut world = World::new(rules(), &[4; 6], |_, work, _| match work.job.line % 100 {
        // Some pages of a good origin never answer.
        0 => (secs(1.0), fault(Phase::Head, FaultKind::Timeout)),
        _ => (secs(0.05), answer(200)),
    });
    world.push(0..2000, "http://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 1980);
    let failed = world.begun.iter().filter(|begun| begun.line % 100 == 0);
    assert!(failed.count() > 50);
    let faults: u64 = (0..6).map(|exit| world.exit(exit).faults).sum();
    assert!(
        faults <= 20,
        "only the last of each page may carry one: {faults}"
    );
}

#[test]
fn an_intercepting_exit_is_evicted_once_another_one_shows_a_valid_certificate() {
    let mut world = World::new(rules(), &[2, 2], |exit, _, _| match exit {
        0 => (secs(0.01), fault(Phase::OriginTls, FaultKind::Certificate)),
        _ => (secs(0.1), answer(200)),
    });
    world.push(0..20, "https://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 20);
    assert_eq!(world.exit(0).state, State::Evicted);
    assert!(world.exit(0).reason.contains("interception"));
}

#[test]
fn one_job_is_enough_to_find_an_intercepting_exit() {
    let mut intercepting = None;
    let mut world = World::new(rules(), &[2, 2], move |exit, _, _| {
        let first = *intercepting.get_or_insert(exit);
        let invalid = fault(Phase::OriginTls, FaultKind::Certificate);
        let result = if exit == first { invalid } else { answer(200) };
        (secs(0.01), result)
    });
    world.push(0..1, "https://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ends[&0], End::Ok);
    let first = world.begun[0].exit as u32;
    assert_eq!(world.exit(first).state, State::Evicted);
}

#[test]
fn an_exit_that_refuses_above_three_is_kept_at_three() {
    let mut world = World::new(rules(), &[8], |_, _, _| (secs(0.1), answer(200)));
    world.push(0..8, "http://o.test/");
    world.step();
    assert_eq!(world.exit(0).in_flight, 8);
    let mut world = World::new(rules(), &[8], {
        let mut busy: Vec<Time> = Vec::new();
        move |_, _, now| {
            busy.retain(|&until| until > now);
            if busy.len() >= 3 {
                let mut refused = fault(Phase::Handshake, FaultKind::ConnectStatus(429));
                refused.refusal = answer(429).head;
                return (secs(0.01), refused);
            }
            busy.push(now + Duration::from_millis(100));
            (secs(0.1), answer(200))
        }
    });
    world.push(0..300, "http://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 300);
    assert!(world.begun.len() < 320, "{} attempts", world.begun.len());
    assert!(world.notes.iter().any(|note| matches!(
        note,
        Note::Exit {
            change: Change::Limited,
            cap: 3,
            ..
        }
    )));
}

#[test]
fn an_outage_of_the_whole_pool_is_survived() {
    let mut world = World::new(rules(), &[4; 40], |_, _, now| {
        let out = now >= Time::from_secs(10) && now < Time::from_secs(25);
        match out {
            true => (secs(0.01), fault(Phase::Dial, FaultKind::Unreachable)),
            false => (secs(0.5), answer(200)),
        }
    });
    for origin in 0..100 {
        world.push(
            origin * 200..origin * 200 + 200,
            &format!("http://o{origin}.test/"),
        );
    }
    world.run(Time::from_secs(20));
    assert!(world.notes.contains(&Note::Panic));
    let out = (0..40).filter(|&exit| {
        let state = world.exit(exit).state;
        matches!(state, State::Ejected | State::Probation | State::Evicted)
    });
    assert!(out.count() <= 20, "at most half may be out");
    world.run(Time::from_secs(55));
    assert!(world.notes.contains(&Note::PanicOver));
    assert!(
        world.in_flight() > 40 * 4 / 2,
        "{} in flight",
        world.in_flight()
    );
    assert!(!world.scheduler.is_over());
    world.run(Time::NEVER);
    assert_eq!(world.ends.len(), 20_000);
    assert!(world.ok() > 19_500, "{}", world.ok());
}

#[test]
fn a_cancelled_probe_frees_its_place() {
    let mut scheduler = Scheduler::new(rules(), &seats(&[1]), &[]);
    let mut now = Time::ZERO;
    for line in 0..40 {
        scheduler.push(job(line, &format!("http://o{line}.test/")), now);
    }
    // Break the exit until it rests.
    while scheduler.exit(ExitIx::new(0), now).state != State::Ejected {
        match scheduler.next(now) {
            Next::Start(start) => {
                let gone = fault(Phase::Dial, FaultKind::Refused);
                let _ = scheduler.finish(start.lease, start.work, &gone, now);
            }
            Next::At(at) => now = at,
            other => panic!("{other:?}"),
        }
    }
    for _ in 0..5 {
        let start = loop {
            match scheduler.next(now) {
                Next::Start(start) => break start,
                Next::At(at) => now = at,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(scheduler.exit(ExitIx::new(0), now).state, State::Probation);
        assert!(
            !matches!(scheduler.next(now), Next::Start(_)),
            "one probe at a time"
        );
        let _ = scheduler.abandon(start.lease, start.work, now);
    }
}

#[test]
fn cancelled_probes_of_a_panic_free_their_places() {
    let mut scheduler = Scheduler::new(rules(), &seats(&[2; 8]), &[]);
    let mut now = Time::ZERO;
    for line in 0..200 {
        scheduler.push(job(line, &format!("http://o{line}.test/")), now);
    }
    let mut panicked = false;
    let mut probes = Vec::new();
    // Everything fails until the panic; then the probes are kept.
    while probes.is_empty() || now == Time::ZERO {
        match scheduler.next(now) {
            Next::Start(start) if !panicked => {
                let gone = fault(Phase::Dial, FaultKind::Refused);
                let _ = scheduler.finish(start.lease, start.work, &gone, now);
            }
            Next::Start(start) => probes.push(start),
            Next::At(at) => now = at,
            Next::GiveUp(..) => {}
            Next::Refill(_) | Next::Idle => panic!("jobs wait in memory"),
        }
        panicked |= scheduler.notes().contains(&Note::Panic);
    }
    let all = |scheduler: &mut Scheduler, now: &mut Time| {
        let mut started = Vec::new();
        for _ in 0..100 {
            match scheduler.next(*now) {
                Next::Start(start) => started.push(start),
                Next::At(at) if started.is_empty() => *now = at,
                _ => return started,
            }
        }
        started
    };
    probes.extend(all(&mut scheduler, &mut now));
    let count = probes.len();
    assert!(count <= 8, "{count} probes at once");
    for probe in probes {
        let _ = scheduler.abandon(probe.lease, probe.work, now);
    }
    now = now + Duration::from_secs(1);
    assert_eq!(all(&mut scheduler, &mut now).len(), count);
}

#[test]
fn an_open_tunnel_to_the_origin_is_used_again() {
    for (kept, least, most) in [(true, 10, 10), (false, 0, 5)] {
        let rules = Rules {
            per_origin: Some(1),
            ..rules()
        };
        let mut world = World::new(rules, &[2; 50], move |_, _, _| {
            let attempt = Attempt {
                kept,
                ..answer(200)
            };
            (secs(0.05), attempt)
        });
        world.push(0..10, "https://o.test/");
        world.run(Time::NEVER);
        let first = world.begun_at(world.begun[0].exit);
        assert!((least..=most).contains(&first), "{first}");
    }
}

#[test]
fn an_exit_not_welcome_at_an_origin_works_for_others() {
    let mut world = World::new(rules(), &[2; 5], |exit, work, _| {
        let there = work.target().host_str() == Some("picky.test");
        match (exit, there) {
            (0, true) => (secs(0.02), answer(429)),
            _ => (secs(0.02), answer(200)),
        }
    });
    world.push(0..10, "http://picky.test/");
    world.run(Time::NEVER);
    world.push(10..300, "http://picky.test/");
    world.push(1000..1300, "http://other.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 600);
    let row = world.exit(0);
    assert!(row.status_429 < 10, "{}", row.status_429);
    assert!(row.ok > 20, "{}", row.ok);
}

#[test]
fn the_moment_s_rest_after_a_fault_is_no_loss_of_cap() {
    let mut scheduler = Scheduler::new(rules(), &seats(&[4]), &[]);
    scheduler.push(job(0, "http://a.test/"), Time::ZERO);
    let Next::Start(start) = scheduler.next(Time::ZERO) else {
        panic!("it can start");
    };
    let gone = fault(Phase::Dial, FaultKind::Refused);
    let _ = scheduler.finish(start.lease, start.work, &gone, Time::ZERO);
    let exit = scheduler.exit(ExitIx::new(0), Time::ZERO);
    assert_eq!((exit.state, exit.cap), (State::Healthy, 4));
}
