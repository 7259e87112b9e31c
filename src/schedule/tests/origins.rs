//! What origins do to jobs: budgets, pauses, redirects, death.

use std::time::Duration;

use http::Method;
use http::header::LOCATION;

use crate::model::{Blame, ErrorKind, FaultKind, Phase, Time};

use super::super::*;
use super::world::*;

/// Times at which attempts at `host` began.
fn begun_lines(world: &World, lines: std::ops::Range<u64>) -> Vec<Time> {
    let there = world
        .begun
        .iter()
        .filter(|begun| lines.contains(&begun.line));
    there.map(|begun| begun.at).collect()
}

#[test]
fn requests_keep_the_rate_whatever_the_number_of_exits() {
    let rules = Rules {
        rate: Some(10.0),
        ..rules()
    };
    let mut world = World::new(rules, &[5; 20], |_, _, _| (secs(0.3), answer(200)));
    world.push(0..100, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 100);
    for pair in world.begun.windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_millis(100));
    }
    assert!(world.now < Time::from_millis(10_300));
}

#[test]
fn a_long_wait_for_exits_does_not_end_in_a_burst() {
    let rules = Rules {
        rate: Some(10.0),
        per_origin: Some(100),
        ..rules()
    };
    let mut world = World::new(rules, &[20], |_, work, _| {
        let takes = if work.job.line < 100 { 60.0 } else { 0.01 };
        (secs(takes), answer(200))
    });
    world.push(0..20, "http://slow.test/");
    world.run(Time::from_secs(2));
    world.push(100..120, "http://b.test/");
    world.run(Time::NEVER);
    let times = begun_lines(&world, 100..120);
    assert_eq!(times.len(), 20);
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= Duration::from_millis(100));
    }
}

