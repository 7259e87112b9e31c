use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

mod crowd;
mod scenarios;

const MINUTE: Duration = Duration::from_secs(60);

fn span(secs: u64) -> Span {
    Span {
        dispatched: Time::from_secs(secs),
        now: Time::from_secs(secs),
    }
}

fn fleet(exits: usize) -> Fleet {
    Fleet::new(vec![4; exits], MINUTE)
}

/// Lets an exit fail until its state changes for the worse.
fn break_exit(fleet: &mut Fleet, exit: u32, at: u64) -> Change {
    let mut rng = StdRng::seed_from_u64(1);
    loop {
        match fleet.fault(exit, Share::WHOLE, span(at), &mut rng) {
            Change::None | Change::Limited => {}
            change => return change,
        }
    }
}

#[test]
fn at_most_half_of_the_pool_is_ejected_and_then_it_panics() {
    let mut fleet = fleet(6);
    let changes: Vec<Change> = (0..4).map(|exit| break_exit(&mut fleet, exit, 1)).collect();
    assert_eq!(
        changes,
        [
            Change::Ejected,
            Change::Ejected,
            Change::Ejected,
            Change::Spared
        ]
    );
    assert!(fleet.panics());
    assert!(matches!(fleet.gate(Time::from_secs(2)), Gate::Shut(_)));
    assert_eq!(fleet.up(), 3);
}

#[test]
fn evicted_for_reasons_of_their_own_exits_do_not_count_as_half() {
    let mut fleet = fleet(10);
    for exit in 0..4 {
        fleet.evict(exit, Reason::CredentialsRefused, span(1));
    }
    assert_eq!(fleet.left(), 6);
    let ejected = (4..10)
        .filter(|&exit| break_exit(&mut fleet, exit, 1) == Change::Ejected)
        .count();
    assert_eq!(ejected, 3);
}

#[test]
fn exits_on_probation_still_count_as_taken_out() {
    let mut fleet = fleet(4);
    for exit in 0..2 {
        assert_eq!(break_exit(&mut fleet, exit, 1), Change::Ejected);
        fleet.wake(exit, Time::from_secs(10));
        assert_eq!(fleet.health(exit).state(), State::Probation);
    }
    assert_eq!(break_exit(&mut fleet, 2, 11), Change::Spared);
}

#[test]
fn a_good_answer_ends_a_panic_and_news_of_a_spared_exit_come_once() {
    let mut fleet = fleet(4);
    for exit in 0..3 {
        break_exit(&mut fleet, exit, 1);
    }
    let mut rng = StdRng::seed_from_u64(1);
    let again = fleet.fault(2, Share::WHOLE, span(2), &mut rng);
    assert_eq!(again, Change::None);
    fleet.good(3, Proven::Answers, span(3));
    assert!(!fleet.panics());
    assert_eq!(fleet.gate(Time::from_secs(3)), Gate::Open);
}

#[test]
fn a_cancelled_panic_probe_frees_its_place() {
    let mut fleet = fleet(4);
    for exit in 0..3 {
        break_exit(&mut fleet, exit, 1);
    }
    let probing = Time::from_secs(6);
    for _ in 0..4 {
        assert_eq!(fleet.gate(probing), Gate::Probe);
        fleet.started(probing);
    }
    assert_eq!(fleet.gate(probing), Gate::Probing);
    fleet.neutral(span(6));
    assert_eq!(fleet.gate(probing), Gate::Probe);
}

#[test]
fn a_cancelled_probation_probe_leaves_the_exit_usable() {
    let mut fleet = fleet(1);
    break_exit(&mut fleet, 0, 1);
    let now = Time::from_secs(10);
    fleet.wake(0, now);
    fleet.started(now);
    fleet.neutral(span(10));
    assert_eq!(fleet.cap(0, now), 1);
    assert!(fleet.usable_at(0).is_some_and(|at| at <= now));
}

#[test]
fn three_failed_probes_of_the_only_exit_end_the_run_and_the_first_rest_does_not() {
    let mut fleet = fleet(1);
    let mut rng = StdRng::seed_from_u64(1);
    break_exit(&mut fleet, 0, 1);
    let mut now = Time::from_secs(1);
    for probe in 0..3 {
        assert!(!fleet.is_over(now), "before probe {probe}");
        now = fleet.usable_at(0).unwrap();
        assert_eq!(fleet.wake(0, now), Change::Probation);
        fleet.started(now);
        let span = Span {
            dispatched: now,
            now,
        };
        fleet.fault(0, Share::WHOLE, span, &mut rng);
    }
    assert!(fleet.is_over(now));
    assert!(now < Time::from_secs(60));
}

#[test]
fn an_empty_pool_and_one_whose_exits_are_all_unfit_are_over() {
    assert!(fleet(0).is_over(Time::ZERO));
    let mut fleet = fleet(2);
    for exit in 0..2 {
        assert!(!fleet.is_over(Time::ZERO));
        fleet.evict(exit, Reason::CredentialsRefused, span(1));
    }
    assert!(fleet.is_over(Time::from_secs(1)));
}

#[test]
fn a_refuted_certificate_evicts_an_exit_that_never_had_a_valid_one() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut fleet = fleet(2);
    let change = fleet.wrong_certificate(0, span(1), &mut rng);
    assert_eq!(change, Change::Evicted);
    assert_eq!(fleet.health(0).reason(), Reason::Intercepts);
    fleet.good(1, Proven::Tls, span(1));
    let change = fleet.wrong_certificate(1, span(1), &mut rng);
    assert_ne!(change, Change::Evicted);
}

#[test]
fn evidence_decides_who_may_be_charged() {
    let mut fleet = fleet(2);
    let record = Counter::default();
    let fault = Unclear {
        exit: 0,
        origin: 1,
        record: &record,
        answered_elsewhere: false,
        mute: false,
    };
    let ejects = |share: Share| share.ejects == Ejects::Yes;
    assert!(!ejects(fleet.weigh(fault)));
    let elsewhere = fleet.weigh(Unclear {
        answered_elsewhere: true,
        ..fault
    });
    assert!(ejects(elsewhere) && elsewhere.tells_of_origin());

    let mute = Unclear {
        mute: true,
        ..fault
    };
    let never_worked = fleet.weigh(mute);
    assert!(ejects(never_worked) && !never_worked.tells_of_origin());
    fleet.good(0, Proven::Answers, span(1));
    assert!(!ejects(fleet.weigh(mute)), "it has worked before");

    for origin in 1..3 {
        assert!(!ejects(fleet.weigh(Unclear { origin, ..fault })));
    }
    assert!(ejects(fleet.weigh(Unclear { origin: 3, ..fault })));
}
