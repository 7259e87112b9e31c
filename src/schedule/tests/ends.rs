//! How jobs move and end: retries, bounds, steps that find nothing.

use crate::model::{ErrorKind, FaultKind, Phase, Time};

use super::super::*;
use super::world::*;

#[test]
fn a_job_in_back_off_holds_neither_slot_nor_place() {
    let rules = Rules {
        per_origin: Some(1),
        retries: 5,
        ..rules()
    };
    let mut world = World::new(rules, &[1], |_, work, _| match work.job.line {
        0 => (secs(0.01), answer(500)),
        _ => (secs(0.01), answer(200)),
    });
    world.push(0..1, "http://a.test/");
    world.step();
    world.now = Time::from_millis(10);
    world.land();
    assert_eq!(world.scheduler.in_flight(), 0);
    assert_eq!(world.scheduler.waiting_for_budget(), 1);
    world.push(1..2, "http://a.test/");
    world.step();
    assert_eq!(
        world.begun.last().unwrap().line,
        1,
        "another job of the origin goes meanwhile"
    );
    world.run(Time::NEVER);
    assert_eq!(world.failure(0).kind, ErrorKind::Status);
    assert_eq!(world.attempts[&0], 6);
}

#[test]
fn back_off_is_booked_as_waiting_for_the_origin() {
    let mut scheduler = Scheduler::new(rules(), &seats(&[1]), &[]);
    scheduler.push(job(0, "http://a.test/"), Time::ZERO);
    let Next::Start(first) = scheduler.next(Time::ZERO) else {
        panic!("it can start");
    };
    let again = scheduler.finish(first.lease, first.work, &answer(500), Time::ZERO);
    assert!(matches!(again, Verdict::Again));
    let Next::At(due) = scheduler.next(Time::ZERO) else {
        panic!("it backs off");
    };
    let Next::Start(second) = scheduler.next(due) else {
        panic!("its back-off is over");
    };
    assert_eq!(second.work.waited().budget, due - Time::ZERO);
    let _ = scheduler.abandon(second.lease, second.work, due);
}

/// Two exits of one slot each: one is held by origin c for `held` seconds, the other one fails
/// the job of origin a and serves everybody else.
fn one_held_one_tried(held: f64) -> World {
    let mut world = World::new(rules(), &[1, 1], move |_, work, _| {
        match (work.job.line, work.attempts()) {
            (0, 0) => (
                secs(0.01),
                fault(Phase::Handshake, FaultKind::SocksReply(5)),
            ),
            (20, _) => (secs(held), answer(200)),
            (90.., _) => (secs(0.0), answer(200)),
            _ => (secs(0.05), answer(200)),
        }
    });
    // Both have answered before: patience with them is not at stake here.
    world.push(90..92, "http://d.test/");
    world.run(Time::from_secs(1));
    assert_eq!((world.now, world.ok()), (Time::ZERO, 2));
    world.begun.clear();
    world.ends.clear();
    world.push(20..21, "http://c.test/");
    world.push(0..1, "http://a.test/");
    world.run(Time::from_secs(2));
    assert_eq!(world.begun.len(), 2);
    world
}

#[test]
fn a_job_that_waits_for_an_untried_exit_blocks_nobody_and_next_does_not_spin() {
    let mut world = one_held_one_tried(6.0);
    let (held, tried) = (world.begun[0].exit, world.begun[1].exit);
    world.push(30..60, "http://b.test/");
    world.push(60..70, "http://a.test/");
    world.run(Time::from_secs(5));
    let between = &world.begun[2..];
    assert_eq!(
        between.len(),
        40,
        "others are served meanwhile, of its own origin too"
    );
    assert!(between.iter().all(|begun| begun.exit == tried));
    world.run(Time::NEVER);
    let last = world.begun.last().unwrap();
    assert_eq!(
        (last.line, last.exit, last.at),
        (0, held, Time::from_secs(6))
    );
    assert_eq!(world.ok(), 42);
}

#[test]
fn after_a_while_it_takes_an_exit_that_it_has_tried() {
    let mut world = one_held_one_tried(600.0);
    world.run(Time::from_secs(20));
    let last = world.begun.last().unwrap();
    assert_eq!((last.line, last.exit), (0, world.begun[1].exit));
    assert!(last.at >= Time::from_secs(10));
    assert_eq!(world.ends[&0], End::Ok);
}