#[test]
fn a_stalled_origin_leaves_the_slots_to_others() {
    let mut world = World::new(rules(), &[4], |_, work, _| match work.job.line {
        0..100 => (secs(3.0), fault(Phase::Head, FaultKind::Timeout)),
        _ => (secs(0.1), answer(200)),
    });
    world.push(0..24, "http://a.test/");
    world.push(100..120, "http://b.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 20);
    let last = begun_lines(&world, 100..120).into_iter().max();
    assert!(last < Some(Time::from_secs(6)), "{last:?}");
    let state = world.exit(0).state;
    assert!(
        matches!(state, State::Healthy | State::Limited),
        "a silent origin is not the exit's fault"
    );
}

#[test]
fn retry_after_pauses_the_origin_for_all_and_uses_up_no_try() {
    let rules = Rules {
        retries: 0,
        ..rules()
    };
    let mut world = World::new(rules, &[3, 3], |_, work, now| {
        let paused = work.job.line == 0 && now < Time::from_secs(7);
        let result = if paused {
            retry_after(503, 7)
        } else {
            answer(200)
        };
        (secs(0.05), result)
    });
    world.push(0..1, "http://a.test/");
    world.run(Time::from_millis(60));
    world.push(1..10, "http://a.test/");
    world.push(20..30, "http://b.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 20);
    assert!(
        begun_lines(&world, 1..10)
            .into_iter()
            .all(|at| at >= Time::from_secs(7))
    );
    assert!(
        begun_lines(&world, 20..30)
            .into_iter()
            .all(|at| at < Time::from_secs(1))
    );
    assert_eq!(world.attempts[&0], 2);
}

#[test]
fn a_job_that_meets_five_pauses_is_over() {
    for status in [429, 503] {
        let mut world = World::new(rules(), &[3], move |_, _, _| {
            (secs(0.05), retry_after(status, 2))
        });
        world.push(0..1, "http://a.test/");
        world.run(Time::NEVER);
        assert_eq!(world.failure(0).kind, ErrorKind::OriginPaused);
        assert_eq!(world.attempts[&0], 5);
        assert!(world.now >= Time::from_secs(8));
        let told = world.notes[0].to_string();
        assert!(told.contains("paused for 2."), "{told}");
        assert!(told.ends_with("it asks for less"), "{told}");
    }
}

#[test]
fn a_pause_beyond_the_limit_gives_the_jobs_up_and_the_origin_is_not_asked_again() {
    let mut world = World::new(rules(), &[3], |_, work, _| match work.job.line {
        0..10 => (secs(0.05), retry_after(429, u64::MAX)),
        _ => (secs(0.05), answer(200)),
    });
    world.push(0..1, "http://a.test/");
    world.run(Time::from_secs(1));
    world.push(1..10, "http://a.test/");
    world.push(10..20, "http://b.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 10);
    for line in 0..10 {
        assert_eq!(world.failure(line).kind, ErrorKind::OriginPaused, "{line}");
        assert_eq!(world.failure(line).blame, Blame::Origin);
    }
    assert_eq!(begun_lines(&world, 0..10).len(), 1);
    assert!(world.now < Time::from_secs(2));
    let told = world.notes[0].to_string();
    assert!(told.contains("longer than --max-pause"), "{told}");
}

#[test]
fn an_origin_that_limits_its_rate_is_not_hammered_and_no_exit_suffers() {
    // Answers 429 past 3 requests in any second.
    let mut good: Vec<Time> = Vec::new();
    let rules = Rules {
        rate: Some(50.0),
        retries: 4,
        ..rules()
    };
    let mut world = World::new(rules, &[10, 10], move |_, work, now| {
        if work.job.line >= 100 {
            return (secs(0.02), answer(200));
        }
        let recent = good.iter().filter(|&&at| now - at < Duration::from_secs(1));
        let limited = recent.count() >= 3;
        if !limited {
            good.push(now);
        }
        (secs(0.02), answer(if limited { 429 } else { 200 }))
    });
    world.push(0..60, "http://a.test/");
    world.push(100..140, "http://b.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 100);
    let refused: u64 = (0..2).map(|exit| world.exit(exit).status_429).sum();
    assert!(refused < 60, "{refused}");
    assert_eq!(world.begun.len() as u64, 100 + refused);
    for exit in 0..2 {
        assert_eq!(world.exit(exit).state, State::Healthy);
    }
    let last = begun_lines(&world, 100..140).into_iter().max();
    assert!(last < Some(Time::from_secs(8)));
}

#[test]
fn a_redirect_waits_for_the_budget_of_where_it_leads() {
    let rules = Rules {
        rate: Some(2.0),
        ..rules()
    };
    let mut world = World::new(rules, &[8, 8], |_, work, _| {
        let there = work.target().host_str() == Some("b.test");
        let result = match there {
            true => answer(200),
            false => with(answer(302), LOCATION, "http://b.test/x"),
        };
        (secs(0.01), result)
    });
    for line in 0..8 {
        world.push(line..line + 1, &format!("http://a{line}.test/"));
    }
    world.push(8..9, "http://b.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 9);
    let sources = &world.begun[..9];
    assert!(sources.iter().all(|begun| begun.at == Time::ZERO));
    for pair in world.begun[8..].windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_millis(500));
    }
    assert_eq!(world.begun.len(), 17);
}

#[test]
fn a_redirect_that_leads_nowhere_is_not_tried_again() {
    let mut world = World::new(rules(), &[2, 2], |_, _, _| (secs(0.01), answer(301)));
    world.push(0..1, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.failure(0).kind, ErrorKind::BadRedirect);
    assert_eq!(world.begun.len(), 1);
}

#[test]
fn without_redirects_the_answer_itself_counts() {
    let rules = Rules {
        max_redirects: 0,
        accept: "200-299,302".parse().unwrap(),
        ..rules()
    };
    let mut world = World::new(rules, &[2], |_, work, _| {
        let status = if work.job.line == 0 { 302 } else { 301 };
        (secs(0.01), with(answer(status), LOCATION, "/x"))
    });
    world.push(0..2, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ends[&0], End::Ok);
    assert_eq!(world.failure(1).kind, ErrorKind::Status);
}

#[test]
fn a_dead_origin_is_given_up_and_no_exit_is_blamed() {
    let mut world = World::new(rules(), &[4; 10], |_, work, _| match work.job.line {
        0..1000 => (secs(0.2), answer(500)),
        _ => (secs(0.2), answer(200)),
    });
    world.push(0..1000, "http://dead.test/");
    world.push(1000..1500, "http://good.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 500);
    for line in 0..1000 {
        assert_ne!(world.failure(line).blame, Blame::Exit);
    }
    assert!(world.now < Time::from_secs(150), "{:?}", world.now);
    let kinds = |kind| {
        (0..1000)
            .filter(|&line| world.failure(line).kind == kind)
            .count()
    };
    assert!(kinds(ErrorKind::OriginDead) > 900);
    for exit in 0..10 {
        assert_eq!(world.exit(exit).state, State::Healthy);
        assert_eq!(world.exit(exit).faults, 0);
    }
    assert!(
        world
            .notes
            .iter()
            .any(|note| matches!(note, Note::OriginDead { .. }))
    );
}

#[test]
fn an_origin_that_answers_after_it_was_given_up_is_taken_up_again() {
    let mut world = World::new(rules(), &[4; 4], |_, work, now| match work.job.line {
        // Under way while the others fail, and good in the end.
        0 => (secs(200.0), answer(200)),
        _ if now < Time::from_secs(200) => (secs(0.2), answer(500)),
        _ => (secs(0.2), answer(200)),
    });
    world.push(0..300, "http://o.test/");
    world.run(Time::from_secs(190));
    assert!(
        world
            .notes
            .iter()
            .any(|note| matches!(note, Note::OriginDead { .. }))
    );
    world.run(Time::from_secs(201));
    world.push(300..310, "http://o.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 11);
}

#[test]
fn pauses_that_an_origin_asks_for_do_not_count_against_its_patience() {
    let mut world = World::new(rules(), &[4; 4], |_, work, _| {
        match (work.job.line, work.attempts()) {
            (0, 0 | 1) => (secs(0.05), answer(500)),
            (1, 0) => (secs(0.01), retry_after(503, 300)),
            _ => (secs(0.5), answer(200)),
        }
    });
    world.push(0..2, "http://o.test/");
    world.run(Time::NEVER);
    assert!(world.now > Time::from_secs(300));
    assert_eq!(world.ok(), 2);
}

#[test]
fn jobs_of_a_dead_origin_that_come_later_are_given_up_too() {
    let mut world = World::new(rules(), &[4; 4], |_, _, _| (secs(0.2), answer(500)));
    world.push(0..500, "http://dead.test/");
    world.run(Time::NEVER);
    let before = world.begun.len();
    world.push(500..600, "http://dead.test/");
    world.run(Time::NEVER);
    assert_eq!(world.begun.len(), before);
    assert_eq!(world.failure(599).kind, ErrorKind::OriginDead);
}

#[test]
fn a_post_is_repeated_only_where_it_cannot_have_arrived() {
    let mut world = World::new(rules(), &[2, 2, 2], |_, work, _| {
        let result = match (work.job.line, work.attempts()) {
            (0, 0) => fault(Phase::Dial, FaultKind::Refused),
            (1, 0) => fault(Phase::Head, FaultKind::Reset),
            (2, 0) => answer(429),
            _ => answer(200),
        };
        (secs(0.01), result)
    });
    for line in 0..3 {
        let mut job = job(line, "http://a.test/");
        job.method = Method::POST;
        world.scheduler.push(job, world.now);
    }
    world.run(Time::NEVER);
    assert_eq!(world.ends[&0], End::Ok);
    assert_eq!(world.failure(1).kind, ErrorKind::NoAnswer);
    assert_eq!(world.attempts[&1], 1);
    assert_eq!(world.ends[&2], End::Ok);
}

#[test]
fn an_attempt_that_never_reached_the_origin_gives_its_request_back() {
    let rules = Rules {
        rate: Some(1.0),
        ..rules()
    };
    let mut world = World::new(rules, &[1, 1, 1], |_, work, _| match work.attempts() {
        0 => (secs(0.01), fault(Phase::Dial, FaultKind::Refused)),
        _ => (secs(0.01), answer(200)),
    });
    world.push(0..1, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 1);
    assert!(world.now < Time::from_millis(100), "{:?}", world.now);
}

#[test]
fn where_a_job_waited_is_told_apart() {
    let rules = Rules {
        rate: Some(1.0),
        ..rules()
    };
    let mut scheduler = Scheduler::new(rules, &seats(&[1]), &[]);
    scheduler.push(job(0, "http://a.test/"), Time::ZERO);
    scheduler.push(job(1, "http://a.test/"), Time::ZERO);
    let Next::Start(first) = scheduler.next(Time::ZERO) else {
        panic!("it can start");
    };
    // The second one's budget is there at 1 s, the exit at 3 s.
    let now = Time::from_secs(3);
    let _ = scheduler.finish(first.lease, first.work, &answer(200), now);
    let Next::Start(second) = scheduler.next(now) else {
        panic!("it can start");
    };
    let waited = second.work.waited();
    assert_eq!(waited.budget, Duration::from_secs(1));
    assert_eq!(waited.exit, Duration::from_secs(2));
    let _ = scheduler.abandon(second.lease, second.work, now);
}

#[test]
fn a_job_behind_others_of_its_origin_waits_for_an_exit_as_long_as_they_do() {
    for rate in [None, Some(1.0)] {
        let rules = Rules { rate, ..rules() };
        let mut scheduler = Scheduler::new(rules, &seats(&[1]), &[]);
        (0..4).for_each(|n| scheduler.push(job(n, "http://a.test/"), Time::ZERO));
        // One exit that takes 3 s for each: the last job starts at 9 s.
        let mut last = None;
        for n in 0..4 {
            let now = Time::from_secs(3 * n);
            let Next::Start(start) = scheduler.next(now) else {
                panic!("it can start");
            };
            last = Some(start.work.waited());
            let end = Time::from_secs(3 * n + 3);
            let _ = scheduler.finish(start.lease, start.work, &answer(200), end);
        }
        let waited = last.unwrap();
        let budget = Duration::from_secs(if rate.is_some() { 3 } else { 0 });
        assert_eq!(waited.budget, budget, "{rate:?}");
        assert_eq!(waited.exit, Duration::from_secs(9) - budget, "{rate:?}");
    }
}
