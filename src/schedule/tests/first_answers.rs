//! Patience with exits that have never answered, and the last call before the end.

use http::Method;

use super::world::*;
use crate::model::{FaultKind, Phase, Time};

use super::super::*;

/// Two exits: number 0 hangs, number 1 answers after half a second.
fn one_hangs(rules: Rules, ceilings: &[u32]) -> World {
    World::new(rules, ceilings, |exit, _, _| match exit {
        0 => (secs(30.0), fault(Phase::Head, FaultKind::Timeout)),
        _ => (secs(0.5), answer(200)),
    })
}

#[test]
fn a_job_at_an_exit_that_hangs_is_done_through_another_once_that_is_idle() {
    let rules = Rules {
        retries: 0,
        ..rules()
    };
    let mut world = one_hangs(rules, &[1, 1]);
    world.push(0..11, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 11, "it cost the job no try");
    assert_eq!((world.begun_at(0), world.cuts), (1, 1));
    // Ten jobs of half a second; only then nobody waits for the exit that works.
    assert_eq!(world.now, Time::from_millis(5_500));
}

#[test]
fn while_the_others_are_busy_nothing_is_cut() {
    let mut world = one_hangs(rules(), &[1, 1]);
    world.push(0..200, "http://a.test/");
    world.run(Time::from_secs(29));
    assert_eq!(world.cuts, 0);
    assert_eq!(world.ok(), 58);
}

#[test]
fn an_exit_that_hangs_does_not_keep_what_may_be_in_flight_in_all() {
    let rules = Rules {
        max_in_flight: 3,
        ..rules()
    };
    let mut world = World::new(rules, &[1; 4], |exit, _, _| match exit {
        0 | 1 => (secs(30.0), fault(Phase::Head, FaultKind::Timeout)),
        _ => (secs(0.5), answer(200)),
    });
    world.push(0..100, "http://a.test/");
    world.run(Time::from_secs(4));
    assert!(
        world.cuts >= 1,
        "an exit that works is idle, and no place is left"
    );
}

#[test]
fn nothing_is_cut_where_nobody_has_answered() {
    let mut world = World::new(rules(), &[1, 1, 1], |_, _, _| (secs(25.0), answer(200)));
    world.push(0..2, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!((world.cuts, world.ok()), (0, 2));
}

#[test]
fn an_exit_that_has_answered_has_all_the_time_that_the_limits_allow() {
    let mut world = World::new(rules(), &[1, 1], |_, work, _| match work.job.line {
        9 => (secs(25.0), answer(200)),
        _ => (secs(0.1), answer(200)),
    });
    world.push(0..9, "http://a.test/");
    world.run(Time::from_secs(2));
    world.push(9..10, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!((world.cuts, world.ok()), (0, 10));
}

#[test]
fn what_may_have_been_carried_out_is_not_cut() {
    let mut world = one_hangs(rules(), &[1, 1]);
    for line in 0..4 {
        let mut post = job(line, "http://a.test/");
        post.method = Method::POST;
        world.scheduler.push(post, world.now);
    }
    world.run(Time::NEVER);
    assert_eq!(world.cuts, 0);
    assert_eq!(world.now, Time::from_secs(30));
}

#[test]
fn patience_with_an_exit_doubles_until_a_slow_one_has_answered() {
    // Number 0 needs 10 s for each answer.
    let mut world = World::new(rules(), &[1, 1], |exit, _, _| match exit {
        0 => (secs(10.0), answer(200)),
        _ => (secs(0.5), answer(200)),
    });
    for line in 0..200 {
        world.push(line..line + 1, &format!("http://o{}.test/", line % 3));
        let next = world.now + secs(1.0);
        world.run(next);
        world.now = next;
        world.land();
    }
    assert!((1..=3).contains(&world.cuts), "{} cuts", world.cuts);
    assert!(world.exit(0).ok >= 1);
    assert_eq!(world.exit(0).state, State::Healthy);
}

/// Three exits refuse, the fourth has a request under way.
fn about_to_end() -> (Scheduler, Start, Time) {
    let mut scheduler = Scheduler::new(rules(), &seats(&[1, 1, 1, 1]), &[]);
    let mut now = Time::ZERO;
    for line in 0..60 {
        scheduler.push(job(line, "http://a.test/"), now);
    }
    let mut under_way = None;
    loop {
        match scheduler.next(now) {
            Next::Start(start) if start.exit.index() == 3 => under_way = Some(start),
            Next::Start(start) => {
                let end = fault(Phase::Dial, FaultKind::Refused);
                let _ = scheduler.finish(start.lease, start.work, &end, now);
            }
            Next::At(at) => now = at,
            Next::LastCall => break,
            other => panic!("{other:?}"),
        }
    }
    let under_way = under_way.expect("the fourth exit took a job");
    (scheduler, under_way, now)
}

#[test]
fn before_the_end_the_attempts_under_way_are_asked_and_one_head_is_enough() {
    let (mut scheduler, start, now) = about_to_end();
    let soon = Time::from_secs(60)..Time::from_secs(65);
    assert!(
        soon.contains(&now),
        "a mute exit's attempt is no hope: {now:?}"
    );
    scheduler.heard(&start.lease, now);
    assert!(!matches!(scheduler.next(now), Next::GiveUp(..)));
    assert!(!scheduler.is_over());
    let verdict = scheduler.finish(start.lease, start.work, &answer(200), now);
    assert!(matches!(verdict, Verdict::Ok(_)));
}

#[test]
fn without_a_head_the_jobs_are_given_up_and_those_under_way_too() {
    let (mut scheduler, start, now) = about_to_end();
    assert!(matches!(scheduler.next(now), Next::GiveUp(..)));
    assert!(scheduler.is_over());
    let cut = fault(Phase::Head, FaultKind::Timeout);
    let line = start.work.job.line;
    let verdict = scheduler.finish(start.lease, start.work, &cut, now);
    assert!(matches!(verdict, Verdict::Again));
    let mut last = None;
    while let Next::GiveUp(work, failure) = scheduler.next(now) {
        assert_eq!(failure.kind, crate::model::ErrorKind::NoUsableExit);
        last = Some(work.job.line).filter(|&at| at == line).or(last);
    }
    assert_eq!(last, Some(line));
    assert!(scheduler.is_empty());
}