#[test]
fn a_job_that_has_tried_all_exits_in_use_takes_them_again() {
    let rules = Rules {
        retries: 6,
        ..rules()
    };
    let mut world = World::new(rules, &[1, 1], |_, work, _| match work.attempts() {
        0..5 => (secs(0.01), answer(500)),
        _ => (secs(0.01), answer(200)),
    });
    world.push(0..1, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ends[&0], End::Ok);
    assert_ne!(world.begun[0].exit, world.begun[1].exit);
    assert_eq!(world.begun.len(), 6);
}

#[test]
fn a_retry_goes_to_another_exit_while_there_is_one() {
    let rules = Rules {
        retries: 4,
        ..rules()
    };
    let mut world = World::new(rules, &[1; 5], |_, _, _| (secs(0.01), answer(500)));
    world.push(0..1, "http://a.test/");
    world.run(Time::NEVER);
    let mut used: Vec<usize> = world.begun.iter().map(|begun| begun.exit).collect();
    used.sort_unstable();
    assert_eq!(used, [0, 1, 2, 3, 4]);
    assert_eq!(world.failure(0).kind, ErrorKind::Status);
}

#[test]
fn exit_faults_cost_no_tries() {
    let rules = Rules {
        retries: 0,
        ..rules()
    };
    let mut world = World::new(rules, &[1; 10], |_, work, _| match work.attempts() {
        0..6 => (secs(0.01), fault(Phase::Dial, FaultKind::Refused)),
        _ => (secs(0.01), answer(200)),
    });
    world.push(0..1, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ends[&0], End::Ok);
    assert!(
        world.now < Time::from_secs(1),
        "they are tried again at once"
    );
}

#[test]
fn no_more_than_the_global_bound_is_in_flight() {
    let rules = Rules {
        max_in_flight: 7,
        ..rules()
    };
    let mut world = World::new(rules, &[5; 5], |_, _, _| (secs(0.5), answer(200)));
    world.push(0..70, "http://a.test/");
    world.step();
    assert_eq!(world.scheduler.in_flight(), 7);
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 70);
    assert_eq!(world.now, Time::from_secs(5));
}

#[test]
fn what_fails_for_our_own_reason_is_charged_to_nobody_and_ends() {
    let mut begun = 0;
    let mut world = World::new(rules(), &[2], move |_, work, _| {
        begun += 1;
        match (work.job.line, begun) {
            (0, 1..4) => (secs(0.01), fault(Phase::Dial, FaultKind::LocalLimit)),
            (1, _) => (secs(0.01), fault(Phase::Dial, FaultKind::LocalLimit)),
            (2, _) => (secs(0.01), fault(Phase::Body, FaultKind::Disk)),
            _ => (secs(0.01), answer(200)),
        }
    });
    world.push(0..1, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.ends[&0], End::Ok);
    assert_eq!(world.attempts[&0], 1);
    world.push(1..3, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(world.failure(1).kind, ErrorKind::Local);
    assert_eq!(world.failure(2).kind, ErrorKind::Disk);
    assert_eq!(
        world.begun.iter().filter(|begun| begun.line == 2).count(),
        1
    );
    assert_eq!(
        (world.exit(0).faults, world.exit(0).state),
        (0, State::Healthy)
    );
}

#[test]
fn the_intake_rests_when_enough_waits_and_goes_on_after() {
    let mut world = World::new(rules(), &[100], |_, _, _| (secs(0.01), answer(200)));
    let mut line = 0;
    while world.scheduler.wants_more() {
        world.push(line..line + 1, &format!("http://o{line}.test/"));
        line += 1;
    }
    assert!((5_000..=50_000).contains(&line), "{line}");
    world.step();
    assert!(world.scheduler.wants_more());
}

#[test]
fn a_job_the_scheduler_gives_up_tells_its_last_error() {
    let mut world = World::new(rules(), &[1], |_, _, _| {
        (secs(0.01), fault(Phase::Handshake, FaultKind::Credentials))
    });
    world.push(0..2, "http://a.test/");
    world.run(Time::NEVER);
    let failure = world.failure(0);
    assert_eq!(failure.kind, ErrorKind::NoUsableExit);
    let told = (0..2).any(|line| {
        world
            .failure(line)
            .detail
            .contains("Credentials in handshake")
    });
    assert!(told, "{failure:?}");
}
